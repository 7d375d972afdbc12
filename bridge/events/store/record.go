package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The fields of a stored topic.
//
// By hand: the generated message takes 4.4 times as long to read and write, and each durable event writes one.
const (
	fieldLast       = 1
	fieldFirst      = 2
	fieldKeptBytes  = 3
	fieldLastTime   = 4
	fieldOldestTime = 5
)

// Record is what the store knows of a topic.
type Record struct {
	// Last is the highest sequence given; 0 for none. It outlives the events.
	Last uint64
	// First is the lowest sequence that is kept; Last+1 when none is.
	First uint64
	// Bytes is what the kept events take, as stageEvent counts it.
	Bytes int64
	// LastTime is when the last event was taken; zero when that is not known.
	LastTime time.Time
	// Oldest is no later than the time of the first event kept; zero when that
	// is not known.
	Oldest time.Time
}

// Empty reports whether no event is kept.
func (r Record) Empty() bool { return r.First > r.Last }

func encodeTopic(r Record) []byte {
	b := wire.AppendUint(nil, fieldLast, r.Last)
	if r.First > 1 {
		b = wire.AppendUint(b, fieldFirst, r.First)
	}
	b = wire.AppendUint(b, fieldKeptBytes, uint64(max(r.Bytes, 0)))
	b = wire.AppendTime(b, fieldLastTime, r.LastTime)
	return wire.AppendTime(b, fieldOldestTime, r.Oldest)
}

// decodeTopic reads a stored topic; nil is a topic without events.
func decodeTopic(b []byte) (Record, error) {
	r := Record{First: 1}
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Record{}, damaged(err)
		}
		switch f.Number {
		case fieldLast:
			r.Last = f.Value
		case fieldFirst:
			r.First = max(f.Value, 1)
		case fieldKeptBytes:
			r.Bytes = max(int64(f.Value), 0)
		case fieldLastTime:
			r.LastTime = f.Time()
		case fieldOldestTime:
			r.Oldest = f.Time()
		}
	}
	return r, nil
}

// Scanner is what events are read from: an engine, a snapshot or a transaction.
type Scanner interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
	Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error]
}

// Records returns what the store knows of each topic.
func Records(ctx context.Context, from Scanner, scopes ...kv.Scope) ([]Record, error) {
	keys := make([][]byte, len(scopes))
	for i, scope := range scopes {
		keys[i] = topicKey(scope)
	}
	values, err := from.Get(ctx, kv.Events, keys...)
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(scopes))
	for i, value := range values {
		if records[i], err = decodeTopic(value); err != nil {
			return nil, fmt.Errorf("topic %q: %w", scopes[i].Owner, err)
		}
	}
	return records, nil
}

// RecordOf returns what the store knows of a topic.
func RecordOf(ctx context.Context, from Scanner, scope kv.Scope) (Record, error) {
	records, err := Records(ctx, from, scope)
	if err != nil {
		return Record{}, err
	}
	return records[0], nil
}

// Topic is a topic that was found in the store.
type Topic struct {
	Scope kv.Scope
	Record
}

// TopicsOf is the range of the keys of a tenant's topics that begin with
// prefix.
func TopicsOf(tenant, prefix string) kv.Range {
	// What AppendPrefix ends the owner with would ask for the whole name.
	start := kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: prefix}.AppendPrefix(nil)
	return kv.Prefix(start[:len(start)-1])
}

// Topics yields the topics of a range in order. It looks at one key of
// each and skips its events.
func Topics(ctx context.Context, from Scanner, r kv.Range) iter.Seq2[Topic, error] {
	return func(yield func(Topic, error) bool) {
		r.Limit = 1
		for {
			found, err := firstTopic(ctx, from, r)
			if err != nil {
				yield(Topic{}, err)
				return
			}
			if found == nil || !yield(*found, nil) {
				return
			}
			if r.Start = kv.After(found.Scope.AppendPrefix(nil)); r.Start == nil {
				return
			}
		}
	}
}

// firstTopic returns the topic of the first key of a range; nil for none.
func firstTopic(ctx context.Context, from Scanner, r kv.Range) (*Topic, error) {
	for pair, err := range from.Scan(ctx, kv.Events, r) {
		if err != nil {
			return nil, err
		}
		scope, _, err := kv.SplitKey(pair.Key)
		if err != nil {
			return nil, damaged(err)
		}
		record, err := RecordOf(ctx, from, scope)
		return &Topic{scope, record}, err
	}
	return nil, nil
}

// MayHaveSince reports whether some of the topic's events may be younger.
func (r Record) MayHaveSince(since time.Time) bool {
	return !r.Empty() && (r.LastTime.IsZero() || r.LastTime.Add(timeSlack).After(since))
}
