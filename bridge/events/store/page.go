package store

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// MaxPageEvents bounds what is read of a topic at once by default.
	MaxPageEvents = 256
	// MaxPageBytes does so, too; a page always holds at least one event.
	MaxPageBytes = 1 << 20
	// timeSlack is by how much the times of a topic's events may be out of
	// order: they are taken before the sequences are given.
	timeSlack = 5 * time.Second
)

// Limit bounds a page; one event is always in it. Zero is the default.
type Limit struct{ Events, Bytes int }

func (l Limit) orDefault() Limit {
	if l.Events == 0 {
		return Limit{MaxPageEvents, MaxPageBytes}
	}
	return l
}

// Page returns stored events from the first that is at a sequence or behind
// it, without gaps.
func Page(ctx context.Context, source Scanner, scope kv.Scope, from uint64, limit Limit) ([]Event, error) {
	var page []Event
	size := 0
	limit = limit.orDefault()
	r := kv.Range{
		Start: sequenceKey(scope, eventTag, from),
		End:   kv.After(scope.Key(eventTag)),
		Limit: limit.Events,
	}
	for pair, err := range source.Scan(ctx, kv.Events, r) {
		if err != nil {
			return nil, err
		}
		e, err := readEvent(ctx, source, scope, pair)
		if err != nil && len(page) > 0 {
			break // the next page finds out why
		}
		if err != nil {
			return nil, err
		}
		if len(page) > 0 && e.Sequence != page[0].Sequence+uint64(len(page)) {
			break // the next page finds out why
		}
		if size += e.Size(); size > limit.Bytes && len(page) > 0 {
			break
		}
		page = append(page, e)
	}
	return page, nil
}

// readEvent decodes one event and fetches what of it lies elsewhere.
func readEvent(ctx context.Context, source Scanner, scope kv.Scope, pair kv.Pair) (Event, error) {
	sequence, err := sequenceOf(pair.Key)
	if err != nil {
		return Event{}, err
	}
	stored, err := decodeEvent(pair.Value)
	if err != nil {
		return Event{}, &DamagedError{Sequence: sequence, Err: err}
	}
	switch {
	case stored.parts > 0:
		stored, err = readParts(ctx, source, scope, sequence, stored.parts)
	case stored.elsewhere:
		stored.Payload, err = readPayload(ctx, source, scope, sequence)
	}
	if errors.Is(err, ErrDamaged) {
		err = &DamagedError{Sequence: sequence, Err: err}
	}
	if err != nil {
		return Event{}, err
	}
	stored.Topic, stored.Sequence = scope.Owner, sequence
	return stored.Event, nil
}

func readPayload(ctx context.Context, source Scanner, scope kv.Scope, sequence uint64) ([]byte, error) {
	values, err := source.Get(ctx, kv.Events, sequenceKey(scope, payloadTag, sequence))
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		return nil, fmt.Errorf("%w: event %d has no payload", ErrDamaged, sequence)
	}
	return values[0], nil
}

// readParts puts an event together that was cut.
func readParts(ctx context.Context, source Scanner, scope kv.Scope, sequence uint64, parts int) (storedEvent, error) {
	if parts > maxParts {
		return storedEvent{}, fmt.Errorf("%w: event %d has %d parts", ErrDamaged, sequence, parts)
	}
	keys := make([][]byte, parts)
	for i := range keys {
		keys[i] = partKey(scope, sequence, i)
	}
	values, err := source.Get(ctx, kv.Events, keys...)
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

// FirstSince returns a sequence before which no event is younger than since,
// but for such as may be: the caller looks at the times of the rest.
func FirstSince(ctx context.Context, source Scanner, scope kv.Scope, record Record, since time.Time) (uint64, error) {
	since = since.Add(-timeSlack)
	var failed error
	kept := int(record.Last + 1 - record.First)
	n := sort.Search(kept, func(i int) bool {
		if failed != nil {
			return true
		}
		var at time.Time
		if at, failed = timeOf(ctx, source, scope, record.First+uint64(i)); failed != nil {
			return true
		}
		return at.After(since)
	})
	return record.First + uint64(n), failed
}

// timeOf returns when an event was taken; one that retention has just deleted
// is older than any other.
func timeOf(ctx context.Context, source Scanner, scope kv.Scope, sequence uint64) (time.Time, error) {
	values, err := source.Get(ctx, kv.Events, sequenceKey(scope, eventTag, sequence))
	if err != nil || values[0] == nil {
		return time.Time{}, err
	}
	stored, err := decodeEvent(values[0])
	return stored.Time, err
}
