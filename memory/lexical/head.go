package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// scopeHead is what every use of the index begins with.
type scopeHead struct {
	segment.Space
	segment.Head
	segments segment.List
}

// replaced reports whether the index must begin anew: its layout is an older one,
// or its terms came from another analysis, be that an older or a newer one.
func (h scopeHead) replaced(analysis string) bool {
	return h.Outdated || h.Incarnation != 0 && h.Analysis != analysis
}

// ready refuses an index that must be rebuilt first.
func (h scopeHead) ready(analysis string) error {
	if h.Rebuilding || h.replaced(analysis) {
		return ErrOutdated
	}
	return nil
}

// readHead reads the head and, if asked, the list of segments: in one round, as
// long as the generation is the first. The head may be outdated.
func readHead(ctx context.Context, from kv.Getter, scope kv.Scope, withSegments bool) (scopeHead, error) {
	h := scopeHead{Space: segment.Space{Scope: scope, Generation: segment.FirstGeneration}}
	for {
		keys := [][]byte{segment.HeadKey(scope)}
		if withSegments {
			keys = append(keys, h.ListKey())
		}
		values, err := from.Get(ctx, kv.Index, keys...)
		if err != nil {
			return scopeHead{}, err
		}
		contents, err := segment.DecodeHead(values[0])
		if err != nil {
			return scopeHead{}, err
		}
		again := withSegments && contents.Active != h.Generation
		h.Head, h.Generation = contents, contents.Active
		switch {
		case h.Outdated:
			return h, nil
		case again:
			continue
		case withSegments:
			err = h.decodeSegments(values[1])
		}
		return h, err
	}
}

// Foresee adds what Open reads of a scope, at the least.
func (x *Index) Foresee(along *kv.Reads, scope kv.Scope) {
	space := segment.Space{Scope: scope, Generation: segment.FirstGeneration}
	along.Get(kv.Index, segment.HeadKey(scope), space.ListKey())
}

// ForeseeHead adds what Apply reads of a scope, at the least.
func (x *Index) ForeseeHead(along *kv.Reads, scope kv.Scope) {
	along.Get(kv.Index, segment.HeadKey(scope))
}

// readReady reads the head and the list of segments of an index that needs no
// rebuilding.
func (x *Index) readReady(ctx context.Context, from kv.Getter, scope kv.Scope) (scopeHead, error) {
	h, err := readHead(ctx, from, scope, true)
	if err == nil {
		err = h.ready(x.analysis)
	}
	return h, err
}

func (h *scopeHead) decodeSegments(b []byte) (err error) {
	if h.segments, err = segment.DecodeList(b); err != nil {
		return err
	}
	if !h.segments.Covers(h.Stats.Packed) {
		return fmt.Errorf("%w: segments do not hold the documents 1 to %d", segment.ErrDamaged, h.Stats.Packed)
	}
	return nil
}
