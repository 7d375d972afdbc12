package segment

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	// smallChunk is when a chunk is closed: soon, because a query reads one for
	// every term and segment, and mostly for a single short list.
	smallChunk = 2 << 10
	// largeChunk is the same in a segment from largeSegment on, so that its
	// directory fits one value even if all its terms are as long as can be.
	largeChunk = 8 << 10
	// LargeSegment is the size in bytes from which a segment has large chunks.
	LargeSegment = 4 << 20
	// BlockPostings bounds the postings of one block. A term with more has
	// several blocks, each with a header that says what is in it.
	BlockPostings = 256
)

// Posting says that a term stands in a document.
type Posting struct {
	Ordinal uint32
	// Value holds the frequencies of a word.
	Value uint64
}

// PackFrequency keeps the frequencies of a word in a posting's value.
func PackFrequency(body, header uint32) uint64 { return uint64(header)<<32 | uint64(body) }

// UnpackFrequency returns what PackFrequency was given.
func UnpackFrequency(value uint64) (body, header uint32) { return uint32(value), uint32(value >> 32) }

// TotalFrequency is how often a word stands in body and header together.
func TotalFrequency(value uint64) uint64 { return value&(1<<32-1) + value>>32 }

// Writer writes terms with their postings into chunks. Terms come in
// order, each once.
type Writer struct {
	base   uint32 // the segment's first ordinal
	limit  int    // when a chunk is closed, in bytes
	emit   func(number uint32, chunk []byte) error
	chunk  []byte
	before string   // the last term of the chunk
	Firsts []string // the first term of every chunk
	Bytes  uint64
}

// ChunkLimit is when to close the chunks of a segment of about that size.
func ChunkLimit(segmentBytes uint64) int {
	if segmentBytes < LargeSegment {
		return smallChunk
	}
	return largeChunk
}

// NewWriter returns a writer of a segment that begins with that ordinal and
// takes about so many bytes. It hands every finished chunk to emit.
func NewWriter(base uint32, segmentBytes uint64, emit func(number uint32, chunk []byte) error) *Writer {
	return &Writer{base: base, limit: ChunkLimit(segmentBytes), emit: emit}
}

// Add writes the postings of a term, in the order of their ordinals.
func (w *Writer) Add(term string, postings []Posting) error {
	for len(postings) > 0 {
		n := min(len(postings), BlockPostings)
		if err := w.block(term, postings[:n]); err != nil {
			return err
		}
		postings = postings[n:]
	}
	return nil
}

func (w *Writer) block(term string, postings []Posting) error {
	if len(w.chunk) >= w.limit {
		if err := w.Close(); err != nil {
			return err
		}
	}
	if len(w.chunk) == 0 {
		w.chunk = binary.AppendUvarint(make([]byte, 0, w.limit+w.limit/4), Format)
		w.Firsts, w.before = append(w.Firsts, term), ""
	}
	shared := sharedPrefix(w.before, term)
	w.chunk = binary.AppendUvarint(w.chunk, uint64(shared))
	w.chunk = binary.AppendUvarint(w.chunk, uint64(len(term)-shared))
	w.chunk = append(w.chunk, term[shared:]...)
	w.chunk = appendPostings(w.chunk, payloadOf(Field(term[0])), w.base, postings)
	w.before = term
	return nil
}

// Close hands out the chunk.
func (w *Writer) Close() error {
	if len(w.chunk) == 0 {
		return nil
	}
	w.Bytes += uint64(len(w.chunk))
	err := w.emit(uint32(len(w.Firsts)-1), w.chunk)
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
func appendPostings(dst []byte, p Payload, base uint32, postings []Posting) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(postings)))
	dst = binary.AppendUvarint(dst, uint64(postings[0].Ordinal-base))
	if len(postings) == 1 {
		return appendPayload(dst, p, postings[0].Value)
	}
	first, last := postings[0].Ordinal, postings[len(postings)-1].Ordinal
	var scratch [BlockPostings * 8]byte
	body, largest := appendPayload(scratch[:0], p, postings[0].Value), WeightOf(p, postings[0].Value)
	for i, next := range postings[1:] {
		body = binary.AppendUvarint(body, uint64(next.Ordinal-postings[i].Ordinal))
		body = appendPayload(body, p, next.Value)
		largest = max(largest, WeightOf(p, next.Value))
	}
	dst = binary.AppendUvarint(dst, uint64(last-first))
	dst = binary.AppendUvarint(dst, largest)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// WeightOf is what the header of a block has the largest of.
