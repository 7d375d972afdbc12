package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

const (
	// sweepEvery is the longest time between two looks; a shorter age shortens it, down to
	// sweepPause.
	sweepEvery = time.Hour
	sweepPause = 10 * time.Millisecond
	// firstSweep is how soon the first look comes, so that what became too old while no
	// server ran does not wait.
	firstSweep = time.Second
	// sweepAgain is how soon the next look comes after one that failed; each further one
	// that fails doubles it.
	sweepAgain = 10 * time.Second
	// maxRemembered bounds the memories of which it is known when a look is worth it; of
	// more the others are looked at each time.
	maxRemembered = 100_000
)

// Options adjusts a Sweeper. Nil and zero fields mean the defaults.
type Options struct {
	// Records is how long records stay that are neither changed nor repeated. Default: for
	// ever.
	Records time.Duration
	// Sessions is how long sessions stay in which nothing is recorded, with all that belongs
	// to them. Default: for ever.
	Sessions time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs what can't be deleted. Default silent.
	Logger *slog.Logger
}

// Parts are what a Sweeper deletes from. They stay the caller's, to be closed after it.
type Parts struct {
	Engine kv.Engine
	Writer *kv.Writer
	Memory *memory.Store
	Log    *session.Log
	Blobs  *blob.Store
	Tiers  *tiers.Tiers
	// Busy reports whether a session in which nothing was recorded for long is in use
	// nevertheless. Nil: none is.
	Busy func(ctx context.Context, scope kv.Scope, session string) (bool, error)
	// Gone, unless nil, is called for each session that was deleted.
	Gone func(scope kv.Scope, session string)
}

// Stats are what a Sweeper has done since it was made.
type Stats struct {
	// Records and Sessions are how many it has deleted, Results the offloaded results that
	// went with sessions.
	Records, Sessions, Results int64
	// Swept is when its last look ended that found everything in order, by the clock of
	// Options; zero for none.
	Swept time.Time
	// Failing says that the last look could not delete something.
	Failing bool
}

// Sweeper deletes what is too old. Its methods are safe for concurrent use.
type Sweeper struct {
	Parts
	opts    Options
	leases  *lease.Holder
	every   time.Duration
	stop    context.CancelFunc
	running sync.WaitGroup

	records, sessions, results atomic.Int64

	sweeping sync.Mutex // held while a look is under way; guards known
	known    map[kv.Scope]look

	mu      sync.Mutex // guards the fields below
	swept   time.Time
	failing bool
}

// look describes a memory.
type look struct {
	sequence uint64    // of the index
	due      time.Time // when the first of its records becomes too old; zero: never
}

// New returns a sweeper, which begins to work if anything is to be deleted by age.
func New(parts Parts, opts *Options) *Sweeper {
	s := &Sweeper{Parts: parts, known: make(map[kv.Scope]look)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	s.leases = lease.NewHolder(parts.Engine, parts.Writer, nil)
	s.every = sweepEvery
	on := false
	for _, age := range []time.Duration{s.opts.Records, s.opts.Sessions} {
		if age > 0 {
			on, s.every = true, max(sweepPause, min(s.every, age))
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if on {
		s.running.Go(func() { s.work(ctx) })
	}
	return s
}

// Close ends the work and waits for it. Closing twice is harmless.
func (s *Sweeper) Close() error {
	s.stop()
	s.running.Wait()
	return s.leases.Close()
}

// Stats returns what was done.
func (s *Sweeper) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Records: s.records.Load(), Sessions: s.sessions.Load(), Results: s.results.Load(), Swept: s.swept, Failing: s.failing,
	}
}

func (s *Sweeper) work(ctx context.Context) {
	timer := time.NewTimer(min(s.every, firstSweep))
	defer timer.Stop()
	for again := sweepAgain; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.ErrorContext(ctx, "retention: what is too old could not be deleted", "error", err)
			timer.Reset(min(s.every, again))
			again = min(2*again, s.every)
			continue
		}
		again = sweepAgain
		timer.Reset(s.every)
	}
}

// Sweep deletes what is too old now. A scope where it fails does not keep it from the
// others; their errors are joined. Tenants that another server sweeps are left to it.
func (s *Sweeper) Sweep(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var failed []error
	if s.opts.Records > 0 {
		failed = append(failed, s.tenants(ctx, kv.Records, s.sweepRecords))
	}
	if s.opts.Sessions > 0 {
		failed = append(failed, s.tenants(ctx, kv.Log, s.sweepSessions))
	}
	err := errors.Join(failed...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing = err != nil && ctx.Err() == nil; err == nil {
		s.swept = s.opts.Now()
	}
	return err
}

// tenants calls do with the scopes of each tenant that have something in a keyspace, under
// the tenant's lease.
func (s *Sweeper) tenants(ctx context.Context, ks kv.Keyspace, do func(context.Context, kv.Scope) error) error {
	var failed []error
	for start := (kv.Range{}); ctx.Err() == nil; {
		tenant := ""
		for scope, err := range kv.ScopesIn(ctx, s.Engine, ks, start) {
			if err != nil {
				return errors.Join(append(failed, err)...)
			}
			tenant = scope.Tenant
			break
		}
		if tenant == "" {
			break
		}
		all := kv.TenantRange(tenant)
		err := s.leases.Do(ctx, lease.Tenant(tenant, "retention").Every(s.every), func(ctx context.Context) error {
			var failed []error
			for scope, err := range kv.ScopesIn(ctx, s.Engine, ks, all) {
				if err != nil {
					return errors.Join(append(failed, err)...)
				}
				if ctx.Err() != nil {
					return errors.Join(append(failed, context.Cause(ctx))...)
				}
				if err := do(ctx, scope); err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", scope, err))
				}
			}
			return errors.Join(failed...)
		})
		if err != nil && !errors.Is(err, lease.ErrHeld) {
			failed = append(failed, err)
		}
		start.Start = all.End
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// sweepRecords deletes the old records of a memory, unless it is known that it has none.
func (s *Sweeper) sweepRecords(ctx context.Context, scope kv.Scope) error {
	if scope.Kind == kv.OwnerSystem {
		return nil
	}
	sequences, err := s.Engine.Sequence(ctx, lexical.Ref(scope))
	if err != nil {
		return err
	}
	now := s.opts.Now()
	if known, ok := s.known[scope]; ok && known.sequence == sequences[0] && (known.due.IsZero() || now.Before(known.due)) {
		return nil
	}
	delete(s.known, scope)
	done, err := s.Memory.DeleteAged(ctx, scope, now.Add(-s.opts.Records))
	s.records.Add(int64(done.Deleted))
	if err != nil || done.Deleted > 0 || len(s.known) >= maxRemembered {
		return err
	}
	next := look{sequence: sequences[0]}
	if !done.Oldest.IsZero() {
		next.due = done.Oldest.Add(s.opts.Records)
	}
	s.known[scope] = next
	return nil
}
