package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// chunksPerRead bounds the chunks of one read, and so its memory to some MiB.
const chunksPerRead = 512

// search is one query under way.
type search struct {
	head
	query    Query
	segments []*segment
	// wanted are the terms to read: the words, then the conditions, then the
	// columns.
	wanted []wanted
	// The documents of the tail, from ordinal Packed+1.
	tailIDs     [][]byte
	tailLengths []uint32
}

// wanted is a term and where it stands.
type wanted struct {
	term   string
	blocks []place
	tail   []posting
}

// place is a block of a segment.
type place struct {
	block
	segment *segment
}

// documents is how many documents hold the term.
func (w wanted) documents() (n uint64) {
	for _, p := range w.blocks {
		n += uint64(p.count)
	}
	return n + uint64(len(w.tail))
}

func newSearch(h head, segments []*segment, q Query) *search {
	s := &search{head: h, query: q, segments: segments}
	for _, word := range q.Words {
		s.want(Word, Value(word.Text))
	}
	for _, c := range q.Filter {
		s.want(c.Field, Value(c.Value))
	}
	s.want(expires, "")
	s.want(supersedes, "")
	return s
}

func (s *search) want(f Field, text string) {
	s.wanted = append(s.wanted, wanted{term: string(byte(f)) + text})
}

func (s *search) words() []wanted      { return s.wanted[:len(s.query.Words)] }
func (s *search) conditions() []wanted { return s.wanted[len(s.query.Words) : len(s.wanted)-2] }
func (s *search) expires() *wanted     { return &s.wanted[len(s.wanted)-2] }
func (s *search) supersedes() *wanted  { return &s.wanted[len(s.wanted)-1] }

// lacks tells whether the segment can't hold the term.
func (s *segment) lacks(term string) bool {
	switch Field(term[0]) {
	case expires:
		return s.columns&hasExpires == 0
	case supersedes:
		return s.columns&hasSupersedes == 0
	case 0:
		return true
	}
	return false
}

// chunkAt names a chunk among those of all segments.
type chunkAt struct {
	segment int
	number  int
}

// readChunks finds the blocks of all wanted terms in the segments.
func (s *search) readChunks(ctx context.Context, view getter) error {
	chunks, err := s.fetch(ctx, view)
	if err != nil {
		return err
	}
	var found []block
	for i := range s.wanted {
		w := &s.wanted[i]
		for n, seg := range s.segments {
			from, to := seg.chunksOf(w.term)
			for number := from; number < to; number++ {
				if found, err = find(found[:0], chunks[chunkAt{n, number}], seg.first, w.term); err != nil {
					return fmt.Errorf("segment %d: %w", seg.id, err)
				}
				if err := w.add(seg, found); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *segment) chunksOf(term string) (from, to int) {
	if s.lacks(term) {
		return 0, 0
	}
	return locate(s.firsts, term)
}

func (w *wanted) add(seg *segment, found []block) error {
	for _, b := range found {
		if b.last > seg.last {
			return fmt.Errorf("%w: segment %d holds document %d", ErrDamaged, seg.id, b.last)
		}
		w.blocks = append(w.blocks, place{b, seg})
	}
	return nil
}

// fetch reads the chunks that may hold a wanted term, each once.
func (s *search) fetch(ctx context.Context, view getter) (map[chunkAt][]byte, error) {
	var keys [][]byte
	var places []chunkAt
	chunks := make(map[chunkAt][]byte)
	for _, w := range s.wanted {
		for n, seg := range s.segments {
			from, to := seg.chunksOf(w.term)
			for number := from; number < to; number++ {
				at := chunkAt{n, number}
				if _, ok := chunks[at]; !ok {
					chunks[at] = nil
					keys, places = append(keys, s.chunk(seg.id, uint32(number))), append(places, at)
				}
			}
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), chunksPerRead)
		values, err := view.Get(ctx, kv.Index, keys[:n]...)
		if err != nil {
			return nil, err
		}
		for i, value := range values {
			chunks[places[i]] = value
		}
		keys, places = keys[n:], places[n:]
	}
	return chunks, nil
}

// readTail finds the wanted terms in the entries that are not packed.
func (s *search) readTail(ctx context.Context, view scanner) error {
	index := newTermIndex(s.wanted)
	ordinal := s.stats.Packed
	for e, err := range s.tail(ctx, view) {
		if err != nil {
			return err
		}
		ordinal++
		s.tailIDs = append(s.tailIDs, e.id)
		s.tailLengths = append(s.tailLengths, e.length())
		if err := s.readEntry(index, ordinal, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) readEntry(index termIndex, ordinal uint32, e entry) error {
	for t, err := range e.each() {
		if err != nil {
			return err
		}
		for _, i := range index.find(t.term) {
			s.wanted[i].tail = append(s.wanted[i].tail, posting{ordinal, pack(t.body, t.header)})
		}
	}
	if e.expires != 0 {
		s.expires().tail = append(s.expires().tail, posting{ordinal, uint64(e.expires)})
	}
	if e.supersedes != 0 {
		s.supersedes().tail = append(s.supersedes().tail, posting{ordinal, uint64(ordinal - e.supersedes)})
	}
	return nil
}

// termIndex finds wanted terms fast, as nearly all terms of an entry are not
// among them.
type termIndex struct {
	traits uint64 // one bit for each trait that a wanted term has
	places map[string][]int
}

func newTermIndex(terms []wanted) termIndex {
	index := termIndex{places: make(map[string][]int, len(terms))}
	for i, w := range terms {
		index.traits |= trait(w.term)
		index.places[w.term] = append(index.places[w.term], i)
	}
	return index
}

// trait is a bit that depends on the ends of a term.
func trait[T string | []byte](term T) uint64 {
	const spread = 7
	return 1 << ((len(term) + spread*int(term[len(term)-1]) + int(term[min(1, len(term)-1)])) % 64)
}

func (t termIndex) find(term []byte) []int {
	if t.traits&trait(term) == 0 {
		return nil
	}
	return t.places[string(term)]
}
