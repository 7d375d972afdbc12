package history_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// eager folds often, so that a short random log sees many batches.
var eager = history.Options{BatchTokens: 60, FoldTokens: 1500}

// X03, X05
func TestRandomHistories(t *testing.T) {
	batches := 0
	for seed := range uint64(60) {
		g := newRandom(t, seed, &eager)
		before := ""
		for range 60 {
			g.grow()
			undone := slices.Clone(g.folds)
			v := g.view()
			text := render(v)
			if len(v.Made) > 0 {
				batches++
				checkUndo(t, g, undone)
			} else if !strings.HasPrefix(text, before) {
				t.Fatalf("seed %d: no batch was made, but the prefix changed:\n%s", seed, cmp.Diff(before, text))
			}
			checkView(t, g, v)
			if t.Failed() {
				t.Fatalf("seed %d, %d entries", seed, len(g.entries))
			}
			before = text
		}
	}
	if batches < 100 {
		t.Errorf("only %d batches were made: the test tests little", batches)
	}
}

// checkView holds a view against what every view has to be.
func checkView(t *testing.T, g *random, v history.View) {
	t.Helper()
	folded := make(map[uint64]int)
	last := uint64(0)
	total := 0
	for i := range v.Items {
		it := &v.Items[i]
		total += it.Tokens
		var place uint64
		if it.Fold == nil {
			place = it.Entry.Position
		} else {
			place = it.Fold.Spans[0].First
			for _, s := range it.Fold.Spans {
				for p := s.First; p <= s.Last; p++ {
					folded[p] = i + 1
				}
			}
			if it.Fold.Tokens >= it.Fold.Before {
				t.Errorf("a fold of %d tokens stands for %d", it.Fold.Tokens, it.Fold.Before)
			}
		}
		if place <= last {
			t.Errorf("item at %d stands behind %d", place, last)
		}
		last = place
	}
	if total != v.Tokens {
		t.Errorf("items have %d tokens, the view says %d", total, v.Tokens)
	}
	checkStaying(t, g, v, folded)
	checkTogether(t, g, folded)
}

// checkStaying: what must not be folded stands there as it was.
func checkStaying(t *testing.T, g *random, v history.View, folded map[uint64]int) {
	t.Helper()
	shown := make(map[uint64]history.ShownItem)
	for _, it := range v.Items {
		if it.Entry != nil {
			shown[it.Entry.Position] = it
		}
	}
	for _, e := range g.entries {
		it, ok := shown[e.Position]
		if ok == (folded[e.Position] != 0) {
			t.Errorf("entry %d is shown: %v, in a fold: %v", e.Position, ok, folded[e.Position] != 0)
		}
		if (e.Kind == history.Fixed || e.Pinned) && (!ok || it.Entry.Text != e.Text) {
			t.Errorf("entry %d, which stays, is shown as %+v", e.Position, it.Entry)
		}
	}
}

// checkTogether: turns and their results, and the steps of one turn, are in
// one fold or in none.
func checkTogether(t *testing.T, g *random, folded map[uint64]int) {
	t.Helper()
	turn := 0
	for i, e := range g.entries {
		switch {
		case e.Kind == history.Turn:
			turn = i
		case e.Kind == history.Result && folded[e.Position] != folded[g.entries[turn].Position]:
			t.Errorf("result %d is apart from its turn %d", e.Position, g.entries[turn].Position)
		case e.Kind == history.Step && i > 0 && g.entries[i-1].TurnID == e.TurnID && folded[e.Position] != folded[g.entries[i-1].Position]:
			t.Errorf("step %d is apart from the one before, of the same turn", e.Position)
		}
	}
}

// checkUndo: without the last batch the view is what it was before.
func checkUndo(t *testing.T, g *random, before []history.Fold) {
	t.Helper()
	undone := withoutBatch(g.folds, g.folds[len(g.folds)-1].Batch)
	if diff := cmp.Diff(before, undone); diff != "" && len(before)+len(undone) > 0 {
		t.Errorf("undo does not give the folds there were:\n%s", diff)
	}
	// Nothing is folded again at once when the undo is told.
	v := MustCompact(t, g.ledger, history.History{Entries: g.entries, Folds: undone, Since: g.entries[len(g.entries)-1].Position})
	if len(v.Made) > 0 {
		t.Error("what was undone comes again at once")
	}
}

// The same log and folds give the same bytes.
//
// B15, X05
func TestThousandViewsOneHash(t *testing.T) {
	g := newRandom(t, 7, &eager)
	for range 80 {
		g.grow()
		g.view()
	}
	hashes := make(map[[32]byte]bool)
	for range 1000 {
		hashes[sha256.Sum256([]byte(render(MustCompact(t, g.ledger, g.history()))))] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d different views of one history", len(hashes))
	}
	// A batch is made of a whole history each time.
	clear(hashes)
	for range 20 {
		h := history.History{Entries: g.entries, Now: true}
		hashes[sha256.Sum256([]byte(render(MustCompact(t, g.ledger, h))))] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d different batches of one history", len(hashes))
	}
}

// Folding what is folded changes nothing, and entries in folds may be left out.
//
// P02
func TestIdempotent(t *testing.T) {
	g := newRandom(t, 11, &history.Options{})
	for range 40 {
		g.grow()
	}
	first := render(g.batch())
	for range 50 {
		if diff := cmp.Diff(first, render(g.batch())); diff != "" {
			t.Fatalf("a second batch changes the history (-first +second):\n%s", diff)
		}
	}
	h := g.history()
	h.Entries = slices.DeleteFunc(slices.Clone(h.Entries), func(e history.Entry) bool {
		return slices.ContainsFunc(g.folds, func(f history.Fold) bool {
			return slices.ContainsFunc(f.Spans, func(s history.Span) bool { return s.First <= e.Position && e.Position <= s.Last })
		})
	})
	if len(h.Entries) == len(g.entries) {
		t.Fatal("nothing was folded")
	}
	if diff := cmp.Diff(first, render(MustCompact(t, g.ledger, h))); diff != "" {
		t.Errorf("without the folded entries (-with +without):\n%s", diff)
	}
}

// Compaction copies nothing that it was given.
func TestInputStays(t *testing.T) {
	g := newRandom(t, 3, &eager)
	for range 40 {
		g.grow()
		g.view()
	}
	entries, folds := fmt.Sprintf("%+v", g.entries), fmt.Sprintf("%+v", g.folds)
	if _, err := g.ledger.Compact(history.History{Entries: g.entries, Folds: g.folds, Now: true, Budget: 10}); err == nil {
		t.Error("forty entries fit ten tokens")
	}
	if entries != fmt.Sprintf("%+v", g.entries) || folds != fmt.Sprintf("%+v", g.folds) {
		t.Error("the entries or folds that were given have changed")
	}
}
