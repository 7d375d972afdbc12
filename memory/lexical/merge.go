package lexical

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of merging.
const (
	// mergeFanIn is how many segments of a level become one of the next. More
	// would make queries read more segments, fewer would rewrite documents
	// more often: with four, a scope of 10,000 documents has about seven
	// segments, and each document was rewritten three times.
	mergeFanIn = 4
	// maxMergeBytes bounds the segments of one merge together. Larger ones
	// stay as they are: they are few, and rewriting them saves little.
	maxMergeBytes = 48 << 20
	// deadShare: a segment is written anew when its dead documents are so many
	// times fewer than its living ones, or more.
	deadShare = 4
	// mergeCommitBytes is how much of a merge one commit writes, so that the
	// scope is never held for long.
	mergeCommitBytes = 2 << 20
	// sweepKeys bounds the keys that one commit of a sweep deletes.
	sweepKeys = 512
	// purgeOrdinals is over how many ordinals one commit deletes what is left
	// of dead documents: the rows or ids of that many take some 100 KiB.
	purgeOrdinals = 4 * rowsPerBlock
)

// workLeft tells whether Merge has something to do, as far as the head knows.
func (h head) workLeft() bool {
	return h.segments.mergeable() != nil || h.sweep != 0 || h.stats.Unpurged() > 0
}

// impure are the segments that the dead may have something in.
func (l segmentList) impure() (segments []segmentInfo) {
	for _, s := range l.segments {
		if s.purged < uint64(s.documents()) {
			segments = append(segments, s)
		}
	}
	return segments
}

// chunks are the chunks of the dead set with the ordinals of the segments.
func chunks(segments []segmentInfo) (all []uint32) {
	for _, s := range segments {
		all = append(all, chunksOf(s.first, s.last)...)
	}
	return slices.Compact(all)
}

// decayed returns a segment with many dead documents, or nil.
func (l segmentList) decayed(dead deadSet) []segmentInfo {
	for i, s := range l.segments {
		all := dead.count(s.first, s.last)
		living := uint64(s.documents()) - all
		if rotten := all - min(all, s.purged); rotten > 0 && rotten*deadShare >= living {
			return l.segments[i : i+1]
		}
	}
	return nil
}

// mergeable returns the oldest segments that are due to become one, or nil.
func (l segmentList) mergeable() []segmentInfo {
	from := 0
	for i := range l.segments {
		if l.segments[i].level != l.segments[from].level {
			from = i
		}
		if i-from+1 < mergeFanIn {
			continue
		}
		inputs := l.segments[from : i+1]
		if (segmentList{segments: inputs}).bytes() <= maxMergeBytes {
			return inputs
		}
		from++
	}
	return nil
}

// Merge does one piece of work on the segments of a scope: it turns several
// into one, rewrites one with many dead documents, or deletes a part of what is
// no longer needed. Merging takes the dead out: their terms, ids and columns.
// It tells whether there is more to do. Only one call at a time should be made
// for a scope; another one does no harm but works in vain.
func (x *Index) Merge(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) (bool, error) {
	// Segments do not change, so a merge may read them at several moments.
	view := kv.ReadLong(engine)
	defer view.Close()
	h, err := readHead(ctx, view, scope, true)
	if err == nil && h.outdated {
		err = ErrOutdated
	}
	if err != nil {
		return false, err
	}
	inputs := h.segments.mergeable()
	looked := inputs
	if inputs == nil {
		looked = h.segments.impure()
	}
	dead, err := h.readDead(ctx, view, chunks(looked))
	if err != nil {
		return false, err
	}
	if inputs == nil {
		inputs = h.segments.decayed(dead)
	}
	// What earlier merges left goes first: one that always fails would leave
	// more each time.
	if inputs == nil || len(h.segments.dropped) > 0 {
		return sweep(ctx, writer, h)
	}
	m := &merging{head: h, view: view, writer: writer, inputs: inputs, dead: dead, perCommit: x.mergeCommitBytes}
	err = m.run(ctx, x)
	if err != nil && view.Moments() > 1 && m.replaced(ctx) {
		err = errStale
	}
	if err != nil && !errors.Is(err, errStale) {
		return false, fmt.Errorf("lexical: merge %s: %w", scope, err)
	}
	return true, nil
}

// replaced tells whether another process has put something in the place of the
// segments that are merged, so that they may be gone.
func (m *merging) replaced(ctx context.Context) bool {
	now, err := readHead(ctx, m.view, m.scope, true)
	if err != nil {
		return false
	}
	return now.generation != m.generation || now.incarnation != m.incarnation || slices.ContainsFunc(m.inputs, func(in segmentInfo) bool {
		return !slices.ContainsFunc(now.segments.segments, func(s segmentInfo) bool { return s.stamp == in.stamp })
	})
}

// merging is one merge under way.
type merging struct {
	head
	view   kv.Reader
	writer *kv.Writer
	inputs []segmentInfo
	dead   deadSet
	info   segmentInfo // of the merged segment; the id comes with begin
	begun  bool
	// perCommit is how many bytes of chunks one commit writes.
	perCommit int

	chunks  [][]byte // finished and not written
	from    uint32   // the number of the first of them
	pending int      // their bytes
}

