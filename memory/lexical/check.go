package lexical

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxDifferences bounds the differences that a check puts into words.
const maxDifferences = 10

// Numbered is a document with the ordinal that it got.
type Numbered struct {
	Ordinal  uint32
	Document *Document
}

// Differences are where an index and its documents disagree.
type Differences struct {
	// First are the first ones, in words.
	First []string
	// Total is how many there are.
	Total int
}

// Add notes a difference.
func (d *Differences) Add(format string, args ...any) {
	if d.Total++; len(d.First) < maxDifferences {
		d.First = append(d.First, fmt.Sprintf(format, args...))
	}
}

// Check recounts the index of a scope: every term with every frequency, ids,
// columns, the counts of sessions, the dead and the statistics must be those of
// the documents, which must be all that live, in any order. What is left of
// dead ones is not looked at. What the index remembers of the scope is compared
// too. The view must not change during the call. Memory grows with the
// documents and the different terms.
func (x *Index) Check(ctx context.Context, view kv.Reader, scope kv.Scope, documents iter.Seq2[Numbered, error]) (Differences, error) {
	h, err := x.readReady(ctx, view, scope)
	if err != nil {
		return Differences{}, err
	}
	c := checker{head: h, seed: maphash.MakeSeed()}
	if c.dead, err = h.readAllDead(ctx, view); err != nil {
		return Differences{}, err
	}
	want, err := c.count(documents)
	if err != nil {
		return Differences{}, err
	}
	got, err := c.recount(ctx, view)
	if err != nil {
		return Differences{}, err
	}
	c.compareStatistics(want)
	c.compareDocuments(want, got)
	c.compareTerms(want, got)
	if err := c.compareSessions(ctx, view, want); err != nil {
		return Differences{}, err
	}
	return c.differences, c.compareMemory(ctx, x, view)
}

// checker is one check under way.
type checker struct {
	head
	seed        maphash.Seed
	dead        deadSet
	differences Differences
}

// contents is what an index holds, in a form that can be compared.
type contents struct {
	documents map[uint32]identified
	terms     map[string]tally
}

// identified is a row with the id of its document.
type identified struct {
	id string
	row
}

func newContents() contents {
	return contents{make(map[uint32]identified), make(map[string]tally)}
}

// tally stands for the postings of a term: their number and the sum of their
// hashes, which does not depend on the order.
type tally struct{ documents, hashes uint64 }

func (c *checker) note(into map[string]tally, term string, p posting) {
	t := into[term]
	into[term] = tally{t.documents + 1, t.hashes + maphash.Comparable(c.seed, p)}
}

// noteEntry notes all that an entry says.
func (c *checker) noteEntry(into contents, ordinal uint32, e entry) error {
	if _, ok := into.documents[ordinal]; ok {
		c.differences.Add("two documents have the ordinal %d", ordinal)
	}
	into.documents[ordinal] = c.identify(string(e.id), e.row)
	for t, err := range e.each() {
		if err != nil {
			return err
		}
		c.note(into.terms, string(t.term), posting{ordinal, pack(t.body, t.header)})
	}
	return nil
}

// identify leaves out of a row what means nothing: that it replaces a document
// which is dead.
func (c *checker) identify(id string, r row) identified {
	if c.dead.has(r.supersedes) {
		r.supersedes = 0
	}
	return identified{id, r}
}

// count notes what the documents say.
func (c *checker) count(documents iter.Seq2[Numbered, error]) (contents, error) {
	all := newContents()
	for n, err := range documents {
		if err != nil {
			return contents{}, err
		}
		if err := c.noteEntry(all, n.Ordinal, n.Document.entry()); err != nil {
			return contents{}, err
		}
	}
	return all, nil
}

