package lexical

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
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
	// deletedShare: a segment is written anew when its deleted documents are so many
	// times fewer than its live ones, or more.
	deletedShare = 4
	// mergeCommitBytes is how much of a merge one commit writes, so that the
	// scope is never held for long.
	mergeCommitBytes = 2 << 20
	// sweepKeys bounds the keys that one commit of a sweep deletes.
	sweepKeys = 512
	// purgeOrdinals is over how many ordinals one commit deletes what is left
	// of deleted documents: the rows or ids of that many take some 100 KiB.
	purgeOrdinals = 4 * segment.RowsPerBlock
)

// workLeft reports whether Merge has something to do, as far as the head knows.
func (h scopeHead) workLeft() bool {
	return mergeable(h.segments) != nil || h.Sweep != 0 || h.Stats.Unpurged() > 0
}

// unpurged are the segments that the deleted documents may have something in.
func unpurged(l segment.List) (segments []segment.Info) {
	for _, s := range l.Segments {
		if s.Purged < uint64(s.Documents()) {
			segments = append(segments, s)
		}
	}
	return segments
}

// deletedChunks are the chunks of the deleted set with the ordinals of the segments.
func deletedChunks(segments []segment.Info) (all []uint32) {
	for _, s := range segments {
		all = append(all, segment.DeletedChunks(s.First, s.Last)...)
	}
	return slices.Compact(all)
}

// mostlyDeleted returns a segment with many deleted documents, or nil.
func mostlyDeleted(l segment.List, deleted segment.DeletedSet) []segment.Info {
	for i, s := range l.Segments {
		all := deleted.Count(s.First, s.Last)
		live := uint64(s.Documents()) - all
		if unpurged := all - min(all, s.Purged); unpurged > 0 && unpurged*deletedShare >= live {
			return l.Segments[i : i+1]
		}
	}
	return nil
}

// mergeable returns the oldest segments that are due to become one, or nil.
func mergeable(l segment.List) []segment.Info {
	from := 0
	for i := range l.Segments {
		if l.Segments[i].Level != l.Segments[from].Level {
			from = i
		}
		if i-from+1 < mergeFanIn {
			continue
		}
		inputs := l.Segments[from : i+1]
		if (segment.List{Segments: inputs}).Bytes() <= maxMergeBytes {
			return inputs
		}
		from++
	}
	return nil
}

// Merge does one piece of work on the segments of a scope: it converts several into
// one, rewrites one with many deleted documents, or deletes a part of what is no
// longer needed. Merging takes the deleted documents out: their terms, ids and
// columns. It reports whether there is more to do. Only one call at a time should
// be made for a scope; another one does no harm but works in vain.
func (x *Index) Merge(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) (bool, error) {
	// Segments do not change, so a merge may read them at several moments.
	view := kv.ReadLong(engine)
	defer view.Close()
	h, err := readHead(ctx, view, scope, true)
	if err == nil && h.Outdated {
		err = ErrOutdated
	}
	if err != nil {
		return false, err
	}
	inputs := mergeable(h.segments)
	looked := inputs
	if inputs == nil {
		looked = unpurged(h.segments)
	}
	deleted, err := h.readDeleted(ctx, view, deletedChunks(looked))
	if err != nil {
		return false, err
	}
	if inputs == nil {
		inputs = mostlyDeleted(h.segments, deleted)
	}
	// What earlier merges left goes first: one that always fails would leave
	// more each time.
	if inputs == nil || len(h.segments.Dropped) > 0 {
		return sweep(ctx, writer, h)
	}
	m := &merging{scopeHead: h, view: view, writer: writer, inputs: inputs, deleted: deleted, perCommit: x.mergeCommitBytes}
	err = m.run(ctx, x)
	if err != nil && view.Moments() > 1 && m.replaced(ctx) {
		err = errStale
	}
	if err != nil && !errors.Is(err, errStale) {
		return false, fmt.Errorf("lexical: merge %s: %w", scope, err)
	}
	return true, nil
}

// replaced reports whether another process has put something in the place of the
// segments that are merged, so that they may be gone.
func (m *merging) replaced(ctx context.Context) bool {
	now, err := readHead(ctx, m.view, m.Scope, true)
	if err != nil {
		return false
	}
	return now.Generation != m.Generation || now.Incarnation != m.Incarnation || slices.ContainsFunc(m.inputs, func(in segment.Info) bool {
		return !slices.ContainsFunc(now.segments.Segments, func(s segment.Info) bool { return s.Stamp == in.Stamp })
	})
}

