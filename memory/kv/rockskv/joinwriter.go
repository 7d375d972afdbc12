//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/recent"
)

const (
	// maxKnown bounds how many sequences are remembered: about 10 MiB with
	// scopes of usual length. A forgotten one is read again.
	maxKnown = 1 << 16
	// maxKeptBatchBytes is the largest buffer kept from one join to the next.
	maxKeptBatchBytes = 1 << 20
)

// joinWriter converts a join into one write. Only the leader of the joiner uses
// it, so nothing in it is guarded.
type joinWriter struct {
	db    *DB
	ids   []uint32 // of the column families, by keyspace
	batch batch
	keys  []recent.Write // of the batch
	// known holds sequences as they are on disk. It may be kept because this
	// process is the only one that writes.
	known map[kv.Ref]uint64
	// now holds the sequences of the refs of this join, as raised so far.
	now map[kv.Ref]raised
	// touched are the keys that this join has staged so far; nil unless one of
	// its commits watches a key.
	touched map[touch]struct{}
	// failed is set once a write has left the store's end unknown.
	failed error
}

// touch is a key that a commit writes.
type touch struct {
	keyspace kv.Keyspace
	key      string
}

// raised is a sequence, whether this join has changed it, and the token of the commit
// that did so last.
type raised struct {
	sequence uint64
	changed  bool
	token    uint64
}

func newJoinWriter(db *DB) *joinWriter {
	j := &joinWriter{db: db, known: make(map[kv.Ref]uint64), now: make(map[kv.Ref]raised)}
	for _, family := range db.families {
		j.ids = append(j.ids, family.ID())
	}
	return j
}

// write gives every waiter its answer in err.
func (j *joinWriter) write(join []*waiter) {
	defer j.shrink()
	if j.failed != nil {
		refuse(join, fmt.Errorf("%w: %w", kv.ErrFailed, j.failed))
		return
	}
	if err := j.load(join); err != nil {
		refuse(join, err)
		return
	}
	accepted, sync := j.stage(join)
	if len(accepted) == 0 {
		return
	}
	if err := j.flush(sync); err != nil {
		j.fail(accepted, err)
		return
	}
	j.remember()
}

func refuse(waiters []*waiter, err error) {
	for _, w := range waiters {
		w.err = err
	}
}

// load fills now with the sequence of every ref the join guards exactly.
func (j *joinWriter) load(join []*waiter) error {
	clear(j.now)
	j.touched = nil
	var missing []kv.Ref
	for _, w := range join {
		if len(w.commit.Watched) > 0 && j.touched == nil {
			j.touched = make(map[touch]struct{})
		}
		for _, g := range w.commit.Guards {
			if _, ok := j.now[g.Ref]; ok || g.Any {
				continue
			}
			sequence, ok := j.known[g.Ref]
			if !ok {
				missing = append(missing, g.Ref)
			}
			j.now[g.Ref] = raised{sequence: sequence}
		}
	}
	found, err := j.db.latest.sequences(missing)
	if err != nil {
		return fmt.Errorf("read sequences: %w", err)
	}
	for i, ref := range missing {
		j.now[ref] = raised{sequence: found[i]}
	}
	return nil
}

// stage builds the batch of all commits whose guards hold, in their order, and
// reports whether one of them wants to be on disk.
func (j *joinWriter) stage(join []*waiter) (accepted []*waiter, sync bool) {
	j.batch.reset()
	j.keys = j.keys[:0]
	for _, w := range join {
		if w.err = j.admit(w.commit); w.err != nil {
			continue
		}
		accepted = append(accepted, w)
		sync = sync || !w.commit.Lazy
		if w.commit.Batch != nil {
			j.stageOps(w.commit.Batch.Ops())
		}
	}
	j.stageSequences()
	return accepted, sync
}

// admit raises the sequences of all exact guards if the commit's guards hold and
// its watched keys have their values, and none otherwise.
func (j *joinWriter) admit(c kv.Commit) error {
	for _, g := range c.Guards {
		if found := j.now[g.Ref].sequence; !g.Any && found != g.Sequence {
			return &kv.ConflictError{Guard: g, Found: found}
		}
	}
	for _, w := range c.Watched {
		if err := j.compare(w); err != nil {
			return err
		}
	}
	for _, g := range c.Guards {
		if !g.Any {
			j.now[g.Ref] = raised{sequence: j.now[g.Ref].sequence + 1, changed: true, token: c.Token}
		}
	}
	return nil
}

