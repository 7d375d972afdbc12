package lexical

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

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

// Check recounts the index of a scope: every term with every frequency, the
// columns, ids, lengths and statistics must be those of the documents, which
// must be all of them, in any order. The view must not change during the call.
// Memory grows with the documents and the different terms.
func (x *Index) Check(ctx context.Context, view kv.Reader, scope kv.Scope, documents iter.Seq2[Numbered, error]) (Differences, error) {
	h, err := readHead(ctx, view, scope, true)
	if err != nil {
		return Differences{}, err
	}
	c := checker{head: h, seed: maphash.MakeSeed()}
	want, err := c.count(documents)
	if err != nil {
		return Differences{}, err
	}
	got, err := c.recount(ctx, view)
	if err != nil {
		return Differences{}, err
	}
	c.compareStatistics(want)
	c.compareFacts(want, got)
	c.compareTerms(want, got)
	return c.differences, nil
}

// checker is one check under way.
type checker struct {
	head
	seed        maphash.Seed
	differences Differences
}

// contents is what an index holds, in a form that can be compared.
type contents struct {
	facts map[uint32]facts
	terms map[string]tally
}

// facts are what is known of a document besides its terms.
type facts struct {
	id     string
	length docLength
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
	if _, ok := into.facts[ordinal]; ok {
		c.differences.Add("two documents have the ordinal %d", ordinal)
	}
	into.facts[ordinal] = facts{string(e.id), docLength{e.body, e.header}}
	for t, err := range e.each() {
		if err != nil {
			return err
		}
		c.note(into.terms, string(t.term), posting{ordinal, pack(t.body, t.header)})
	}
	if e.expires != 0 {
		c.note(into.terms, columnTerm(expires), posting{ordinal, uint64(e.expires)})
	}
	if e.supersedes != 0 {
		c.note(into.terms, columnTerm(supersedes), posting{ordinal, uint64(ordinal - e.supersedes)})
	}
	return nil
}

// count notes what the documents say.
func (c *checker) count(documents iter.Seq2[Numbered, error]) (contents, error) {
	all := contents{make(map[uint32]facts), make(map[string]tally)}
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

// recount notes what the index says.
func (c *checker) recount(ctx context.Context, view kv.Reader) (contents, error) {
	all := contents{make(map[uint32]facts), make(map[string]tally)}
	ordinal := c.stats.Packed
	for e, err := range c.tail(ctx, view) {
		if err != nil {
			return contents{}, err
		}
		ordinal++
		if err := c.noteEntry(all, ordinal, e); err != nil {
			return contents{}, err
		}
	}
	next := uint32(1)
	for _, info := range c.segments.segments {
		if info.first != next {
			c.differences.Add("segment %d begins with document %d instead of %d", info.id, info.first, next)
		}
		next = info.last + 1
		if err := c.recountSegment(ctx, view, all, info); err != nil {
			return contents{}, fmt.Errorf("segment %d: %w", info.id, err)
		}
	}
	if next != c.stats.Packed+1 {
		c.differences.Add("segments end with document %d instead of %d", next-1, c.stats.Packed)
	}
	return all, nil
}

func (c *checker) recountSegment(ctx context.Context, view kv.Reader, all contents, info segmentInfo) error {
	// A cache of its own, so that the check reads what is stored.
	segments, err := newCache(0).load(ctx, view, head{space: c.space, segments: segmentList{segments: []segmentInfo{info}}})
	if err != nil {
		return err
	}
	if err := c.recountFacts(ctx, view, all, segments[0]); err != nil {
		return err
	}
	walk := &cursor{view: view, space: c.space, segment: segments[0]}
	for err := walk.step(ctx); walk.scanner != nil || err != nil; err = walk.step(ctx) {
		if err != nil {
			return err
		}
		postings, err := walk.scanner.block.decode(nil)
		if err != nil {
			return err
		}
		largest := uint64(0)
		for _, p := range postings {
			c.note(all.terms, string(walk.scanner.term), p)
			largest = max(largest, weightOf(walk.scanner.block.payload, p.value))
		}
		if largest != walk.scanner.block.largest {
			c.differences.Add("segment %d says %d instead of %d of term %q", info.id, walk.scanner.block.largest, largest, walk.scanner.term)
		}
	}
	return nil
}

// recountFacts notes ids and lengths of a segment's documents.
func (c *checker) recountFacts(ctx context.Context, view getter, all contents, s *segment) error {
	var ids [][]byte
	for i, length := range s.lengths {
		ordinal := s.first + uint32(i)
		if at := ordinal % idsPerBlock; i == 0 || at == 0 {
			values, err := view.Get(ctx, kv.Index, c.ids(ordinal/idsPerBlock))
			if err != nil {
				return err
			}
			if ids, err = decodeIDs(values[0]); err != nil {
				return err
			}
		}
		fact := facts{length: length}
		if at := int(ordinal % idsPerBlock); at < len(ids) {
			fact.id = string(ids[at])
		}
		all.facts[ordinal] = fact
	}
	return nil
}

func (c *checker) compareStatistics(want contents) {
	var body, header uint64
	last := uint32(0)
	for ordinal, f := range want.facts {
		body, header = body+uint64(f.length.body), header+uint64(f.length.header)
		last = max(last, ordinal)
	}
	s := c.stats
	if s.Documents != uint64(len(want.facts)) {
		c.differences.Add("%d documents instead of %d", s.Documents, len(want.facts))
	}
	if s.BodyWords != body || s.HeaderWords != header {
		c.differences.Add("lengths of %d and %d words instead of %d and %d", s.BodyWords, s.HeaderWords, body, header)
	}
	if s.Last != last {
		c.differences.Add("last ordinal is %d instead of %d", s.Last, last)
	}
}

func (c *checker) compareFacts(want, got contents) {
	for ordinal := uint32(1); ordinal <= c.stats.Last && ordinal != 0; ordinal++ {
		w, wanted := want.facts[ordinal]
		g, found := got.facts[ordinal]
		if wanted != found || w != g {
			c.differences.Add("document %d is %q of %d words instead of %q of %d", ordinal, g.id, g.length.total(), w.id, w.length.total())
		}
	}
}

func (c *checker) compareTerms(want, got contents) {
	for _, term := range sortedTerms(want, got) {
		if w, g := want.terms[term], got.terms[term]; w != g {
			c.differences.Add("term %q stands in %d documents instead of %d, or in others", term, g.documents, w.documents)
		}
	}
}

func sortedTerms(all ...contents) []string {
	var terms []string
	for _, c := range all {
		for term := range c.terms {
			terms = append(terms, term)
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}
