package rocksfile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// The form of a log: blocks of 32 KiB, each a sequence of
//
//	4 bytes  checksum of type and payload, masked CRC-32C
//	2 bytes  length of the payload
//	1 byte   type: a whole record, or the first, a middle or the last part of one
//	payload
//
// all little-endian. Fewer bytes than a header at the end of a block are zeros.
const (
	logBlockBytes  = 32 << 10
	logHeaderBytes = 7

	partWhole  = 1
	partFirst  = 2
	partMiddle = 3
	partLast   = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is how RocksDB stores a CRC, so that the CRC of data that contains CRCs stays
// strong.
func masked(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

// LogReader reads the records of a log or manifest from its start.
type LogReader struct {
	name   string
	from   io.Reader
	block  []byte // what the file holds of the current block
	at     int    // in block
	offset int64  // of block in the file
	end    int64  // behind the last record
	last   bool   // no block follows
	record []byte
}

// NewLogReader reads the file of that name from its first byte on.
func NewLogReader(name string, from io.Reader) *LogReader {
	return &LogReader{name: name, from: from, block: make([]byte, 0, logBlockBytes)}
}

// ResumeLogReader reads on behind a record that another reader of the same file has
// returned: at is what its End said then.
func ResumeLogReader(name string, from io.ReadSeeker, at int64) (*LogReader, error) {
	if _, err := from.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	l := NewLogReader(name, from)
	l.offset, l.at, l.end = at/logBlockBytes*logBlockBytes, int(at%logBlockBytes), at
	l.block = l.block[:l.at]
	n, err := io.ReadFull(from, l.block[l.at:logBlockBytes])
	l.block = l.block[:l.at+n]
	if l.last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); l.last {
		err = nil
	}
	return l, err
}

// End is the offset behind the last record that Next returned.
func (l *LogReader) End() int64 { return l.end }

// Next returns the next record, which is valid until the next call. It is
// io.EOF when the file ends behind a record, and a *DamageError where something else
// than a record follows, be it a torn one. Any other error is that of reading.
func (l *LogReader) Next() ([]byte, error) {
	l.record = l.record[:0]
	for begun := false; ; {
		kind, payload, err := l.part()
		if errors.Is(err, io.EOF) && begun {
			err = damaged(l.name, l.end, "the file ends inside a record")
		}
		if err != nil {
			return nil, err
		}
		if continues := kind == partMiddle || kind == partLast; continues != begun {
			return nil, damaged(l.name, l.end, "the parts of a record are not together")
		}
		begun = true
		l.record = append(l.record, payload...)
		if kind == partWhole || kind == partLast {
			l.end = l.offset + int64(l.at)
			return l.record, nil
		}
	}
}

// part returns the next part of a record.
func (l *LogReader) part() (kind byte, payload []byte, err error) {
	for len(l.block)-l.at < logHeaderBytes {
		if err := l.nextBlock(); err != nil {
			return 0, nil, err
		}
	}
	here := l.offset + int64(l.at)
	header, rest := l.block[l.at:l.at+logHeaderBytes], l.block[l.at+logHeaderBytes:]
	length := int(binary.LittleEndian.Uint16(header[4:]))
	kind = header[6]
	switch {
	case kind == 0 && length == 0:
		return 0, nil, damaged(l.name, here, "there are zeros where a record should be")
	case kind < partWhole || kind > partLast:
		return 0, nil, damaged(l.name, here, "there is no record of a known type")
	case length > len(rest):
		return 0, nil, damaged(l.name, here, "the file or its block ends inside a record")
	}
	payload = rest[:length]
	crc := crc32.Update(crc32.Checksum(header[6:], castagnoli), castagnoli, payload)
	if masked(crc) != binary.LittleEndian.Uint32(header) {
		return 0, nil, damaged(l.name, here, "a record does not match its checksum")
	}
	l.at += logHeaderBytes + length
	return kind, payload, nil
}

// nextBlock goes on to the next block; what is left of this one is no record.
func (l *LogReader) nextBlock() error {
	left := l.block[l.at:]
	if l.last {
		if len(left) > 0 {
			return damaged(l.name, l.offset+int64(l.at), "the file ends inside a record")
		}
		return io.EOF
	}
	for _, b := range left {
		if b != 0 {
			return damaged(l.name, l.offset+int64(l.at), "the end of a block is not zero")
		}
	}
	l.offset += int64(len(l.block))
	n, err := io.ReadFull(l.from, l.block[:logBlockBytes])
	l.block, l.at = l.block[:n], 0
	l.last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if l.last {
		return nil
	}
	return err
}

const (
	// batchHeaderBytes begin each record of a log: a sequence of 8 bytes and the
	// number of its entries in 4, little-endian.
	batchHeaderBytes = 12
	// maxSequence is the greatest that RocksDB gives.
	maxSequence = 1<<56 - 1
)

// batch returns the sequences that a record of a log takes, from first up to the
// one before next.
func batch(record []byte) (first, next uint64, ok bool) {
	if len(record) < batchHeaderBytes {
		return 0, 0, false
	}
	first = binary.LittleEndian.Uint64(record)
	next = first + uint64(binary.LittleEndian.Uint32(record[8:]))
	return first, next, next <= maxSequence
}

// Log is what was read of one log.
type Log struct {
	// End is the offset behind its last good record.
	End int64
	// Next is the sequence behind that record, or the one given where there is
	// none.
	Next uint64
	// Records is how many there are.
	Records int
}

// ReadLog reads a log up to its end, or to where it is no log any more; tail says
// what is there, and is nil at the end. Sequences must go on from next, which is 0
// for the first log. A record whose sequence steps back is a *DamageError, since RocksDB
// must not see such a log; so is a record shorter than a batch. report, unless nil, is
// called with the number of bytes read.
func ReadLog(name string, from io.Reader, next uint64, report func(bytes int64) error) (log Log, tail *DamageError, err error) {
	log.Next = next
	r := NewLogReader(name, from)
	for {
		record, err := r.Next()
		if tail, torn := errors.AsType[*DamageError](err); torn {
			return log, tail, nil
		}
		if errors.Is(err, io.EOF) {
			return log, nil, nil
		}
		if err != nil {
			return log, nil, err
		}
		first, behind, ok := batch(record)
		if !ok || first < log.Next {
			return log, nil, damaged(name, log.End, "a record has sequence %d, and %d or more should follow", first, log.Next)
		}
		grown := r.End() - log.End
		log.Next, log.End, log.Records = behind, r.End(), log.Records+1
		if report != nil {
			if err := report(grown); err != nil {
				return log, nil, err
			}
		}
	}
}
