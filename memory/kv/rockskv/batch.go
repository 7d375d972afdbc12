//go:build cgo && !norocksdb

package rockskv

import "encoding/binary"

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
