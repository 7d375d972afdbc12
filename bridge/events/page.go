package events

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// turnPage reads the next events of a topic from the store.
func (b *Bus) turnPage(ctx context.Context, c *cursor) error {
	b.mu.Lock()
	last, hints := c.topic.last, c.topic.hints
	b.mu.Unlock()
	page, err := b.readPage(ctx, c.scope, c.next)
	if err != nil {
		return fmt.Errorf("events: read %q from %d on: %w", c.scope.Owner, c.next, err)
	}
	if len(page) == 0 && c.next <= last {
		return fmt.Errorf("%w: %q ends before %d of %d", ErrDamaged, c.scope.Owner, c.next, last)
	}
	c.page, c.hints = page, hints
	return nil
}

// readPage returns stored events from a sequence on, without gaps.
func (b *Bus) readPage(ctx context.Context, scope kv.Scope, from uint64) ([]Event, error) {
	var page []Event
	size := 0
	r := kv.Range{
		Start: sequenceKey(scope, eventTag, from),
		End:   kv.After(scope.Key(eventTag)),
		Limit: maxPageEvents,
	}
	for pair, err := range b.engine.Scan(ctx, kv.Events, r) {
		if err != nil {
			return nil, err
		}
		e, err := b.readEvent(ctx, scope, pair)
		if err != nil {
			return nil, err
		}
		if e.Sequence != from+uint64(len(page)) {
			return nil, fmt.Errorf("%w: %d stands where %d should", ErrDamaged, e.Sequence, from+uint64(len(page)))
		}
		page = append(page, e)
		if size += sizeOf(&e); size >= maxPageBytes {
			break
		}
	}
	return page, nil
}

// readEvent decodes one event and fetches its payload if that lies elsewhere.
func (b *Bus) readEvent(ctx context.Context, scope kv.Scope, pair kv.Pair) (Event, error) {
	e, elsewhere, err := decodeEvent(pair.Value)
	if err != nil {
		return Event{}, err
	}
	if e.Sequence, err = sequenceOf(pair.Key); err != nil {
		return Event{}, err
	}
	e.Topic = scope.Owner
	if !elsewhere {
		return e, nil
	}
	values, err := b.engine.Get(ctx, kv.Events, sequenceKey(scope, payloadTag, e.Sequence))
	if err != nil {
		return Event{}, err
	}
	if values[0] == nil {
		return Event{}, fmt.Errorf("%w: event %d has no payload", ErrDamaged, e.Sequence)
	}
	e.Payload = values[0]
	return e, nil
}
