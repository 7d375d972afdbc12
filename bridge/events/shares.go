package events

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

const (
	// queuedStep is how much a tenant takes of Options.MaxQueuedBytes at once.
	queuedStep = 64 << 10
	// queuedSteps of them it keeps.
	queuedSteps = 2
	// queuedOverhead is what a place in a queue takes in addition to its event.
	queuedOverhead = 64
)

// queuedEvent is a volatile event that waits for readers. It is one in memory,
// however many it waits for.
type queuedEvent struct {
	meter *share.Meter // of the tenant
	size  int64
	refs  atomic.Int64 // places in queues, and one for the emitter
}

// queueEvent counts an event of a tenant. Where the tenant's share is used up, the
// subscriptions that have most waiting end first; nil when that is not enough. Call
// drop when it was offered to everybody.
func (b *Bus) queueEvent(tenant string, x *tenantIndex, size int) *queuedEvent {
	for {
		err := x.queued.Add(int64(size))
		if err == nil {
			q := &queuedEvent{meter: x.queued, size: int64(size)}
			q.refs.Store(1)
			return q
		}
		if !b.endSlowest(tenant, err) {
			return nil
		}
	}
}

// hold counts a place in a queue.
func (q *queuedEvent) hold() {
	q.refs.Add(1)
	q.meter.Note(queuedOverhead)
}

// release counts a place back.
func (q *queuedEvent) release() {
	q.meter.Sub(queuedOverhead)
	q.drop()
}

func (q *queuedEvent) drop() {
	if q.refs.Add(-1) == 0 {
		q.meter.Sub(q.size)
	}
}

// endSlowest ends the subscription of a tenant for which most waits; false when
// nothing waits for any.
func (b *Bus) endSlowest(tenant string, cause error) bool {
	var slowest *Subscription
	most := 0
	for _, s := range b.subscriptionsOf(tenant) {
		if waits := s.waits(); waits > most {
			slowest, most = s, waits
		}
	}
	if slowest == nil {
		return false
	}
	slowest.end(fmt.Errorf("%w: %d bytes of volatile events wait for it, more than for any other of its tenant: %s", ErrSlowSubscriber, most, cause.Error()))
	return true
}

func (b *Bus) subscriptionsOf(tenant string) (found []*Subscription) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.subscriptions {
		if s.tenant == tenant {
			found = append(found, s)
		}
	}
	return found
}

// waits is what the volatile events take that wait for the subscription, and the
// detached cursors of its replay.
func (s *Subscription) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes := s.volatileBytes + queuedOverhead*(s.queue.Len()-s.listed) + detachedBytes*len(s.replay.detached)
	for _, p := range s.waiting {
		bytes += p.size + queuedOverhead
	}
	return bytes
}

// miss counts an event that found no room at all.
func (s *Subscription) miss(e queueItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil && !e.sel.gone && s.chooses(e.sel, e.event) {
		s.dropped++
		e.count.lost(1)
	}
}

// eventCost is what an event counts for in addition to its bytes: a small one takes about as
// much work as a KiB of a large one.
const eventCost = 1 << 10

// costOf is what an event that is emitted counts for.
func (b *Bus) costOf(m *emission) int64 {
	if b.rate == nil || m.Err != nil || m.opts.Own {
		return 0
	}
	return eventCost + int64(m.Event.Size())
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
	if pause := s.bus.rate.Spend(s.tenant, eventCost+int64(d.Event.Size())); pause > 0 {
		s.pausedUntil = time.Now().Add(pause)
		time.AfterFunc(pause, s.signal)
	}
}

// paused reports whether nothing may be taken yet. The reader is woken when that ends.
func (s *Subscription) paused() bool {
	return !s.pausedUntil.IsZero() && time.Now().Before(s.pausedUntil)
}