// merging is one merge under way.
type merging struct {
	scopeHead
	view    kv.Reader
	writer  *kv.Writer
	inputs  []segment.Info
	deleted segment.DeletedSet
	info    segment.Info // of the merged segment; the id comes with begin
	begun   bool
	// perCommit is how many bytes of chunks one commit writes.
	perCommit int

	chunks  [][]byte // finished and not written
	from    uint32   // the number of the first of them
	pending int      // their bytes
}

func (m *merging) run(ctx context.Context, x *Index) error {
	m.info = segment.Info{
		Stamp: rand.Uint64(),
		First: m.inputs[0].First,
		Last:  m.inputs[len(m.inputs)-1].Last,
		Level: m.inputs[0].Level,
	}
	if len(m.inputs) > 1 {
		m.info.Level++
	}
	m.info.Purged = m.deleted.Count(m.info.First, m.info.Last)
	if err := m.purge(ctx); err != nil {
		return err
	}
	segments, err := x.cache.load(ctx, m.view, scopeHead{Space: m.Space, segments: segment.List{Segments: m.inputs}})
	if err != nil {
		return err
	}
	size := segment.List{Segments: m.inputs}.Bytes()
	w := segment.NewWriter(m.info.First, size, func(_ uint32, chunk []byte) error { return m.emit(ctx, chunk) })
	if err := m.mergeTerms(ctx, segments, w); err != nil {
		return err
	}
	m.info.Bytes = w.Bytes
	return m.commit(ctx, func(h *scopeHead, tx *kv.Tx) error {
		info := m.info
		if !m.begun {
			h.segments.Abandon()
			info.ID = h.segments.TakeID()
		}
		before := uint64(0)
		for _, in := range m.inputs {
			before += in.Purged
		}
		if !h.segments.Replace(m.inputs, info) {
			return errStale
		}
		h.segments.Building = nil
		m.putChunks(tx, info.ID)
		tx.Put(kv.Index, h.DirectoryKey(info.ID), segment.EncodeDirectory(w.Firsts))
		if info.Purged != before {
			h.Stats.Purged += info.Purged - before
			tx.Put(kv.Index, segment.HeadKey(h.Scope), h.Encode())
		}
		return nil
	})
}

// mergeTerms writes each term with its postings in all inputs.
func (m *merging) mergeTerms(ctx context.Context, segments []*segment.Segment, w *segment.Writer) error {
	cursors := make([]*segment.Cursor, len(segments))
	for i, s := range segments {
		cursors[i] = segment.NewCursor(m.view, m.Space, s)
		if err := cursors[i].Step(ctx); err != nil {
			return err
		}
	}
	var postings []segment.Posting
	for {
		term, ok := segment.Lowest(cursors)
		if !ok {
			return w.Close()
		}
		postings = postings[:0]
		for _, c := range cursors {
			var err error
			if postings, err = c.Collect(ctx, term, postings); err != nil {
				return err
			}
		}
		postings = slices.DeleteFunc(postings, func(p segment.Posting) bool { return m.deleted.Has(p.Ordinal) })
		if err := w.Add(term, postings); err != nil {
			return err
		}
	}
}

// emit takes a finished chunk and commits the waiting ones when they are many.
func (m *merging) emit(ctx context.Context, chunk []byte) error {
	m.chunks = append(m.chunks, chunk)
	if m.pending += len(chunk); m.pending < m.perCommit {
		return nil
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	err := m.commit(ctx, func(_ *scopeHead, tx *kv.Tx) error {
		m.putChunks(tx, m.info.ID)
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
	err := m.commit(ctx, func(h *scopeHead, _ *kv.Tx) error {
		h.segments.Abandon()
		m.info.ID = h.segments.TakeID()
		building := m.info
		h.segments.Building = &building
		return nil
	})
	m.begun = err == nil
	return err
}

func (m *merging) putChunks(tx *kv.Tx, id uint32) {
	for i, chunk := range m.chunks {
		tx.Put(kv.Index, m.ChunkKey(id, m.from+uint32(i)), chunk)
	}
}

// commit runs change on the head as it is then and writes the list of segments
// if that changed.
func (m *merging) commit(ctx context.Context, change func(h *scopeHead, tx *kv.Tx) error) error {
	return m.writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(m.Scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, m.Scope, true)
		if err != nil {
			return err
		}
		if h.Generation != m.Generation || h.Incarnation != m.Incarnation || m.begun && (h.segments.Building == nil || h.segments.Building.Stamp != m.info.Stamp) {
			return errStale
		}
		before := h.segments.Encode()
		if err := change(&h, tx); err != nil {
			return err
		}
		if after := h.segments.Encode(); !slices.Equal(before, after) {
			tx.Put(kv.Index, h.ListKey(), after)
		}
		return nil
	}})
}
