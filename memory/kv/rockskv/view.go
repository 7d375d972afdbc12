//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ctxEvery is after how many pairs a scan looks at its context: often enough
// to end within microseconds, seldom enough to cost nothing.
const ctxEvery = 64

// sequenceBytes is the size of a stored sequence, big-endian.
const sequenceBytes = 8

// view reads the database at one moment, or at every call's own. Its caller
// has entered the gate of everything it uses.
type view struct {
	rocks    *grocksdb.DB
	families []*grocksdb.ColumnFamilyHandle
	reads    *grocksdb.ReadOptions
	at       *grocksdb.Snapshot // nil: the latest
	// sweeping reads past the block cache.
	sweeping bool
	health   *kv.Health
}

// damaged notes a read that met damage.
func (v view) damaged(ks kv.Keyspace, err error) error {
	if errors.Is(err, kv.ErrDamaged) {
		v.health.Damage(ks, err)
	}
	return err
}

func (v view) family(ks kv.Keyspace) (*grocksdb.ColumnFamilyHandle, error) {
	if int(ks) >= len(v.families) {
		return nil, fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ks)
	}
	return v.families[ks], nil
}

func (v view) get(ks kv.Keyspace, keys [][]byte) ([][]byte, error) {
	family, err := v.family(ks)
	if err != nil {
		return nil, err
	}
	var values [][]byte
	switch len(keys) {
	case 0:
		return [][]byte{}, nil
	case 1:
		values, err = v.getOne(family, keys[0])
	default:
		families := make(grocksdb.ColumnFamilyHandles, len(keys))
		for i := range families {
			families[i] = family
		}
		values, err = v.getMany(families, keys)
	}
	for i := range values {
		if isReserved(keys[i]) {
			values[i] = nil
		}
	}
	return values, v.damaged(ks, err)
}

func (v view) getOne(family *grocksdb.ColumnFamilyHandle, key []byte) ([][]byte, error) {
	value, err := v.rocks.GetPinnedCF(v.reads, family, key)
	if err != nil {
		return nil, fmt.Errorf("get: %w", readError(err))
	}
	defer value.Destroy()
	if !value.Exists() {
		return [][]byte{nil}, nil
	}
	return [][]byte{own(value.Data())}, nil
}

func (v view) getMany(families grocksdb.ColumnFamilyHandles, keys [][]byte) ([][]byte, error) {
	found, err := v.rocks.MultiGetCFMultiCF(v.reads, families, keys)
	if err != nil {
		return nil, fmt.Errorf("get: %w", readError(err))
	}
	defer found.Destroy()
	values := make([][]byte, len(found))
	for i, value := range found {
		if value.Exists() {
			values[i] = own(value.Data())
		}
	}
	return values, nil
}

func (v view) sequences(refs []kv.Ref) ([]uint64, error) {
	sequences := make([]uint64, len(refs))
	if len(refs) == 0 {
		return sequences, nil
	}
	families, keys := make(grocksdb.ColumnFamilyHandles, len(refs)), make([][]byte, len(refs))
	for i, ref := range refs {
		var err error
		if families[i], err = v.family(ref.Keyspace); err != nil {
			return nil, err
		}
		if err := ref.Scope.Validate(); err != nil {
			return nil, err
		}
		keys[i] = kv.SequenceKey(ref.Scope)
	}
	values, err := v.getMany(families, keys)
	if err != nil {
		return nil, v.damaged(refs[0].Keyspace, err)
	}
	for i, value := range values {
		if sequences[i], err = parseSequence(value); err != nil {
			return nil, fmt.Errorf("sequence of %s: %w", refs[i], err)
		}
	}
	return sequences, nil
}

func parseSequence(value []byte) (uint64, error) {
	switch len(value) {
	case 0:
		return 0, nil
	case sequenceBytes:
		return binary.BigEndian.Uint64(value), nil
	}
	return 0, fmt.Errorf("%w: sequence of %d bytes", kv.ErrDamaged, len(value))
}

// scan yields the pairs of a range, and at the end the error if there is one.
func (v view) scan(ctx context.Context, ks kv.Keyspace, r kv.Range, yield func(kv.Pair, error) bool) {
	family, err := v.family(ks)
	if err != nil {
		yield(kv.Pair{}, err)
		return
	}
	if r.End != nil && bytes.Compare(r.Start, r.End) >= 0 {
		return
	}
	c := v.cursor(family, r)
	defer c.close()
	for c.first(); c.it.Valid(); c.next() {
		if err := c.interrupted(ctx); err != nil {
			yield(kv.Pair{}, err)
			return
		}
		if pair, ok := c.pair(); ok && !yield(pair, nil) || c.done() {
			return
		}
	}
	if err := c.it.Err(); err != nil {
		yield(kv.Pair{}, v.damaged(ks, fmt.Errorf("scan: %w", readError(err))))
	}
}

// cursor is a native iterator over one range with all that belongs to it.
type cursor struct {
	it      *grocksdb.Iterator
	reads   *grocksdb.ReadOptions
	pins    runtime.Pinner
	reverse bool
	limit   int
	yielded int
	seen    int
}

// cursor opens one. RocksDB keeps the bounds by address for as long as it
// lives, so they are pinned copies.
func (v view) cursor(family *grocksdb.ColumnFamilyHandle, r kv.Range) *cursor {
	c := &cursor{reads: grocksdb.NewDefaultReadOptions(), reverse: r.Reverse, limit: r.Limit}
	if v.at != nil {
		c.reads.SetSnapshot(v.at)
	}
	c.reads.SetFillCache(!v.sweeping)
	if len(r.Start) > 0 {
		c.reads.SetIterateLowerBound(c.pinned(r.Start))
	}
	if r.End != nil {
		c.reads.SetIterateUpperBound(c.pinned(r.End))
	}
	c.it = v.rocks.NewIteratorCF(c.reads, family)
	return c
}

func (c *cursor) pinned(bound []byte) []byte {
	bound = bytes.Clone(bound)
	c.pins.Pin(&bound[0])
	return bound
}

func (c *cursor) close() {
	c.it.Close()
	c.reads.Destroy()
	c.pins.Unpin()
}

func (c *cursor) first() {
	if c.reverse {
		c.it.SeekToLast()
	} else {
		c.it.SeekToFirst()
	}
}

func (c *cursor) next() {
	if c.reverse {
		c.it.Prev()
	} else {
		c.it.Next()
	}
}

func (c *cursor) interrupted(ctx context.Context) error {
	c.seen++
	if c.seen%ctxEvery != 1 {
		return nil
	}
	return ctx.Err()
}

// pair returns a copy of the pair the cursor stands on, or false where the key
// is reserved.
func (c *cursor) pair() (kv.Pair, bool) {
	key := c.it.Key().Data()
	if isReserved(key) {
		return kv.Pair{}, false
	}
	c.yielded++
	return kv.Pair{Key: own(key), Value: own(c.it.Value().Data())}, true
}

func (c *cursor) done() bool { return c.limit > 0 && c.yielded >= c.limit }

// isReserved is kv.IsReserved for keys that are in the database, without
// taking the scope apart: tenant 00 kind owner 00 00.
func isReserved(key []byte) bool {
	tenant := bytes.IndexByte(key, 0x00)
	if tenant < 0 || tenant+2 > len(key) {
		return false
	}
	rest := key[tenant+2:]
	owner := bytes.IndexByte(rest, 0x00)
	return owner >= 0 && owner+1 < len(rest) && rest[owner+1] == 0x00
}

// own returns a copy that is never nil.
func own(b []byte) []byte {
	return append(make([]byte, 0, len(b)), b...)
}