func WeightOf(p Payload, value uint64) uint64 {
	if p != frequency {
		return 0
	}
	return TotalFrequency(value)
}

func appendPayload(dst []byte, p Payload, value uint64) []byte {
	if p != frequency {
		return dst
	}
	body, header := UnpackFrequency(value)
	return appendFrequency(dst, body, header)
}

// Block is a run of postings of one term, still packed.
type Block struct {
	Payload     Payload
	Count       uint32
	First, Last uint32 // ordinals
	Largest     uint64 // the largest frequency in it
	Packed      []byte // postings but for the first ordinal
}

// readBlock reads what appendPostings wrote.
func readBlock(r *parser, p Payload, base uint32) Block {
	b := Block{Payload: p, Count: r.uint32()}
	b.First = base + r.uint32()
	b.Last = b.First
	if b.Count != 1 {
		b.Last += r.uint32()
		b.Largest = r.uint()
		b.Packed = r.take(r.uint())
	} else {
		from := r.at
		b.Largest = WeightOf(p, readPayload(r, p))
		b.Packed = r.bytes[from:r.at]
	}
	if b.Count == 0 || b.Count > BlockPostings || b.First < base || b.Last < b.First {
		r.fail()
	}
	return b
}

func readPayload(r *parser, p Payload) uint64 {
	if p != frequency {
		return 0
	}
	return PackFrequency(r.frequency())
}

// Decode appends the postings of the block to dst.
func (b Block) Decode(dst []Posting) ([]Posting, error) {
	r := parser{bytes: b.Packed}
	ordinal := b.First
	for i := range b.Count {
		if i > 0 {
			step := r.uint32()
			if step == 0 || step > b.Last-ordinal {
				r.fail()
				break
			}
			ordinal += step
		}
		dst = append(dst, Posting{ordinal, readPayload(&r, b.Payload)})
	}
	if r.bad || !r.done() || ordinal != b.Last {
		return nil, fmt.Errorf("%w: postings", ErrDamaged)
	}
	return dst, nil
}

// Scanner walks through the blocks of a chunk.
type Scanner struct {
	rest  parser
	base  uint32
	term  []byte // of the block; the next step changes it
	block Block
}

// scanChunk returns a scanner before the first block.
func scanChunk(chunk []byte, base uint32) (*Scanner, error) {
	s := &Scanner{rest: parser{bytes: chunk}, base: base}
	return s, s.rest.format()
}

// next steps to the next block; false at the end.
func (s *Scanner) next() (bool, error) {
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

// FindBlocks appends the blocks of a term in a chunk to dst. It skips what it can:
// an entry that shares more with the one before than that shares with the term
// stands on the same side of the term.
func FindBlocks(dst []Block, chunk []byte, base uint32, term string) ([]Block, error) {
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

// Frequencies is decode for the blocks of a word, fast where documents are less than 16,384
// apart and frequencies small, as for most words.
func (b Block) Frequencies(dst []Posting) ([]Posting, error) {
	const wide = 0x80 // a byte that another one follows
	packed, ordinal, at := b.Packed, b.First, 0
	from := len(dst)
	dst = slices.Grow(dst, int(b.Count))
	for i := range b.Count {
		if i > 0 {
			if at+1 >= len(packed) {
				return b.Decode(dst[:from])
			}
			step := uint32(packed[at])
			at++
			if step >= wide {
				if packed[at] >= wide || packed[at] == 0 {
					return b.Decode(dst[:from])
				}
				step += uint32(packed[at])<<7 - wide
				at++
			}
			if step == 0 {
				return b.Decode(dst[:from])
			}
			ordinal += step
		}
		// An odd number is followed by the frequency in the header.
		if at >= len(packed) || packed[at] >= wide {
			return b.Decode(dst[:from])
		}
		value := uint64(packed[at] >> 1)
		if packed[at]&1 != 0 {
			if at++; at >= len(packed) || packed[at] >= wide {
				return b.Decode(dst[:from])
			}
			value |= uint64(packed[at]) << 32
		}
		at++
		dst = append(dst, Posting{ordinal, value})
	}
	if at != len(packed) || ordinal != b.Last {
		return b.Decode(dst[:from])
	}
	return dst, nil
}