// compare returns a *kv.ConflictError unless the key has the watched value.
func (j *joinWriter) compare(w kv.Watch) error {
	if _, ok := j.touched[touch{w.Keyspace, string(w.Key)}]; !ok {
		values, err := j.db.latest.get(w.Keyspace, [][]byte{w.Key})
		if err != nil {
			return err
		}
		if (values[0] == nil) == (w.Value == nil) && bytes.Equal(values[0], w.Value) {
			return nil
		}
	}
	return &kv.ConflictError{Key: string(w.Key), Keyspace: w.Keyspace}
}

func (j *joinWriter) stageOps(ops []kv.Op) {
	for _, op := range ops {
		if j.touched != nil {
			j.touched[touch{op.Keyspace, string(op.Key)}] = struct{}{}
		}
		j.keys = j.db.recent.Begin(j.keys, op.Keyspace, op.Key, op.Value, op.Delete)
		if op.Delete {
			j.batch.delete(j.ids[op.Keyspace], op.Key)
		} else {
			j.batch.put(j.ids[op.Keyspace], op.Key, op.Value)
		}
	}
}

func (j *joinWriter) stageSequences() {
	var room [sequenceBytes + tokenBytes]byte
	for ref, r := range j.now {
		if !r.changed {
			continue
		}
		value := binary.BigEndian.AppendUint64(room[:0], r.sequence)
		if r.token != 0 {
			value = binary.BigEndian.AppendUint64(value, r.token)
		}
		key := kv.SequenceKey(ref.Scope)
		j.keys = j.db.recent.Begin(j.keys, ref.Keyspace, key, value, false)
		j.batch.put(j.ids[ref.Keyspace], key, value)
	}
}

// flush writes the batch.
func (j *joinWriter) flush(sync bool) error {
	how := j.db.lazy
	if sync {
		how = j.db.eager
	}
	native := grocksdb.WriteBatchFrom(j.batch.finished())
	defer native.Destroy()
	j.db.room.Add(-writtenTwice * int64(len(j.batch.bytes)))
	return j.db.writeKeys(sync, j.keys, func() error { return j.db.rocks.Write(how, native) })
}

// fail answers a join whose write went wrong.
func (j *joinWriter) fail(accepted []*waiter, cause error) {
	err := fmt.Errorf("write: %w", writeError(cause))
	if errors.Is(err, kv.ErrUnknownOutcome) {
		j.failed = cause
		j.db.health.Fail(fmt.Errorf("%w: %w", kv.ErrFailed, cause))
	} else {
		j.db.health.Fail(err)
	}
	clear(j.known)
	refuse(accepted, err)
}

// remember keeps the raised sequences.
func (j *joinWriter) remember() {
	for ref, r := range j.now {
		j.known[ref] = r.sequence
	}
	for ref := range j.known {
		if len(j.known) <= maxKnown {
			return
		}
		delete(j.known, ref)
	}
}

// shrink gives an unusually large buffer back.
func (j *joinWriter) shrink() {
	if cap(j.batch.bytes) > maxKeptBatchBytes {
		j.batch.bytes, j.keys = nil, nil
	}
	clear(j.keys[:cap(j.keys)])
}

// RocksDB's own form of a write batch, as the comment at the head of
// db/write_batch.cc and the value types of db/dbformat.h give it (7.8.3):
//
//	8 bytes   sequence number, filled in by RocksDB
//	4 bytes   number of records, little-endian
//	records:  05 family key value   put into a column family
//	          04 family key         delete from one
//
// family is a varint32; key and value are a varint32 length and the bytes. The
// form is also that of the log, so RocksDB keeps reading it. Building it here
// costs one call into C for a batch instead of one for each key.
const (
	batchHeaderBytes = 12
	batchCountAt     = 8

	recordPut    = 0x05
	recordDelete = 0x04

	// recordBytes is the most a record adds to its key and value.
	recordBytes = 1 + 3*binary.MaxVarintLen32
)

// batch builds one in memory that is used again.
type batch struct {
	bytes   []byte
	records uint32
}

func (b *batch) reset() {
	b.bytes = append(b.bytes[:0], make([]byte, batchHeaderBytes)...)
	b.records = 0
}

func (b *batch) put(family uint32, key, value []byte) {
	b.begin(recordPut, family, key)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(len(value)))
	b.bytes = append(b.bytes, value...)
}

func (b *batch) delete(family uint32, key []byte) {
	b.begin(recordDelete, family, key)
}

func (b *batch) begin(kind byte, family uint32, key []byte) {
	b.records++
	b.bytes = append(b.bytes, kind)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(family))
	b.bytes = binary.AppendUvarint(b.bytes, uint64(len(key)))
	b.bytes = append(b.bytes, key...)
}

// finished returns the batch, valid until the next reset.
func (b *batch) finished() []byte {
	binary.LittleEndian.PutUint32(b.bytes[batchCountAt:], b.records)
	return b.bytes
}
