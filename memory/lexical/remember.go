package lexical

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// statesKept is how many states of a scope are kept: while records are
	// saved, queries that began a moment ago read the state of before.
	statesKept = 4
	// maxTailBytes bounds a remembered tail. Saves pack long before that; a
	// longer one is read by every query.
	maxTailBytes = 24 << 20
)

// scopeMemory is what an Index remembers of one scope in one incarnation. A
// newer state costs only what is new in it.
type scopeMemory struct {
	mu      sync.Mutex // guards the fields below; held while something is read
	builder *frameBuilder
	tail    *tail   // the newest
	states  []state // the newest last
}

// state is what is remembered of one state. Its tail was read while all lived
// that live in it: what is read later lacks the terms of those that died.
type state struct {
	frame *frame
	tail  *tail
}

func newScopeMemory() *scopeMemory {
	return &scopeMemory{builder: newFrameBuilder(), tail: newTail(0)}
}

// state returns the state that h describes.
func (x *Index) state(ctx context.Context, view kv.Reader, h head) (state, error) {
	if h.incarnation == 0 { // nothing was ever committed
		return state{newFrameBuilder().newest, newTail(0)}, nil
	}
	key := scopeKey{h.space, h.incarnation}
	m := x.cache.scope(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.builder.loose = uint32(x.looseSlots)
	s, changed, err := m.state(ctx, view, h)
	if err == nil && changed {
		x.cache.Put(key, m, m.size())
	}
	return s, err
}

// state is Index.state. It tells whether there is more to remember than before.
func (m *scopeMemory) state(ctx context.Context, view kv.Reader, h head) (state, bool, error) {
	newest := m.builder.newest
	if h.stats.Last < newest.last || h.stats.Dead < newest.killed {
		s, err := m.earlier(ctx, view, h)
		return s, false, err
	}
	known := len(m.states) > 0 && newest.describes(h)
	if known && m.tail.holds(h.stats.Packed, h.stats.Last) {
		return state{newest, m.tail}, false, nil
	}
	read, err := m.readNew(ctx, view, h)
	if err != nil {
		m.tail = newTail(0) // what it got of a bad entry must not stay
		return state{}, false, err
	}
	if !known {
		m.states = append(m.states, state{frame: m.builder.extend(h.stats.Last, read.rows, read.died, h.stats.Dead)})
		m.states = slices.Delete(m.states, 0, max(0, len(m.states)-statesKept))
	}
	now := &m.states[len(m.states)-1]
	now.tail, m.tail = read.tail, read.tail
	if read.tail.size() > maxTailBytes {
		s := *now
		m.tail = newTail(h.stats.Last)
		now.tail = m.tail
		return s, true, nil
	}
	return *now, true, nil
}

// size is about how much memory it takes.
func (m *scopeMemory) size() int {
	n, counted := m.builder.size()+m.tail.size(), m.builder.newest.sieve
	for _, s := range slices.Backward(m.states) {
		// What was laid out before shares nothing with what came after it.
		if s.frame.sieve != counted {
			n, counted = n+s.frame.size(), s.frame.sieve
		}
	}
	return n
}

// describes tells whether the frame is that of the state that h describes.
func (f *frame) describes(h head) bool { return f.last == h.stats.Last && f.killed == h.stats.Dead }

// news is what a newer state has.
type news struct {
	rows []numberedRow // of new documents that live
	died []uint32      // the ordinals of those that lived before
	tail *tail
}

// readNew reads what the builder's newest frame and the tail lack. It changes
// nothing of them but the end of the tail.
func (m *scopeMemory) readNew(ctx context.Context, view kv.Reader, h head) (n news, err error) {
	newest := m.builder.newest
	dead := deadSet{}
	if h.stats.Dead != newest.killed {
		// Where nobody lives nobody can have died.
		chunks := append(newest.aliveIn(), chunksOf(newest.last+1, h.stats.Last)...)
		if dead, err = h.readDead(ctx, view, slices.Compact(chunks)); err != nil {
			return n, err
		}
		n.died = newest.died(dead)
		if now := uint64(len(n.died)) + dead.count(newest.last+1, h.stats.Last); now != h.stats.Dead-newest.killed {
			return n, fmt.Errorf("%w: %d dead documents instead of %d", ErrDamaged, newest.killed+now, h.stats.Dead)
		}
	}
	if newest.last < h.stats.Packed {
		if n.rows, err = h.readRows(ctx, view, newest.last+1, h.stats.Packed, dead); err != nil {
			return n, err
		}
	}
	return n, m.readTail(ctx, view, h, dead, &n)
}

// readTail is readNew for the tail.
func (m *scopeMemory) readTail(ctx context.Context, view kv.Reader, h head, dead deadSet, n *news) error {
	newest := m.builder.newest
	n.tail = m.tail
	switch {
	case !n.tail.holds(h.stats.Packed, h.stats.Packed):
		// Too late a beginning, or nothing of this tail.
		n.tail = newTail(h.stats.Packed)
	case n.tail.after < h.stats.Packed:
		n.tail = n.tail.behind(h.stats.Packed)
	}
	// The frame may lack documents that the tail has, after a failure.
	from := min(n.tail.last, max(newest.last, h.stats.Packed))
	ordinal := from
	for e, err := range h.entries(ctx, view, from) {
		if err != nil {
			return err
		}
		ordinal++
		if ordinal > newest.last && !dead.has(ordinal) {
			n.rows = append(n.rows, numberedRow{ordinal, e.row})
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
func (m *scopeMemory) earlier(ctx context.Context, view kv.Reader, h head) (state, error) {
	for _, s := range m.states {
		if s.frame.describes(h) && s.tail.holds(h.stats.Packed, h.stats.Last) {
			return s, nil
		}
	}
	if h.stats.Last > m.builder.newest.last {
		// Two lines of history: not within one incarnation.
		return state{}, fmt.Errorf("%w: %d documents and %d dead after %d and %d", ErrDamaged, h.stats.Last, h.stats.Dead, m.builder.newest.last, m.builder.newest.killed)
	}
	// Of those that died since nothing may be left but in the view itself.
	s, _, err := newScopeMemory().state(ctx, view, h)
	return s, err
}

// readRows reads the rows of packed documents that live. Of blocks without any
// it needs nothing.
func (h head) readRows(ctx context.Context, from getter, first, last uint32, dead deadSet) ([]numberedRow, error) {
	var keys [][]byte
	var blocks []uint32
	living := 0
	for block := first / rowsPerBlock; block <= last/rowsPerBlock; block++ {
		start, end := max(first, block*rowsPerBlock), min(last, block*rowsPerBlock+(rowsPerBlock-1))
		if n := int(end-start) + 1 - int(dead.count(start, end)); n > 0 {
			keys, blocks = append(keys, h.columns(block)), append(blocks, block)
			living += n
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := from.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	rows := make([]numberedRow, 0, living+h.stats.Tail())
	for i, value := range values {
		start := blocks[i] * rowsPerBlock
		all, err := decodeRows(value, start)
		if err != nil {
			return nil, err
		}
		for o := max(first, start); o <= min(last, start+(rowsPerBlock-1)); o++ {
			if dead.has(o) {
				continue
			}
			if int(o-start) >= len(all) {
				return nil, fmt.Errorf("%w: no columns for document %d", ErrDamaged, o)
			}
			rows = append(rows, numberedRow{o, all[o-start]})
		}
	}
	return rows, nil
}
