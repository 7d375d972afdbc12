package plans

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ring is one sort of entry, named by the tag of its keys. The tags are part of
// the on-disk format; package memory has r, k and q in the same keyspace.
type ring byte

// The tags. That of the counters is the lowest one of the keyspace, so that
// a session is known by the first key of its scope.
const (
	tagCounters      = 'j'
	lines       ring = 'l'
	plans       ring = 'p'
	executions  ring = 'x'
)

// capacity is how many entries are kept.
func (r ring) capacity() uint64 {
	switch r {
	case plans:
		return MaxPlans
	case executions:
		return MaxExecutions
	default:
		return MaxLines
	}
}

// oldest is the number of the first entry kept when last is that of the last.
func (r ring) oldest(last uint64) uint64 { return last - min(last, r.capacity()) + 1 }

func (r ring) key(scope kv.Scope, number uint64) []byte {
	return scope.Key(byte(r), binary.BigEndian.AppendUint64(nil, number))
}

// counters counts what each ring of a session ever got.
type counters struct{ plans, executions, lines uint64 }

// last is the number of a ring's last entry; zero if it never had one.
func (h *counters) last(r ring) *uint64 {
	switch r {
	case plans:
		return &h.plans
	case executions:
		return &h.executions
	default:
		return &h.lines
	}
}

// readCounters returns the counters of a session; that of an unknown one is zero.
func readCounters(ctx context.Context, from kv.Getter, scope kv.Scope) (counters, error) {
	values, err := from.Get(ctx, kv.Records, scope.Key(tagCounters))
	if err != nil {
		return counters{}, err
	}
	return decodeCounters(values[0])
}

// append adds an entry to a ring and drops the one that has to make room.
func (s *Store) append(ctx context.Context, tenant, session string, r ring, value []byte) error {
	scope, err := scopeOf(tenant, session)
	if err != nil {
		return err
	}
	return s.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{{Keyspace: kv.Records, Scope: scope}},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			h, err := readCounters(ctx, tx, scope)
			if err != nil {
				return err
			}
			last := h.last(r)
			*last++
			tx.Put(kv.Records, r.key(scope, *last), value)
			if *last > r.capacity() {
				tx.Delete(kv.Records, r.key(scope, *last-r.capacity()))
			}
			tx.Put(kv.Records, scope.Key(tagCounters), h.encode())
			return nil
		},
	})
}

// order is the way a ring is read.
type order bool

const (
	oldestFirst order = false
	newestFirst order = true
)

// entries yields the entries of a session's ring as they are stored.
func (s *Store) entries(ctx context.Context, tenant, session string, r ring, o order) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		scope, err := scopeOf(tenant, session)
		var h counters
		if err == nil {
			h, err = readCounters(ctx, s.engine, scope)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		entriesUpTo(ctx, s.engine, scope, r, *h.last(r), o)(yield)
	}
}

// entriesUpTo yields the entries of the ring whose counters said last. One scan sees
// one moment: entries appended since the counters were read are there, and entries that
// they pushed out are not. The scan begins at the oldest entry because deleted ones may lie
// before it by the thousand.
func entriesUpTo(ctx context.Context, from kv.Reader, scope kv.Scope, r ring, last uint64, o order) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if last == 0 {
			return
		}
		all := kv.Range{
			Start:   r.key(scope, r.oldest(last)),
			End:     kv.After(scope.Key(byte(r))),
			Reverse: o == newestFirst,
			Limit:   int(r.capacity()),
		}
		for pair, err := range from.Scan(ctx, kv.Records, all) {
			if !yield(pair.Value, err) || err != nil {
				return
			}
		}
	}
}
