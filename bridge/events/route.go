package events

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// prepare sees to it that every selection that matches a topic has a cursor in
// it before an event is committed there, so that cursors need no search for
// topics. It returns the topic, for leave.
func (b *Bus) prepare(ctx context.Context, scope kv.Scope) (*topic, error) {
	t := b.hold(scope, true)
	x := b.indexOf(scope.Tenant)
	if x == nil {
		t.enter(0)
		return t, nil
	}
	change := x.LastChange()
	if t.enter(change) {
		return t, nil
	}
	var room [4][]*selection
	if err := b.joinAll(ctx, t, x.MatchPatterns(room[:0], scope.Owner), false); err != nil {
		b.leave(t)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prepared = change
	return t, nil
}

// joinAll gives each selection a cursor in a topic where it has none. They
// begin behind the last stored event, or with it.
func (b *Bus) joinAll(ctx context.Context, t *topic, all pattern.Groups[*selection], withLast bool) error {
	if !all.Some(func(sel *selection) bool { return !sel.sub.joined(sel, t.scope.Owner) }) {
		return nil
	}
	record, err := store.RecordOf(ctx, b.engine, t.scope)
	if err != nil {
		return err
	}
	from := record.Last + 1
	if withLast {
		from = max(record.Last, 1)
	}
	all.Some(func(sel *selection) bool {
		sel.sub.join(sel, t, from)
		return false
	})
	return nil
}

// handOut offers a just stored durable event to the readers of its topic, which prepare
// returned.
func (b *Bus) handOut(tenant string, t *topic, m *emission) {
	if m.Fresh {
		b.counts.of(tenant, m.Event.Topic).emitted(m.Event.Time)
		b.arrive(t, &m.Event)
		if b.elsewhere != nil {
			b.elsewhere.Stored(tenant, m.Event.Topic)
		}
	}
}

// handOutVolatile queues a volatile event for everybody who listens, here and elsewhere.
func (b *Bus) handOutVolatile(tenant string, m *emission, f *fan) {
	c := b.counts.of(tenant, m.Event.Topic)
	c.emitted(m.Event.Time)
	b.queueVolatile(tenant, m, c, f)
	if b.elsewhere != nil && !m.opts.Here {
		b.elsewhere.Volatile(tenant, &m.Event, m.opts.Legacy)
	}
}

// queueVolatile queues a volatile event for everybody who listens here.
func (b *Bus) queueVolatile(tenant string, m *emission, c *count, f *fan) {
	e := &m.Event
	if !m.opts.Legacy {
		f = nil // it does not wait
	}
	x := b.indexOf(tenant)
	if x == nil {
		return
	}
	var room [4][]*selection
	matching := x.Match(room[:0], e.Topic)
	if len(matching) == 0 {
		return
	}
	item := queueItem{event: e.Clone(), count: c, size: e.Size()}
	item.queued = b.queueEvent(tenant, x, item.size)
	for _, group := range matching {
		for _, sel := range group {
			if item.sel = sel; item.queued == nil {
				sel.sub.miss(item)
				continue
			}
			sel.sub.addVolatile(item, f)
		}
	}
	if item.queued != nil {
		item.queued.drop()
	}
}

// moved notifies the readers of a topic of events that were stored in another
// way than by an Emit of this bus that returned.
func (b *Bus) moved(ctx context.Context, scope kv.Scope) {
	x := b.indexOf(scope.Tenant)
	if x == nil {
		return
	}
	var room [4][]*selection
	matching := x.MatchPatterns(room[:0], scope.Owner)
	t := b.hold(scope, len(matching) > 0)
	if t == nil {
		return
	}
	t.enter(0)
	defer b.leave(t)
	err := b.joinAll(ctx, t, matching, true)
	if err == nil {
		err = b.lookAgain(ctx, t)
	}
	if err != nil {
		b.logger.Warn("events: look for new events", "topic", scope.Owner, "error", err)
	}
}

// anyMoved looks again at all topics that somebody of this process follows.
func (b *Bus) anyMoved(ctx context.Context) {
	for scope, err := range kv.Scopes(ctx, b.engine, kv.Events) {
		if err != nil {
			if ctx.Err() == nil {
				b.logger.Warn("events: look for new events on all topics", "error", err)
			}
			return
		}
		b.moved(ctx, scope)
	}
}

// lookAgain offers what the store has more of a topic than was known.
func (b *Bus) lookAgain(ctx context.Context, t *topic) error {
	record, err := store.RecordOf(ctx, b.engine, t.scope)
	if err != nil {
		return err
	}
	t.raise(record.Last)
	for _, c := range t.readers() {
		c.sub.addDurable(c, record.Last, nil)
	}
	return nil
}

// Heard reports whether somebody listens to the topic of an event now, and wants it.
func (b *Bus) Heard(tenant string, e Event) bool {
	x := b.indexOf(tenant)
	if x == nil {
		return false
	}
	var room [4][]*selection
	return x.Match(room[:0], e.Topic).Some(func(sel *selection) bool { return sel.wants(&e) })
}
