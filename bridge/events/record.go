package events

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The fields of a stored topic.
const (
	fieldLast       = 1
	fieldFirst      = 2
	fieldKeptBytes  = 3
	fieldLastTime   = 4
	fieldOldestTime = 5
)

// topicRecord is what the store knows of a topic.
type topicRecord struct {
	// last is the highest sequence given; 0 for none. It outlives the events.
	last uint64
	// first is the lowest sequence that is kept; last+1 when none is.
	first uint64
	// bytes is what the kept events take, as stageEvent counts it.
	bytes int64
	// lastTime is when the last event was taken; zero when that is not known.
	lastTime time.Time
	// oldest is no later than the time of the first event kept; zero when that
	// is not known.
	oldest time.Time
}

func (r topicRecord) empty() bool { return r.first > r.last }

func encodeTopic(r topicRecord) []byte {
	b := wire.AppendUint(nil, fieldLast, r.last)
	if r.first > 1 {
		b = wire.AppendUint(b, fieldFirst, r.first)
	}
	b = wire.AppendUint(b, fieldKeptBytes, uint64(max(r.bytes, 0)))
	b = wire.AppendTime(b, fieldLastTime, r.lastTime)
	return wire.AppendTime(b, fieldOldestTime, r.oldest)
}

// decodeTopic reads a stored topic; nil is a topic without events.
func decodeTopic(b []byte) (topicRecord, error) {
	r := topicRecord{first: 1}
	for f, err := range wire.Fields(b) {
		if err != nil {
			return topicRecord{}, damaged(err)
		}
		switch f.Number {
		case fieldLast:
			r.last = f.Value
		case fieldFirst:
			r.first = max(f.Value, 1)
		case fieldKeptBytes:
			r.bytes = max(int64(f.Value), 0)
		case fieldLastTime:
			r.lastTime = f.Time()
		case fieldOldestTime:
			r.oldest = f.Time()
		}
	}
	return r, nil
}

// getter is what reading a topic needs of a transaction or an engine.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// readTopics returns what the store knows of each topic.
func readTopics(ctx context.Context, from getter, scopes ...kv.Scope) ([]topicRecord, error) {
	keys := make([][]byte, len(scopes))
	for i, scope := range scopes {
		keys[i] = topicKey(scope)
	}
	values, err := from.Get(ctx, kv.Events, keys...)
	if err != nil {
		return nil, err
	}
	records := make([]topicRecord, len(scopes))
	for i, value := range values {
		if records[i], err = decodeTopic(value); err != nil {
			return nil, fmt.Errorf("topic %q: %w", scopes[i].Owner, err)
		}
	}
	return records, nil
}

func readTopic(ctx context.Context, from getter, scope kv.Scope) (topicRecord, error) {
	records, err := readTopics(ctx, from, scope)
	if err != nil {
		return topicRecord{}, err
	}
	return records[0], nil
}

// storedTopic is a topic that was found in the store.
type storedTopic struct {
	scope kv.Scope
	topicRecord
}

// topicsOf is the range of the keys of a tenant's topics that begin with
// prefix.
func topicsOf(tenant, prefix string) kv.Range {
	// What AppendPrefix ends the owner with would ask for the whole name.
	start := kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: prefix}.AppendPrefix(nil)
	return kv.Prefix(start[:len(start)-1])
}

// storedTopics yields the topics of a range in order. It looks at one key of
// each and skips its events.
func (b *Bus) storedTopics(ctx context.Context, r kv.Range) iter.Seq2[storedTopic, error] {
	return func(yield func(storedTopic, error) bool) {
		r.Limit = 1
		for {
			found, err := b.firstTopic(ctx, r)
			if err != nil {
				yield(storedTopic{}, err)
				return
			}
			if found == nil || !yield(*found, nil) {
				return
			}
			if r.Start = kv.After(found.scope.AppendPrefix(nil)); r.Start == nil {
				return
			}
		}
	}
}

// firstTopic returns the topic of the first key of a range; nil for none.
func (b *Bus) firstTopic(ctx context.Context, r kv.Range) (*storedTopic, error) {
	for pair, err := range b.engine.Scan(ctx, kv.Events, r) {
		if err != nil {
			return nil, err
		}
		scope, _, err := kv.SplitKey(pair.Key)
		if err != nil {
			return nil, damaged(err)
		}
		record, err := readTopic(ctx, b.engine, scope)
		return &storedTopic{scope, record}, err
	}
	return nil, nil
}
