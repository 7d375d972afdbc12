package events

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

// Elsewhere are the other bridges on the store. Its methods are safe for concurrent use and
// don't block. Notices may be lost.
type Elsewhere interface {
	// Volatile passes a volatile event to them, for Bus.Hear. The event is the caller's.
	Volatile(tenant string, e *Event, legacy bool)
	// Stored announces that a topic has a new durable event, for Bus.Wake.
	Stored(tenant, topic string)
}

// Hear queues a volatile event that was emitted at another bridge for everybody who listens
// here. It keeps its id and its time. Nobody waits for subscriptions that are full: they
// miss it. ErrInvalid refuses one that could not have been emitted there.
func (b *Bus) Hear(tenant string, e Event, legacy bool) error {
	m := emission{store.Emission{Event: e}, EmitOptions{Volatile: true, Legacy: legacy}}
	if err := m.check(tenant); err != nil {
		return err
	}
	if b.isClosed() {
		return ErrClosed
	}
	b.queueVolatile(tenant, &m, b.counts.of(tenant, e.Topic), nil)
	return nil
}

// Wake looks for durable events that another bridge has stored. Without it they are found
// when the engine announces them.
func (b *Bus) Wake(ctx context.Context, tenant, topic string) {
	if ref := store.Ref(tenant, topic); ref.Scope.Validate() == nil && !b.isClosed() {
		b.moved(ctx, ref.Scope)
	}
}
