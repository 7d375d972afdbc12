package events

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

// Errors of emitting and subscribing.
var (
	// ErrInvalid: an event or a subscription is malformed.
	ErrInvalid = pattern.ErrInvalid
	// ErrNotOwned: the topic belongs to an agent that the reader may not act for.
	ErrNotOwned = errors.New("events: topic of another agent")
	// ErrPositionUnknown: a subscription begins behind the end of its topic.
	ErrPositionUnknown = errors.New("events: position unknown")
	// ErrDamaged: a stored event can't be read.
	ErrDamaged = store.ErrDamaged
)

// Errors of an ended bus or subscription.
var (
	// ErrClosed: the bus is closed. Subscribe again elsewhere or later, from
	// the last event seen.
	ErrClosed = errors.New("events: bus is closed")
	// ErrSubscriptionClosed: the subscription was closed by its owner.
	ErrSubscriptionClosed = errors.New("events: subscription is closed")
	// ErrSlowSubscriber: emitters waited too long for room in the subscription
	// (SubscribeOptions.Wait), durable events wait for it in too many topics, or of
	// its tenant's volatile events, of which too many wait (Options.MaxQueuedBytes),
	// most wait for it.
	ErrSlowSubscriber = errors.New("events: subscriber is too slow")
)

// OwnedTopicError names a topic that belongs to an agent for which the reader may
// not act. It is an ErrNotOwned.
type OwnedTopicError struct{ Topic string }

func (e *OwnedTopicError) Error() string {
	return fmt.Sprintf("events: topic %q belongs to an agent that the caller may not act for", e.Topic)
}

// Is makes errors.Is(err, ErrNotOwned) true.
func (e *OwnedTopicError) Is(target error) bool { return target == ErrNotOwned }

// PositionError says where a topic ends that was to be read from behind its
// end. It is an ErrPositionUnknown.
type PositionError struct {
	Topic string
	// After is the position asked for.
	After uint64
	// Last is the sequence of the topic's last event; 0 when it has none.
	Last uint64
}

func (e *PositionError) Error() string {
	return fmt.Sprintf("events: topic %q ends at %d, before position %d", e.Topic, e.Last, e.After)
}

// Is makes errors.Is(err, ErrPositionUnknown) true.
func (e *PositionError) Is(target error) bool { return target == ErrPositionUnknown }
