package lexical

import (
	"encoding/binary"
	"fmt"
)

const (
	// smallChunk is when a chunk is closed: soon, because a query reads one for
	// every term and segment, and mostly for a single short list.
	smallChunk = 2 << 10
	// largeChunk is the same in a segment from largeSegment on, so that its
	// directory fits one value even if all its terms are as long as can be.
	largeChunk   = 8 << 10
	largeSegment = 4 << 20
	// blockPostings bounds the postings of one block. A term with more has
	// several blocks, each with a header that tells what is in it.
	blockPostings = 256
)

// posting says that a term stands in a document.
type posting struct {
	ordinal uint32
	// value holds the frequencies of a word.
	value uint64
}

// pack keeps the frequencies of a word in a posting's value.
func pack(body, header uint32) uint64 { return uint64(header)<<32 | uint64(body) }

func unpack(value uint64) (body, header uint32) { return uint32(value), uint32(value >> 32) }

// total is how often a word stands in body and header together.
func total(value uint64) uint64 { return value&(1<<32-1) + value>>32 }

// segmentWriter writes terms with their postings into chunks. Terms come in
// order, each once.
type segmentWriter struct {
	base   uint32 // the segment's first ordinal
	limit  int    // when a chunk is closed, in bytes
	emit   func(number uint32, chunk []byte) error
	chunk  []byte
	before string   // the last term of the chunk
	firsts []string // the first term of every chunk
	bytes  uint64
}

// chunkLimit is when to close the chunks of a segment of about that size.
func chunkLimit(segmentBytes uint64) int {
	if segmentBytes < largeSegment {
		return smallChunk
	}
	return largeChunk
}

// add writes the postings of a term, in the order of their ordinals.
func (w *segmentWriter) add(term string, postings []posting) error {
	for len(postings) > 0 {
		n := min(len(postings), blockPostings)
		if err := w.block(term, postings[:n]); err != nil {
			return err
		}
		postings = postings[n:]
	}
	return nil
}

func (w *segmentWriter) block(term string, postings []posting) error {
	if len(w.chunk) >= w.limit {
		if err := w.close(); err != nil {
			return err
		}
	}
	if len(w.chunk) == 0 {
		w.chunk = binary.AppendUvarint(make([]byte, 0, w.limit+w.limit/4), layout)
		w.firsts, w.before = append(w.firsts, term), ""
	}
	shared := sharedPrefix(w.before, term)
	w.chunk = binary.AppendUvarint(w.chunk, uint64(shared))
	w.chunk = binary.AppendUvarint(w.chunk, uint64(len(term)-shared))
	w.chunk = append(w.chunk, term[shared:]...)
	w.chunk = appendPostings(w.chunk, payloadOf(Field(term[0])), w.base, postings)
	w.before = term
	return nil
}

// close hands out the chunk.
func (w *segmentWriter) close() error {
	if len(w.chunk) == 0 {
		return nil
	}
	w.bytes += uint64(len(w.chunk))
	err := w.emit(uint32(len(w.firsts)-1), w.chunk)
	w.chunk = nil
	return err
}

func sharedPrefix[A, B string | []byte](a A, b B) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// appendPostings appends a block: count, first ordinal from base and, if there
// are more, the distance of the last one, the largest payload and the size of
// what follows; then the postings.
func appendPostings(dst []byte, p payload, base uint32, postings []posting) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(postings)))
	dst = binary.AppendUvarint(dst, uint64(postings[0].ordinal-base))
	if len(postings) == 1 {
		return appendPayload(dst, p, postings[0].value)
	}
	first, last := postings[0].ordinal, postings[len(postings)-1].ordinal
	var scratch [blockPostings * 8]byte
	body, largest := appendPayload(scratch[:0], p, postings[0].value), weightOf(p, postings[0].value)
	for i, next := range postings[1:] {
		body = binary.AppendUvarint(body, uint64(next.ordinal-postings[i].ordinal))
		body = appendPayload(body, p, next.value)
		largest = max(largest, weightOf(p, next.value))
	}
	dst = binary.AppendUvarint(dst, uint64(last-first))
	dst = binary.AppendUvarint(dst, largest)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// weightOf is what the header of a block has the largest of.
