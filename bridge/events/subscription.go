package events

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/lists"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
)

// maxListed bounds the durable events whose order of arrival a subscription knows.
// Topics with more events than fit are read round-robin.
const maxListed = 4096

// Position is a topic and where to begin in it.
type Position struct {
	// Topic is the exact topic.
	Topic string
	// After is the sequence to begin behind: 0 for the whole topic. Nil says
	// that the topic has no sequences: the store can't name it.
	After *uint64
}

// Delivery is one event that reached a subscription.
type Delivery struct {
	// Event is shared with other subscribers: its payload, headers and tags must
	// not be changed.
	Event Event
	// Selection is the place of the selection that it came through, in the
	// order in which they were given to Subscribe and Add, from 0. Without
	// SubscribeOptions.PerSelection it is one of the selections that match the event.
	Selection int
	// Pattern is that selection's.
	Pattern pattern.Pattern
	// Dropped is how many events were dropped since the last delivery because
	// the subscription was behind: volatile ones, any for Realtime, and durable
	// ones that retention deleted before they were read.
	Dropped int64
	// Past says that Selection.Since brought the event back: it was there before
	// the selection.
	Past bool
}

// Subscription reads topics. Next and Take are for one goroutine at a time; all
// else is safe for concurrent use.
type Subscription struct {
	bus          *Bus
	tenant       string
	index        *tenantIndex
	perSelection bool
	wait         bool
	room         Room                    // nil: there is enough
	readable     func(topic string) bool // nil for all topics
	hears        func(e *Event) bool     // nil for all events
	start        []Position
	wake         chan struct{} // holds one token
	ended        chan struct{} // closed by end

	// pausedUntil is when the next event may be taken, and handed says that the last one
	// has room already; they belong to Take.
	pausedUntil time.Time
	handed      bool

	// taking is held by Take; changing by Add and Remove, one at a time.
	taking, changing sync.Mutex

	// mu guards the fields below, the selections and the cursors. It is taken
	// before the locks of topics, shards and indexes, never the other way.
	mu         sync.Mutex
	over       error // why it ended
	given      int   // how many selections it ever had
	selections map[string]*selection
	lanes      [Background + 1]lane
	cursors    map[cursorKey]*cursor

	queue         lists.Queue[queueItem] // what is to be delivered, as it came
	listed        int                    // how much of it are cursors
	volatileBytes int                    // what the rest of it takes
	waiting       []pending              // what emitters wait to put there
	// waited is how long emitters have waited since the queue was empty. While
	// some do they may until waitUntil, and waited counts up to waitBegan.
	waited               time.Duration
	waitBegan, waitUntil time.Time
	replay               replay
	late                 lists.Queue[*cursor]
	lateTurn             bool // alternates, so that neither sort of event starves
	idle                 lists.Queue[*cursor]

	dropped int64
	due     []due // of the event that was read last; the next one is the last
	// behind is how many cursors have something to read, weight what they count
	// for; slow says that it is too much.
	behind, weight int
	slow           bool
	leftOut        int
}

// queueItem is a volatile event that is to be delivered, or a cursor that has durable
// events up to a sequence: with one event of a topic come those before it that
// were stored, but not offered yet.
type queueItem struct {
	sel    *selection
	event  *Event
	queued *queuedEvent
	size   int
	count  *count
	cursor *cursor
	upTo   uint64
}

// Positions returns where the subscription began in its exact topics: each with
// the sequence that its events follow. A topic whose older events are gone
// begins at the first that is kept.
func (s *Subscription) Positions() []Position { return s.start }

// PastLeftOut returns of how many topics Selection.Since has not brought back the
// past, because more match than the 4,096 with the newest events. It is always 0
// without PerSelection.
func (s *Subscription) PastLeftOut() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftOut
}

// Close ends the subscription; Next then returns ErrSubscriptionClosed. It waits for
// a Take or Add that is under way, so that the store may be closed next. Closing twice
// is harmless.
func (s *Subscription) Close() {
	s.end(ErrSubscriptionClosed)
	s.taking.Lock()
	s.taking.Unlock() //nolint:staticcheck // empty: who held it is through
	s.changing.Lock()
	s.changing.Unlock() //nolint:staticcheck // empty: who held it is through
}

// Next waits for an event and returns it. Durable events come in order per
// topic, each once; what Selection.Since brings back comes first, in the order of
// its times. After the bus was closed it is ErrClosed, and the last
// sequence seen is the position to go on from.
func (s *Subscription) Next(ctx context.Context) (Delivery, error) {
	for {
		d, ok, err := s.Take(ctx)
		if ok || err != nil {
			return d, err
		}
		select {
		case <-s.wake:
		case <-s.ended:
		case <-ctx.Done():
		}
	}
}

// Ready holds a token when Take may have something to return, or the
// subscription has ended. One token may stand for many events: after receiving
// it, call Take until it has nothing.
func (s *Subscription) Ready() <-chan struct{} { return s.wake }

