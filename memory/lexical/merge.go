package lexical

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

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
	// maxMergeDocuments bounds their documents, so that the lengths of the
	// merged segment fit one value. A length takes two or three bytes; five is
	// what a text of the greatest size and its header can take.
	maxMergeDocuments = 200_000
	// mergeCommitBytes is how much of a merge one commit writes, so that the
	// scope is never held for long.
	mergeCommitBytes = 2 << 20
	// sweepKeys bounds the keys that one commit of a sweep deletes.
	sweepKeys = 512
	// readAhead is how many chunks of a segment a merge reads at once.
	readAhead = 32
)

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
		documents := inputs[len(inputs)-1].last - inputs[0].first + 1
		if documents <= maxMergeDocuments && (segmentList{segments: inputs}).bytes() <= maxMergeBytes {
			return inputs
		}
		from++
	}
	return nil
}

// Merge does one piece of work on the segments of a scope: it turns several
// into one, or deletes a part of what an earlier merge left. It tells whether
// there is more to do. Only one call at a time should be made for a scope;
// another one does no harm but works in vain.
func (x *Index) Merge(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope) (bool, error) {
	view, err := engine.Snapshot(ctx)
	if err != nil {
		return false, fmt.Errorf("lexical: merge %s: %w", scope, err)
	}
	defer view.Close()
	h, err := readHead(ctx, view, scope, true)
	if err != nil {
		return false, err
	}
	inputs := h.segments.mergeable()
	// What earlier merges left goes first: one that always fails would leave
	// more each time.
	if inputs == nil || len(h.segments.dropped) > 0 {
		return sweep(ctx, writer, scope)
	}
	m := &merging{head: h, view: view, writer: writer, inputs: inputs, perCommit: x.mergeCommitBytes}
	if err := m.run(ctx, x); err != nil && !errors.Is(err, errStale) {
		return false, fmt.Errorf("lexical: merge %s: %w", scope, err)
	}
	return true, nil
}

// merging is one merge under way.
type merging struct {
	head
	view   kv.Reader
	writer *kv.Writer
	inputs []segmentInfo
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
		level: m.inputs[0].level + 1,
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
	var lengths []docLength
	for _, s := range segments {
		lengths = append(lengths, s.lengths...)
		m.info.columns |= s.columns
	}
	m.info.bytes = w.bytes
	return m.commit(ctx, func(h *head, tx *kv.Tx) error {
		info := m.info
		if !m.begun {
			h.segments.abandon()
			info.id = h.segments.take()
		}
		if !h.segments.replace(m.inputs, info) {
			return errStale
		}
		h.segments.building = nil
		m.putChunks(tx, info.id)
		putParts(tx, h.space, info.id, w.firsts, lengths)
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
		if err := w.add(term, postings); err != nil {
			return err
		}
	}
}

func lowest(cursors []*cursor) (string, bool) {
	var least []byte
	for _, c := range cursors {
		if c.scanner != nil && (least == nil || bytes.Compare(c.scanner.term, least) < 0) {
			least = c.scanner.term
		}
	}
	return string(least), least != nil
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
// that change leaves.
func (m *merging) commit(ctx context.Context, change func(h *head, tx *kv.Tx) error) error {
	return m.writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(m.scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, m.scope, true)
		if err != nil {
			return err
		}
		if h.generation != m.generation || m.begun && (h.segments.building == nil || h.segments.building.stamp != m.info.stamp) {
			return errStale
		}
		if err := change(&h, tx); err != nil {
			return err
		}
		tx.Put(kv.Index, h.list(), h.segments.encode())
		return nil
	}})
}

// sweep deletes keys of segments that nobody reads any more.
func sweep(ctx context.Context, writer *kv.Writer, scope kv.Scope) (more bool, err error) {
	err = writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, scope, true)
		h.segments.abandon()
		if more = len(h.segments.dropped) > 0; err != nil || !more {
			return err
		}
		keys := kv.Prefix(h.segment(h.segments.dropped[0]))
		keys.Limit = sweepKeys
		n := 0
		for pair, err := range tx.Scan(ctx, kv.Index, keys) {
			if err != nil {
				return err
			}
			tx.Delete(kv.Index, pair.Key)
			n++
		}
		if n < sweepKeys {
			h.segments.dropped = h.segments.dropped[1:]
		}
		tx.Put(kv.Index, h.list(), h.segments.encode())
		return nil
	}})
	if err != nil {
		return false, fmt.Errorf("lexical: sweep %s: %w", scope, err)
	}
	return more, nil
}

// cursor walks through all blocks of a segment.
type cursor struct {
	view    getter
	space   space
	segment *segment
	next    int      // the number of the next chunk to read
	ready   [][]byte // chunks read ahead
	scanner *blockScanner
}

// step moves to the next block. At the end the scanner is nil.
func (c *cursor) step(ctx context.Context) error {
	for {
		if c.scanner != nil {
			if ok, err := c.scanner.next(); ok || err != nil {
				return err
			}
		}
		chunk, err := c.chunk(ctx)
		if err != nil {
			return err
		}
		if chunk == nil {
			c.scanner = nil
			return nil
		}
		if c.scanner, err = scanChunk(chunk, c.segment.first); err != nil {
			return err
		}
	}
}

// chunk returns the next chunk, or nil behind the last.
func (c *cursor) chunk(ctx context.Context) ([]byte, error) {
	if len(c.ready) == 0 && c.next < len(c.segment.firsts) {
		var keys [][]byte
		for ; c.next < len(c.segment.firsts) && len(keys) < readAhead; c.next++ {
			keys = append(keys, c.space.chunk(c.segment.id, uint32(c.next)))
		}
		var err error
		if c.ready, err = c.view.Get(ctx, kv.Index, keys...); err != nil {
			return nil, err
		}
	}
	if len(c.ready) == 0 {
		return nil, nil
	}
	chunk := c.ready[0]
	c.ready = c.ready[1:]
	if chunk == nil {
		return nil, fmt.Errorf("%w: segment %d lacks a chunk", ErrDamaged, c.segment.id)
	}
	return chunk, nil
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
