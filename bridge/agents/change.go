package agents

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Limits of the changes that wait to be reported.
const (
	// maxChanges is more than all agents of a tenant that come back at once.
	maxChanges = 1 << 16
	// maxChangesBytes bounds their memory: enough for maxChanges with short names.
	maxChangesBytes = 16 << 20
	// changeBytes is roughly what a change takes in addition to its texts.
	changeBytes = 128
)

// Limits of the capabilities in a change.
const (
	// MaxChangeCapabilities is far more than anybody reads.
	MaxChangeCapabilities = 128
	// MaxChangeCapabilityBytes bounds their names together.
	MaxChangeCapabilityBytes = 8 << 10
)

// Change is a new status of an agent. It shares no memory with the registration, which
// may be large.
type Change struct {
	// AgentID names the agent within its tenant.
	AgentID string
	// Status is how reachable it has become.
	Status Status
	// Capabilities are the first that it has, within MaxChangeCapabilities and
	// MaxChangeCapabilityBytes.
	Capabilities []string
	// Parent, Depth and LastSeen are the agent's.
	Parent   string
	Depth    int
	LastSeen time.Time
	// Elsewhere: it is an agent of another bridge, which announces it to all, unless it
	// is Lost: then that bridge is gone, and each of the others notifies the agents it serves.
	Elsewhere, Lost bool
}

// changes reports changes to Options.OnChange, in order.
type changes struct {
	tell   func(tenant string, c Change)
	logger *slog.Logger
	ready  chan struct{} // holds a token when something waits, or the end came

	mu      sync.Mutex // guards the fields below
	waiting []changedAgent
	bytes   int // of those
	lost    int
	closed  bool
}

type changedAgent struct {
	tenant string
	Change
}

// report queues a change if the entry's status differs from the last one reported. The
// caller holds mu.
func (d *Directory) report(e *directoryEntry) {
	status := e.statusAt(d.now(), DefaultMissedHeartbeats)
	if e.hidden || e.reported && e.status == status {
		return
	}
	if len(e.links) == 0 && d.attachedElsewhere(e.tenant.tenant, e.id) {
		return // it has moved there, and that bridge announces it
	}
	e.status, e.reported = status, true
	d.changes.add(e)
	d.touch(e)
}

// change returns the change that describes the entry as it is.
func (e *directoryEntry) change() changedAgent {
	return changedAgent{tenant: e.tenant.tenant, Change: Change{
		AgentID:      e.id,
		Status:       e.status,
		Capabilities: firstOf(e.registration.Capabilities),
		Parent:       strings.Clone(e.registration.Parent),
		Depth:        e.registration.Depth,
		LastSeen:     e.lastSeen,
	}}
}

// firstOf copies the first names, as many as a change may have.
func firstOf(capabilities []string) []string {
	var names []string
	room := MaxChangeCapabilityBytes
	for _, name := range capabilities {
		if room -= len(name); room < 0 || len(names) == MaxChangeCapabilities {
			break
		}
		names = append(names, strings.Clone(name))
	}
	return names
}

// size is roughly what the change takes in memory.
func (c changedAgent) size() int {
	size := changeBytes + len(c.AgentID) + len(c.Parent)
	for _, name := range c.Capabilities {
		size += len(name) + itemBytes
	}
	return size
}

// add queues a change of an entry.
func (c *changes) add(e *directoryEntry) {
	if c.tell != nil {
		c.push(e.change())
	}
}

// push queues a change.
func (c *changes) push(added changedAgent) {
	if c.tell == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.waiting = append(c.waiting, added)
	if c.bytes += added.size(); c.full(1) {
		c.shrink()
	}
	notify(c.ready)
}

// full reports whether more waits than a share of the limits.
func (c *changes) full(share float64) bool {
	return float64(len(c.waiting)) > share*maxChanges || float64(c.bytes) > share*maxChangesBytes
}

// shrink drops changes that have a later one of the same agent, and then the oldest ones
// until a good part of the room is free.
func (c *changes) shrink() {
	const roomy = 7.0 / 8
	type agent struct{ tenant, id string }
	last := make(map[agent]int, len(c.waiting))
	for i, ch := range c.waiting {
		last[agent{ch.tenant, ch.AgentID}] = i
	}
	kept := make([]changedAgent, 0, len(last)+1)
	c.bytes = 0
	for i, ch := range c.waiting {
		if last[agent{ch.tenant, ch.AgentID}] == i {
			kept = append(kept, ch)
			c.bytes += ch.size()
		}
	}
	c.waiting = kept
	for len(c.waiting) > 1 && c.full(roomy) {
		c.pop()
		c.lost++
	}
}

// pop takes the oldest change. There must be one.
func (c *changes) pop() changedAgent {
	first := c.waiting[0]
	c.waiting[0] = changedAgent{}
	c.waiting = c.waiting[1:]
	c.bytes -= first.size()
	return first
}

func (c *changes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.waiting, c.bytes = true, nil, 0
	notify(c.ready)
}

// run reports the queued changes until the directory is closed.
func (c *changes) run() {
	for range c.ready {
		for next, ok := c.next(); ok; next, ok = c.next() {
			c.tell(next.tenant, next.Change)
		}
		lost, closed := c.state()
		if lost > 0 {
			c.logger.Warn("changes of agents' statuses were dropped, because the receiver is too slow", "lost", lost)
		}
		if closed {
			return
		}
	}
}

// next takes the oldest change; false when none waits.
func (c *changes) next() (changedAgent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return changedAgent{}, false
	}
	return c.pop(), true
}

// state returns how many changes were lost since the last time, and whether this
// is the end.
func (c *changes) state() (lost int, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, c.lost = c.lost, 0
	return lost, c.closed
}
