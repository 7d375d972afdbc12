package lexical

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func (c *checker) compareStatistics(want contents) {
	got := c.stats
	count := Statistics{
		Last: got.Last, Packed: got.Packed, Purged: got.Purged, TailBytes: got.TailBytes,
		Documents: uint64(len(want.documents)), Dead: uint64(got.Last) - uint64(len(want.documents)),
	}
	sessions := make(map[uint64]struct{})
	for _, d := range want.documents {
		count.BodyWords += uint64(d.body)
		count.HeaderWords += uint64(d.header)
		if d.session != 0 {
			count.InSessions++
			sessions[d.session] = struct{}{}
		}
	}
	count.Sessions = uint64(len(sessions))
	if got != count {
		c.differences.Add("statistics are %+v instead of %+v", got, count)
	}
}

func (c *checker) compareDocuments(want, got contents) {
	ordinals := slices.AppendSeq(slices.Collect(maps.Keys(want.documents)), maps.Keys(got.documents))
	slices.Sort(ordinals)
	for _, ordinal := range slices.Compact(ordinals) {
		w, wanted := want.documents[ordinal]
		g, found := got.documents[ordinal]
		switch {
		case ordinal == 0 || ordinal > c.stats.Last:
			c.differences.Add("document %d %q is behind the last one, %d", ordinal, w.id, c.stats.Last)
		case wanted && c.dead.has(ordinal):
			c.differences.Add("document %d is dead", ordinal)
		case wanted != found || w != g:
			c.differences.Add("document %d is %+v instead of %+v", ordinal, g, w)
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

// compareSessions compares the stored counts of sessions.
func (c *checker) compareSessions(ctx context.Context, view kv.Reader, want contents) error {
	counts := make(map[uint64]uint64)
	for _, d := range want.documents {
		if d.session != 0 {
			counts[d.session]++
		}
	}
	prefix := c.key(tagSession)
	for pair, err := range view.Scan(ctx, kv.Index, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		stored, err := decodeSession(pair.Value)
		if err != nil {
			return err
		}
		if len(pair.Key) != len(prefix)+8 {
			return fmt.Errorf("%w: count of a session", ErrDamaged)
		}
		digest := binary.BigEndian.Uint64(pair.Key[len(prefix):])
		if stored != counts[digest] {
			c.differences.Add("session %x has %d documents instead of %d", digest, stored, counts[digest])
		}
		delete(counts, digest)
	}
	if len(counts) > 0 {
		c.differences.Add("%d sessions have no count", len(counts))
	}
	return nil
}

// compareMemory compares what the index remembers with what is stored.
func (c *checker) compareMemory(ctx context.Context, x *Index, view kv.Reader) error {
	remembered, err := x.state(ctx, view, c.head)
	if err != nil {
		return err
	}
	stored, _, err := newScopeMemory().state(ctx, view, c.head)
	if err != nil {
		return err
	}
	got, want := remembered.frame, stored.frame
	for slot := uint32(1); slot <= want.slots(); slot++ {
		if o := want.ordinal(slot); !want.dead.has(slot) && got.known(o) != want.known(o) {
			c.differences.Add("remembered of document %d: %+v instead of %+v", o, got.known(o), want.known(o))
		}
	}
	if g, w := got.sums(), want.sums(); g != w {
		c.differences.Add("remembered sums %v instead of %v", g, w)
	}
	return nil
}

// knowledge is all that a frame says of a document.
type knowledge struct {
	lives bool
	row
	relations
}

func (f *frame) known(ordinal uint32) knowledge {
	if !f.has(ordinal) {
		return knowledge{}
	}
	slot := f.slot(ordinal)
	return knowledge{true, f.row(slot), f.relations(slot)}
}
