package events

import (
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

// cursor is the place of a subscription in one topic. The subscription's lock
// guards it, except for page.
type cursor struct {
	sub   *Subscription
	key   cursorKey
	topic *topic
	at    int // among the readers of the topic; guarded by it
	gone  bool
	// next is the sequence to read; 0 until that is known.
	next uint64
	// known is the last sequence announced to the cursor.
	known uint64
	// claims are the selections that read here, by their place.
	claims []claim
	// listed is how often the cursor stands in the subscription's queue.
	listed int
	// late says that it is among those with more to read than the queue holds.
	late bool
	// idle says that it is in the list of cursors that may be dropped.
	idle bool
	// weight is how many claims it counts for among what waits; 0 while there is
	// nothing to read.
	weight int
	// fresh is set for Realtime: which events were let through.
	fresh *freshEvents
	// past is the last sequence that belongs to a replay; replaying says that the
	// cursor takes part in one, where head is its next event once that is known.
	past      uint64
	replaying bool
	head      nextEvent

	// page holds events read from the store, at most limit at once. They belong to
	// the goroutine that takes.
	page  []Event
	limit store.Limit
}

// Seat is of lists.Member.
func (c *cursor) Seat() *int { return &c.at }

// cursorKey names a cursor within its subscription. Selections that share one
// have the same group.
type cursorKey struct {
	topic string
	group int
}

// claim is what a selection wants of a topic.
type claim struct {
	sel *selection
	// from is the first sequence it wants.
	from uint64
	// past is what of it was there before the selection; nil for nothing.
	past *replayClaim
}

// replayClaim is a claim to what was there before a selection.
type replayClaim struct {
	// since is the time before which it wants nothing, up to the sequence
	// until; what follows that is new. Zero is no time.
	since time.Time
	until uint64
	// last is the sequence that the replay ends with.
	last uint64
}

func (cl claim) wants(e *Event) bool {
	if e.Sequence < cl.from {
		return false
	}
	if p := cl.past; p != nil && e.Sequence <= p.until && !p.since.IsZero() && !e.Time.After(p.since) {
		return false
	}
	return cl.sel.wants(e)
}

// accepts reports whether a selection wants an event.
func (c *cursor) accepts(e *Event) bool {
	return slices.ContainsFunc(c.claims, func(cl claim) bool { return cl.wants(e) })
}

// due appends the deliveries of an event, the first one last: one, or with
// PerSelection that to each selection that wants it.
func (c *cursor) due(all []due, e *Event) []due {
	for _, cl := range slices.Backward(c.claims) {
		if !cl.wants(e) {
			continue
		}
		if !c.sub.perSelection {
			all = all[:0]
		}
		all = append(all, due{e, cl.sel, cl.past != nil && e.Sequence <= cl.past.last})
	}
	return all
}

// between counts the deliveries from one sequence up to another, whether events
// pass the filters or not.
func (c *cursor) between(first, last uint64) int64 {
	switch {
	case first > last:
		return 0
	case !c.sub.perSelection:
		return int64(last - first + 1)
	}
	n := uint64(0)
	for _, cl := range c.claims {
		if from := max(first, cl.from); from <= last {
			n += last - from + 1
		}
	}
	return int64(n)
}

// claim adds what a selection wants. A cursor that is further on already goes
// back for it, without a second delivery to the others.
func (c *cursor) claim(add claim) {
	if c.next == 0 || add.from < c.next {
		for i := range c.claims {
			c.claims[i].from = max(c.claims[i].from, c.next)
		}
		c.next = add.from
	}
	if c.fresh != nil {
		until := add.from - 1
		if add.past != nil {
			until = max(until, add.past.until)
		}
		c.fresh.begin(add.from, until)
	}
	i, _ := c.find(add.sel)
	c.claims = slices.Insert(c.claims, i, add)
}

// find returns where a selection's claim is or would be.
func (c *cursor) find(sel *selection) (place int, found bool) {
	return slices.BinarySearchFunc(c.claims, sel.place, func(cl claim, place int) int { return cl.sel.place - place })
}

func (c *cursor) hasClaim(sel *selection) bool {
	_, found := c.find(sel)
	return found
}

// dropClaims takes out the claims of selections that are gone.
func (c *cursor) dropClaims() {
	c.claims = slices.DeleteFunc(c.claims, func(cl claim) bool { return cl.sel.gone })
}

// pinned reports whether a selection of exactly this topic reads here. Only other
// cursors can be made again when they are needed.
func (c *cursor) pinned() bool {
	return len(c.claims) == 0 || slices.ContainsFunc(c.claims, func(cl claim) bool { return cl.sel.isExact() })
}

// pending reports whether there is something to read.
func (c *cursor) pending() bool {
	switch {
	case c.gone || c.next == 0:
		return false
	case c.fresh != nil:
		return c.fresh.any()
	}
	return c.known >= c.next
}

// reaches reports whether there is something to read up to a sequence.
func (c *cursor) reaches(upTo uint64) bool { return c.pending() && c.position() <= upTo }

// position is the sequence to read next.
func (c *cursor) position() uint64 {
	if c.fresh != nil {
		return c.fresh.first()
	}
	return c.next
}

// passed moves the cursor behind an event.
func (c *cursor) passed(sequence uint64) {
	if c.fresh != nil {
		c.fresh.passed(sequence)
	}
	c.next = max(c.next, sequence+1)
}

// backlog is how many events wait here.
func (c *cursor) backlog() int {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	return int(c.waiting())
}

// waiting is backlog for the holder of the subscription's lock.
func (c *cursor) waiting() int64 {
	switch {
	case !c.pending():
		return 0
	case c.fresh != nil:
		return int64(c.fresh.count())
	}
	return c.between(c.next, c.known)
}

// freshEvents are the sequences that a Realtime cursor let through and has not
// read yet. At first these are what lies behind its beginning, however many;
// later ones take room in its lane.
type freshEvents struct {
	lane *lane
	// begun is the last sequence that was there at the beginning.
	begun uint64
	// settled is the last sequence up to which nothing more is let through.
	settled uint64
	// spans are in order and don't touch.
	spans []span
}

// span is the sequences from first to last.
type span struct{ first, last uint64 }

func (f *freshEvents) any() bool { return len(f.spans) > 0 }

func (f *freshEvents) first() uint64 { return f.spans[0].first }

func (f *freshEvents) count() int {
	n := uint64(0)
	for _, s := range f.spans {
		n += s.last - s.first + 1
	}
	return int(n)
}

// begin lets everything from one sequence to another through.
func (f *freshEvents) begin(first, last uint64) {
	f.passed(last)
	f.begun = max(f.begun, last)
	f.settled = max(f.settled, last)
	if first <= last {
		f.spans = slices.Insert(f.spans, 0, span{first, last})
	}
}

// admit lets an event through if there is room.
func (f *freshEvents) admit(sequence uint64) bool {
	if f.lane.full() {
		return false
	}
	f.lane.waiting++
	i := len(f.spans)
	for i > 0 && f.spans[i-1].first > sequence {
		i--
	}
	if i > 0 && f.spans[i-1].last+1 == sequence {
		f.spans[i-1].last = sequence
		return true
	}
	f.spans = slices.Insert(f.spans, i, span{sequence, sequence})
	return true
}

// passed takes out everything up to a sequence.
func (f *freshEvents) passed(sequence uint64) {
	for len(f.spans) > 0 && f.spans[0].first <= sequence {
		s := &f.spans[0]
		end := min(sequence, s.last)
		if end > f.begun {
			f.lane.waiting -= int(end - max(s.first, f.begun+1) + 1)
		}
		if s.first = end + 1; s.first > s.last {
			f.spans = f.spans[1:]
		}
	}
}

// clear gives the room back.
func (f *freshEvents) clear() { f.passed(^uint64(0)) }
