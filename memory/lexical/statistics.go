package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Statistics are the counts of one scope, exact at every moment.
type Statistics struct {
	// Documents is how many documents the scope has.
	Documents uint64
	// BodyWords and HeaderWords are the lengths of all of them together.
	BodyWords, HeaderWords uint64
	// Last is the ordinal of the newest document, from 1; zero for none.
	Last uint32
	// Packed is the last ordinal that stands in a segment; those behind it are
	// the tail.
	Packed uint32
	// TailBytes is the size of the tail's entries.
	TailBytes uint64
}

// Tail is how many documents are not packed.
func (s Statistics) Tail() int { return int(s.Last - s.Packed) }

// averageLength is the mean length of a document, at least one word.
func (s Statistics) averageLength() float64 {
	if s.Documents == 0 {
		return 1
	}
	return max(1, float64(s.BodyWords+s.HeaderWords)/float64(s.Documents))
}

// The fields of the head, which holds the active generation and its statistics.
const (
	headFormat     = 1
	headGeneration = 2
	headDocuments  = 3
	headBody       = 4
	headHeader     = 5
	headLast       = 6
	headPacked     = 7
	headTailBytes  = 8
)

func (h head) encode() []byte {
	b := wire.AppendUint(make([]byte, 0, 48), headFormat, layout)
	b = wire.AppendUint(b, headGeneration, uint64(h.generation))
	b = wire.AppendUint(b, headDocuments, h.stats.Documents)
	b = wire.AppendUint(b, headBody, h.stats.BodyWords)
	b = wire.AppendUint(b, headHeader, h.stats.HeaderWords)
	b = wire.AppendUint(b, headLast, uint64(h.stats.Last))
	b = wire.AppendUint(b, headPacked, uint64(h.stats.Packed))
	return wire.AppendUint(b, headTailBytes, h.stats.TailBytes)
}

// decodeHead reads a head; nil is that of a scope without documents.
func decodeHead(b []byte) (generation, Statistics, error) {
	active, s := firstGeneration, Statistics{}
	if b == nil {
		return active, s, nil
	}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return 0, Statistics{}, fmt.Errorf("%w: head: %w", ErrDamaged, err)
		}
		switch f.Number {
		case headFormat:
			format = f.Value
		case headGeneration:
			active = generation(f.Value)
		case headDocuments:
			s.Documents = f.Value
		case headBody:
			s.BodyWords = f.Value
		case headHeader:
			s.HeaderWords = f.Value
		case headLast:
			s.Last = uint32(f.Value)
		case headPacked:
			s.Packed = uint32(f.Value)
		case headTailBytes:
			s.TailBytes = f.Value
		}
	}
	if s.Packed > s.Last {
		return 0, Statistics{}, fmt.Errorf("%w: packed up to %d of %d", ErrDamaged, s.Packed, s.Last)
	}
	return active, s, checkFormat("head", format)
}

// getter is what reading needs of a kv.Reader or a kv.Tx.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// head is what every use of the index begins with.
type head struct {
	space
	stats    Statistics
	segments segmentList
}

// readHead reads the head and, if asked, the list of segments: in one round, as
// long as the generation is the first.
func readHead(ctx context.Context, from getter, scope kv.Scope, withSegments bool) (head, error) {
	h := head{space: space{scope, firstGeneration}}
	for {
		keys := [][]byte{headKey(scope)}
		if withSegments {
			keys = append(keys, h.list())
		}
		values, err := from.Get(ctx, kv.Index, keys...)
		if err != nil {
			return head{}, err
		}
		active, stats, err := decodeHead(values[0])
		if err != nil {
			return head{}, err
		}
		again := withSegments && active != h.generation
		h.generation, h.stats = active, stats
		switch {
		case again:
			continue
		case withSegments:
			err = h.decodeSegments(values[1])
		}
		return h, err
	}
}

func (h *head) decodeSegments(b []byte) (err error) {
	if h.segments, err = decodeSegmentList(b); err != nil {
		return err
	}
	if !h.segments.covers(h.stats.Packed) {
		return fmt.Errorf("%w: segments do not hold the documents 1 to %d", ErrDamaged, h.stats.Packed)
	}
	return nil
}
