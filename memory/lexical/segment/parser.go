package segment

import "encoding/binary"

// parser reads packed bytes. After bad input it returns zeros, is at the end
// and bad is set.
type parser struct {
	bytes []byte
	at    int // an index instead of a shrinking slice: no pointer moves
	bad   bool
}

// done reports whether all is read.
func (r *parser) done() bool { return r.at >= len(r.bytes) }

func (r *parser) fail() { r.at, r.bad = len(r.bytes), true }

// uint reads a uvarint.
func (r *parser) uint() uint64 {
	if r.at < len(r.bytes) && r.bytes[r.at] < 0x80 {
		r.at++
		return uint64(r.bytes[r.at-1])
	}
	n, size := binary.Uvarint(r.bytes[r.at:])
	if size <= 0 {
		r.fail()
		return 0
	}
	r.at += size
	return n
}

// uint32 reads a uvarint of at most 32 bits.
func (r *parser) uint32() uint32 {
	n := r.uint()
	if n > 1<<32-1 {
		r.fail()
		return 0
	}
	return uint32(n)
}

// take reads that many bytes; they alias the input.
func (r *parser) take(size uint64) []byte {
	if size > uint64(len(r.bytes)-r.at) {
		r.fail()
		return nil
	}
	from := r.at
	r.at += int(size)
	return r.bytes[from:r.at:r.at]
}

// frequency reads what appendFrequency wrote.
func (r *parser) frequency() (body, header uint32) {
	n := r.uint()
	if n>>1 > 1<<32-1 {
		r.fail()
		return 0, 0
	}
	if n&1 != 0 {
		header = r.uint32()
	}
	return uint32(n >> 1), header
}

// format reads the format number that begins a packed piece.
func (r *parser) format() error {
	switch n := r.uint(); {
	case r.bad || n < Format:
		return ErrDamaged
	case n > Format:
		return ErrNewer
	}
	return nil
}
