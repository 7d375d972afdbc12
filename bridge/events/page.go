package events

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

// Room bounds what subscriptions have read from the store and not handed out yet.
type Room interface {
	// Try takes room for so many bytes; false if there is none at once.
	Try(bytes int) bool
	// Take waits for room, with all given back that the subscription has.
	Take(ctx context.Context, bytes int) error
	// Give gives back so many bytes.
	Give(bytes int)
	// Hand assigns so many bytes to the next delivery.
	Hand(bytes int)
	// Leave gives back everything.
	Leave()
}

// largestEvent is the largest size of an event read from the store, except loom.v1 events
// stored in parts.
const largestEvent = store.MaxWholeBytes

// takeRoom takes room for the next page of a cursor. A subscription that has to wait for it
// keeps no other pages, and reads one event.
func (s *Subscription) takeRoom(ctx context.Context, limit store.Limit) (taken int, _ store.Limit, err error) {
	if s.room == nil {
		return 0, limit, nil
	}
	if limit.Events == 0 {
		limit = store.Limit{Events: store.MaxPageEvents, Bytes: store.MaxPageBytes}
	}
	taken = max(limit.Bytes, largestEvent)
	if s.room.Try(taken) {
		return taken, limit, nil
	}
	s.dropPages()
	limit.Events = 1
	return taken, limit, s.room.Take(ctx, taken)
}

// readRoom returns the part of the taken room that a page does not need.
func (s *Subscription) readRoom(taken int, page []Event) {
	if s.room == nil {
		return
	}
	size := 0
	for i := range page {
		size += page[i].Size()
	}
	if size <= taken {
		s.room.Give(taken - size)
	} else {
		s.room.Try(size - taken)
	}
}

// dropPages drops what was read ahead. It belongs to the goroutine that takes.
func (s *Subscription) dropPages() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cursors {
		c.page = nil
	}
	for _, c := range s.replay.detached {
		c.page = nil
	}
}

// smallEvent is the size up to which the room of an event is not asked for.
const smallEvent = 4 << 10

// handRoom takes room for an event that was not read, but was at hand: making a message of
// it takes as much again.
func (s *Subscription) handRoom(ctx context.Context, e *Event) error {
	size := e.Size()
	if s.room == nil || size <= smallEvent {
		return nil
	}
	if !s.room.Try(size) {
		s.dropPages()
		if err := s.room.Take(ctx, size); err != nil {
			return fmt.Errorf("events: deliver from %q: %w", e.Topic, err)
		}
	}
	s.room.Hand(size)
	return nil
}

// gave gives back the room of an event that was read and is not handed out.
func (s *Subscription) gave(e *Event) {
	if s.room != nil {
		s.room.Give(e.Size())
	}
}

// fetch returns the event at a position: from the page that was read, else from
// those at hand, else from a new page. Where retention deleted what was there,
// it is the next event that is kept, and at is where that is; without an event
// at is where the next will be.
func (b *Bus) fetch(ctx context.Context, c *cursor, of *topic, position uint64) (e *Event, at uint64, err error) {
	if c.skipTo(position); len(c.page) == 0 {
		if e := of.at(position); e != nil {
			return e, position, nil
		}
		if c.page, at, err = b.turnPage(ctx, c, of, position); err != nil || len(c.page) == 0 {
			return nil, at, err
		}
	}
	taken := c.page[0]
	c.page[0] = Event{}
	if c.page = c.page[1:]; c.sub.room != nil {
		c.sub.room.Hand(taken.Size())
		c.sub.handed = true
	}
	return &taken, taken.Sequence, nil
}

// skipTo drops what is held before a position, and all if that is not what follows.
func (c *cursor) skipTo(position uint64) {
	for len(c.page) > 0 && c.page[0].Sequence < position {
		c.sub.gave(&c.page[0])
		c.page = c.page[1:]
	}
	if len(c.page) > 0 && c.page[0].Sequence != position {
		c.dropPage()
	}
}

// dropPage drops what is held.
func (c *cursor) dropPage() {
	for i := range c.page {
		c.sub.gave(&c.page[i])
	}
	c.page = nil
}

// turnPage reads the next events of a topic from the store.
func (b *Bus) turnPage(ctx context.Context, c *cursor, of *topic, from uint64) (page []Event, at uint64, err error) {
	taken, limit, err := c.sub.takeRoom(ctx, c.limit)
	if err != nil {
		return nil, from, fmt.Errorf("events: read %q: %w", of.scope.Owner, err)
	}
	defer func() { c.sub.readRoom(taken, page) }()
	scope, last := of.scope, of.last.Load()
	for {
		page, err = store.Page(ctx, b.engine, scope, from, limit)
		if err == nil && len(page) > 0 && page[0].Sequence == from {
			return page, from, nil
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			break
		}
		// Retention may have deleted it, also while it was being read.
		record, unreadable := store.RecordOf(ctx, b.engine, scope)
		switch {
		case unreadable != nil:
			err = unreadable
		case record.First > from:
			if from = record.First; from > record.Last {
				return nil, from, nil
			}
			continue
		case err == nil && len(page) == 0 && from > last:
			return nil, from, nil
		case err == nil:
			err = fmt.Errorf("%w: event %d of %d is missing", ErrDamaged, from, last)
		}
		break
	}
	return nil, from, fmt.Errorf("events: read %q from %d on: %w", scope.Owner, from, err)
}

// All yields the durable events of a tenant that are kept, by topic, in the order
// of their sequences.
func (b *Bus) All(ctx context.Context, tenant string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for stored, err := range store.Topics(ctx, b.engine, store.TopicsOf(tenant, "")) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			for from := stored.First; from <= stored.Last; {
				page, err := store.Page(ctx, b.engine, stored.Scope, from, store.Limit{})
				if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
					if !yield(Event{Topic: stored.Scope.Owner, Sequence: damaged.Sequence}, err) {
						return
					}
					from = damaged.Sequence + 1
					continue
				}
				if err != nil {
					yield(Event{}, fmt.Errorf("events: read %q from %d on: %w", stored.Scope.Owner, from, err))
					return
				}
				for _, e := range page {
					if !yield(e, nil) {
						return
					}
				}
				if len(page) == 0 {
					break
				}
				from = page[len(page)-1].Sequence + 1
			}
		}
	}
}
