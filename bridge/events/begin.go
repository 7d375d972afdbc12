package events

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// The groups of cursors in a topic. All selections that skip nothing durable share one, and
// Realtime selections share another; with PerSelection each has its own, because it has its
// own buffer.
const (
	losslessGroup = iota
	realtimeGroup
	firstOwnGroup
)

func (s *Subscription) keyOf(sel *selection, topic string) cursorKey {
	switch {
	case sel.qos != Realtime:
		return cursorKey{topic, losslessGroup}
	case s.perSelection:
		return cursorKey{topic, firstOwnGroup + sel.place}
	}
	return cursorKey{topic, realtimeGroup}
}

// cursorFor returns the cursor of a selection in a topic, which the caller
// holds, and makes it if need be.
func (s *Subscription) cursorFor(sel *selection, t *topic) *cursor {
	key := s.keyOf(sel, t.scope.Owner)
	if c := s.cursors[key]; c != nil {
		return c
	}
	if c := s.attachDetached(key, t); c != nil {
		return c
	}
	c := s.newCursor(key, sel, s.bus.hold(t.scope, true))
	s.cursors[key] = c
	c.topic.attach(c)
	return c
}

func (s *Subscription) newCursor(key cursorKey, sel *selection, t *topic) *cursor {
	c := &cursor{sub: s, key: key, topic: t}
	if sel.qos == Realtime {
		c.fresh = &freshEvents{lane: sel.lane}
	}
	return c
}

// discard forgets a cursor that its topic has forgotten.
func (s *Subscription) discard(c *cursor) {
	c.gone = true
	s.weigh(c, 0)
	if c.fresh != nil {
		c.fresh.clear()
	}
	delete(s.cursors, c.key)
	s.bus.release(c.topic)
}

// joined reports whether join would change nothing.
func (s *Subscription) joined(sel *selection, topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || sel.gone || !s.mayRead(topic) {
		return true
	}
	if sel.opening {
		_, ok := sel.touched[topic]
		return ok
	}
	c := s.cursors[s.keyOf(sel, topic)]
	return c != nil && c.hasClaim(sel)
}

// join lets a selection of several topics read one of them from a sequence on.
func (s *Subscription) join(sel *selection, t *topic, from uint64) {
	s.mu.Lock()
	defer s.unlock()
	switch _, touched := sel.touched[t.scope.Owner]; {
	case s.over != nil || sel.gone || touched || !s.mayRead(t.scope.Owner):
	case sel.opening:
		sel.touched[t.scope.Owner] = touch{sel.sub.bus.hold(t.scope, true), from}
	default:
		if c := s.cursorFor(sel, t); !c.hasClaim(sel) {
			s.enter(c, claim{sel: sel, from: from}, false)
		}
	}
}

// enter adds a claim, and lists the cursor if there is something to read. What is
// there already may be part of a replay.
func (s *Subscription) enter(c *cursor, cl claim, replays bool) {
	c.known = max(c.known, c.topic.last.Load())
	if replays {
		if cl.past == nil {
			cl.past = &replayClaim{}
		}
		cl.past.last = c.known
	}
	c.claim(cl)
	if replays {
		s.replays(c)
	}
	if !c.pending() {
		s.rest(c)
		return
	}
	s.weigh(c, len(c.claims))
	if !c.late && !c.replaying {
		c.late = true
		s.late.Push(c)
		s.signal()
	}
}

// begin finds the places to begin at. The selections are registered already,
// so that nothing is lost between the two.
func (s *Subscription) begin(ctx context.Context, added []*selection, given []Subscribed) ([]Position, error) {
	positions, err := s.beginExact(ctx, added, given)
	if err != nil {
		return nil, err
	}
	var opening []opening
	for i, sel := range added {
		if _, exact := sel.pattern.Exact(); !exact && !given[i].Since.IsZero() {
			opening = append(opening, newOpening(sel, given[i].Since))
		}
	}
	if len(opening) == 0 {
		return positions, nil
	}
	if err := s.openPast(ctx, opening); err != nil {
		return nil, fmt.Errorf("events: subscribe: %w", err)
	}
	return positions, nil
}

// beginExact begins in the topics that are named, and returns where.
func (s *Subscription) beginExact(ctx context.Context, added []*selection, given []Subscribed) ([]Position, error) {
	var positions []Position
	var scopes []kv.Scope
	var places []int
	for i, sel := range added {
		topic, ok := sel.pattern.Exact()
		if !ok {
			continue
		}
		positions = append(positions, Position{Topic: topic})
		scope := store.Ref(s.tenant, topic).Scope
		switch {
		case scope.Validate() == nil:
			scopes, places = append(scopes, scope), append(places, i)
		case given[i].After != nil:
			return nil, invalid.Field(ErrInvalid, "after_sequence", "is for a topic that is never stored")
		}
	}
	begun, err := s.beginStored(ctx, scopes, places, added, given)
	if err != nil {
		return nil, err
	}
	for i := range positions {
		if after, ok := begun[positions[i].Topic]; ok {
			positions[i].After = &after
		}
	}
	return positions, nil
}

// beginStored begins in topics that the store can name; places are the places of their
// selections.
func (s *Subscription) beginStored(ctx context.Context, scopes []kv.Scope, places []int, added []*selection, given []Subscribed) (map[string]uint64, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	// Attached before the store is read: what comes between is offered.
	cursors := make([]*cursor, len(scopes))
	for i, scope := range scopes {
		var err error
		if cursors[i], err = s.attach(added[places[i]], scope); err != nil {
			return nil, err
		}
	}
	records, err := store.Records(ctx, s.bus.engine, scopes...)
	if err != nil {
		return nil, fmt.Errorf("events: subscribe: %w", err)
	}
	claims := make([]claim, len(scopes))
	begun := make(map[string]uint64, len(scopes))
	for i, scope := range scopes {
		from, err := s.bus.beginning(ctx, scope, records[i], given[places[i]])
		if err != nil {
			return nil, err
		}
		claims[i] = claim{sel: added[places[i]], from: from}
		if from <= records[i].Last {
			claims[i].past = &replayClaim{since: given[places[i]].Since, until: records[i].Last}
		}
		begun[scope.Owner] = from - 1
	}
	s.mu.Lock()
	defer s.unlock()
	for i, c := range cursors {
		if !c.gone {
			c.topic.raise(records[i].Last)
			s.enter(c, claims[i], !given[places[i]].Since.IsZero())
		}
	}
	return begun, nil
}

// attach returns the cursor of a selection of one topic. It reads nothing until
// a claim is entered.
func (s *Subscription) attach(sel *selection, scope kv.Scope) (*cursor, error) {
	t := s.bus.hold(scope, true)
	defer s.bus.release(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return nil, s.over
	}
	return s.cursorFor(sel, t), nil
}

// beginning returns the first sequence that a selection of one topic wants.
func (b *Bus) beginning(ctx context.Context, scope kv.Scope, record store.Record, given Subscribed) (uint64, error) {
	switch {
	case given.After != nil && *given.After > record.Last:
		return 0, &PositionError{Topic: scope.Owner, After: *given.After, Last: record.Last}
	case given.After != nil:
		return max(*given.After+1, record.First), nil
	case !given.Since.IsZero():
		from, err := store.FirstSince(ctx, b.engine, scope, record, given.Since)
		if err != nil {
			return 0, fmt.Errorf("events: subscribe to %q: %w", scope.Owner, err)
		}
		return from, nil
	}
	return record.Last + 1, nil
}
