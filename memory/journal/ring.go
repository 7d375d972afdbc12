package journal

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ring is one sort of entry, named by the tag of its keys. The tags are part of
// the on-disk format; package memory has r, k and q in the same keyspace.
type ring byte

// The tags of the journal. The head's is the lowest one of the keyspace, so that
// a session is known by the first key of its scope.
const (
	tagHead         = 'j'
	lines      ring = 'l'
	plans      ring = 'p'
	executions ring = 'x'
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

// head counts what each ring of a session ever got.
type head struct{ plans, executions, lines uint64 }

// last is the number of a ring's last entry; zero if it never had one.
func (h *head) last(r ring) *uint64 {
	switch r {
	case plans:
		return &h.plans
	case executions:
		return &h.executions
	default:
		return &h.lines
	}
}

// getter is what reading a head needs of a kv.Reader or a kv.Tx.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// readHead returns the head of a session; that of an unknown one is zero.
func readHead(ctx context.Context, from getter, scope kv.Scope) (head, error) {
	values, err := from.Get(ctx, kv.Records, scope.Key(tagHead))
	if err != nil {
		return head{}, err
	}
	return decodeHead(values[0])
}

// append adds an entry to a ring and drops the one that has to make room.
func (j *Journal) append(ctx context.Context, tenant, session string, r ring, value []byte) error {
	scope, err := scopeOf(tenant, session)
	if err != nil {
		return err
	}
	return j.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{{Keyspace: kv.Records, Scope: scope}},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			h, err := readHead(ctx, tx, scope)
			if err != nil {
				return err
			}
			last := h.last(r)
			*last++
			tx.Put(kv.Records, r.key(scope, *last), value)
			if *last > r.capacity() {
				tx.Delete(kv.Records, r.key(scope, *last-r.capacity()))
			}
			tx.Put(kv.Records, scope.Key(tagHead), h.encode())
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
func (j *Journal) entries(ctx context.Context, tenant, session string, r ring, o order) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		scope, err := scopeOf(tenant, session)
		var h head
		if err == nil {
			h, err = readHead(ctx, j.engine, scope)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		entriesUpTo(ctx, j.engine, scope, r, *h.last(r), o)(yield)
	}
}

// entriesUpTo yields the entries of the ring whose head said last. One scan sees
// one moment: what was appended since the head was read is there, and what it
// pushed out is not. The scan begins at the oldest entry because deleted ones may
// lie before it by the thousand.
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
