package events

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

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
	c.page = c.page[1:]
	return &taken, taken.Sequence, nil
}

// skipTo drops what is held before a position, and all if that is not what follows.
func (c *cursor) skipTo(position uint64) {
	for len(c.page) > 0 && c.page[0].Sequence < position {
		c.page = c.page[1:]
	}
	if len(c.page) > 0 && c.page[0].Sequence != position {
		c.page = nil
	}
}

// turnPage reads the next events of a topic from the store.
func (b *Bus) turnPage(ctx context.Context, c *cursor, of *topic, from uint64) (page []Event, at uint64, err error) {
	scope, last := of.scope, of.last.Load()
	for {
		page, err = store.Page(ctx, b.engine, scope, from, c.limit)
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
