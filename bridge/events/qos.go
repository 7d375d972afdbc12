package events

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
