package events

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
)

// Errors of emitting and subscribing.
var (
	// ErrInvalid: an event or a subscription is malformed.
	ErrInvalid = pattern.ErrInvalid
	// ErrNotOwned: the topic belongs to an agent that the reader may not act for.
	ErrNotOwned = errors.New("events: topic of another agent")
	// ErrPositionUnknown: a subscription begins behind the end of its topic.
	ErrPositionUnknown = errors.New("events: position unknown")
	// ErrLimit: the bus has as many subscriptions as it may, or one of them
	// would follow too many topics.
	ErrLimit = errors.New("events: limit exceeded")
	// ErrDamaged: a stored event can't be read.
	ErrDamaged = errors.New("events: stored topic is damaged")
)

// damaged says that stored bytes can't be read, and why.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

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

// SizeError says that an event is too large as a whole. It is an ErrInvalid.
type SizeError struct {
	// Size is that of the event, Limit what it may be, both in bytes.
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("events: event of %d bytes exceeds the limit of %d", e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *SizeError) Is(target error) bool { return target == ErrInvalid }

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

// LimitError says which limit was reached. It is an ErrLimit.
type LimitError struct {
	What  string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("events: limit of %d %s is reached", e.Limit, e.What)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
