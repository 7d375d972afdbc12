package lexical

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// maxDifferences bounds the differences that a check puts into words.
const maxDifferences = 10

// Numbered is a document with the ordinal that it got.
type Numbered struct {
	Ordinal  uint32
	Document *segment.Document
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
// columns, the counts of sessions, the deleted documents and the statistics must match the
// documents. The documents must be all live ones, in any order. Remains of deleted
// documents are ignored. The index's cache for the scope is compared too. The view must not
// change during the call. Memory grows with the documents and the different terms.
func (x *Index) Check(ctx context.Context, view kv.Reader, scope kv.Scope, documents iter.Seq2[Numbered, error]) (Differences, error) {
	h, err := x.readReady(ctx, view, scope)
	if err != nil {
		return Differences{}, err
	}
	c := checker{scopeHead: h, seed: maphash.MakeSeed()}
	if c.deleted, err = h.readAllDeleted(ctx, view); err != nil {
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
	scopeHead
	seed        maphash.Seed
	deleted     segment.DeletedSet
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
	segment.Row
}

func newContents() contents {
	return contents{make(map[uint32]identified), make(map[string]tally)}
}

// tally stands for the postings of a term: their number and the sum of their
// hashes, which does not depend on the order.
type tally struct{ documents, hashes uint64 }

func (c *checker) note(into map[string]tally, term string, p segment.Posting) {
	t := into[term]
	into[term] = tally{t.documents + 1, t.hashes + maphash.Comparable(c.seed, p)}
}

// noteEntry notes all that an entry says.
func (c *checker) noteEntry(into contents, ordinal uint32, e segment.Entry) error {
	if _, ok := into.documents[ordinal]; ok {
		c.differences.Add("two documents have the ordinal %d", ordinal)
	}
	into.documents[ordinal] = c.identify(string(e.ID), e.Row)
	for t, err := range e.Each() {
		if err != nil {
			return err
		}
		c.note(into.terms, string(t.Term), segment.Posting{Ordinal: ordinal, Value: segment.PackFrequency(t.Body, t.Header)})
	}
	return nil
}

// identify leaves out of a row what means nothing: that it replaces a document
// which is deleted.
func (c *checker) identify(id string, r segment.Row) identified {
	if c.deleted.Has(r.Supersedes) {
		r.Supersedes = 0
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
		if err := c.noteEntry(all, n.Ordinal, n.Document.Entry()); err != nil {
			return contents{}, err
		}
	}
	return all, nil
}

// recount notes what the index says of live documents.
func (c *checker) recount(ctx context.Context, view kv.Reader) (contents, error) {
	all := newContents()
	ordinal := c.Stats.Packed
	for e, err := range c.entries(ctx, view, c.Stats.Packed) {
		if err != nil {
			return contents{}, err
		}
		if ordinal++; c.deleted.Has(ordinal) {
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
	for _, info := range c.segments.Segments {
		purged += info.Purged
		if err := c.recountSegment(ctx, view, all, info); err != nil {
			return contents{}, fmt.Errorf("segment %d: %w", info.ID, err)
		}
	}
	if purged != c.Stats.Purged {
		c.differences.Add("%d deleted documents are said to be purged, segments have %d", c.Stats.Purged, purged)
	}
	return all, nil
}

func (c *checker) recountSegment(ctx context.Context, view kv.Reader, all contents, info segment.Info) error {
	// An empty cache, so that the check reads the stored data.
	segments, err := newIndexCache(0).load(ctx, view, scopeHead{Space: c.Space, segments: segment.List{Segments: []segment.Info{info}}})
	if err != nil {
		return err
	}
	bytes := uint64(0)
	walk := segment.NewCursor(view, c.Space, segments[0])
	walk.Seen = func(chunk []byte) { bytes += uint64(len(chunk)) }
	for err := walk.Step(ctx); !walk.Done() || err != nil; err = walk.Step(ctx) {
		if err != nil {
			return err
		}
		if err := c.recountBlock(all, info, walk); err != nil {
			return err
		}
	}
	if bytes != info.Bytes {
		c.differences.Add("segment %d has %d bytes instead of %d", info.ID, bytes, info.Bytes)
	}
	return nil
}

func (c *checker) recountBlock(all contents, info segment.Info, at *segment.Cursor) error {
	term, b := at.At()
	postings, err := b.Decode(nil)
	if err != nil {
		return err
	}
	largest := uint64(0)
	for _, p := range postings {
		if p.Ordinal > info.Last {
			return fmt.Errorf("%w: document %d", segment.ErrDamaged, p.Ordinal)
		}
		if !c.deleted.Has(p.Ordinal) {
			c.note(all.terms, string(term), p)
		}
		largest = max(largest, segment.WeightOf(b.Payload, p.Value))
	}
	if largest != b.Largest {
		c.differences.Add("segment %d says %d instead of %d of term %q", info.ID, b.Largest, largest, term)
	}
	return nil
}

// recountDocuments notes ids and columns of packed documents.
func (c *checker) recountDocuments(ctx context.Context, view kv.Reader, all contents) error {
	if err := c.lookBehind(ctx, view); err != nil || c.Stats.Packed == 0 {
		return err
	}
	rows, err := c.readRows(ctx, view, 1, c.Stats.Packed, c.deleted)
	if err != nil {
		return err
	}
	known, ids := uint32(math.MaxUint32), [][]byte(nil)
	for _, r := range rows {
		if block := r.Ordinal / segment.IDsPerBlock; block != known {
			if ids, err = c.readIDs(ctx, view, block); err != nil {
				return err
			}
			known = block
		}
		id := ""
		if at := int(r.Ordinal % segment.IDsPerBlock); at < len(ids) {
			id = string(ids[at])
		}
		all.documents[r.Ordinal] = c.identify(id, r.Row)
	}
	return nil
}

// readIDs reads a block of ids with a live document.
func (c *checker) readIDs(ctx context.Context, view kv.Reader, block uint32) ([][]byte, error) {
	values, err := view.Get(ctx, kv.Index, c.IDsKey(block))
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		c.differences.Add("there are no ids for the documents from %d on", block*segment.IDsPerBlock)
		return nil, nil
	}
	return segment.DecodeIDs(values[0])
}

// lookBehind notes blocks behind the last packed document, where packing would
// come upon them.
func (c *checker) lookBehind(ctx context.Context, view kv.Reader) error {
	for tag, documents := range map[byte]uint32{segment.TagIDs: segment.IDsPerBlock, segment.TagColumns: segment.RowsPerBlock} {
		all := kv.Prefix(c.Key(tag))
		if c.Stats.Packed > 0 {
			all.Start = kv.After(c.BlockKey(tag, c.Stats.Packed/documents))
		}
		for pair, err := range view.Scan(ctx, kv.Index, all) {
			if err != nil {
				return err
			}
			c.differences.Add("%q is a block behind the last packed document, %d", pair.Key, c.Stats.Packed)
		}
	}
	return nil
}
