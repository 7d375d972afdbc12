package events

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/events/lists"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// SubscribeOptions adjusts a subscription. Nil and zero fields mean the
// defaults.
type SubscribeOptions struct {
	// PerSelection delivers an event once for each selection that wants it, and
	// takes patterns of loom.v1. Default: once for the subscription, and
	// patterns of ParsePattern.
	PerSelection bool
	// Wait makes emitters of volatile events that are Legacy wait for room where a
	// selection that is not Realtime is full. A subscription for which they have
	// waited for Options.MaxEmitWait in sum, without its taking all that is queued
	// in between, ends with ErrSlowSubscriber. Others get the event meanwhile.
	// Default, and for other emitters: the event is dropped, see Delivery.Dropped.
	Wait bool
	// Room is asked for room before events are read from the store, on the goroutine that
	// calls Next or Take. Default nil: there is room for everything.
	Room Room
	// MayRead says which topics the reader may read. Any other is an
	// *OwnedTopicError, and patterns do not match it. It is called often and under
	// locks. Default nil: all.
	MayRead func(topic string) bool
	// Hears says which events of those topics the reader may read; others are as if they
	// were not there. It is called as MayRead is, and changes nothing. Default nil: all.
	Hears func(e *Event) bool
}

// Subscribe begins to read the selected topics, each pattern once: at most MaxTopics patterns, or MaxSelections
// with PerSelection; zero is fine. Everything emitted after it returns is delivered. ErrPositionUnknown refuses a
// position behind the end of its topic, ErrNotOwned the topic of another agent. Close the subscription. Nil
// options are the defaults.
//
// The subscription keeps the slices and maps of the selections.
func (b *Bus) Subscribe(ctx context.Context, tenant string, selections []Subscribed, opts *SubscribeOptions) (*Subscription, error) {
	if err := checkTenant(tenant); err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &SubscribeOptions{}
	}
	s := &Subscription{
		bus: b, tenant: tenant, perSelection: opts.PerSelection, wait: opts.Wait, room: opts.Room, readable: opts.MayRead, hears: opts.Hears,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
		selections: make(map[string]*selection), cursors: make(map[cursorKey]*cursor),
		lanes: [...]lane{newLane(Batched), newLane(Realtime), newLane(Background)},
	}
	if err := b.enter(s); err != nil {
		return nil, err
	}
	var err error
	if s.start, err = s.Add(ctx, selections); err != nil {
		s.end(err)
		return nil, err
	}
	return s, nil
}

// Add reads more, as Subscribe does, and returns where it begins in the exact
// topics among it. A refused call changes nothing. Without PerSelection, a
// position in a topic that is being read already brings back what lies between.
func (s *Subscription) Add(ctx context.Context, selections []Subscribed) ([]Position, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.check(selections); err != nil {
		return nil, err
	}
	added, err := s.register(selections)
	if err != nil {
		return nil, err
	}
	positions, err := s.begin(ctx, added, selections)
	if err != nil {
		s.removeAll(added)
		return nil, err
	}
	return positions, nil
}

func (s *Subscription) check(selections []Subscribed) error {
	seen := make(map[string]bool, len(selections))
	for _, given := range selections {
		if err := given.check(s.perSelection); err != nil {
			return err
		}
		if topic, exact := given.Pattern.Exact(); exact && !s.mayRead(topic) {
			return &OwnedTopicError{Topic: topic}
		}
		if seen[given.Pattern.String()] {
			return invalid.Field(ErrInvalid, "topics", "name %q twice", given.Pattern.String())
		}
		seen[given.Pattern.String()] = true
	}
	return nil
}

