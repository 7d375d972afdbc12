package answers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

const (
	// DefaultFor is far longer than anybody repeats a request for want of an answer.
	DefaultFor = 24 * time.Hour
	// sweeps is how often within that time the answers are looked through: each is read
	// so often before it is deleted.
	sweeps = 4
	// soon is the longest time before the first sweep, which a server that is often
	// started must live to see.
	soon = time.Minute
	// batch bounds the keys that one commit deletes, and that are read at once; writers
	// of the scope wait no longer than for that. rest is the pause between two of them.
	batch = 256
	rest  = 5 * time.Millisecond
)

// Options adjusts a Sweeper. Nil and zero fields mean the defaults.
type Options struct {
	// For is how long an answer is kept at least; negative: for ever. Default
	// DefaultFor.
	For time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs sweeps that failed. Default silent.
	Logger *slog.Logger
}

// Sweeper deletes old answers. Of several processes on a store one does it for each
// tenant.
type Sweeper struct {
	engine  kv.Reader
	writer  *kv.Writer
	leases  *lease.Holder
	opts    Options
	stop    context.CancelFunc
	running sync.WaitGroup
}

// NewSweeper starts the sweeping. Engine and writer stay the caller's to close, after
// Close.
func NewSweeper(engine kv.Reader, writer *kv.Writer, opts *Options) *Sweeper {
	o := *cmp.Or(opts, &Options{})
	o.For = cmp.Or(o.For, DefaultFor)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	s := &Sweeper{engine: engine, writer: writer, leases: lease.NewHolder(engine, writer, nil), opts: o, stop: stop}
	if o.For > 0 {
		s.running.Go(func() { s.run(ctx) })
	}
	return s
}

// Close waits for a sweep under way to end. Closing twice is harmless.
func (s *Sweeper) Close() error {
	s.stop()
	s.running.Wait()
	if err := s.leases.Close(); err != nil {
		s.opts.Logger.Warn("answers: leases not given back, they run out", "error", err)
	}
	return nil
}

func (s *Sweeper) run(ctx context.Context) {
	for wait := min(s.pause(), soon); kv.Sleep(ctx, wait); wait = s.pause() {
		if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "answers: old answers of requests are not deleted", "error", err)
		}
	}
}

// pause is the time between two sweeps.
func (s *Sweeper) pause() time.Duration { return s.opts.For / sweeps }

// Sweep deletes all answers that are older than the time they are kept for, and
// returns how many those were. It leaves out tenants that another process sweeps.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	before := s.opts.Now().Add(-s.opts.For)
	deleted := 0
	for _, ks := range []kv.Keyspace{kv.Records, kv.Log, kv.Blobs, kv.System} {
		for scope, err := range kv.Scopes(ctx, s.engine, ks) {
			if err != nil {
				return deleted, err
			}
			err := s.leases.Do(ctx, lease.Tenant(scope.Tenant, "answers").Every(s.pause()), func(ctx context.Context) error {
				n, err := s.sweepScope(ctx, kv.Ref{Keyspace: ks, Scope: scope}, before)
				deleted += n
				return err
			})
			if err != nil && !errors.Is(err, lease.ErrHeld) {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// sweepScope goes through the answers of a scope, so many at a time.
func (s *Sweeper) sweepScope(ctx context.Context, ref kv.Ref, before time.Time) (deleted int, err error) {
	keys := kv.AnswersOf(ref.Scope)
	keys.Limit = batch
	for {
		var old [][]byte
		read := 0
		for pair, err := range s.engine.Scan(ctx, ref.Keyspace, keys) {
			if err != nil {
				return deleted, err
			}
			read++
			keys.Start = append(pair.Key, 0)
			if kv.AnsweredBefore(pair.Value, before) {
				old = append(old, pair.Key)
			}
		}
		n, err := s.delete(ctx, ref, old, before)
		if deleted += n; err != nil || read < batch {
			return deleted, err
		}
		if !kv.Sleep(ctx, rest) {
			return deleted, ctx.Err()
		}
	}
}

// delete deletes answers that are still old: a request may have taken the id of one
// meanwhile.
func (s *Sweeper) delete(ctx context.Context, ref kv.Ref, keys [][]byte, before time.Time) (deleted int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = s.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: []kv.Ref{ref}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		deleted = 0
		values, err := tx.Get(ctx, ref.Keyspace, keys...)
		if err != nil {
			return err
		}
		for i, kept := range values {
			if kv.AnsweredBefore(kept, before) {
				tx.Delete(ref.Keyspace, keys[i])
				deleted++
			}
		}
		return nil
	}}))
	if err != nil {
		return 0, err
	}
	return deleted, nil
}
