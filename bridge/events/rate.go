package events

import (
	"context"
	"fmt"
	"time"
)

// eventCost is what an event counts for beside its bytes: a small one takes about as
// much work as a KiB of a large one.
const eventCost = 1 << 10

// costOf is what an event that is emitted counts for.
func (b *Bus) costOf(m *emission) int64 {
	if b.rate == nil || m.err != nil || m.opts.Unmetered {
		return 0
	}
	return eventCost + int64(sizeOf(&m.event))
}

// pay waits while the tenant has emitted more than its part.
func (b *Bus) pay(ctx context.Context, tenant string, cost int64) error {
	if cost == 0 {
		return nil
	}
	if err := b.rate.Pay(ctx, tenant, cost); err != nil {
		return fmt.Errorf("events: emit: %w", err)
	}
	return nil
}

// paid counts a delivery. When the tenant has had more than its part, the next one
// is not taken for a while.
func (s *Subscription) paid(d Delivery) {
	if s.bus.rate == nil {
		return
	}
	if pause := s.bus.rate.Spend(s.tenant, eventCost+int64(sizeOf(&d.Event))); pause > 0 {
		s.pausedUntil = time.Now().Add(pause)
		time.AfterFunc(pause, s.signal)
	}
}

// paused tells whether nothing may be taken yet. The reader is woken when that ends.
func (s *Subscription) paused() bool {
	return !s.pausedUntil.IsZero() && time.Now().Before(s.pausedUntil)
}
