package kv

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv/span"
)

// Limits of the writer.
const (
	// DefaultMaxWaiting bounds the calls that wait for the same refs.
	DefaultMaxWaiting = 4096
	// maxJoined bounds the calls of one commit, so that the first of them does
	// not wait for all that keep coming.
	maxJoined = 256
	// maxJoinedBytes ends a commit early: a larger one syncs no faster.
	maxJoinedBytes = 4 << 20
	// maxAttempts bounds how often a commit is repeated after a conflict. Calls
	// of one writer take turns and blind writes raise no sequence, so the cause is
	// another writer on the same store, such as another process, or a blind write
	// to a key that the stage watches. From the fourth on there is a pause.
	maxAttempts = 64
	// maxExpected bounds the remembered sequences.
	maxExpected = 1 << 14
)

// Stage reads a view and adds writes to it. It must be pure and re-runnable:
// it may run more than once, on other goroutines than the caller's, and only the results of
// its last run count. An error that it returns ends the call and leaves nothing behind.
type Stage func(ctx context.Context, tx *Tx) error

// Request is one caller's part of a commit.
type Request struct {
	// Refs are what the stage reads and writes. It has them to itself: calls
	// that share a ref run one after another, and the commit is refused and
	// repeated when somebody else changed one.
	Refs []Ref
	// Blind are refs it writes without reading: no commit waits for it, no
	// commit is refused because of it, and who has read one of its keys does not
	// notice. Keys that somebody reads, and writes or deletes because of what they
	// hold, must be read by Tx.Watch there.
	Blind []Ref
	// Foresee says what the stage will read of its view, as far as that is known before.
	Foresee Foresight
	// Stage does the work.
	Stage Stage
	// Lazy acknowledges before the commit is on disk (see Commit.Lazy).
	Lazy bool
	// Large lets the commit have up to MaxLargeBytes (see Commit.Large).
	Large bool
}

// WriterOptions adjusts a Writer. Nil and zero fields mean the defaults.
type WriterOptions struct {
	// MaxWaiting bounds the calls waiting for the same refs; one more is a
	// *LimitError. Default DefaultMaxWaiting.
	MaxWaiting int
	// Gate bounds what tenants store. Default: nothing does.
	Gate Gate
}

// Writer lets many callers share one engine. Calls that name the same refs and
// wait at the same time are staged one after another and share one commit.
// All methods are safe for concurrent use.
type Writer struct {
	engine     Engine
	maxWaiting int
	gate       Gate     // nil: none
	reserver   Reserver // nil: the engine is none
	running    sync.WaitGroup
	bars       atomic.Pointer[map[Scope]error] // nil: none

	mu      sync.Mutex // guards the fields below, and what bars points to
	closed  bool
	current *generation
	queues  map[string]*queue
	turns   map[Ref]*turn
	// expected remembers the sequences of this writer's own commits, which
	// saves reading them. A wrong guess costs a conflict, never correctness.
	expected map[Ref]uint64
}

// call is one Do in flight.
type call struct {
	ctx   context.Context
	req   Request
	bound *bound // nil: the gate is not asked
	err   error  // set before the call is answered

	told  chan bool // gets true to lead, false when answered; never blocks
	leads bool      // guarded by the writer's mu
}

// NewWriter returns a writer on engine, which stays the caller's to close,
// after the writer.
func NewWriter(engine Engine, opts *WriterOptions) *Writer {
	w := &Writer{
		engine:     engine,
		maxWaiting: DefaultMaxWaiting,
		current:    new(generation),
		queues:     make(map[string]*queue),
		turns:      make(map[Ref]*turn),
		expected:   make(map[Ref]uint64),
	}
	w.reserver, _ = engine.(Reserver)
	if opts != nil {
		w.gate = opts.Gate
		if opts.MaxWaiting > 0 {
			w.maxWaiting = opts.MaxWaiting
		}
	}
	return w
}

// Do stages and commits one request. Nil means: written, as durable as requested. A context
// that ends while the call waits for its turn takes it out; once staging began, Do waits
// for the outcome.
func (w *Writer) Do(ctx context.Context, req Request) (err error) {
	ctx, end := span.Start(ctx, "commit", "")
	defer func() { end(err) }()
	began, err := w.begin()
	if err != nil {
		return err
	}
	defer w.end(began)
	c := &call{ctx: ctx, req: req, bound: boundOf(ctx), told: make(chan bool, 2)}
	if len(req.Refs) == 0 {
		w.commitGroup(nil, []*call{c}, nil, nil)
		return c.err
	}
	q, err := w.enqueue(c)
	if err != nil {
		return err
	}
	select {
	case lead := <-c.told:
		return w.proceed(q, c, lead)
	case <-ctx.Done():
		if w.withdraw(q, c) {
			return ctx.Err()
		}
		return w.proceed(q, c, <-c.told)
	}
}

func (w *Writer) proceed(q *queue, c *call, lead bool) error {
	if lead {
		w.lead(q, c)
	}
	return c.err
}

// Close waits for the calls in flight. Later ones are ErrClosed.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

func (w *Writer) begin() (*generation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	w.running.Add(1)
	w.current.running.Add(1)
	return w.current, nil
}

func (w *Writer) end(began *generation) {
	began.running.Done()
	w.running.Done()
}
