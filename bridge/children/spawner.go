package children

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Defaults of Options.
const (
	// DefaultMaxDepth is how deep an agent may be that has no children.
	DefaultMaxDepth = 5
	// DefaultMaxChildren bounds the children of one parent that live at once.
	DefaultMaxChildren = 1024
	// DefaultMaxTenant bounds the children of a tenant.
	DefaultMaxTenant = 10_240
	// DefaultGrace is how long a child may be away whose stream has ended.
	DefaultGrace = 10 * time.Second
)

// Deps are what a Spawner works with. All are required; they stay the caller's to close,
// after the spawner.
type Deps struct {
	Store  *Store
	Writer *kv.Writer
	Log    *session.Log
	Hand   Recorder
	Blobs  Blobs
	// Keep stages that a blob of an owner is kept for good. The commit names the owner's
	// kv.Blobs among its refs.
	Keep func(ctx context.Context, tx *kv.Tx, owner kv.Scope, e blob.Entry) error
	// Folders makes the workspaces of children.
	Folders Folders
	// Forks says what forks begin with.
	Forks Forks
	// Notifier notifies agents of children and results.
	Notifier Notifier
	// InUse reports whether an agent is known outside the store, for example because it is
	// attached.
	InUse func(tenant, agent string) bool
	// ToolName is the own name of a tool that a tenant's agents can call, HasProfile
	// reports whether a profile exists.
	ToolName   func(tenant, name string) (string, bool)
	HasProfile func(name string) bool
}

// Recorder records the steps of parents. *hand.Hand is one.
type Recorder interface {
	Record(ctx context.Context, r hand.Recorded) (hand.Answer, error)
}

// Blobs finds blobs that are granted. *blob.Store is one.
type Blobs interface {
	Lookup(ctx context.Context, scope kv.Scope, name string) (blob.Entry, error)
}

// Forks says what forks begin with.
type Forks interface {
	// ForkPoint is what a fork of a session takes over from one of its prompts, the last
	// where no id is given, in a form that makes prompts.
	ForkPoint(ctx context.Context, scope kv.Scope, sessionID, promptID string) ([]byte, error)
}

// Folders makes the workspaces of children. *Workspaces is one.
type Folders interface {
	// Make makes the folder of a child, which must not be there.
	Make(scope kv.Scope) error
	// Remove removes a folder that Make made, if nothing is in it.
	Remove(scope kv.Scope)
}

// Notifier notifies agents of their children. A notification that failed is repeated a
// little later, and after a restart of the server.
type Notifier interface {
	// Spawned notifies a child that it was spawned, Returned a parent that its child has a
	// result. Repeating either does nothing.
	Spawned(ctx context.Context, c *Child) error
	Returned(ctx context.Context, c *Child) error
}

var (
	_ Recorder = (*hand.Hand)(nil)
	_ Blobs    = (*blob.Store)(nil)
	_ Folders  = (*Workspaces)(nil)
)

// Options adjusts a Spawner. Nil and zero fields mean the defaults.
type Options struct {
	// MaxChildren bounds the live children of a parent, MaxTenant the live children of a
	// tenant. Defaults DefaultMaxChildren and DefaultMaxTenant.
	MaxChildren, MaxTenant int
	// Grace is how long a child may be away whose stream has ended. Default DefaultGrace.
	Grace time.Duration
	// Holder returns the name of this server on the store, and Ended reports whether the
	// server of a name has ended. Defaults: no name; all others have ended.
	Holder func() string
	Ended  func(ctx context.Context, holder string) (bool, error)
	// Changed is closed when another server has come to the store or has ended, whose
	// children are taken up then. Default: none does.
	Changed func() <-chan struct{}
	// Attached reports whether an agent has a stream, as far as this server knows. Default:
	// it has none.
	Attached func(tenant, agent string) bool
	// OnResult is called when a child has its result, for Spawner.Returned of other bridges
	// on the store. It must not block. Default: nothing is called.
	OnResult func(child, parent kv.Scope)
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs results that could not be recorded. Default silent.
	Logger *slog.Logger
}

// Spawner makes children and takes their results. All methods are safe for concurrent
// use.
type Spawner struct {
	Deps
	opts    Options
	shared  bool          // other servers may have the store
	wake    chan struct{} // holds a token when there is something to plan
	running sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	stop    func()     // ends the watch
	closed  bool
	ended   map[string]int64 // children that got their results, by outcome
	live    map[kv.Scope]*life
	parents map[kv.Scope]int // how many live children a parent has
	tenants map[string]int
	// making has the children that are being made; true for one whose result came before
	// its spawner heard that it was made.
	making  map[kv.Scope]bool
	changed map[kv.Scope]*waiters // by parent
	// unsure has the children about which the store is to be asked.
	unsure map[kv.Scope]question
	// findAt is when the live children are compared with the store, zero for never; findAll
	// says that other servers have come or ended since.
	findAt  time.Time
	findAll bool
}

// life is a child that lives.
type life struct {
	parent   kv.Scope
	deadline time.Time // zero for none
	// attached says that it was attached once, goneAt when it is taken for lost because it
	// is not any more; zero while it is.
	attached bool
	goneAt   time.Time
	// notified says that the child was notified of its spawn.
	notified bool
	// noted says that it is noted where it was attached: at the server notedAt. noteAt is
	// when to try again to note it.
	noted   bool
	notedAt string
	noteAt  time.Time
	// ending says that its result is being recorded, retryAt when to try again.
	ending  bool
	retryAt time.Time
}

