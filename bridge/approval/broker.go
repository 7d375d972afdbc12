package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// DefaultWait is how long a call waits for a person.
	DefaultWait = 2 * time.Minute
	// MaxPending bounds the calls of a tenant that wait.
	MaxPending = 256
)

var (
	// ErrNotFound: no call waits under that id, or no grant has it.
	ErrNotFound = errors.New("approval: not found")
	// ErrNotAllowed: the caller may not decide that.
	ErrNotAllowed = errors.New("approval: not allowed")
)

// Request is a call that waits.
type Request struct {
	// ID names it; Ask sets it, and Expires.
	ID                             string
	Tenant, Agent, Session, CallID string
	// Above are the ancestors of the calling agent, nearest first: an approval remembered
	// for an agent holds as long as its ancestors stay the same.
	Above []string
	// Tool is the one that was called.
	Tool       string
	Capability policy.Capability
	// Describe returns what a person is shown; it is called when somebody is to be asked. Nil:
	// Sheet is what they are shown.
	Describe func(ctx context.Context) (Sheet, error)
	Sheet
	Time, Expires time.Time
}

// Ruling is what came of asking.
type Ruling string

// The answers. Those of a person are Denied, Once and the scopes of a grant.
const (
	Denied     Ruling = "denied"
	Once       Ruling = "once"
	ForSession Ruling = "session"
	ForAgent   Ruling = "agent"
	ForAll     Ruling = "always"
	TimedOut   Ruling = "timeout"
	Unattended Ruling = "unattended" // no watcher, so no person was asked
)

// MaxNoteBytes bounds the words that go with an answer.
const MaxNoteBytes = 1000

// Answer is what came of asking, and what the person said beside it. The caller of a denied call
// is told the Note; that of one that may run is not.
type Answer struct {
	Ruling
	Note string
}

// Allows reports whether the call may run.
func (a Ruling) Allows() bool { return a == Once || a == ForSession || a == ForAgent || a == ForAll }

// Options adjusts a Broker. Nil and zero fields mean the defaults.
type Options struct {
	// Wait is how long a call waits for a person. Default DefaultWait.
	Wait time.Duration
	// Now is the clock of records. Default time.Now.
	Now func() time.Time
}

// Broker asks people. All methods are safe for concurrent use.
type Broker struct {
	engine kv.Reader
	writer *kv.Writer
	wait   time.Duration
	now    func() time.Time

	mu       sync.Mutex
	pending  map[string]*waiting // guarded by mu; by id
	count    map[string]int      // guarded by mu; of pending, by tenant
	watchers map[*Watcher]bool   // guarded by mu
}

// waiting is a call that waits.
type waiting struct {
	Request
	answer chan Answer // holds one
	left   bool        // guarded by Broker.mu; the caller has gone
}

// New returns a broker whose grants stand in engine. Both arguments stay the caller's.
func New(engine kv.Reader, writer *kv.Writer, opts *Options) *Broker {
	b := &Broker{
		engine: engine, writer: writer, wait: DefaultWait, now: time.Now,
		pending: map[string]*waiting{}, count: map[string]int{}, watchers: map[*Watcher]bool{},
	}
	if opts != nil {
		b.wait = cmp.Or(opts.Wait, b.wait)
		if opts.Now != nil {
			b.now = opts.Now
		}
	}
	return b
}

// Ask returns the answer to a request: from a grant, or from a person, for whom it waits at
// most for limit. An error means that no person could be asked: that of ctx, of the store, of
// Describe, or a *share.LimitError.
func (b *Broker) Ask(ctx context.Context, r Request, limit time.Duration) (Answer, error) {
	if answer, err := b.granted(ctx, r); err != nil || answer != "" {
		return Answer{Ruling: answer}, err
	}
	if r.Describe != nil && b.watched(r) {
		var err error
		if r.Sheet, err = r.Describe(ctx); err != nil {
			return Answer{}, err
		}
	}
	w, err := b.enter(r, min(limit, b.wait))
	if err != nil || w == nil {
		return Answer{Ruling: Unattended}, err
	}
	defer b.leave(w)
	// A grant may have come before the call stood among the waiting ones.
	if answer, err := b.granted(ctx, r); err != nil || answer != "" {
		return Answer{Ruling: answer}, err
	}
	defer share.Pause(ctx)()
	timer := time.NewTimer(min(limit, b.wait))
	defer timer.Stop()
	select {
	case answer := <-w.answer:
		return answer, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	b.leave(w)
	select {
	case answer := <-w.answer: // it came at the last moment, and its giver was answered that it counts
		return answer, nil
	default:
	}
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return Answer{}, fmt.Errorf("approval: wait: %w", err)
	}
	return Answer{Ruling: TimedOut}, nil
}

// watched reports whether somebody sees the calls of an agent.
func (b *Broker) watched(r Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen(r)
}

// seen is watched for a caller who holds mu.
func (b *Broker) seen(r Request) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(b.watchers)), func(w *Watcher) bool { return w.sees(r) })
}

