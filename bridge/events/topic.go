package events

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/bridge/events/lists"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// topicShards keep emitters on different topics out of each other's way.
const topicShards = 32

// topicShard holds some of the topics that are in use.
type topicShard struct {
	mu     sync.Mutex
	topics map[kv.Scope]*topic
}

// topic is what the bus knows in memory of a topic that somebody reads or
// emits on.
type topic struct {
	scope kv.Scope
	uses  int // cursors and emitters; guarded by the shard
	// last is the highest sequence known to be in the store.
	last atomic.Uint64
	// handed holds the last events; nil while there are none at hand.
	handed atomic.Pointer[ring]

	mu sync.Mutex // guards the fields below
	// cursors are the places of all readers.
	cursors lists.Shared[*cursor]
	// emitters counts those between prepare and leave. While there are any, no
	// cursor may be dropped for having nothing to do.
	emitters int
	// prepared is the index's change up to which every selection that matches
	// has a cursor here; 0 when that is not known.
	prepared uint64
}

func (b *Bus) topicShard(scope kv.Scope) *topicShard {
	return &b.shards[maphash.String(b.seed, scope.Owner)%topicShards]
}

// hold returns a topic, which stays in memory until it is released. Without
// create it is nil when no other call holds it.
func (b *Bus) hold(scope kv.Scope, create bool) *topic {
	shard := b.topicShard(scope)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	t := shard.topics[scope]
	switch {
	case t == nil && !create:
		return nil
	case t == nil:
		if shard.topics == nil {
			shard.topics = make(map[kv.Scope]*topic)
		}
		t = &topic{scope: scope}
		shard.topics[scope] = t
	}
	t.uses++
	return t
}

// release forgets the topic when it has no holder any more.
func (b *Bus) release(t *topic) {
	shard := b.topicShard(t.scope)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if t.uses--; t.uses > 0 {
		return
	}
	delete(shard.topics, t.scope)
	b.handedBytes.Add(-t.handed.Load().bytes())
}

// at returns the event with a sequence if it is at hand.
func (t *topic) at(sequence uint64) *Event { return t.handed.Load().at(sequence) }

// raise says that the store has events up to last.
func (t *topic) raise(last uint64) {
	for {
		before := t.last.Load()
		if before >= last || t.last.CompareAndSwap(before, last) {
			return
		}
	}
}

// readers returns the cursors of the moment.
func (t *topic) readers() []*cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cursors.Lend()
}

// arrive offers an event that was just stored to the readers. Calls for one
// topic may come in any order: a reader that misses one in between takes it
// from the store.
func (b *Bus) arrive(t *topic, e *Event) {
	for _, c := range b.keepAtHand(t, e) {
		c.sub.addDurable(c, e.Sequence, e)
	}
}

// keepAtHand holds the event for readers that come soon, if there are any, and
// returns them.
func (b *Bus) keepAtHand(t *topic, e *Event) []*cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raise(e.Sequence)
	if t.cursors.Len() == 0 {
		return nil
	}
	b.keep(t, e)
	return t.cursors.Lend()
}

// keep puts the event at hand if there is room, in place of an older one.
func (b *Bus) keep(t *topic, e *Event) {
	before := t.handed.Load()
	room := maxHandedBytes - b.handedBytes.Load()
	if size := heldBytes(e); e.Size() > maxHandedEventBytes || size+handedEvents*slotBytes > room {
		b.makeWay(before, e.Sequence)
		return
	}
	handed := before.grown(e.Sequence)
	if handed != before {
		b.handedBytes.Add(handed.bytes() - before.bytes())
		t.handed.Store(handed)
	}
	slot := handed.slot(e.Sequence)
	if there := slot.Load(); there == nil || there.Sequence <= e.Sequence {
		b.handedBytes.Add(heldBytes(e) - heldBytes(there))
		slot.Store(e.Clone())
	}
}

// makeWay drops the event that stands where a newer one would.
func (b *Bus) makeWay(handed *ring, sequence uint64) {
	if handed == nil {
		return
	}
	slot := handed.slot(sequence)
	if there := slot.Load(); there != nil && there.Sequence <= sequence {
		slot.Store(nil)
		b.handedBytes.Add(-heldBytes(there))
	}
}

// dropHanded drops events that are at hand, by their sequences.
func (b *Bus) dropHanded(t *topic, sequences []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	handed := t.handed.Load()
	for _, sequence := range sequences {
		if e := handed.at(sequence); e != nil {
			handed.slot(sequence).Store(nil)
			b.handedBytes.Add(-heldBytes(e))
		}
	}
}

// attach gives the topic a reader. The caller holds the topic for it.
func (t *topic) attach(c *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cursors.Add(c)
}

// detach takes a reader away.
func (t *topic) detach(c *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cursors.Remove(c)
}

// drop takes away a reader that has nothing to read, unless an emitter counts
// on its being there; false then.
func (t *topic) drop(c *cursor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.emitters > 0 || c.pending() || c.fresh == nil && t.last.Load() >= c.next {
		return false
	}
	t.cursors.Remove(c)
	t.prepared = 0
	return true
}

// enter counts an emitter in, and reports whether all readers are there already.
func (t *topic) enter(change uint64) (prepared bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emitters++
	return t.prepared == change
}

// leave counts an emitter out. A nil topic is fine.
func (b *Bus) leave(t *topic) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.emitters--
	t.mu.Unlock()
	b.release(t)
}