func (m *merging) run(ctx context.Context, x *Index) error {
	m.info = segmentInfo{
		stamp: rand.Uint64(),
		first: m.inputs[0].first,
		last:  m.inputs[len(m.inputs)-1].last,
		level: m.inputs[0].level,
	}
	if len(m.inputs) > 1 {
		m.info.level++
	}
	m.info.purged = m.dead.count(m.info.first, m.info.last)
	if err := m.purge(ctx); err != nil {
		return err
	}
	segments, err := x.cache.load(ctx, m.view, head{space: m.space, segments: segmentList{segments: m.inputs}})
	if err != nil {
		return err
	}
	size := segmentList{segments: m.inputs}.bytes()
	w := &segmentWriter{base: m.info.first, limit: chunkLimit(size), emit: func(_ uint32, chunk []byte) error { return m.emit(ctx, chunk) }}
	if err := m.mergeTerms(ctx, segments, w); err != nil {
		return err
	}
	m.info.bytes = w.bytes
	return m.commit(ctx, func(h *head, tx *kv.Tx) error {
		info := m.info
		if !m.begun {
			h.segments.abandon()
			info.id = h.segments.take()
		}
		before := uint64(0)
		for _, in := range m.inputs {
			before += in.purged
		}
		if !h.segments.replace(m.inputs, info) {
			return errStale
		}
		h.segments.building = nil
		m.putChunks(tx, info.id)
		tx.Put(kv.Index, h.directory(info.id), encodeDirectory(w.firsts))
		if info.purged != before {
			h.stats.Purged += info.purged - before
			tx.Put(kv.Index, headKey(h.scope), h.encode())
		}
		return nil
	})
}

// mergeTerms writes each term with its postings in all inputs.
func (m *merging) mergeTerms(ctx context.Context, segments []*segment, w *segmentWriter) error {
	cursors := make([]*cursor, len(segments))
	for i, s := range segments {
		cursors[i] = &cursor{view: m.view, space: m.space, segment: s}
		if err := cursors[i].step(ctx); err != nil {
			return err
		}
	}
	var postings []posting
	for {
		term, ok := lowest(cursors)
		if !ok {
			return w.close()
		}
		postings = postings[:0]
		for _, c := range cursors {
			var err error
			if postings, err = c.collect(ctx, term, postings); err != nil {
				return err
			}
		}
		postings = slices.DeleteFunc(postings, func(p posting) bool { return m.dead.has(p.ordinal) })
		if err := w.add(term, postings); err != nil {
			return err
		}
	}
}

// emit takes a finished chunk and commits those that wait when they are many.
func (m *merging) emit(ctx context.Context, chunk []byte) error {
	m.chunks = append(m.chunks, chunk)
	if m.pending += len(chunk); m.pending < m.perCommit {
		return nil
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	err := m.commit(ctx, func(_ *head, tx *kv.Tx) error {
		m.putChunks(tx, m.info.id)
		return nil
	})
	m.from += uint32(len(m.chunks))
	m.chunks, m.pending = nil, 0
	return err
}

// begin enters the merged segment as under way, so that its keys are swept if
// it is never finished.
func (m *merging) begin(ctx context.Context) error {
	if m.begun {
		return nil
	}
	err := m.commit(ctx, func(h *head, _ *kv.Tx) error {
		h.segments.abandon()
		m.info.id = h.segments.take()
		building := m.info
		h.segments.building = &building
		return nil
	})
	m.begun = err == nil
	return err
}

func (m *merging) putChunks(tx *kv.Tx, id uint32) {
	for i, chunk := range m.chunks {
		tx.Put(kv.Index, m.chunk(id, m.from+uint32(i)), chunk)
	}
}

// commit runs change on the head as it is then and writes the list of segments
// if that changed.
func (m *merging) commit(ctx context.Context, change func(h *head, tx *kv.Tx) error) error {
	return m.writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(m.scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, m.scope, true)
		if err != nil {
			return err
		}
		if h.generation != m.generation || h.incarnation != m.incarnation || m.begun && (h.segments.building == nil || h.segments.building.stamp != m.info.stamp) {
			return errStale
		}
		before := h.segments.encode()
		if err := change(&h, tx); err != nil {
			return err
		}
		if after := h.segments.encode(); !slices.Equal(before, after) {
			tx.Put(kv.Index, h.list(), after)
		}
		return nil
	}})
}

// collect appends the postings of term, if the cursor stands on it, and moves
// behind them.
func (c *cursor) collect(ctx context.Context, term string, postings []posting) ([]posting, error) {
	for c.scanner != nil && string(c.scanner.term) == term {
		b := c.scanner.block
		if b.last > c.segment.last {
			return nil, fmt.Errorf("%w: segment %d holds document %d", ErrDamaged, c.segment.id, b.last)
		}
		var err error
		if postings, err = b.decode(postings); err != nil {
			return nil, err
		}
		if err := c.step(ctx); err != nil {
			return nil, err
		}
	}
	return postings, nil
}
