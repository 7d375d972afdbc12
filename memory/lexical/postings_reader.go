package lexical

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// chunksPerRead bounds the chunks of one read, and so its memory to some MiB.
const chunksPerRead = 512

// TermPostings is a term and where it stands.
type TermPostings struct {
	Term   string
	Blocks []segment.Block
	Tail   []segment.Posting
}

// Postings returns where terms stand, in the order asked: all blocks of the
// segments and all postings of the tail. What is read is read at once. Deleted
// documents may be among them. A term is a field byte and a text.
func (r *Reader) Postings(ctx context.Context, terms []string) ([]TermPostings, error) {
	found := make([]TermPostings, len(terms))
	for i, term := range terms {
		found[i] = TermPostings{Term: term, Tail: r.tailPostings(term)}
	}
	remembered, missing := r.cachedBlocks(terms)
	chunks, err := r.fetch(ctx, terms, missing)
	if err != nil {
		return nil, err
	}
	for i := range found {
		w := &found[i]
		for n, seg := range r.segments {
			blocks := remembered[i*len(r.segments)+n]
			if missing.has(i, n) {
				if blocks, err = r.search(seg, n, w.Term, chunks); err != nil {
					return nil, err
				}
			}
			w.Blocks = append(w.Blocks, blocks...)
		}
	}
	return found, nil
}

// termKey names the cache entry of a term in a segment.
type termKey struct {
	segment *segment.Segment
	term    string
}

// pairs is a set of terms with segments, by their numbers.
type pairs map[[2]int]struct{}

func (p pairs) has(term, segment int) bool {
	_, ok := p[[2]int{term, segment}]
	return ok
}

// cachedBlocks returns the known blocks of each term in each segment, term by
// term, and which are not known.
func (r *Reader) cachedBlocks(terms []string) ([][]segment.Block, pairs) {
	blocks := make([][]segment.Block, len(terms)*len(r.segments))
	missing := make(pairs)
	for i, term := range terms {
		for n, seg := range r.segments {
			if known, ok := r.index.cache.Get(termKey{seg, term}); ok {
				blocks[i*len(r.segments)+n] = known.([]segment.Block)
			} else {
				missing[[2]int{i, n}] = struct{}{}
			}
		}
	}
	return blocks, missing
}

// search finds the blocks of a term in the chunks of a segment, and remembers
// them.
func (r *Reader) search(seg *segment.Segment, number int, term string, chunks map[chunkAt][]byte) ([]segment.Block, error) {
	const each, perBlock = 200, 64
	blocks := []segment.Block{}
	from, to := segment.LocateChunks(seg.Firsts, term)
	for chunk := from; chunk < to; chunk++ {
		var err error
		if blocks, err = segment.FindBlocks(blocks, chunks[chunkAt{number, chunk}], seg.First, term); err != nil {
			return nil, fmt.Errorf("segment %d: %w", seg.ID, err)
		}
	}
	size := each + perBlock*len(blocks)
	for i := range blocks {
		if blocks[i].Last > seg.Last {
			return nil, fmt.Errorf("%w: segment %d holds document %d", segment.ErrDamaged, seg.ID, blocks[i].Last)
		}
		// A copy, as the chunk is mostly of other terms.
		blocks[i].Packed = bytes.Clone(blocks[i].Packed)
		size += len(blocks[i].Packed)
	}
	r.index.cache.Put(termKey{seg, term}, blocks, size)
	return blocks, nil
}

func (r *Reader) tailPostings(term string) []segment.Posting {
	return r.tail.find(term, r.head.Stats.Packed+1, r.head.Stats.Last)
}

// chunkAt names a chunk of one of the segments.
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
			from, to := segment.LocateChunks(seg.Firsts, term)
			for number := from; number < to; number++ {
				at := chunkAt{n, number}
				if _, ok := chunks[at]; !ok {
					chunks[at] = nil
					keys, places = append(keys, r.head.ChunkKey(seg.ID, uint32(number))), append(places, at)
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

// EachPosting calls visit for the postings of live documents, in the order of their
// slots.
func (r *Reader) EachPosting(w TermPostings, visit func(slot uint32, value uint64)) error {
	for _, at := range w.Blocks {
		// Most values stand in one document, and there are many values.
		if at.Count == 1 && at.Payload == segment.Bare {
			r.visitLive(segment.Posting{Ordinal: at.First}, visit)
			continue
		}
		if err := r.unpack(at, visit); err != nil {
			return err
		}
	}
	for _, p := range w.Tail {
		r.visitLive(p, visit)
	}
	return nil
}

func (r *Reader) unpack(at segment.Block, visit func(slot uint32, value uint64)) error {
	var buffer [segment.BlockPostings]segment.Posting
	postings, err := at.Decode(buffer[:0])
	for _, p := range postings {
		r.visitLive(p, visit)
	}
	return err
}

func (r *Reader) visitLive(p segment.Posting, visit func(slot uint32, value uint64)) {
	if slot := r.frame.Slot(p.Ordinal); slot != 0 && !r.frame.Deleted.Has(slot) {
		visit(slot, p.Value)
	}
}

// Terms yields every term that begins with prefix, with postings, possibly including
// deleted documents: segment by segment, in order within each, and the tail last. So a term
// may come several times, with other postings each time. The postings are valid only until
// the next step. The prefix has a field at least. An error comes last.
func (r *Reader) Terms(ctx context.Context, prefix string) iter.Seq2[TermPostings, error] {
	return func(yield func(TermPostings, error) bool) {
		for _, s := range r.segments {
			if more, err := r.walk(ctx, s, prefix, func(w TermPostings) bool { return yield(w, nil) }); !more || err != nil {
				if err != nil {
					yield(TermPostings{}, err)
				}
				return
			}
		}
		for _, term := range r.tail.matching(prefix) {
			// What stands in the tail may be of a state after this one.
			if found := r.tailPostings(term); len(found) > 0 && !yield(TermPostings{Term: term, Tail: found}, nil) {
				return
			}
		}
	}
}

// walk calls visit with each block of the terms of a segment that begin with
// prefix, until it is false; then more is.
func (r *Reader) walk(ctx context.Context, s *segment.Segment, prefix string, visit func(TermPostings) bool) (more bool, err error) {
	c := segment.NewCursor(r.view, r.head.Space, s)
	if err := c.Seek(ctx, prefix); err != nil {
		return false, err
	}
	w := TermPostings{Blocks: make([]segment.Block, 1)}
	for !c.Done() {
		term, b := c.At()
		if len(term) < len(prefix) || string(term[:len(prefix)]) != prefix {
			break
		}
		if b.Last > s.Last {
			return false, fmt.Errorf("%w: segment %d holds document %d", segment.ErrDamaged, s.ID, b.Last)
		}
		w.Term, w.Blocks[0] = string(term), b
		if !visit(w) {
			return false, nil
		}
		if err := c.Step(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}
