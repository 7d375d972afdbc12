package lexical

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// chunksPerRead bounds the chunks of one read, and so its memory to some MiB.
const chunksPerRead = 512

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

// postings returns where terms stand, in the order asked: all blocks of the
// segments and all postings of the tail. What is read is read at once. Dead
// documents may be among them. A term is a field byte and a text.
func (r *Reader) postings(ctx context.Context, terms []string) ([]wanted, error) {
	found := make([]wanted, len(terms))
	for i, term := range terms {
		found[i] = wanted{term: term, tail: r.tailPostings(term)}
	}
	remembered, missing := r.remembered(terms)
	chunks, err := r.fetch(ctx, terms, missing)
	if err != nil {
		return nil, err
	}
	for i := range found {
		w := &found[i]
		for n, seg := range r.segments {
			blocks := remembered[i*len(r.segments)+n]
			if missing.has(i, n) {
				if blocks, err = r.search(seg, n, w.term, chunks); err != nil {
					return nil, err
				}
			}
			w.add(seg, blocks)
		}
	}
	return found, nil
}

// termKey names what is remembered of a term in a segment.
type termKey struct {
	segment *segment
	term    string
}

// pairs is a set of terms with segments, by their numbers.
type pairs map[[2]int]struct{}

func (p pairs) has(term, segment int) bool {
	_, ok := p[[2]int{term, segment}]
	return ok
}

// remembered returns the known blocks of each term in each segment, term by
// term, and which are not known.
func (r *Reader) remembered(terms []string) ([][]block, pairs) {
	blocks := make([][]block, len(terms)*len(r.segments))
	missing := make(pairs)
	for i, term := range terms {
		for n, seg := range r.segments {
			if known, ok := r.index.cache.Get(termKey{seg, term}); ok {
				blocks[i*len(r.segments)+n] = known.([]block)
			} else {
				missing[[2]int{i, n}] = struct{}{}
			}
		}
	}
	return blocks, missing
}

// search finds the blocks of a term in the chunks of a segment, and remembers
// them.
func (r *Reader) search(seg *segment, number int, term string, chunks map[chunkAt][]byte) ([]block, error) {
	const each, perBlock = 200, 64
	blocks := []block{}
	from, to := locate(seg.firsts, term)
	for chunk := from; chunk < to; chunk++ {
		var err error
		if blocks, err = find(blocks, chunks[chunkAt{number, chunk}], seg.first, term); err != nil {
			return nil, fmt.Errorf("segment %d: %w", seg.id, err)
		}
	}
	size := each + perBlock*len(blocks)
	for i := range blocks {
		if blocks[i].last > seg.last {
			return nil, fmt.Errorf("%w: segment %d holds document %d", ErrDamaged, seg.id, blocks[i].last)
		}
		// A copy, as the chunk is mostly of other terms.
		blocks[i].packed = bytes.Clone(blocks[i].packed)
		size += len(blocks[i].packed)
	}
	r.index.cache.Put(termKey{seg, term}, blocks, size)
	return blocks, nil
}

func (r *Reader) tailPostings(term string) []posting {
	return r.tail.find(term, r.stats.Packed+1, r.stats.Last)
}

func (w *wanted) add(seg *segment, found []block) {
	for _, b := range found {
		w.blocks = append(w.blocks, place{b, seg})
	}
}

// chunkAt names a chunk among those of all segments.
type chunkAt struct {
	segment int
	number  int
}

// fetch reads the chunks that may hold one of the missing terms, each once.
func (r *Reader) fetch(ctx context.Context, terms []string, missing pairs) (map[chunkAt][]byte, error) {
	var keys [][]byte
	var places []chunkAt
	chunks := make(map[chunkAt][]byte)
	for i, term := range terms {
		for n, seg := range r.segments {
			if !missing.has(i, n) {
				continue
			}
			from, to := locate(seg.firsts, term)
			for number := from; number < to; number++ {
				at := chunkAt{n, number}
				if _, ok := chunks[at]; !ok {
					chunks[at] = nil
					keys, places = append(keys, r.chunk(seg.id, uint32(number))), append(places, at)
				}
			}
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), chunksPerRead)
		values, err := r.view.Get(ctx, kv.Index, keys[:n]...)
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

// each calls visit for the postings of living documents, in the order of their
// slots.
func (r *Reader) each(w wanted, visit func(slot uint32, value uint64)) error {
	for _, at := range w.blocks {
		// Most values stand in one document, and there are many values.
		if at.count == 1 && at.payload == bare {
			r.living(posting{ordinal: at.first}, visit)
			continue
		}
		if err := r.unpack(at, visit); err != nil {
			return err
		}
	}
	for _, p := range w.tail {
		r.living(p, visit)
	}
	return nil
}

func (r *Reader) unpack(at place, visit func(slot uint32, value uint64)) error {
	var buffer [blockPostings]posting
	postings, err := at.decode(buffer[:0])
	for _, p := range postings {
		r.living(p, visit)
	}
	return err
}

func (r *Reader) living(p posting, visit func(slot uint32, value uint64)) {
	if slot := r.frame.slot(p.ordinal); slot != 0 && !r.frame.dead.has(slot) {
		visit(slot, p.value)
	}
}

// terms yields every term that begins with prefix, with postings, those of dead
// documents possibly among them: segment by segment, in each in order, and the
// tail at the end. So a term comes several times, with other postings each
// time. They are only good until the next step. The prefix has a field at
// least. An error comes last.
func (r *Reader) terms(ctx context.Context, prefix string) iter.Seq2[wanted, error] {
	return func(yield func(wanted, error) bool) {
		for _, s := range r.segments {
			if more, err := r.walk(ctx, s, prefix, func(w wanted) bool { return yield(w, nil) }); !more || err != nil {
				if err != nil {
					yield(wanted{}, err)
				}
				return
			}
		}
		for _, term := range r.tail.matching(prefix) {
			// What stands in the tail may be of a state after this one.
			if found := r.tailPostings(term); len(found) > 0 && !yield(wanted{term: term, tail: found}, nil) {
				return
			}
		}
	}
}

// walk calls visit with each block of the terms of a segment that begin with
// prefix, until it is false; then more is.
func (r *Reader) walk(ctx context.Context, s *segment, prefix string, visit func(wanted) bool) (more bool, err error) {
	c := &cursor{view: r.view, space: r.space, segment: s}
	if err := c.seek(ctx, prefix); err != nil {
		return false, err
	}
	w := wanted{blocks: make([]place, 1)}
	for c.scanner != nil && len(c.scanner.term) >= len(prefix) && string(c.scanner.term[:len(prefix)]) == prefix {
		b := c.scanner.block
		if b.last > s.last {
			return false, fmt.Errorf("%w: segment %d holds document %d", ErrDamaged, s.id, b.last)
		}
		w.term, w.blocks[0] = string(c.scanner.term), place{b, s}
		if !visit(w) {
			return false, nil
		}
		if err := c.step(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}
