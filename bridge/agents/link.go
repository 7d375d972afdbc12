package agents

import (
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// OpenOptions describes a stream.
type OpenOptions struct {
	// Heartbeat is how often the agent will send one; 0 means that none are
	// expected, and the open stream alone keeps the agent active.
	Heartbeat time.Duration
}

// Link is one open stream. All methods are safe for concurrent use. Whoever
// opened it closes it.
type Link struct {
	directory    *Directory
	tenant, id   string
	generation   uint64
	registration Registration
	heartbeat    time.Duration
	calls        *queue[PushedCall]
	direct       *queue[events.Event]
	done         chan struct{}

	lastBeat time.Time // guarded by the directory's mu
	leaving  bool      // guarded by the directory's mu

	gap      gapKey
	gapLost  bool          // guarded by the gap keeper's mu: nothing is marked any more
	gapTaken chan struct{} // closed by the gap keeper, once
	// gapTakenAt is written before gapTaken is closed, and never again.
	gapTakenAt time.Time

	mu      sync.Mutex // guards the fields below
	ended   bool
	pending map[string]pendingCall
	bytes   int         // of the pending calls
	callers *share.Pool // of their number, shared by the agents that call
}

// pendingCall is a call that is not answered yet.
type pendingCall struct {
	answer chan<- outcome
	bytes  int
	place  *share.Holding
}

// Open opens a stream of an agent. The agent need not be registered, and its id
// may be anything, even empty. A *share.LimitError says that there are too many, and
// ErrClosed that the directory is closed.
func (d *Directory) Open(tenant, id string, opts OpenOptions) (*Link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, err := d.entryToOpen(tenant, id)
	if err != nil {
		return nil, err
	}
	d.lastGeneration = d.after(d.lastGeneration)
	link := &Link{
		directory:    d,
		tenant:       tenant,
		id:           id,
		generation:   d.lastGeneration,
		registration: e.registration,
		heartbeat:    max(0, opts.Heartbeat),
		calls:        newQueue[PushedCall](d.opts.QueueCalls),
		direct:       newQueue[events.Event](queueDirect),
		done:         make(chan struct{}),
		lastBeat:     d.now(),
		gap:          newGapKey(tenant, id),
		gapTaken:     make(chan struct{}),
		pending:      make(map[string]pendingCall),
		callers:      share.New(share.Options{Name: "calls of one agent's tools", Total: int64(d.opts.PendingCalls), OneTenant: true}),
	}
	e.links = append(e.links, link)
	e.tenant.streams++
	e.hidden, e.left, e.lastSeen = false, false, link.lastBeat
	d.report(e)
	d.touch(e)
	d.plan(link.overdueAt(DefaultMissedHeartbeats))
	return link, nil
}

// overdueAt is when too many heartbeats are missing; zero for never.
func (l *Link) overdueAt(missed int) time.Time {
	if l.heartbeat == 0 {
		return time.Time{}
	}
	return l.lastBeat.Add(time.Duration(missed) * l.heartbeat)
}

// Generation is the number of the link in this directory; later links have higher ones. So
// do links opened later by other bridges on the store, as far as these reach each other.
func (l *Link) Generation() uint64 { return l.generation }

// Registration returns the agent's registration as it was when the link was
// opened.
func (l *Link) Registration() Registration { return l.registration }

// Calls yields the calls that the agent is to answer. It is closed when the link
// is.
func (l *Link) Calls() <-chan PushedCall { return l.calls.out }

// Direct yields the events for this stream alone. It is never closed.
func (l *Link) Direct() <-chan events.Event { return l.direct.out }

// SetTopics changes what the agent listens to, if this is its newest stream.
func (l *Link) SetTopics(topics []string) {
	d := l.directory
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entryOf(l); e != nil && e.links[len(e.links)-1] == l {
		e.registration.Topics = unique(topics)
		d.touch(e)
	}
}

// Done is closed when the link is, by its owner or with the directory.
func (l *Link) Done() <-chan struct{} { return l.done }

// GapTaken is closed when a newer stream of the agent has taken this one's gap (TakeGap).
// From then on the newer stream delivers the missed events.
func (l *Link) GapTaken() <-chan struct{} { return l.gapTaken }

// GapTakenAt is when GapTaken was closed; zero as long as it is open.
func (l *Link) GapTakenAt() time.Time {
	select {
	case <-l.gapTaken:
		return l.gapTakenAt
	default:
		return time.Time{}
	}
}

// Heartbeat notes a heartbeat of the agent.
func (l *Link) Heartbeat() {
	d := l.directory
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entryOf(l); e != nil {
		l.lastBeat = d.now()
		e.lastSeen = l.lastBeat
		d.report(e)
		d.plan(l.overdueAt(DefaultMissedHeartbeats))
	}
}

// Leave is Close for an agent that has said that it leaves. When it was its last
// link, others may take the names of its tools.
func (l *Link) Leave() {
	d := l.directory
	d.mu.Lock()
	l.leaving = true
	d.mu.Unlock()
	l.Close()
}

// Close ends the link: its pending calls fail at once with a *NotConnectedError, and it
// leaves the directory. Other links don't change. Closing twice is harmless.
func (l *Link) Close() {
	if l.directory.detach(l) {
		l.stop()
	}
}

// stop ends the link's calls. Call it once.
func (l *Link) stop() {
	l.mu.Lock()
	l.ended = true
	pending := l.pending
	l.pending, l.bytes = nil, 0
	l.mu.Unlock()
	// From here on no call is waited for, so none of those left is sent.
	for _, unsent := range l.calls.end() {
		if call, ok := pending[unsent.ID]; ok {
			call.answer <- outcome{err: &NotConnectedError{Agent: l.id}}
			delete(pending, unsent.ID)
		}
	}
	for _, call := range pending {
		call.answer <- outcome{err: &NotConnectedError{Agent: l.id, Sent: true}}
	}
	close(l.calls.out)
	l.direct.end()
	l.directory.gaps.leave(l)
	close(l.done)
}

// detach takes a link out of the directory; false when it is not there any more.
func (d *Directory) detach(l *Link) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entryOf(l)
	if e == nil {
		return false
	}
	at := slices.Index(e.links, l)
	e.links = slices.Delete(e.links, at, at+1)
	e.tenant.streams--
	d.touch(e)
	if len(e.links) > 0 {
		d.report(e)
		return true
	}
	e.left, e.parted, e.idleSince = true, l.leaving, d.now()
	d.report(e)
	if e.order == 0 {
		d.remove(e)
	} else {
		d.plan(e.idleSince.Add(d.opts.IdleRegistration))
	}
	return true
}

// seen notes when the agent was last active.
func (d *Directory) seen(l *Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entryOf(l); e != nil {
		e.lastSeen = d.now()
	}
}
