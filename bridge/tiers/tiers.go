package tiers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Default capacities, in tasks of one session.
const (
	// DefaultL1 is how many tasks are recent.
	DefaultL1 = 50
	// DefaultL2 is how many important ones are at hand.
	DefaultL2 = 100
	// DefaultL3 is how many summaries there are.
	DefaultL3 = 500
)

// promoteTime bounds the promotion after a task, which the caller waits for.
const promoteTime = 10 * time.Second

// The tiers of records.
const (
	tierLog     = 1 // no records: the last tasks of a session
	tierWorking = 2
	tierSummary = 3
)

// Options adjusts Tiers. Nil and zero fields mean the defaults.
type Options struct {
	// L1, L2 and L3 are the capacities of the tiers, for each session. Defaults
	// DefaultL1, DefaultL2 and DefaultL3. L2 and L3 begin to move tasks on when they
	// are nine tenths full. A tier exceeds its capacity while moves to the next tier
	// fail.
	L1, L2, L3 int
	// Logger receives promotions that failed. Default silent.
	Logger *slog.Logger
}

// Tiers are the tiers of all agents. They keep no lasting state: the log and the records
// hold all of it. All methods are safe for concurrent use.
type Tiers struct {
	log    *session.Log
	store  *memory.Store
	writer *kv.Writer
	opts   Options

	mu    sync.Mutex
	turns map[sessionKey]*turn // guarded by mu; of sessions that promote or wait to
}

// sessionKey is a session of an agent.
type sessionKey struct {
	scope   kv.Scope
	session string
}

// turn is the right to promote in a session.
type turn struct {
	busy  chan struct{} // holds one token
	users int           // guarded by Tiers.mu
}

// New returns the tiers over a log, a store and the writer of both. All stay the
// caller's.
func New(log *session.Log, store *memory.Store, writer *kv.Writer, opts *Options) *Tiers {
	t := &Tiers{log: log, store: store, writer: writer, turns: make(map[sessionKey]*turn)}
	if opts != nil {
		t.opts = *opts
	}
	for _, c := range []struct {
		capacity *int
		standard int
	}{{&t.opts.L1, DefaultL1}, {&t.opts.L2, DefaultL2}, {&t.opts.L3, DefaultL3}} {
		if *c.capacity <= 0 {
			*c.capacity = c.standard
		}
	}
	if t.opts.Logger == nil {
		t.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return t
}

// Add adds a task to the log, as session.Log.AddTask does, and moves up what is due
// then. An error says that the task was not added.
func (t *Tiers) Add(ctx context.Context, scope kv.Scope, task session.Task) (session.Task, error) {
	added, err := t.log.AddTask(ctx, scope, task)
	if err != nil {
		return session.Task{}, err
	}
	t.Added(ctx, scope, added.SessionID)
	return added, nil
}

// Added promotes after a task was added in another way than by Add, for at most ten
// seconds even if ctx has ended. A failure is logged: the task is added all the same, and
// the promotion after the next task repeats it.
func (t *Tiers) Added(ctx context.Context, scope kv.Scope, sessionID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promoteTime)
	defer cancel()
	if err := t.Promote(ctx, scope, sessionID); err != nil {
		t.opts.Logger.WarnContext(ctx, "task not promoted", "scope", scope.String(), "session", sessionID, "error", err)
	}
}

// enter waits for the turn of a session, and returns the function that ends it.
func (t *Tiers) enter(ctx context.Context, p sessionKey) (leave func(), err error) {
	t.mu.Lock()
	own := t.turns[p]
	if own == nil {
		own = &turn{busy: make(chan struct{}, 1)}
		t.turns[p] = own
	}
	own.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.turns, p)
		}
	}
	select {
	case own.busy <- struct{}{}:
		return func() { <-own.busy; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