// enter puts a call among the waiting ones; nil without a watcher.
func (b *Broker) enter(r Request, wait time.Duration) (*waiting, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.seen(r):
		return nil, nil
	case b.count[r.Tenant] >= MaxPending:
		return nil, &share.LimitError{What: "calls that wait for approval", Limit: MaxPending}
	}
	r.ID, r.Time = rand.Text(), b.now()
	r.Expires = r.Time.Add(wait)
	w := &waiting{Request: r, answer: make(chan Answer, 1)}
	b.pending[r.ID] = w
	b.count[r.Tenant]++
	b.wake()
	return w, nil
}

// leave says that a call waits no more: no answer comes from then on. Leaving twice is harmless.
func (b *Broker) leave(w *waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.left {
		return
	}
	w.left = true
	delete(b.pending, w.ID)
	if b.count[w.Tenant]--; b.count[w.Tenant] == 0 {
		delete(b.count, w.Tenant)
	}
	b.wake()
}

// wake wakes the watchers. The caller holds mu.
func (b *Broker) wake() {
	for w := range b.watchers {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// Decider is who decides.
type Decider struct {
	Tenant string
	// Agent is the one that it speaks as; it is kept with grants. Its own calls are never
	// its to decide.
	Agent string
	// Approves reports whether it may decide about the calls of an agent; All, whether about
	// the calls of every agent.
	Approves func(agent string) bool
	All      bool
}

// decides reports whether the decider may decide about a call.
func (d Decider) decides(r Request) bool { return r.Tenant == d.Tenant && d.Approves(r.Agent) }

// Decide answers a call that waits. A grant is on disk when Decide returns, and answers all
// calls that wait for the same. Of several decisions about one call the first counts; any other
// one, as one about a call that waits no more, is an ErrNotFound and changes nothing. One that
// could not be stored leaves the call waiting.
func (b *Broker) Decide(ctx context.Context, by Decider, id string, answer Answer) (Request, error) {
	w, err := b.take(by, id, answer.Ruling)
	if err != nil {
		return Request{}, err
	}
	lasting := answer.Allows() && answer.Ruling != Once
	if lasting {
		err = b.remember(ctx, by, w.Request, answer.Ruling)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	switch {
	case err != nil && !w.left:
		b.pending[id] = w
		return Request{}, err
	case err != nil:
		return Request{}, err
	case w.left && !lasting:
		return Request{}, fmt.Errorf("%w: no call waits as %q any more", ErrNotFound, id)
	}
	w.answer <- answer
	for other, o := range b.pending {
		if lasting && covers(answer.Ruling, w.Request, o.Request) {
			o.answer <- answer
			delete(b.pending, other)
		}
	}
	return w.Request, nil
}

// take removes a call from the waiting ones, so that no other decision is made about it.
func (b *Broker) take(by Decider, id string, answer Ruling) (*waiting, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.pending[id]
	switch {
	case w == nil || !by.decides(w.Request):
		return nil, fmt.Errorf("%w: no call waits as %q", ErrNotFound, id)
	case w.Agent == by.Agent:
		return nil, fmt.Errorf("%w: %q can't approve its own call", ErrNotAllowed, by.Agent)
	case answer == ForAll && !by.All:
		return nil, fmt.Errorf("%w: an approval for all agents needs a credential that approves for all agents", ErrNotAllowed)
	}
	delete(b.pending, id)
	return w, nil
}

// covers reports whether a grant for one call answers another.
func covers(scope Ruling, given, other Request) bool {
	return given.Tenant == other.Tenant && slices.Contains(covering(other.Capability), given.Capability) &&
		(scope == ForAll || given.Agent == other.Agent && slices.Equal(given.Above, other.Above) &&
			(scope == ForAgent || given.Session == other.Session))
}

// Watcher sees the calls that wait. Close it.
type Watcher struct {
	broker  *Broker
	by      Decider
	changed chan struct{} // holds one
	known   map[string]bool
}

// Watch returns a watcher of the calls that by may decide.
func (b *Broker) Watch(by Decider) *Watcher {
	w := &Watcher{broker: b, by: by, changed: make(chan struct{}, 1), known: map[string]bool{}}
	w.changed <- struct{}{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[w] = true
	return w
}

func (w *Watcher) sees(r Request) bool { return w.by.decides(r) && r.Agent != w.by.Agent }

// Close ends the watching. Closing twice is harmless.
func (w *Watcher) Close() {
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	delete(w.broker.watchers, w)
}

// Next waits for a change and returns the calls that have come, the oldest first, and the
// ids of calls that no longer wait. One goroutine at a time may call it.
func (w *Watcher) Next(ctx context.Context) (came []Request, gone []string, err error) {
	for len(came)+len(gone) == 0 {
		select {
		case <-w.changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		came, gone = w.look()
	}
	return came, gone, nil
}

func (w *Watcher) look() (came []Request, gone []string) {
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	for id, p := range w.broker.pending {
		if !w.known[id] && w.sees(p.Request) {
			came = append(came, p.Request)
			w.known[id] = true
		}
	}
	for id := range w.known {
		if w.broker.pending[id] == nil {
			gone = append(gone, id)
			delete(w.known, id)
		}
	}
	slices.SortFunc(came, func(a, b Request) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
	slices.Sort(gone)
	return came, gone
}