func weightOf(p payload, value uint64) uint64 {
	if p != frequency {
		return 0
	}
	return total(value)
}

func appendPayload(dst []byte, p payload, value uint64) []byte {
	if p != frequency {
		return dst
	}
	body, header := unpack(value)
	return appendFrequency(dst, body, header)
}

// block is a run of postings of one term, still packed.
type block struct {
	payload     payload
	count       uint32
	first, last uint32 // ordinals
	largest     uint64 // the largest frequency in it
	packed      []byte // postings but for the first ordinal
}

// readBlock reads what appendPostings wrote.
func readBlock(r *parser, p payload, base uint32) block {
	b := block{payload: p, count: r.uint32()}
	b.first = base + r.uint32()
	b.last = b.first
	if b.count != 1 {
		b.last += r.uint32()
		b.largest = r.uint()
		b.packed = r.take(r.uint())
	} else {
		from := r.at
		b.largest = weightOf(p, readPayload(r, p))
		b.packed = r.bytes[from:r.at]
	}
	if b.count == 0 || b.count > blockPostings || b.first < base || b.last < b.first {
		r.fail()
	}
	return b
}

func readPayload(r *parser, p payload) uint64 {
	if p != frequency {
		return 0
	}
	return pack(r.frequency())
}

// decode appends the postings of the block to dst.
func (b block) decode(dst []posting) ([]posting, error) {
	r := parser{bytes: b.packed}
	ordinal := b.first
	for i := range b.count {
		if i > 0 {
			step := r.uint32()
			if step == 0 || step > b.last-ordinal {
				r.fail()
				break
			}
			ordinal += step
		}
		dst = append(dst, posting{ordinal, readPayload(&r, b.payload)})
	}
	if r.bad || !r.done() || ordinal != b.last {
		return nil, fmt.Errorf("%w: postings", ErrDamaged)
	}
	return dst, nil
}

// blockScanner walks through the blocks of a chunk.
type blockScanner struct {
	rest  parser
	base  uint32
	term  []byte // of the block; the next step changes it
	block block
}

// scanChunk returns a scanner before the first block.
func scanChunk(chunk []byte, base uint32) (*blockScanner, error) {
	s := &blockScanner{rest: parser{bytes: chunk}, base: base}
	return s, s.rest.format()
}

// next steps to the next block; false at the end.
func (s *blockScanner) next() (bool, error) {
	if s.rest.done() {
		return false, nil
	}
	shared, suffix := s.rest.uint(), s.rest.take(s.rest.uint())
	if size := shared + uint64(len(suffix)); shared > uint64(len(s.term)) || size == 0 || size > MaxTermBytes {
		return false, fmt.Errorf("%w: term of a chunk", ErrDamaged)
	}
	s.term = append(s.term[:shared], suffix...)
	s.block = readBlock(&s.rest, payloadOf(Field(s.term[0])), s.base)
	if s.rest.bad {
		return false, fmt.Errorf("%w: block of a chunk", ErrDamaged)
	}
	return true, nil
}

// find appends the blocks of a term in a chunk to dst. It skips what it can:
// an entry that shares more with the one before than that shares with the term
// stands on the same side of the term.
func find(dst []block, chunk []byte, base uint32, term string) ([]block, error) {
	r := parser{bytes: chunk}
	if err := r.format(); err != nil {
		return nil, err
	}
	matched := 0 // how much of term the entry before shares with it
	field := Field(0)
	for !r.done() {
		shared, suffix := int(r.uint32()), r.take(r.uint())
		if shared == 0 && len(suffix) > 0 {
			field = Field(suffix[0])
		}
		if shared < matched {
			break // the entry stands behind the term
		}
		equal := false
		if shared == matched {
			n := sharedPrefix(suffix, term[matched:])
			matched += n
			equal = matched == len(term) && n == len(suffix)
			if !equal && n < len(suffix) && (matched == len(term) || suffix[n] > term[matched]) {
				break
			}
		}
		b := readBlock(&r, payloadOf(field), base)
		if equal && !r.bad {
			dst = append(dst, b)
		}
	}
	if r.bad {
		return nil, fmt.Errorf("%w: chunk", ErrDamaged)
	}
	return dst, nil
}