// Take returns the next event if there is one. It does not wait for events, but
// it may read the store. It ends as Next does.
func (s *Subscription) Take(ctx context.Context) (d Delivery, ok bool, err error) {
	s.taking.Lock()
	defer s.taking.Unlock()
	for {
		if err := s.err(ctx); err != nil || s.paused() {
			return Delivery{}, false, err
		}
		s.handed = false
		t := s.pop()
		if t.unread {
			if err := s.lookUp(ctx); err != nil {
				return Delivery{}, false, err
			}
			continue
		}
		d, ok, err := t.delivery, t.ok, error(nil)
		if t.cursor != nil {
			d, ok, err = s.read(ctx, t)
		}
		switch {
		case ok && !s.handed:
			if err := s.handRoom(ctx, &d.Event); err != nil {
				return Delivery{}, false, err
			}
			s.paid(d)
		case ok:
			s.paid(d)
		case err == nil && t.cursor == nil:
			if s.room != nil {
				s.room.Leave()
			}
		}
		if ok || err != nil || t.cursor == nil {
			return d, ok, err
		}
	}
}

// err says why nothing more is to come.
func (s *Subscription) err(ctx context.Context) error {
	select {
	case <-s.ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.over
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}

// pick is what is to be taken next: a volatile event, or one of a cursor.
type pick struct {
	delivery Delivery
	ok       bool
	cursor   *cursor
	topic    *topic // of the cursor
	// at is the cursor's position.
	at uint64
	// upTo is where the cursor's place in the queue ends; 0 when it has none.
	upTo uint64
	// late says that the cursor was among the late ones, past that it was in the
	// replay.
	late, past bool
	// unread says that the replay has to be looked up first.
	unread bool
}

// pop chooses what comes next.
func (s *Subscription) pop() pick {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) > 0 {
		if d, ok := s.popDue(); ok {
			return pick{delivery: d, ok: true}
		}
	}
	if len(s.replay.unread) > 0 {
		return pick{unread: true}
	}
	if c := s.popReplay(); c != nil {
		return pick{cursor: c, topic: c.topic, at: c.position(), past: true}
	}
	for {
		if s.late.Len() > 0 && (s.lateTurn || s.queue.Len() == 0) {
			s.lateTurn = false
			c, _ := s.late.Pop()
			if c.pending() {
				return pick{cursor: c, topic: c.topic, at: c.position(), late: true}
			}
			c.late = false
			s.settle(c)
			continue
		}
		s.lateTurn = true
		e, ok := s.queue.Pop()
		switch {
		case !ok:
			return pick{}
		case e.cursor == nil:
			s.forget(e)
			s.letIn()
			if s.waited > 0 && len(s.waiting) == 0 && s.queue.Len() == s.listed {
				s.waited = 0
			}
			return pick{delivery: s.deliver(e.event, e.sel, e.count), ok: true}
		}
		s.listed--
		e.cursor.listed--
		if e.cursor.reaches(e.upTo) {
			return pick{cursor: e.cursor, topic: e.cursor.topic, at: e.cursor.position(), upTo: e.upTo}
		}
		s.settle(e.cursor)
	}
}

// read takes the event that a turn is about.
func (s *Subscription) read(ctx context.Context, t pick) (Delivery, bool, error) {
	e, at, err := s.bus.fetch(ctx, t.cursor, t.topic, t.at)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := t.cursor
	defer s.putBackFrom(t)
	if err != nil || c.gone || !c.pending() || c.position() != t.at {
		return Delivery{}, false, err
	}
	if at > t.at {
		// Moves a cursor on to where the kept events of its topic begin.
		lost := c.between(c.position(), at-1)
		if c.fresh != nil {
			lost = int64(c.fresh.count())
		}
		c.passed(at - 1)
		if c.fresh != nil {
			lost -= int64(c.fresh.count())
		}
		s.dropped += lost
		s.bus.counts.of(s.tenant, c.key.topic).lost(lost)
	}
	if e == nil || !c.pending() || c.position() != at {
		return Delivery{}, false, nil
	}
	c.passed(at)
	if s.due = c.due(s.due[:0], e); len(s.due) > 1 {
		s.bus.counts.of(s.tenant, e.Topic).queued(int64(len(s.due) - 1))
	}
	d, ok := s.takeDue()
	return d, ok, nil
}

// putBackFrom puts a cursor back to where it was taken from.
func (s *Subscription) putBackFrom(t pick) {
	switch c := t.cursor; {
	case t.past:
		// Puts a cursor back into the replay after its turn, if it has more.
		switch {
		case !c.inReplay():
			s.leaveReplay(c)
		case len(c.page) > 0 && c.page[0].Sequence == c.position():
			c.head = c.nextHeld(c.position())
			heap.Push(&s.replay.heads, c)
		default:
			s.replay.unread = append(s.replay.unread, c)
		}
	case !c.replaying && c.reaches(t.upTo):
		s.listed++
		c.listed++
		s.queue.Unpop(queueItem{cursor: c, upTo: t.upTo})
	default:
		s.putBack(c, t.late)
	}
}

// putBack lists a cursor again that was taken out for its turn, if it has more.
func (s *Subscription) putBack(c *cursor, late bool) {
	switch {
	case c.gone:
	case c.replaying: // since a moment ago
		c.late = c.late && !late
	case late && c.pending():
		s.late.Push(c)
	case late:
		c.late = false
		s.rest(c)
	case c.late || c.listed > 0:
	case c.pending():
		c.late = true
		s.late.Push(c)
	default:
		s.rest(c)
	}
}

// deliver makes a delivery of an event.
func (s *Subscription) deliver(e *Event, sel *selection, c *count) Delivery {
	d := Delivery{Event: *e, Selection: sel.place, Pattern: sel.pattern, Dropped: s.dropped}
	s.dropped = 0
	if c != nil {
		c.delivered.Add(1)
	}
	return d
}

// signal wakes the reader.
func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
