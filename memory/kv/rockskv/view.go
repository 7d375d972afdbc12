//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/recent"
)

// sequenceBytes is the size of a stored sequence, big-endian, and tokenBytes that of
// the token behind it, if there is one.
const (
	sequenceBytes = 8
	tokenBytes    = 8
)

// view reads the database at one moment, or at every call's own. Its caller
// is counted as a user of everything it reads.
type view struct {
	rocks    *grocksdb.DB
	families []*grocksdb.ColumnFamilyHandle
	reads    *grocksdb.ReadOptions
	at       *grocksdb.Snapshot // nil: the latest
	// sweeping reads past the block cache.
	sweeping bool
	health   *kv.Health
	open     *lifetime.Holdings
	recent   *recent.Keys
	moment   uint64 // of recent
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
		values, err = v.getOne(ks, family, keys[0])
	default:
		values, err = v.getAll(ks, family, keys)
	}
	for i := range values {
		if isReserved(keys[i]) {
			values[i] = nil
		}
	}
	return values, v.damaged(ks, err)
}

// getAll reads what of the keys is not remembered. Without a snapshot all of it is read:
// what is remembered is not of one moment.
func (v view) getAll(ks kv.Keyspace, family *grocksdb.ColumnFamilyHandle, keys [][]byte) ([][]byte, error) {
	values, sinces := make([][]byte, len(keys)), make([]uint64, len(keys))
	var at []int // of the keys that are read
	for i, key := range keys {
		known := false
		if sinces[i] = recent.Latest; v.at != nil && !v.sweeping {
			values[i], known, sinces[i] = v.recent.Get(ks, key, v.moment)
		}
		if !known {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return values, nil
	}
	families, missing := make(grocksdb.ColumnFamilyHandles, len(at)), make([][]byte, len(at))
	for n, i := range at {
		families[n], missing[n] = family, keys[i]
	}
	found, err := v.getMany(families, missing)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		values[i] = found[n]
		v.recent.Remember(ks, keys[i], found[n], sinces[i])
	}
	return values, nil
}

func (v view) getOne(ks kv.Keyspace, family *grocksdb.ColumnFamilyHandle, key []byte) ([][]byte, error) {
	since := uint64(recent.Latest)
	if !v.sweeping {
		var known bool
		var value []byte
		if value, known, since = v.recent.Get(ks, key, v.moment); known {
			return [][]byte{value}, nil
		}
	}
	value, err := v.rocks.GetPinnedCF(v.reads, family, key)
	if err != nil {
		return nil, fmt.Errorf("get: %w", readError(err))
	}
	defer value.Destroy()
	var read []byte
	if value.Exists() {
		read = own(value.Data())
	}
	v.recent.Remember(ks, key, read, since)
	return [][]byte{read}, nil
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
	last, err := v.lastCommits(refs)
	if err != nil {
		return nil, err
	}
	sequences := make([]uint64, len(last))
	for i := range last {
		sequences[i] = last[i].Sequence
	}
	return sequences, nil
}

func (v view) lastCommits(refs []kv.Ref) ([]kv.LastCommit, error) {
	last := make([]kv.LastCommit, len(refs))
	if len(refs) == 0 {
		return last, nil
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
	var values [][]byte
	var err error
	if len(keys) == 1 {
		values, err = v.getOne(refs[0].Keyspace, families[0], keys[0])
	} else {
		values, err = v.getMany(families, keys)
	}
	if err != nil {
		return nil, v.damaged(refs[0].Keyspace, err)
	}
	for i, value := range values {
		if last[i], err = parseSequence(value); err != nil {
			return nil, fmt.Errorf("sequence of %s: %w", refs[i], err)
		}
	}
	return last, nil
}

func parseSequence(value []byte) (last kv.LastCommit, err error) {
	switch len(value) {
	case 0:
		return last, nil
	case sequenceBytes + tokenBytes:
		last.Token = binary.BigEndian.Uint64(value[sequenceBytes:])
		fallthrough
	case sequenceBytes:
		last.Sequence = binary.BigEndian.Uint64(value)
		return last, nil
	}
	return last, fmt.Errorf("%w: sequence of %d bytes", kv.ErrDamaged, len(value))
}

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
