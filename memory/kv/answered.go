package kv

import (
	"cmp"
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"
)

const (
	// DefaultAnsweredFor is far longer than anybody repeats a request for want of an
	// answer.
	DefaultAnsweredFor = 24 * time.Hour
	// answeredLooks is how often within that time answered requests are looked
	// through: each is read so often before it goes.
	answeredLooks = 4
	// answeredSoon is the longest time before the first look, which a server that is
	// often started must live to see.
	answeredSoon = time.Minute
	// answeredBatch bounds the keys that one commit deletes, and that are read at
	// once; writers of the scope wait no longer than for that. answeredRest is the
	// pause between two of them.
	answeredBatch = 256
	answeredRest  = 5 * time.Millisecond
)

// AnsweredOptions adjusts an Answered. Nil and zero fields mean the defaults.
type AnsweredOptions struct {
	// For is how long an answer is kept at least; negative: for ever. Default
	// DefaultAnsweredFor.
	For time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger hears of looks that failed. Default silent.
	Logger *slog.Logger
}

// Answered forgets the answers of requests (StageOnce) when they are old, in the
// background. Those in the keyspace of events go with their event instead.
type Answered struct {
	engine  Reader
	writer  *Writer
	opts    AnsweredOptions
	stop    context.CancelFunc
	running sync.WaitGroup
}

// NewAnswered starts forgetting. Engine and writer stay the caller's to close, after
// Close.
func NewAnswered(engine Reader, writer *Writer, opts *AnsweredOptions) *Answered {
	var o AnsweredOptions
	if opts != nil {
		o = *opts
	}
	o.For = cmp.Or(o.For, DefaultAnsweredFor)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &Answered{engine: engine, writer: writer, opts: o, stop: stop}
	if o.For > 0 {
		a.running.Go(func() { a.run(ctx) })
	}
	return a
}

// Close waits for a look under way to end. Closing twice is harmless.
func (a *Answered) Close() error {
	a.stop()
	a.running.Wait()
	return nil
}

func (a *Answered) run(ctx context.Context) {
	pause := a.opts.For / answeredLooks
	for wait := min(pause, answeredSoon); sleep(ctx, wait); wait = pause {
		if _, err := a.Sweep(ctx); err != nil && ctx.Err() == nil {
			a.opts.Logger.WarnContext(ctx, "old answers of requests are not deleted", "error", err)
		}
	}
}

// sleep tells whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Sweep forgets all answers that are older than the time they are kept for, and
// returns how many those were. An Answered does so by itself.
func (a *Answered) Sweep(ctx context.Context) (int, error) {
	before := a.opts.Now().Add(-a.opts.For)
	forgotten := 0
	for _, ks := range []Keyspace{Records, Log, Blobs} {
		for scope, err := range Scopes(ctx, a.engine, ks) {
			if err != nil {
				return forgotten, err
			}
			n, err := a.sweepScope(ctx, Ref{ks, scope}, before)
			if forgotten += n; err != nil {
				return forgotten, err
			}
		}
	}
	return forgotten, nil
}

// sweepScope goes through the answers of a scope, so many at a time.
func (a *Answered) sweepScope(ctx context.Context, ref Ref, before time.Time) (forgotten int, err error) {
	keys := Prefix(ref.Scope.Key(onceTag))
	keys.Limit = answeredBatch
	for {
		var old [][]byte
		read := 0
		for pair, err := range a.engine.Scan(ctx, ref.Keyspace, keys) {
			if err != nil {
				return forgotten, err
			}
			read++
			keys.Start = append(pair.Key, 0)
			if isOld(pair.Value, before) {
				old = append(old, pair.Key)
			}
		}
		n, err := a.forget(ctx, ref, old, before)
		if forgotten += n; err != nil || read < answeredBatch {
			return forgotten, err
		}
		if !sleep(ctx, answeredRest) {
			return forgotten, ctx.Err()
		}
	}
}

// isOld tells whether an answer was given before a time. What can't be read is not
// touched.
func isOld(kept []byte, before time.Time) bool {
	return len(kept) >= onceHeader && int64(binary.BigEndian.Uint64(kept[onceDigest:])) < before.UnixNano()
}

// forget deletes answers that are still old: a request may have taken the id of one
// meanwhile.
func (a *Answered) forget(ctx context.Context, ref Ref, keys [][]byte, before time.Time) (forgotten int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = a.writer.Do(ctx, Request{Refs: []Ref{ref}, Lazy: true, Stage: func(ctx context.Context, tx *Tx) error {
		forgotten = 0
		values, err := tx.Get(ctx, ref.Keyspace, keys...)
		if err != nil {
			return err
		}
		for i, kept := range values {
			if isOld(kept, before) {
				tx.Delete(ref.Keyspace, keys[i])
				forgotten++
			}
		}
		return nil
	}})
	if err != nil {
		return 0, err
	}
	return forgotten, nil
}
