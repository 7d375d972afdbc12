package lexical

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

const (
	// statesKept is how many states of a scope are kept: while records are
	// saved, queries that began a moment ago read the state of before.
	statesKept = 4
	// maxTailBytes bounds a remembered tail. Saves pack long before that; a
	// longer one is read by every query.
	maxTailBytes = 24 << 20
)

// scopeCache is what an Index remembers of one scope in one incarnation. A
// newer state costs only what is new in it.
type scopeCache struct {
	mu      sync.Mutex // guards the fields below; held while something is read
	builder *frame.Builder
	tail    *tail   // the newest
	states  []state // the newest last
}

// state is the cache entry of one state of the index. Its tail was read while every
// document that is live in it was stored: one read later lacks the terms of those
// that were deleted since.
type state struct {
	frame *frame.Frame
	tail  *tail
}

func newScopeCache() *scopeCache {
	return &scopeCache{builder: frame.NewBuilder(), tail: newTail(0)}
}

// state returns the state that h describes.
func (x *Index) state(ctx context.Context, view kv.Reader, h scopeHead) (state, error) {
	if h.Incarnation == 0 { // nothing was ever committed
		return state{frame.NewBuilder().Newest, newTail(0)}, nil
	}
	key := scopeKey{h.Space, h.Incarnation}
	m := x.cache.scope(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.builder.MaxUnusedSlots = uint32(x.maxUnusedSlots)
	s, changed, err := m.state(ctx, view, h)
	if err == nil && changed {
		x.cache.Put(key, m, m.size())
	}
	return s, err
}

// state is Index.state. It reports whether there is more to remember than before.
func (m *scopeCache) state(ctx context.Context, view kv.Reader, h scopeHead) (state, bool, error) {
	newest := m.builder.Newest
	if h.Stats.Last < newest.Last || h.Stats.Deleted < newest.Deletions {
		s, err := m.earlier(ctx, view, h)
		return s, false, err
	}
	known := len(m.states) > 0 && describes(newest, h)
	if known && m.tail.holds(h.Stats.Packed, h.Stats.Last) {
		return state{newest, m.tail}, false, nil
	}
	read, err := m.readNew(ctx, view, h)
	if err != nil {
		m.tail = newTail(0) // what it got of a bad entry must not stay
		return state{}, false, err
	}
	if !known {
		m.states = append(m.states, state{frame: m.builder.Extend(h.Stats.Last, read.rows, read.deleted, h.Stats.Deleted)})
		m.states = slices.Delete(m.states, 0, max(0, len(m.states)-statesKept))
	}
	now := &m.states[len(m.states)-1]
	now.tail, m.tail = read.tail, read.tail
	if read.tail.size() > maxTailBytes {
		s := *now
		m.tail = newTail(h.Stats.Last)
		now.tail = m.tail
		return s, true, nil
	}
	return *now, true, nil
}

// size is about how much memory it takes.
func (m *scopeCache) size() int {
	n, counted := m.builder.MemoryBytes()+m.tail.size(), m.builder.Newest
	for _, s := range slices.Backward(m.states) {
		// What was laid out before shares nothing with what came after it.
		if !s.frame.SharesSlots(counted) {
			n, counted = n+s.frame.MemoryBytes(), s.frame
		}
	}
	return n
}

// delta is what a newer state has.
type delta struct {
	rows    []frame.NumberedRow // of new documents that live
	deleted []uint32            // the ordinals of documents that were live before
	tail    *tail
}

// readNew reads what the builder's newest frame and the tail lack. It changes
// nothing of them but the end of the tail.
func (m *scopeCache) readNew(ctx context.Context, view kv.Reader, h scopeHead) (n delta, err error) {
	newest := m.builder.Newest
	deleted := segment.DeletedSet{}
	if h.Stats.Deleted != newest.Deletions {
		// Where no document is live none can have been deleted.
		chunks := append(newest.LiveChunks(), segment.DeletedChunks(newest.Last+1, h.Stats.Last)...)
		if deleted, err = h.readDeleted(ctx, view, slices.Compact(chunks)); err != nil {
			return n, err
		}
		n.deleted = newest.NewlyDeleted(deleted)
		if now := uint64(len(n.deleted)) + deleted.Count(newest.Last+1, h.Stats.Last); now != h.Stats.Deleted-newest.Deletions {
			return n, fmt.Errorf("%w: %d deleted documents instead of %d", segment.ErrDamaged, newest.Deletions+now, h.Stats.Deleted)
		}
	}
	if newest.Last < h.Stats.Packed {
		if n.rows, err = h.readRows(ctx, view, newest.Last+1, h.Stats.Packed, deleted); err != nil {
			return n, err
		}
	}
	return n, m.readTail(ctx, view, h, deleted, &n)
}

// readTail is readNew for the tail.
func (m *scopeCache) readTail(ctx context.Context, view kv.Reader, h scopeHead, deleted segment.DeletedSet, n *delta) error {
	newest := m.builder.Newest
	n.tail = m.tail
	switch {
	case !n.tail.holds(h.Stats.Packed, h.Stats.Packed):
		// Too late a beginning, or nothing of this tail.
		n.tail = newTail(h.Stats.Packed)
	case n.tail.after < h.Stats.Packed:
		n.tail = n.tail.behind(h.Stats.Packed)
	}
	// The frame may lack documents that the tail has, after a failure.
	from := min(n.tail.last, max(newest.Last, h.Stats.Packed))
	ordinal := from
	for e, err := range h.entries(ctx, view, from) {
		if err != nil {
			return err
		}
		ordinal++
		if ordinal > newest.Last && !deleted.Has(ordinal) {
			n.rows = append(n.rows, frame.NumberedRow{Ordinal: ordinal, Row: e.Row})
		}
		if ordinal > n.tail.last {
			if err := n.tail.add(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// earlier returns a state that is older than the newest known one.
func (m *scopeCache) earlier(ctx context.Context, view kv.Reader, h scopeHead) (state, error) {
	for _, s := range m.states {
		if describes(s.frame, h) && s.tail.holds(h.Stats.Packed, h.Stats.Last) {
			return s, nil
		}
	}
	if h.Stats.Last > m.builder.Newest.Last {
		// Two lines of history: not within one incarnation.
		return state{}, fmt.Errorf("%w: %d documents and %d deleted after %d and %d", segment.ErrDamaged, h.Stats.Last, h.Stats.Deleted, m.builder.Newest.Last, m.builder.Newest.Deletions)
	}
	// Of documents deleted since, nothing may be left except in the view itself.
	s, _, err := newScopeCache().state(ctx, view, h)
	return s, err
}

// readRows reads the rows of packed documents that live. Of blocks without any
// it needs nothing.
func (h scopeHead) readRows(ctx context.Context, from kv.Getter, first, last uint32, deleted segment.DeletedSet) ([]frame.NumberedRow, error) {
	var keys [][]byte
	var blocks []uint32
	live := 0
	for block := first / segment.RowsPerBlock; block <= last/segment.RowsPerBlock; block++ {
		start, end := max(first, block*segment.RowsPerBlock), min(last, block*segment.RowsPerBlock+(segment.RowsPerBlock-1))
		if n := int(end-start) + 1 - int(deleted.Count(start, end)); n > 0 {
			keys, blocks = append(keys, h.ColumnsKey(block)), append(blocks, block)
			live += n
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := from.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	rows := make([]frame.NumberedRow, 0, live+h.Stats.Tail())
	for i, value := range values {
		start := blocks[i] * segment.RowsPerBlock
		all, err := segment.DecodeRows(value, start)
		if err != nil {
			return nil, err
		}
		for o := max(first, start); o <= min(last, start+(segment.RowsPerBlock-1)); o++ {
			if deleted.Has(o) {
				continue
			}
			if int(o-start) >= len(all) {
				return nil, fmt.Errorf("%w: no columns for document %d", segment.ErrDamaged, o)
			}
			rows = append(rows, frame.NumberedRow{Ordinal: o, Row: all[o-start]})
		}
	}
	return rows, nil
}
