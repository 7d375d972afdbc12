package events

import "sync/atomic"

const (
	// handedEvents is how many of its last events a topic with readers keeps at
	// hand at most.
	handedEvents = 256
	// maxHandedEventBytes bounds one of them; larger ones are read from the
	// store.
	maxHandedEventBytes = 16 << 10
	// maxHandedBytes bounds all of them in all topics together.
	maxHandedBytes = 32 << 20
	// firstSlots is the size of a topic's first ring: most topics of a pattern
	// have few events while somebody reads them.
	firstSlots = 2
	// handedOverhead is about what an event at hand takes in addition to its content, and
	// slotBytes what a place for one does.
	handedOverhead = 256
	slotBytes      = 8
)

// ring holds the last events of a topic, each at its sequence modulo the size. One
// goroutine may add while any number read.
type ring struct {
	slots []atomic.Pointer[Event]
}

func newRing(slots int) *ring { return &ring{slots: make([]atomic.Pointer[Event], slots)} }

func (r *ring) slot(sequence uint64) *atomic.Pointer[Event] {
	return &r.slots[sequence%uint64(len(r.slots))]
}

// at returns the event with a sequence if it is there. A nil ring has none.
func (r *ring) at(sequence uint64) *Event {
	if r == nil {
		return nil
	}
	if e := r.slot(sequence).Load(); e != nil && e.Sequence == sequence {
		return e
	}
	return nil
}

// bytes is what the ring and all in it takes.
func (r *ring) bytes() int64 {
	if r == nil {
		return 0
	}
	size := int64(slotBytes * len(r.slots))
	for i := range r.slots {
		size += heldBytes(r.slots[i].Load())
	}
	return size
}

// grown returns a larger ring if the event would push out a recent one; else, or at the
// largest size, the same ring.
func (r *ring) grown(sequence uint64) *ring {
	if r == nil {
		return newRing(firstSlots)
	}
	there := r.slot(sequence).Load()
	if there == nil || there.Sequence >= sequence || sequence-there.Sequence >= handedEvents || len(r.slots) == handedEvents {
		return r
	}
	larger := newRing(min(4*len(r.slots), handedEvents))
	for i := range r.slots {
		if e := r.slots[i].Load(); e != nil {
			larger.slot(e.Sequence).Store(e)
		}
	}
	return larger
}

// heldBytes is what an event at hand takes; nothing for nil.
func heldBytes(e *Event) int64 {
	if e == nil {
		return 0
	}
	return int64(e.Size()) + handedOverhead
}
