package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxPageEvents and maxPageBytes bound what a subscription reads of a topic
	// at once; a page always holds at least one event.
	maxPageEvents = 256
	maxPageBytes  = 1 << 20
	// timeSlack is by how much the times of a topic's events may be out of
	// order: they are taken before the sequences are given.
	timeSlack = 5 * time.Second
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
		page, err = b.readPage(ctx, scope, from, c.limit.orDefault())
		if err == nil && len(page) > 0 && page[0].Sequence == from {
			return page, from, nil
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			break
		}
		// Retention may have deleted it, also while it was being read.
		record, unreadable := readTopic(ctx, b.engine, scope)
		switch {
		case unreadable != nil:
			err = unreadable
		case record.first > from:
			if from = record.first; from > record.last {
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

// pageLimit bounds a page. Zero is the default.
type pageLimit struct{ events, bytes int }

func (l pageLimit) orDefault() pageLimit {
	if l.events == 0 {
		return pageLimit{maxPageEvents, maxPageBytes}
	}
	return l
}

// readPage returns stored events from the first that is at a sequence or behind
// it, without gaps.
func (b *Bus) readPage(ctx context.Context, scope kv.Scope, from uint64, limit pageLimit) ([]Event, error) {
	var page []Event
	size := 0
	r := kv.Range{
		Start: sequenceKey(scope, eventTag, from),
		End:   kv.After(scope.Key(eventTag)),
		Limit: limit.events,
	}
	for pair, err := range b.engine.Scan(ctx, kv.Events, r) {
		if err != nil {
			return nil, err
		}
		e, err := b.readEvent(ctx, scope, pair)
		if err != nil {
			return nil, err
		}
		if len(page) > 0 && e.Sequence != page[0].Sequence+uint64(len(page)) {
			break // the next page finds out why
		}
		if size += sizeOf(&e); size > limit.bytes && len(page) > 0 {
			break
		}
		page = append(page, e)
	}
	return page, nil
}

// All yields the durable events of a tenant that are kept, by topic, in the order
// of their sequences.
func (b *Bus) All(ctx context.Context, tenant string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for stored, err := range b.storedTopics(ctx, topicsOf(tenant, "")) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			for from := stored.first; from <= stored.last; {
				page, err := b.readPage(ctx, stored.scope, from, pageLimit{}.orDefault())
				if err != nil {
					yield(Event{}, fmt.Errorf("events: read %q from %d on: %w", stored.scope.Owner, from, err))
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

// readEvent decodes one event and fetches what of it lies elsewhere.
func (b *Bus) readEvent(ctx context.Context, scope kv.Scope, pair kv.Pair) (Event, error) {
	sequence, err := sequenceOf(pair.Key)
	if err != nil {
		return Event{}, err
	}
	stored, err := decodeEvent(pair.Value)
	if err != nil {
		return Event{}, err
	}
	switch {
	case stored.parts > 0:
		stored, err = b.readParts(ctx, scope, sequence, stored.parts)
	case stored.elsewhere:
		stored.Payload, err = b.readPayload(ctx, scope, sequence)
	}
	if err != nil {
		return Event{}, err
	}
	stored.Topic, stored.Sequence = scope.Owner, sequence
	return stored.Event, nil
}

func (b *Bus) readPayload(ctx context.Context, scope kv.Scope, sequence uint64) ([]byte, error) {
	values, err := b.engine.Get(ctx, kv.Events, sequenceKey(scope, payloadTag, sequence))
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		return nil, fmt.Errorf("%w: event %d has no payload", ErrDamaged, sequence)
	}
	return values[0], nil
}

// readParts puts an event together that was cut.
func (b *Bus) readParts(ctx context.Context, scope kv.Scope, sequence uint64, parts int) (storedEvent, error) {
	if parts > maxParts {
		return storedEvent{}, fmt.Errorf("%w: event %d has %d parts", ErrDamaged, sequence, parts)
	}
	keys := make([][]byte, parts)
	for i := range keys {
		keys[i] = partKey(scope, sequence, i)
	}
	values, err := b.engine.Get(ctx, kv.Events, keys...)
	if err != nil {
		return storedEvent{}, err
	}
	var whole []byte
	for i, value := range values {
		if value == nil {
			return storedEvent{}, fmt.Errorf("%w: event %d has no part %d", ErrDamaged, sequence, i)
		}
		whole = append(whole, value...)
	}
	return decodeEvent(whole)
}

// firstSince returns a sequence before which no event is younger than since,
// but for such as may be: the caller looks at the times of the rest.
func (b *Bus) firstSince(ctx context.Context, scope kv.Scope, record topicRecord, since time.Time) (uint64, error) {
	since = since.Add(-timeSlack)
	var failed error
	kept := int(record.last + 1 - record.first)
	n := sort.Search(kept, func(i int) bool {
		if failed != nil {
			return true
		}
		var at time.Time
		if at, failed = b.timeOf(ctx, scope, record.first+uint64(i)); failed != nil {
			return true
		}
		return at.After(since)
	})
	return record.first + uint64(n), failed
}

// timeOf returns when an event was taken; one that retention has just deleted
// is older than any other.
func (b *Bus) timeOf(ctx context.Context, scope kv.Scope, sequence uint64) (time.Time, error) {
	values, err := b.engine.Get(ctx, kv.Events, sequenceKey(scope, eventTag, sequence))
	if err != nil || values[0] == nil {
		return time.Time{}, err
	}
	stored, err := decodeEvent(values[0])
	return stored.Time, err
}
