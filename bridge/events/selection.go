package events

import (
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of a subscription's selections.
const (
	// MaxTopics bounds the selections of one subscription.
	MaxTopics = 64
	// MaxSelections bounds the selections of a PerSelection subscription: the registrations
	// of a loom.v1 agent.
	MaxSelections = 4096
	// maxEventTypes bounds the event types of a selection.
	maxEventTypes = 64
)

// Subscribed says what to read: some topics, where to begin in them, and which
// of their events.
type Subscribed struct {
	// Pattern is the topics. See package pattern.
	Pattern pattern.Pattern
	// After is the sequence to begin behind, for an exact topic: 0 is the whole
	// topic. Nil means only what comes from now on.
	After *uint64
	// Since begins with the durable events that the bus took after it, in all
	// topics that match, in the order of their times. What comes from now on waits
	// until they were taken. Zero means only what comes from now on. Not together
	// with After.
	Since time.Time
	// QoS is what becomes of events that are not taken in time. Default
	// Batched.
	QoS QoS
	// EventTypes lets through only events with one of these types. Empty: all.
	EventTypes []string
	// Headers lets through only events that have all of these pairs.
	Headers map[string]string
	// SessionID lets through only events of this session, see SessionOf. Empty: events of
	// all sessions, and without a session.
	SessionID string
}

// HeaderSession is the header that names the session of an event whose emitter has no
// other place for it, as agents of loom.v1.
const HeaderSession = "session_id"

// SessionOf is the session that an event belongs to; empty for none.
func SessionOf(e *Event) string {
	if e.SessionID != "" {
		return e.SessionID
	}
	return e.Headers[HeaderSession]
}

// check returns an *invalid.Error unless the selection may be served.
func (given Subscribed) check(perSelection bool) error {
	if err := given.Pattern.Check(perSelection); err != nil {
		return err
	}
	_, exact := given.Pattern.Exact()
	switch {
	case given.After != nil && !exact:
		return invalid.Field(ErrInvalid, "after_sequence", "needs an exact topic")
	case given.After != nil && !given.Since.IsZero():
		return invalid.Field(ErrInvalid, "since", "does not go with after_sequence")
	case given.QoS > Background:
		return invalid.Field(ErrInvalid, "quality_of_service", "is unknown: %d", given.QoS)
	case len(given.EventTypes) > maxEventTypes:
		return invalid.Field(ErrInvalid, "event_types", "are %d, over the limit of %d", len(given.EventTypes), maxEventTypes)
	case len(given.Headers) > store.MaxHeaders:
		return invalid.Field(ErrInvalid, "headers", "are %d, over the limit of %d", len(given.Headers), store.MaxHeaders)
	case len(given.SessionID) > store.MaxSessionBytes:
		return invalid.Field(ErrInvalid, "session_id", "has %d bytes, over the limit of %d", len(given.SessionID), store.MaxSessionBytes)
	}
	return nil
}

// selection is a Selection of an open subscription. What does not change stands
// above; the subscription's lock guards the rest.
type selection struct {
	sub     *Subscription
	place   int // in the order in which they were given
	pattern pattern.Pattern
	qos     QoS
	types   []string
	headers map[string]string
	session string
	lane    *lane
	at      int // in the index; guarded by it

	gone bool
	// opening says that its past is still being looked up. Until that is done
	// it joins no topic; touched has what it would have joined.
	opening bool
	touched map[string]touch
}

// touch is a topic that is emitted on while a selection is opening. It is held so that the
// stored events are known when the selection joins.
type touch struct {
	topic *topic
	from  uint64 // the sequence to begin at
}

// opened ends the opening.
func (sel *selection) opened() {
	for _, touch := range sel.touched {
		sel.sub.bus.release(touch.topic)
	}
	sel.opening, sel.touched = false, nil
}

// Seat is of lists.Member.
func (sel *selection) Seat() *int { return &sel.at }

// isExact reports whether it is of one topic.
func (sel *selection) isExact() bool {
	_, exact := sel.pattern.Exact()
	return exact
}

// wants reports whether an event of a matching topic passes the filters.
func (sel *selection) wants(e *Event) bool {
	if !sel.sub.mayRead(e.Topic) || sel.sub.hears != nil && !sel.sub.hears(e) {
		return false
	}
	if len(sel.types) > 0 && !slices.Contains(sel.types, e.Type) {
		return false
	}
	if sel.session != "" && SessionOf(e) != sel.session {
		return false
	}
	for key, want := range sel.headers {
		if got, ok := e.Headers[key]; !ok || got != want {
			return false
		}
	}
	return true
}

// QoS is what becomes of events that a reader has not taken yet.
type QoS uint8

// The qualities of service.
const (
	// Batched skips nothing durable. MaxVolatileEvents volatile events wait.
	Batched QoS = iota
	// Realtime wants only what is fresh: MaxRealtimeEvents events wait, durable
	// or not. One that finds no room is dropped.
	Realtime
	// Background is as Batched, but MaxBackgroundEvents wait.
	Background
)

// Limits of what waits for a subscription. Where they are of a quality of
// service, each selection has its own in a subscription that is PerSelection;
// otherwise all of its selections with that quality share one.
const (
	// MaxRealtimeEvents bounds the events that wait for Realtime.
	MaxRealtimeEvents = 512
	// MaxVolatileEvents bounds the volatile events that wait for Batched.
	MaxVolatileEvents = 2048
	// MaxBackgroundEvents bounds the volatile events that wait for Background.
	MaxBackgroundEvents = 4096
	// MaxVolatileBytes bounds the content of the volatile events that wait for
	// one subscription.
	MaxVolatileBytes = 8 << 20
	// MaxWaitingEvents bounds the volatile events that wait for all selections
	// of one subscription together.
	MaxWaitingEvents = 16 << 10
)

// lane counts what waits under one limit.
type lane struct{ waiting, limit int }

func (l *lane) full() bool { return l.waiting >= l.limit }

func newLane(q QoS) lane {
	switch q {
	case Realtime:
		return lane{limit: MaxRealtimeEvents}
	case Background:
		return lane{limit: MaxBackgroundEvents}
	default:
		return lane{limit: MaxVolatileEvents}
	}
}