// recount notes what the index says of living documents.
func (c *checker) recount(ctx context.Context, view kv.Reader) (contents, error) {
	all := newContents()
	ordinal := c.stats.Packed
	for e, err := range c.entries(ctx, view, c.stats.Packed) {
		if err != nil {
			return contents{}, err
		}
		if ordinal++; c.dead.has(ordinal) {
			continue
		}
		if err := c.noteEntry(all, ordinal, e); err != nil {
			return contents{}, err
		}
	}
	if err := c.recountDocuments(ctx, view, all); err != nil {
		return contents{}, err
	}
	purged := uint64(0)
	for _, info := range c.segments.segments {
		purged += info.purged
		if err := c.recountSegment(ctx, view, all, info); err != nil {
			return contents{}, fmt.Errorf("segment %d: %w", info.id, err)
		}
	}
	if purged != c.stats.Purged {
		c.differences.Add("%d dead documents are said to be purged, segments have %d", c.stats.Purged, purged)
	}
	return all, nil
}

func (c *checker) recountSegment(ctx context.Context, view kv.Reader, all contents, info segmentInfo) error {
	// A cache of its own, so that the check reads what is stored.
	segments, err := newIndexCache(0).load(ctx, view, head{space: c.space, segments: segmentList{segments: []segmentInfo{info}}})
	if err != nil {
		return err
	}
	bytes := uint64(0)
	walk := &cursor{view: view, space: c.space, segment: segments[0], seen: func(chunk []byte) { bytes += uint64(len(chunk)) }}
	for err := walk.step(ctx); walk.scanner != nil || err != nil; err = walk.step(ctx) {
		if err != nil {
			return err
		}
		if err := c.recountBlock(all, info, walk.scanner); err != nil {
			return err
		}
	}
	if bytes != info.bytes {
		c.differences.Add("segment %d has %d bytes instead of %d", info.id, bytes, info.bytes)
	}
	return nil
}

func (c *checker) recountBlock(all contents, info segmentInfo, s *blockScanner) error {
	postings, err := s.block.decode(nil)
	if err != nil {
		return err
	}
	largest := uint64(0)
	for _, p := range postings {
		if p.ordinal > info.last {
			return fmt.Errorf("%w: document %d", ErrDamaged, p.ordinal)
		}
		if !c.dead.has(p.ordinal) {
			c.note(all.terms, string(s.term), p)
		}
		largest = max(largest, weightOf(s.block.payload, p.value))
	}
	if largest != s.block.largest {
		c.differences.Add("segment %d says %d instead of %d of term %q", info.id, s.block.largest, largest, s.term)
	}
	return nil
}

// recountDocuments notes ids and columns of packed documents.
func (c *checker) recountDocuments(ctx context.Context, view kv.Reader, all contents) error {
	if err := c.lookBehind(ctx, view); err != nil || c.stats.Packed == 0 {
		return err
	}
	rows, err := c.readRows(ctx, view, 1, c.stats.Packed, c.dead)
	if err != nil {
		return err
	}
	known, ids := uint32(math.MaxUint32), [][]byte(nil)
	for _, r := range rows {
		if block := r.ordinal / idsPerBlock; block != known {
			if ids, err = c.readIDs(ctx, view, block); err != nil {
				return err
			}
			known = block
		}
		id := ""
		if at := int(r.ordinal % idsPerBlock); at < len(ids) {
			id = string(ids[at])
		}
		all.documents[r.ordinal] = c.identify(id, r.row)
	}
	return nil
}

// readIDs reads a block of ids in which somebody lives.
func (c *checker) readIDs(ctx context.Context, view kv.Reader, block uint32) ([][]byte, error) {
	values, err := view.Get(ctx, kv.Index, c.ids(block))
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		c.differences.Add("there are no ids for the documents from %d on", block*idsPerBlock)
		return nil, nil
	}
	return decodeIDs(values[0])
}

// lookBehind notes blocks behind the last packed document, where packing would
// come upon them.
func (c *checker) lookBehind(ctx context.Context, view kv.Reader) error {
	for tag, documents := range map[byte]uint32{tagIDs: idsPerBlock, tagColumns: rowsPerBlock} {
		all := kv.Prefix(c.key(tag))
		if c.stats.Packed > 0 {
			all.Start = kv.After(c.key(tag, be32(c.stats.Packed/documents)...))
		}
		for pair, err := range view.Scan(ctx, kv.Index, all) {
			if err != nil {
				return err
			}
			c.differences.Add("%q is a block behind the last packed document, %d", pair.Key, c.stats.Packed)
		}
	}
	return nil
}
