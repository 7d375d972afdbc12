package kv

import (
	"context"
	"slices"
)

// queue holds the calls that name the same refs. It exists while one of them
// leads: the first to come, on its own goroutine, stages and commits all that
// wait with it. So a lone call pays for no hand-over. While its commit is under
// way, the first call that came meanwhile leads next and stages on top of it, so that no
// staging waits for a disk.
type queue struct {
	id   string
	refs []Ref

	// The writer's mu guards what follows.
	waiting []*call
	leading bool    // a leader was chosen and has not begun to commit
	held    bool    // the queue has the turn at its refs
	flight  *flight // the commit under way, if any
}

// flight is a commit under way.
type flight struct {
	staged *overlay      // what it writes
	next   []Guard       // what its refs will have after it
	done   chan struct{} // closed when it has ended
	failed bool          // it is not the outcome of it; set before done is closed
}

// enqueue puts c behind the calls that name the same refs. Without a leader, c leads.
func (w *Writer) enqueue(c *call) (*queue, error) {
	refs, id := canonical(c.req.Refs)
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[id]
	if q == nil {
		q = &queue{id: id, refs: refs}
		w.queues[id] = q
	}
	if len(q.waiting) >= w.maxWaiting {
		return nil, &LimitError{What: "queue", Size: len(q.waiting) + 1, Limit: w.maxWaiting}
	}
	q.waiting = append(q.waiting, c)
	w.advance(q)
	return q, nil
}

func (c *call) tellToLead() {
	c.leads = true
	c.told <- true
}

// withdraw takes c out of its queue; false when staging has begun, or c leads.
func (w *Writer) withdraw(q *queue, c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i < 0 || c.leads {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// lead commits the calls that wait, the leader's own first among them.
func (w *Writer) lead(q *queue, leader *call) {
	before, err := w.board(leader.ctx, q)
	if err != nil {
		w.resign(q, leader, err)
		return
	}
	own := &flight{done: make(chan struct{})}
	departed := false
	failed := w.commitGroup(q.refs, w.take(q), before, func(staged *overlay, next []Guard) {
		if departed {
			return // staged anew after a conflict; commits built on it are staged again too
		}
		departed, own.staged, own.next = true, staged, next
		w.mu.Lock()
		defer w.mu.Unlock()
		q.leading, q.flight = false, own
		w.advance(q)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if departed {
		own.failed, q.flight = failed, nil
		close(own.done)
	} else {
		q.leading = false
	}
	w.advance(q)
}

// resign takes a leader out that did not get the turn in time; the next that
// waits leads.
func (w *Writer) resign(q *queue, leader *call, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	leader.err = err
	q.leading = false
	q.waiting = slices.Delete(q.waiting, 0, 1)
	w.advance(q)
}

// board waits for the turn at the refs, unless the queue has it, and returns
// the commit under way. An error is that of ctx.
func (w *Writer) board(ctx context.Context, q *queue) (*flight, error) {
	w.mu.Lock()
	held, before := q.held, q.flight
	w.mu.Unlock()
	if held {
		return before, nil
	}
	if err := w.acquire(ctx, q.refs); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q.held = true
	return nil, nil
}

// take returns the calls of the next commit.
func (w *Writer) take(q *queue) []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(q.waiting), maxJoined)
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// advance lets the first that waits lead, if it may; gives the turn up when
// no commit of the queue needs it or another queue waits for it; and ends the
// queue. The caller holds mu.
func (w *Writer) advance(q *queue) {
	if q.leading {
		return
	}
	shared := slices.ContainsFunc(q.refs, func(r Ref) bool { return w.turns[r] != nil && w.turns[r].users > 1 })
	if q.flight == nil && q.held && (shared || len(q.waiting) == 0) {
		w.release(q.refs)
		q.held = false
	}
	switch {
	case len(q.waiting) > 0 && (q.flight == nil || !shared):
		q.leading = true
		q.waiting[0].tellToLead()
	case len(q.waiting) == 0 && q.flight == nil:
		delete(w.queues, q.id)
	}
}