// register makes selections known to emitters. Volatile events come from now
// on.
func (s *Subscription) register(selections []Subscribed) ([]*selection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return nil, s.over
	}
	limit := MaxTopics
	if s.perSelection {
		limit = MaxSelections
	}
	if len(s.selections)+len(selections) > limit {
		return nil, invalid.Field(ErrInvalid, "topics", "must be at most %d", limit)
	}
	for _, given := range selections {
		if s.selections[given.Pattern.String()] != nil {
			return nil, invalid.Field(ErrInvalid, "topics", "name %q, which is subscribed already", given.Pattern.String())
		}
	}
	added := make([]*selection, len(selections))
	for i, given := range selections {
		added[i] = s.newSelection(given)
		s.selections[given.Pattern.String()] = added[i]
		s.index.Add(given.Pattern, added[i], s.bus.changes.Add(1))
	}
	return added, nil
}

func (s *Subscription) newSelection(given Subscribed) *selection {
	sel := &selection{
		sub: s, place: s.given, pattern: given.Pattern, qos: given.QoS,
		types: given.EventTypes, headers: given.Headers, session: given.SessionID,
	}
	s.given++
	sel.lane = &s.lanes[given.QoS]
	if s.perSelection {
		own := newLane(given.QoS)
		sel.lane = &own
	}
	if _, exact := given.Pattern.Exact(); !exact && !given.Since.IsZero() {
		sel.opening, sel.touched = true, make(map[string]touch)
	}
	return sel
}

// Remove stops reading selections by their patterns, as they were given. What
// waits for them is dropped. Patterns that are not subscribed are ignored.
func (s *Subscription) Remove(patterns ...string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []*selection
	for _, pattern := range patterns {
		if sel := s.selections[pattern]; sel != nil && !sel.gone {
			sel.gone = true
			gone = append(gone, sel)
		}
	}
	s.remove(gone)
}

func (s *Subscription) removeAll(gone []*selection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return
	}
	for _, sel := range gone {
		sel.gone = true
	}
	s.remove(gone)
}

// remove takes out selections that are marked as gone, and all that is there
// for them alone.
func (s *Subscription) remove(gone []*selection) {
	if len(gone) == 0 {
		return
	}
	for _, sel := range gone {
		sel.opened()
		s.index.Remove(sel.pattern, sel)
		delete(s.selections, sel.pattern.String())
	}
	for _, c := range s.cursors {
		c.dropClaims()
		switch {
		case len(c.claims) == 0:
			c.topic.detach(c)
			s.discard(c)
		case c.weight > 0:
			s.weigh(c, len(c.claims))
		}
	}
	for _, c := range s.replay.detached {
		if c.dropClaims(); len(c.claims) == 0 {
			s.dropDetached(c)
		}
	}
	s.queue.Retain(func(e queueItem) bool {
		switch {
		case e.cursor != nil && e.cursor.gone:
			s.listed--
			return false
		case e.sel != nil && e.sel.gone:
			s.forget(e)
			return false
		}
		return true
	})
	s.keepWaiting(func(p pending) bool { return !p.sel.gone })
	s.letIn()
}

// end ends the subscription for a reason; only the first counts.
func (s *Subscription) end(reason error) {
	if s.clear(reason) {
		s.bus.exit(s)
		close(s.ended)
		s.signal()
	}
}

// clear takes out everything; false when that was done before.
func (s *Subscription) clear(reason error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	s.over = reason
	for _, sel := range s.selections {
		sel.gone = true
		sel.opened()
		s.index.Remove(sel.pattern, sel)
	}
	clear(s.selections)
	for _, c := range s.cursors {
		c.topic.detach(c)
		s.discard(c)
	}
	for _, c := range s.replay.detached {
		s.dropDetached(c)
	}
	s.queue.Retain(func(e queueItem) bool {
		if e.cursor == nil {
			s.forget(e)
		}
		return false
	})
	if n := len(s.due); n > 0 {
		s.bus.counts.of(s.tenant, s.due[0].event.Topic).queued(-int64(n))
	}
	s.due = nil
	s.listed = 0
	s.keepWaiting(func(pending) bool { return false })
	s.late, s.idle, s.replay = lists.Queue[*cursor]{}, lists.Queue[*cursor]{}, replay{}
	return true
}

func (s *Subscription) mayRead(topic string) bool { return s.readable == nil || s.readable(topic) }
