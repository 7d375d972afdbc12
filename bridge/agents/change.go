package agents

import (
	"log/slog"
	"sync"
)

// maxChanges bounds the changes that nobody was told of yet: more than a whole
// house of agents that come back at once.
const maxChanges = 1 << 16

// changes tells the owner of the directory what happened, in order.
type changes struct {
	tell   func(tenant string, a Agent)
	logger *slog.Logger
	ready  chan struct{} // holds a token when something waits, or the end came

	mu      sync.Mutex // guards the fields below
	waiting []change
	lost    int
	closed  bool
}

type change struct {
	tenant string
	agent  Agent
}

func newChanges(tell func(string, Agent), logger *slog.Logger) *changes {
	return &changes{tell: tell, logger: logger, ready: make(chan struct{}, 1)}
}

// report tells what the entry's status has become, if it is another than
// before. The caller holds mu.
func (d *Directory) report(e *entry) {
	status := e.statusAt(d.now(), d.opts.MissedHeartbeats)
	if e.hidden || e.told && e.status == status {
		return
	}
	e.status, e.told = status, true
	d.changes.add(e.house.tenant, e.agent())
}

func (c *changes) add(tenant string, a Agent) {
	if c.tell == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxChanges {
		c.waiting = c.waiting[1:]
		c.lost++
	}
	c.waiting = append(c.waiting, change{tenant, a})
	c.signal()
}

func (c *changes) signal() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *changes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.waiting = true, nil
	c.signal()
}

// run hands out what waits until the end.
func (c *changes) run() {
	for range c.ready {
		batch, lost, closed := c.take()
		if lost > 0 {
			c.logger.Warn("changes of agents' statuses were lost: whoever is told takes too long", "lost", lost)
		}
		for _, ch := range batch {
			if c.ended() {
				return
			}
			c.tell(ch.tenant, ch.agent)
		}
		if closed {
			return
		}
	}
}

func (c *changes) take() (batch []change, lost int, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch, lost = c.waiting, c.lost
	c.waiting, c.lost = nil, 0
	return batch, lost, c.closed
}

func (c *changes) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
