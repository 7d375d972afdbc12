package lexical

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

func (c *checker) compareStatistics(want contents) {
	got := c.Stats
	count := segment.Statistics{
		Last: got.Last, Packed: got.Packed, Purged: got.Purged, TailBytes: got.TailBytes,
		Documents: uint64(len(want.documents)), Deleted: uint64(got.Last) - uint64(len(want.documents)),
	}
	sessions := make(map[uint64]struct{})
	for _, d := range want.documents {
		count.BodyWords += uint64(d.Body)
		count.HeaderWords += uint64(d.Header)
		if d.Session != 0 {
			count.InSessions++
			sessions[d.Session] = struct{}{}
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
		case ordinal == 0 || ordinal > c.Stats.Last:
			c.differences.Add("document %d %q is behind the last one, %d", ordinal, w.id, c.Stats.Last)
		case wanted && c.deleted.Has(ordinal):
			c.differences.Add("document %d is deleted", ordinal)
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
		if d.Session != 0 {
			counts[d.Session]++
		}
	}
	prefix := c.Key(segment.TagSession)
	for pair, err := range view.Scan(ctx, kv.Index, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		stored, err := segment.DecodeCount(pair.Value)
		if err != nil {
			return err
		}
		if len(pair.Key) != len(prefix)+8 {
			return fmt.Errorf("%w: count of a session", segment.ErrDamaged)
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

// compareMemory compares what the index remembers with the stored data.
func (c *checker) compareMemory(ctx context.Context, x *Index, view kv.Reader) error {
	remembered, err := x.state(ctx, view, c.scopeHead)
	if err != nil {
		return err
	}
	stored, _, err := newScopeCache().state(ctx, view, c.scopeHead)
	if err != nil {
		return err
	}
	got, want := remembered.frame, stored.frame
	for slot := uint32(1); slot <= want.Slots(); slot++ {
		if o := want.Ordinal(slot); !want.Deleted.Has(slot) && documentStateOf(got, o) != documentStateOf(want, o) {
			c.differences.Add("remembered of document %d: %+v instead of %+v", o, documentStateOf(got, o), documentStateOf(want, o))
		}
	}
	if g, w := sums(got), sums(want); g != w {
		c.differences.Add("remembered sums %v instead of %v", g, w)
	}
	return nil
}

// documentState is all that a frame says of a document.
type documentState struct {
	live bool
	segment.Row
	relations
}

func documentStateOf(f *frame.Frame, ordinal uint32) documentState {
	if !f.IsLive(ordinal) {
		return documentState{}
	}
	slot := f.Slot(ordinal)
	return documentState{true, f.Row(slot), relationsOf(f, slot)}
}

// relations are what a frame says of a document and others, by their ordinals.
type relations struct {
	prev, next, superseder    uint32
	sessionWords, sessionSize uint32
}

func relationsOf(f *frame.Frame, o uint32) relations {
	n := f.Session[o]
	return relations{f.Ordinal(f.Prev[o]), f.Ordinal(f.Next[o]), f.Ordinal(f.Superseder[o]), f.SessionWords[n], f.SessionSize[n]}
}

// sums are the counts of a frame.
func sums(f *frame.Frame) [7]uint64 {
	return [7]uint64{uint64(f.Last), f.Deletions, f.Documents, f.BodyWords, f.HeaderWords, uint64(f.LiveSessions), uint64(f.WithoutSession)}
}
