package kvtest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrFault is what a planned failure answers unless the plan says otherwise.
var ErrFault = errors.New("kvtest: planned failure")

// FailurePlan says which calls of an engine fail. Calls are counted from one; zero
// fails none.
type FailurePlan struct {
	// Commit is the number of the commit that fails.
	Commit int
	// Read is the number of the read that fails: Get, Scan (when its loop
	// begins), Sequence and LastCommits, including reads of snapshots, and Snapshot itself.
	Read int
	// Err is the answer. Default ErrFault.
	Err error
	// Delay is how long each read takes, as on a slow disk or a far engine. Use it in
	// a bubble of testing/synctest.
	Delay time.Duration
	// Repeat lets all later calls of the kind fail as well.
	Repeat bool
	// Before runs before each commit is passed on, on its caller's goroutine. It
	// gets the engine behind the wrapper, for what somebody else writes at the
	// worst moment.
	Before func(behind kv.Engine, c kv.Commit)
	// Written passes a failing commit on first, so that it is there although
	// it was not acknowledged. Use it with kv.ErrUnknownOutcome.
	Written bool
	// Choose decides about each call instead of the fields above, on its caller's
	// goroutine: with which error it fails, and whether a failing commit is written
	// nevertheless. It may block. Default: the fields decide.
	Choose func(commit bool) (written bool, fault error)
}

// FaultyEngine is an engine some of whose calls fail. It offers none of the
// optional interfaces. All methods are safe for concurrent use.
type FaultyEngine struct {
	engine kv.Engine

	mu      sync.Mutex
	plan    FailurePlan // guarded by mu
	commits int         // guarded by mu
	reads   int         // guarded by mu
}

var _ kv.Engine = (*FaultyEngine)(nil)

// Faulty wraps engine, which stays its maker's to close, directly or through
// the wrapper.
func Faulty(engine kv.Engine, plan FailurePlan) *FaultyEngine {
	return &FaultyEngine{engine: engine, plan: plan}
}

// Replan replaces the plan; counting starts again.
func (f *FaultyEngine) Replan(plan FailurePlan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.commits, f.reads = plan, 0, 0
}

// Calls returns how many commits and reads there were since the plan was made.
func (f *FaultyEngine) Calls() (commits, reads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commits, f.reads
}

// Get is kv.Reader's.
func (f *FaultyEngine) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	return faultyReader{f, f.engine}.Get(ctx, ks, keys...)
}

// Scan is kv.Reader's.
func (f *FaultyEngine) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return faultyReader{f, f.engine}.Scan(ctx, ks, r)
}

// Sequence is kv.Reader's.
func (f *FaultyEngine) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	return faultyReader{f, f.engine}.Sequence(ctx, refs...)
}

// LastCommits is kv.Engine's.
func (f *FaultyEngine) LastCommits(ctx context.Context, refs ...kv.Ref) ([]kv.LastCommit, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.engine.LastCommits(ctx, refs...)
}

// Snapshot is kv.Engine's.
func (f *FaultyEngine) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	s, err := f.engine.Snapshot(ctx, refs...)
	if err != nil {
		return nil, err
	}
	return faultySnapshot{faultyReader{f, s}, s}, nil
}

// Commit is kv.Engine's.
func (f *FaultyEngine) Commit(ctx context.Context, c kv.Commit) error {
	plan, fault := f.commit()
	if plan.Before != nil {
		plan.Before(f.engine, c)
	}
	written := plan.Written
	if plan.Choose != nil {
		written, fault = plan.Choose(true)
	}
	if fault != nil && !written {
		return fault
	}
	return errors.Join(fault, f.engine.Commit(ctx, c))
}

// Close is kv.Engine's. It never fails by plan.
func (f *FaultyEngine) Close() error { return f.engine.Close() }

func (f *FaultyEngine) commit() (plan FailurePlan, fault error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits++
	return f.plan, f.plan.fault(f.plan.Commit, f.commits)
}

func (f *FaultyEngine) read() error {
	f.mu.Lock()
	if choose := f.plan.Choose; choose != nil {
		f.mu.Unlock()
		_, fault := choose(false)
		return fault
	}
	defer f.mu.Unlock()
	f.reads++
	if delay := f.plan.Delay; delay > 0 {
		f.mu.Unlock() // who waits for a mutex keeps a bubble's time from passing
		time.Sleep(delay)
		f.mu.Lock()
	}
	return f.plan.fault(f.plan.Read, f.reads)
}

// fault returns the planned error if call is the planned one.
func (p FailurePlan) fault(planned, call int) error {
	if planned == 0 || call < planned || (call > planned && !p.Repeat) {
		return nil
	}
	if p.Err != nil {
		return p.Err
	}
	return ErrFault
}

// faultyReader reads from an engine or a snapshot of it.
type faultyReader struct {
	f    *FaultyEngine
	from kv.Reader
}

func (r faultyReader) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	if err := r.f.read(); err != nil {
		return nil, err
	}
	return r.from.Get(ctx, ks, keys...)
}

func (r faultyReader) Scan(ctx context.Context, ks kv.Keyspace, of kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		if err := r.f.read(); err != nil {
			yield(kv.Pair{}, err)
			return
		}
		r.from.Scan(ctx, ks, of)(yield)
	}
}

func (r faultyReader) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if err := r.f.read(); err != nil {
		return nil, err
	}
	return r.from.Sequence(ctx, refs...)
}

type faultySnapshot struct {
	faultyReader
	snapshot kv.Snapshot
}

func (s faultySnapshot) Sequences() []uint64 { return s.snapshot.Sequences() }

func (s faultySnapshot) Close() error { return s.snapshot.Close() }
