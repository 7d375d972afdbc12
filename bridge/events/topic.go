package events

import (
	"bytes"
	"maps"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of what waits in memory.
const (
	// handedEvents is how many of its last events a topic with subscribers
	// keeps at hand.
	handedEvents = 64
	// maxHandedEventBytes bounds one of them; larger ones are read from the
	// store.
	maxHandedEventBytes = 16 << 10
	// maxHandedBytes bounds all of them in all topics together.
	maxHandedBytes = 32 << 20
	// MaxVolatileEvents bounds the volatile events that wait for one
	// subscription. Those that find the queue full are dropped and counted.
	MaxVolatileEvents = 1024
	// MaxVolatileBytes bounds their payloads and headers together.
	MaxVolatileBytes = 8 << 20
)

// topic is what the bus knows in memory of a topic that somebody reads. It is
// guarded by the bus.
type topic struct {
	readers map[*Subscription]struct{}
	// last is the highest sequence known to be in the store.
	last uint64
	// hints counts the occasions on which the store may have got more than
	// last.
	hints uint64
	// handed holds the last events, each at its sequence modulo the size.
	handed [handedEvents]*Event
}

// at returns the event with a sequence if it is at hand.
func (t *topic) at(sequence uint64) (Event, bool) {
	e := t.handed[sequence%handedEvents]
	if e == nil || e.Sequence != sequence {
		return Event{}, false
	}
	return *e, true
}

// handOut offers an event that was just stored to those who wait for it. Calls
// for one topic may come in any order: a reader that misses one in between
// takes it from the store.
func (b *Bus) handOut(scope kv.Scope, e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[scope]
	if t == nil {
		return
	}
	t.last = max(t.last, e.Sequence)
	b.keepAtHand(t, e)
	t.wake()
}

// keepAtHand needs the lock held.
func (b *Bus) keepAtHand(t *topic, e Event) {
	slot := &t.handed[e.Sequence%handedEvents]
	if *slot != nil && (*slot).Sequence > e.Sequence {
		return
	}
	b.handedBytes -= sizeOf(*slot)
	*slot = nil
	size := sizeOf(&e)
	if size > maxHandedEventBytes || b.handedBytes+size > maxHandedBytes {
		return
	}
	own := e.clone()
	b.handedBytes += size
	*slot = &own
}

// moved makes the readers of a topic look into the store.
func (b *Bus) moved(scope kv.Scope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[scope]; t != nil {
		t.hints++
		t.wake()
	}
}

// handOutVolatile queues a volatile event for each reader of its topic.
func (b *Bus) handOutVolatile(scope kv.Scope, e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[scope]
	if t == nil {
		return
	}
	own, size := e.clone(), sizeOf(&e)
	for s := range t.readers {
		s.queue(own, size)
	}
	t.wake()
}

func (t *topic) wake() {
	for s := range t.readers {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// join registers a subscription with its topics.
func (b *Bus) join(s *Subscription) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.subscriptions >= b.maxSubscriptions:
		return &LimitError{What: "subscriptions", Limit: b.maxSubscriptions}
	}
	b.subscriptions++
	for _, c := range s.cursors {
		t := b.topics[c.scope]
		if t == nil {
			t = &topic{readers: make(map[*Subscription]struct{})}
			b.topics[c.scope] = t
		}
		t.readers[s] = struct{}{}
		c.topic = t
	}
	return nil
}

// leave takes a subscription out; false when it was out already.
func (b *Bus) leave(s *Subscription) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	s.volatile, s.volatileBytes = nil, 0
	b.subscriptions--
	for _, c := range s.cursors {
		delete(c.topic.readers, s)
		if len(c.topic.readers) == 0 {
			b.forget(c.scope, c.topic)
		}
	}
	return true
}

// forget drops a topic that nobody reads. It needs the lock held.
func (b *Bus) forget(scope kv.Scope, t *topic) {
	for _, e := range t.handed {
		b.handedBytes -= sizeOf(e)
	}
	delete(b.topics, scope)
}

// clone returns a copy that shares nothing with the emitter.
func (e Event) clone() Event {
	e.Payload = bytes.Clone(e.Payload)
	e.Headers = maps.Clone(e.Headers)
	return e
}

// sizeOf is what an event's content takes; nothing for nil.
func sizeOf(e *Event) int {
	if e == nil {
		return 0
	}
	size := len(e.ID) + len(e.Source) + len(e.SessionID) + len(e.Payload)
	for key, value := range e.Headers {
		size += len(key) + len(value)
	}
	return size
}
