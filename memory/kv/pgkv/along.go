package pgkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// reading is what the first round trip of a view reads: the foreseen keys and the requested
// ones.
type reading struct {
	refs   []kv.Ref
	keys   [][][]byte // by keyspace
	ranges []kv.KeyRange
}

func newReading(along *kv.Reads) *reading {
	r := &reading{refs: along.Refs(), ranges: along.Ranges(), keys: make([][][]byte, len(kv.Keyspaces()))}
	for _, ks := range kv.Keyspaces() {
		r.keys[ks] = along.Keys(ks)
	}
	return r
}

// get adds keys that are not there.
func (r *reading) get(ks kv.Keyspace, keys [][]byte) {
	if int(ks) >= len(r.keys) {
		return // it is refused when it is read
	}
	foreseen := r.keys[ks]
	for _, key := range keys {
		if !slices.ContainsFunc(foreseen, func(there []byte) bool { return bytes.Equal(there, key) }) {
			r.keys[ks] = append(r.keys[ks], key)
		}
	}
}

// scan adds a range unless it is there.
func (r *reading) scan(ks kv.Keyspace, of kv.Range) {
	for _, there := range r.ranges {
		if rangeName(there.Keyspace, there.Range) == rangeName(ks, of) {
			return
		}
	}
	if int(ks) < len(r.keys) {
		r.ranges = append(r.ranges, kv.KeyRange{Keyspace: ks, Range: of})
	}
}

// known is what a view has read along.
type known struct {
	values    []map[string][]byte // by keyspace; nil is missing
	sequences map[kv.Ref]uint64
	pages     map[string]pageOf
}

// pageOf is the first page of a range, and what is left of the range if there may be more.
type pageOf struct {
	pairs []kv.Pair
	more  bool
	rest  kv.Range
}

// get returns the values of keys if all of them are known.
func (k *known) get(ks kv.Keyspace, keys [][]byte) ([][]byte, bool) {
	if int(ks) >= len(k.values) {
		return nil, false
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		value, ok := k.values[ks][string(key)]
		if !ok {
			return nil, false
		}
		values[i] = bytes.Clone(value)
	}
	return values, true
}

// sequencesOf returns the sequences of refs if all of them are known.
func (k *known) sequencesOf(refs []kv.Ref) ([]uint64, bool) {
	sequences := make([]uint64, len(refs))
	for i, ref := range refs {
		n, ok := k.sequences[ref]
		if !ok {
			return nil, false
		}
		sequences[i] = n
	}
	return sequences, true
}

// page returns the first page of a range, if it is known.
func (k *known) page(ks kv.Keyspace, r kv.Range) (pageOf, bool) {
	if len(k.pages) == 0 {
		return pageOf{}, false
	}
	p, ok := k.pages[rangeName(ks, r)]
	if ok {
		pairs := make([]kv.Pair, len(p.pairs))
		for i, pair := range p.pairs {
			pairs[i] = kv.Pair{Key: bytes.Clone(pair.Key), Value: bytes.Clone(pair.Value)}
		}
		p.pairs = pairs
	}
	return p, ok
}

// rangeName is the same for the same range.
func rangeName(ks kv.Keyspace, r kv.Range) string {
	return fmt.Sprintf("%d %t %d %q %t %q", ks, r.Reverse, r.Limit, r.Start, r.End != nil, r.End)
}

// begin begins the transaction of a view and reads what is read along, in one round trip.
// After a failure nothing was read, and the next read begins anew. The caller holds mu.
func (s *snapshot) begin(ctx context.Context) error {
	conn, err := s.db.views.Acquire(ctx)
	if err != nil {
		return s.db.reading(err)
	}
	batch, found := new(pgx.Batch), newKnown()
	batch.Queue(begin)
	if err := s.db.queueAlong(batch, s.unread, found); err != nil {
		conn.Release()
		return err
	}
	if batch.Len() == 1 { // the first statement, not BEGIN, is what takes the moment
		batch.Queue(firstRead)
	}
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		conn.Release() // a connection inside a transaction is not given out again
		return s.db.reading(err)
	}
	s.conn, s.known, s.unread = conn, *found, nil
	return nil
}

func newKnown() *known {
	return &known{values: make([]map[string][]byte, len(kv.Keyspaces())), sequences: make(map[kv.Ref]uint64), pages: make(map[string]pageOf)}
}

// queueAlong adds what is read along to a batch whose answers are put into found.
func (db *DB) queueAlong(batch *pgx.Batch, r *reading, found *known) error {
	if len(r.refs) > 0 {
		keyspaces, scopes, err := columns(r.refs)
		if err != nil {
			return err
		}
		batch.Queue(readSequences, keyspaces, scopes).Query(func(rows pgx.Rows) error {
			last := make([]kv.LastCommit, len(r.refs))
			err := readLast(rows, last)
			for i, ref := range r.refs {
				found.sequences[ref] = last[i].Sequence
			}
			return err
		})
	}
	for ks, keys := range r.keys {
		if len(keys) > 0 {
			db.queueGet(batch, kv.Keyspace(ks), keys, found) //nolint:gosec // there are six
		}
	}
	for _, of := range r.ranges {
		rest := of.Range
		sql, args, want := db.pageQuery(of.Keyspace, rest)
		batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			pairs, more, err := takePage(rows, want, &rest)
			found.pages[rangeName(of.Keyspace, of.Range)] = pageOf{pairs, more, rest}
			return err
		})
	}
	return nil
}

func (db *DB) queueGet(batch *pgx.Batch, ks kv.Keyspace, keys [][]byte, found *known) {
	values := make(map[string][]byte, len(keys))
	for _, key := range keys {
		values[string(key)] = nil
	}
	found.values[ks] = values
	sql, arg := db.sql[ks].get, any(keys)
	if len(keys) == 1 {
		sql, arg = db.sql[ks].getOne, any(keys[0])
	}
	batch.Queue(sql, arg).Query(func(rows pgx.Rows) error {
		pairs, err := pgx.CollectRows(rows, toPair)
		for _, p := range pairs {
			values[string(p.Key)] = p.Value
		}
		return err
	})
}

// lost reports whether a view has no connection any more though it has read.
func (s *snapshot) lost(err error) bool {
	return errors.Is(err, kv.ErrUnreachable) && (s.conn == nil || s.conn.Conn().IsClosed())
}
