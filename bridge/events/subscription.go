package events

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of a subscription.
const (
	// MaxTopics bounds the topics of one subscription.
	MaxTopics = 64
	// maxPageEvents and maxPageBytes bound what a subscription reads from the
	// store at once; a page always holds at least one event.
	maxPageEvents = 256
	maxPageBytes  = 1 << 20
)

// Position is a topic and where to begin in it.
type Position struct {
	// Topic is the exact topic.
	Topic string
	// After is the sequence to begin behind: 0 for the whole topic. Nil means
	// only what comes from now on.
	After *uint64
}

// Delivery is one event that reached a subscription.
type Delivery struct {
	// Event is shared with other subscribers: its payload and headers must not
	// be changed.
	Event Event
	// Dropped is how many volatile events were dropped since the last delivery
	// because the subscription was behind.
	Dropped int64
}

// Subscription reads topics. Next is for one goroutine at a time; the other
// methods are safe for concurrent use.
type Subscription struct {
	bus   *Bus
	start []Position
	wake  chan struct{} // holds one token
	ended chan struct{} // closed by Close

	// What follows belongs to the goroutine that calls Next.
	cursors      []*cursor
	turn         int  // the cursor that is asked first
	durableFirst bool // alternates, so that neither sort of event starves

	// What follows is guarded by bus.mu.
	closed        bool
	volatile      []Event
	volatileBytes int
	dropped       int64
}

// cursor is a subscription's place in one topic.
type cursor struct {
	scope kv.Scope
	topic *topic
	// next is the sequence to deliver.
	next uint64
	// page holds events read from the store, from next on.
	page []Event
	// hints is how many of the topic's hints were followed.
	hints uint64
}

// Subscribe begins to read topics, 1 to MaxTopics and each once. Everything
// emitted after it returns is delivered. ErrPositionUnknown refuses a position
// behind the end of its topic. Close the subscription.
func (b *Bus) Subscribe(ctx context.Context, tenant string, topics []Position) (*Subscription, error) {
	s, err := b.newSubscription(tenant, topics)
	if err != nil {
		return nil, err
	}
	if err := b.join(s); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, topics); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (b *Bus) newSubscription(tenant string, topics []Position) (*Subscription, error) {
	if len(topics) == 0 || len(topics) > MaxTopics {
		return nil, invalid("topics", "must be 1 to %d", MaxTopics)
	}
	s := &Subscription{bus: b, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	seen := make(map[string]bool, len(topics))
	for _, p := range topics {
		if err := CheckTopic(p.Topic); err != nil {
			return nil, err
		}
		if seen[p.Topic] {
			return nil, invalid("topics", "name %q twice", p.Topic)
		}
		seen[p.Topic] = true
		scope := topicRef(tenant, p.Topic).Scope
		if err := checkTenant(scope); err != nil {
			return nil, err
		}
		s.cursors = append(s.cursors, &cursor{scope: scope})
	}
	return s, nil
}

// begin finds the place to begin at in each topic. The subscription is
// registered already, so that nothing is lost between the two.
func (s *Subscription) begin(ctx context.Context, topics []Position) error {
	for i, c := range s.cursors {
		last, err := lastSequence(ctx, s.bus.engine, c.scope)
		if err != nil {
			return fmt.Errorf("events: subscribe to %q: %w", c.scope.Owner, err)
		}
		after := last
		if asked := topics[i].After; asked != nil {
			after = *asked
		}
		if after > last {
			return &PositionError{Topic: c.scope.Owner, After: after, Last: last}
		}
		c.next = after + 1
		s.start = append(s.start, Position{Topic: c.scope.Owner, After: &after})
		s.bus.mu.Lock()
		c.topic.last = max(c.topic.last, last)
		s.bus.mu.Unlock()
	}
	return nil
}

// Positions returns where the subscription began: each topic with the sequence
// that its events follow.
func (s *Subscription) Positions() []Position { return s.start }

// Close ends the subscription; Next then returns ErrSubscriptionClosed.
// Closing twice is harmless.
func (s *Subscription) Close() {
	if s.bus.leave(s) {
		close(s.ended)
	}
}

// Next waits for an event and returns it. Durable events come in order per
// topic, each once. After the bus was closed it is ErrClosed, and the last
// sequence seen is the position to go on from.
func (s *Subscription) Next(ctx context.Context) (Delivery, error) {
	for {
		if err := s.err(ctx); err != nil {
			return Delivery{}, err
		}
		if e, ok, err := s.take(ctx); ok || err != nil {
			return s.deliver(e), err
		}
		select {
		case <-s.wake:
		case <-s.ended:
		case <-s.bus.ended:
		case <-ctx.Done():
		}
	}
}

// err says why nothing more is to come.
func (s *Subscription) err(ctx context.Context) error {
	select {
	case <-s.ended:
		return ErrSubscriptionClosed
	case <-s.bus.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}

// deliver adds the number of events dropped so far.
func (s *Subscription) deliver(e Event) Delivery {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	d := Delivery{Event: e, Dropped: s.dropped}
	s.dropped = 0
	return d
}

// take returns the next event if there is one.
func (s *Subscription) take(ctx context.Context) (Event, bool, error) {
	s.durableFirst = !s.durableFirst
	if s.durableFirst {
		if e, ok, err := s.takeDurable(ctx); ok || err != nil {
			return e, ok, err
		}
		e, ok := s.takeVolatile()
		return e, ok, nil
	}
	if e, ok := s.takeVolatile(); ok {
		return e, true, nil
	}
	return s.takeDurable(ctx)
}

// queue adds a volatile event. It needs the bus's lock held.
func (s *Subscription) queue(e Event, size int) {
	if len(s.volatile) >= MaxVolatileEvents || s.volatileBytes+size > MaxVolatileBytes {
		s.dropped++
		return
	}
	s.volatile = append(s.volatile, e)
	s.volatileBytes += size
}

func (s *Subscription) takeVolatile() (Event, bool) {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if len(s.volatile) == 0 {
		return Event{}, false
	}
	e := s.volatile[0]
	s.volatile[0] = Event{}
	s.volatile = s.volatile[1:]
	s.volatileBytes -= sizeOf(&e)
	return e, true
}

// takeDurable asks the topics in turn.
func (s *Subscription) takeDurable(ctx context.Context) (Event, bool, error) {
	for range s.cursors {
		c := s.cursors[s.turn]
		s.turn = (s.turn + 1) % len(s.cursors)
		e, ok, err := s.bus.takeFrom(ctx, c)
		if ok || err != nil {
			return e, ok, err
		}
	}
	return Event{}, false, nil
}

// takeFrom returns the next event of one topic: from the page that was read,
// else from those at hand, else from a new page.
func (b *Bus) takeFrom(ctx context.Context, c *cursor) (Event, bool, error) {
	if len(c.page) == 0 {
		e, ok, more := b.look(c)
		if ok || !more {
			return e, ok, nil
		}
		if err := b.turnPage(ctx, c); err != nil || len(c.page) == 0 {
			return Event{}, false, err
		}
	}
	e := c.page[0]
	c.page[0] = Event{}
	c.page = c.page[1:]
	c.next++
	return e, true, nil
}

// look returns the next event if it is at hand, or whether the store may have
// it.
func (b *Bus) look(c *cursor) (e Event, ok, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := c.topic.at(c.next); ok {
		c.next++
		return e, true, false
	}
	return Event{}, false, c.topic.last >= c.next || c.topic.hints != c.hints
}