// New returns a spawner. Call Start before the first agent comes.
func New(d Deps, opts *Options) *Spawner {
	s := &Spawner{
		Deps: d, wake: make(chan struct{}, 1), stop: func() {},
		ended: map[string]int64{}, live: map[kv.Scope]*life{}, parents: map[kv.Scope]int{}, tenants: map[string]int{}, making: map[kv.Scope]bool{},
		changed: map[kv.Scope]*waiters{}, unsure: map[kv.Scope]question{},
	}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	for field, byDefault := range map[*int]int{&o.MaxChildren: DefaultMaxChildren, &o.MaxTenant: DefaultMaxTenant} {
		if *field <= 0 {
			*field = byDefault
		}
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Holder == nil {
		o.Holder = func() string { return "" }
	}
	if o.Ended == nil {
		o.Ended = func(context.Context, string) (bool, error) { return true, nil }
	}
	if s.shared = o.Changed != nil; !s.shared {
		o.Changed = func() <-chan struct{} { return nil }
	}
	if o.Attached == nil {
		o.Attached = func(string, string) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// Start finds the live children, reports results that were not reported before the server stopped, and
// from then on watches them and the children of other servers on the store. If several servers watch
// a child, one of them gives it its result. A child that was attached to an ended server gets the grace
// period, from then on, to reconnect. Children that can't be read because the store is damaged are
// logged.
func (s *Spawner) Start(ctx context.Context) error {
	found, err := s.find(ctx)
	switch {
	case errors.Is(err, kv.ErrDamaged):
		s.opts.Logger.Error("children that live can't be read", "error", err)
	case err != nil:
		return err
	}
	for _, scope := range found {
		s.ask(ctx, scope, question{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { s.watch(ctx) })
	return nil
}

// Close stops watching over children. Those that live are found by the next Start.
func (s *Spawner) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.stop()
		for _, w := range s.changed {
			close(w.done)
		}
		clear(s.changed)
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// Spawned reports whether an agent was spawned.
func (s *Spawner) Spawned(scope kv.Scope) bool { return s.Store.Is(scope) }

// Acts is an error for an agent that does nothing any more.
func (s *Spawner) Acts(ctx context.Context, scope kv.Scope) error { return s.Store.Acts(ctx, scope) }

// Permit is Acts for a call that asks on its way; nil where that saves nothing.
func (s *Spawner) Permit(scope kv.Scope) *kv.Permit { return s.Store.Permit(scope) }

// Given are the tools that an agent may call.
func (s *Spawner) Given(ctx context.Context, scope kv.Scope) (Given, error) {
	return s.Store.Tools(ctx, scope)
}

// Stats counts children.
type Stats struct {
	// Live are those without a result.
	Live int
	// Ended counts the results since the server was started, by outcome (Outcomes).
	Ended map[string]int64
}

// Stats returns how many children there are.
func (s *Spawner) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{len(s.live), maps.Clone(s.ended)}
}

// add counts a child that lives, once. It reports whether it was not counted before.
func (s *Spawner) add(c *Child, l life) bool {
	scope := c.Scope()
	s.mu.Lock()
	if s.live[scope] != nil || s.making[scope] {
		s.mu.Unlock()
		return false
	}
	l.parent, l.deadline = c.parentScope(), c.Deadline
	s.live[scope] = &l
	if s.shared && s.findAt.IsZero() {
		s.findAt = s.opts.Now().Add(compareEvery)
	}
	s.parents[l.parent]++
	s.tenants[c.Tenant]++
	s.plan()
	s.mu.Unlock()
	if s.opts.Attached(scope.Tenant, scope.Owner) {
		s.Attached(scope.Tenant, scope.Owner, true)
		// Its stream may have ended in between, which is not reported again.
		if !s.opts.Attached(scope.Tenant, scope.Owner) {
			s.Attached(scope.Tenant, scope.Owner, false)
		}
	}
	return true
}

// leave counts a child out that has its result.
func (s *Spawner) leave(scope, parent kv.Scope, outcome string) {
	s.mu.Lock()
	s.ended[outcome]++
	s.mu.Unlock()
	s.Returned(scope, parent)
	if s.opts.OnResult != nil {
		s.opts.OnResult(scope, parent)
	}
}

// Returned says that a child has its result, which this or another bridge has stored, and
// wakes waiters for children of its parent.
func (s *Spawner) Returned(scope, parent kv.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.live[scope]; ok {
		delete(s.live, scope)
		s.uncount(l.parent)
	}
	if _, ok := s.making[scope]; ok {
		s.making[scope] = true
	}
	if w, ok := s.changed[parent]; ok {
		close(w.done)
		delete(s.changed, parent)
	}
}

// uncount gives the place of a child of a parent free. The caller holds mu.
func (s *Spawner) uncount(parent kv.Scope) {
	if s.parents[parent]--; s.parents[parent] == 0 {
		delete(s.parents, parent)
	}
	if s.tenants[parent.Tenant]--; s.tenants[parent.Tenant] == 0 {
		delete(s.tenants, parent.Tenant)
	}
}

// plan wakes the watch.
func (s *Spawner) plan() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
