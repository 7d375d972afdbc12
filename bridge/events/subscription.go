package events

import (
	"context"
	"maps"
	"sync"
)

// Limits of what a subscription remembers.
const (
	// maxListed bounds the durable events whose order of arrival a subscription
	// knows. Topics with more than fit are read in turn.
	maxListed = 4096
	// maxIdleCursors bounds the cursors that a subscription keeps in topics of
	// its patterns where it has nothing to read. A dropped one is made again
	// before the next event of its topic.
	maxIdleCursors = 64
	// maxDelivered bounds the topics that Delivered tells of; it may be
	// exceeded by as much again.
	maxDelivered = 1024
)

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
	// SubscribeOptions.PerSelection it is one of those that want the event.
	Selection int
	// Pattern is that selection's.
	Pattern Pattern
	// Dropped is how many events were dropped since the last delivery because
	// the subscription was behind: volatile ones, any for Realtime, and durable
	// ones that retention deleted before they were read.
	Dropped int64
}

// Subscription reads topics. Next and Take are for one goroutine at a time; all
// else is safe for concurrent use.
type Subscription struct {
	bus          *Bus
	tenant       string
	index        *index
	perSelection bool
	wait         bool
	start        []Position
	wake         chan struct{} // holds one token
	ended        chan struct{} // closed by end

	// changing is held by Add and Remove, one at a time.
	changing sync.Mutex

	// mu guards the fields below, the selections and the cursors. It is taken
	// before the locks of topics, shards and indexes, never the other way.
	mu         sync.Mutex
	over       error // why it ended
	given      int   // how many selections it ever had
	selections map[string]*selection
	lanes      [Background + 1]lane
	cursors    map[cursorKey]*cursor

	queue         fifo[entry] // what is to be delivered, as it came
	listed        int         // how much of it are cursors
	volatileBytes int         // what the rest of it takes
	waiting       []pending   // what emitters wait to put there
	late          fifo[*cursor]
	lateTurn      bool // alternates, so that neither sort of event starves
	idle          fifo[*cursor]

	dropped         int64
	delivered, past map[string]uint64 // by topic; past is older
}

// entry is a volatile event that is to be delivered, or a cursor that has one
// more durable event.
type entry struct {
	sel    *selection
	event  *Event
	size   int
	count  *count
	cursor *cursor
}

// Positions returns where the subscription began in its exact topics: each with
// the sequence that its events follow. A topic whose older events are gone
// begins at the first that is kept.
func (s *Subscription) Positions() []Position { return s.start }

// Close ends the subscription; Next then returns ErrSubscriptionClosed.
// Closing twice is harmless.
func (s *Subscription) Close() { s.end(ErrSubscriptionClosed) }

// Next waits for an event and returns it. Durable events come in order per
// topic, each once. After the bus was closed it is ErrClosed, and the last
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
	for {
		if err := s.err(ctx); err != nil {
			return Delivery{}, false, err
		}
		t := s.pop()
		if t.cursor == nil {
			return t.delivery, t.ok, nil
		}
		if d, ok, err := s.read(ctx, t); ok || err != nil {
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

// turn is what is to be taken next: a volatile event, or one of a cursor.
type turn struct {
	delivery Delivery
	ok       bool
	cursor   *cursor
	// at is the cursor's position.
	at uint64
	// late says that the cursor was among the late ones.
	late bool
}

// pop chooses what comes next.
func (s *Subscription) pop() turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.late.len() > 0 && (s.lateTurn || s.queue.len() == 0) {
			s.lateTurn = false
			c, _ := s.late.pop()
			if c.pending() {
				return turn{cursor: c, at: c.position(), late: true}
			}
			c.late = false
			continue
		}
		s.lateTurn = true
		e, ok := s.queue.pop()
		switch {
		case !ok:
			return turn{}
		case e.cursor == nil:
			s.forget(e)
			s.letIn()
			return turn{delivery: s.deliver(e.event, e.sel, e.count), ok: true}
		}
		s.listed--
		e.cursor.listed--
		if e.cursor.pending() {
			return turn{cursor: e.cursor, at: e.cursor.position()}
		}
	}
}

// read takes the event that a turn is about.
func (s *Subscription) read(ctx context.Context, t turn) (Delivery, bool, error) {
	e, at, err := s.bus.fetch(ctx, t.cursor, t.at)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := t.cursor
	defer s.putBack(c, t.late)
	if err != nil || c.gone || !c.pending() || c.position() != t.at {
		return Delivery{}, false, err
	}
	if at > t.at {
		s.overtaken(c, at)
	}
	if e == nil || !c.pending() || c.position() != at {
		return Delivery{}, false, nil
	}
	c.passed(at)
	sel := c.accept(e)
	if sel == nil {
		return Delivery{}, false, nil
	}
	s.remember(e)
	return s.deliver(e, sel, s.bus.counts.of(s.tenant, e.Topic)), true, nil
}

// overtaken moves a cursor on to where the kept events of its topic begin.
func (s *Subscription) overtaken(c *cursor, at uint64) {
	lost := int64(at - c.position())
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

// putBack lists a cursor again that was taken out for its turn, if it has more.
func (s *Subscription) putBack(c *cursor, late bool) {
	switch {
	case c.gone:
	case late && c.pending():
		s.late.push(c)
	case late:
		c.late = false
		s.rest(c)
	case c.late || c.listed > 0:
	case c.pending():
		c.late = true
		s.late.push(c)
	default:
		s.rest(c)
	}
}

// rest puts a cursor that has nothing to read among those that may be dropped,
// and drops the one that is there the longest if there are too many.
func (s *Subscription) rest(c *cursor) {
	if !c.idle && !c.pinned() {
		c.idle = true
		s.idle.push(c)
	}
	if s.idle.len() <= maxIdleCursors {
		return
	}
	oldest, _ := s.idle.pop()
	oldest.idle = false
	if oldest.gone || oldest.late || oldest.listed > 0 || oldest.pending() || oldest.pinned() {
		return // it is put here again when it has nothing to read
	}
	if !oldest.topic.drop(oldest) {
		oldest.idle = true
		s.idle.push(oldest)
		return
	}
	s.discard(oldest)
}

// deliver makes a delivery of an event.
func (s *Subscription) deliver(e *Event, sel *selection, c *count) Delivery {
	d := Delivery{Event: *e, Selection: sel.place, Pattern: sel.pattern, Dropped: s.dropped}
	s.dropped = 0
	c.handedOut()
	return d
}

// remember keeps the sequence of a durable event for Delivered.
func (s *Subscription) remember(e *Event) {
	if len(s.delivered) >= maxDelivered {
		s.past, s.delivered = s.delivered, nil
	}
	if s.delivered == nil {
		s.delivered = make(map[string]uint64)
	}
	s.delivered[e.Topic] = max(s.delivered[e.Topic], e.Sequence)
}

// Delivered returns the topics of which durable events were handed out, each
// with the sequence up to which all were. It knows about a thousand topics or
// more, the latest.
func (s *Subscription) Delivered() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]uint64, len(s.past)+len(s.delivered))
	maps.Copy(all, s.past)
	maps.Copy(all, s.delivered)
	for key, c := range s.cursors {
		if last, ok := all[key.topic]; ok && c.pending() {
			all[key.topic] = min(last, c.position()-1)
		}
	}
	return all
}

// signal wakes the reader.
func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
