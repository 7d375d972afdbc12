package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Reader reads the index of one scope in one state. It is valid as long as the
// view that it was opened on, and safe for concurrent use if that is.
type Reader struct {
	head     scopeHead
	index    *Index
	view     kv.Reader
	segments []*segment.Segment
	frame    *frame.Frame
	tail     *tail
}

// Open returns a reader of a scope. The view must not change, such as a
// snapshot. What the index remembers of an earlier state is used; only what is
// new is read. Errors: ErrOutdated for an index that has to be rebuilt first
// (see Rebuild), ErrDamaged, ErrNewer.
func (x *Index) Open(ctx context.Context, view kv.Reader, scope kv.Scope) (*Reader, error) {
	h, err := x.readReady(ctx, view, scope)
	if err != nil {
		return nil, err
	}
	r := &Reader{head: h, index: x, view: view}
	if r.segments, err = x.cache.load(ctx, view, h); err != nil {
		return nil, err
	}
	s, err := x.state(ctx, view, h)
	if err != nil {
		return nil, err
	}
	r.frame, r.tail = s.frame, s.tail
	return r, nil
}

// Frame returns the frame of the scope's documents, in this state.
func (r *Reader) Frame() *frame.Frame { return r.frame }

// Statistics returns the counts of the scope.
func (r *Reader) Statistics() segment.Statistics { return r.head.Stats }

// Incarnation returns the random number that this index got when it began.
// Within it an ordinal names one document for good. Zero for a scope that
// never had a document.
func (r *Reader) Incarnation() uint64 { return r.head.Incarnation }

// Place returns the place of a live document in the order of arrival: its
// ordinal, or the one that its Facts named. Of others nothing is known.
func (r *Reader) Place(ordinal uint32) uint32 { return r.frame.Place[r.frame.Slot(ordinal)] }

// IDs returns the ids of live documents, in the order asked. Of a deleted one
// there may be an empty id, or nothing, which is ErrDamaged.
func (r *Reader) IDs(ctx context.Context, ordinals []uint32) ([]string, error) {
	ids := make([]string, len(ordinals))
	blocks, err := r.idBlocks(ctx, ordinals)
	if err != nil {
		return nil, err
	}
	for i, o := range ordinals {
		if o > r.head.Stats.Packed {
			ids[i] = r.tail.id(o)
			continue
		}
		block, at := blocks[o/segment.IDsPerBlock], int(o%segment.IDsPerBlock)
		if at >= len(block) {
			return nil, fmt.Errorf("%w: no id for document %d", segment.ErrDamaged, o)
		}
		ids[i] = string(block[at])
	}
	return ids, nil
}

// idsKey names the ids of a block of packed documents: an ordinal names one document for
// good.
type idsKey struct {
	scope scopeKey
	block uint32
}

// idBlocks returns the blocks of ids that the packed ones among ordinals stand in.
func (r *Reader) idBlocks(ctx context.Context, ordinals []uint32) (map[uint32][][]byte, error) {
	blocks := make(map[uint32][][]byte, len(ordinals))
	var keys [][]byte
	var numbers []uint32
	for _, o := range ordinals {
		if o == 0 || o > r.head.Stats.Last {
			return nil, fmt.Errorf("%w: no document %d of %d", segment.ErrDamaged, o, r.head.Stats.Last)
		}
		if o > r.head.Stats.Packed {
			continue
		}
		n, at := o/segment.IDsPerBlock, int(o%segment.IDsPerBlock)
		block, asked := blocks[n]
		if !asked {
			known, _ := r.index.cache.Get(r.idsKey(n))
			block, _ = known.([][]byte)
		}
		// A later state may have let the id go, if the document was deleted since.
		reads := asked && block == nil
		if reads || at < len(block) && len(block[at]) > 0 {
			blocks[n] = block
			continue
		}
		blocks[n] = nil
		keys, numbers = append(keys, r.head.IDsKey(n)), append(numbers, n)
	}
	if len(keys) == 0 {
		return blocks, nil
	}
	values, err := r.view.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	for i, n := range numbers {
		if values[i] == nil {
			continue // all are deleted
		}
		if blocks[n], err = r.readIDs(n, values[i]); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

func (r *Reader) idsKey(block uint32) idsKey {
	return idsKey{scopeKey{r.head.Space, r.head.Incarnation}, block}
}

// readIDs reads a block of ids, and remembers it: what comes to it later is looked for again.
func (r *Reader) readIDs(number uint32, packed []byte) ([][]byte, error) {
	const each, perID = 200, 24
	ids, err := segment.DecodeIDs(packed)
	if err == nil {
		r.index.cache.Put(r.idsKey(number), ids, each+perID*len(ids)+len(packed))
	}
	return ids, err
}
