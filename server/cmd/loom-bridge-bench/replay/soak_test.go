package replay_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

const (
	// quickCuts are made by every run of the tests, soakCuts when
	// LOOM_SOAK_ROUNDS is set.
	quickCuts = 3000
	soakCuts  = 1_000_000
)

// Recorded runs, with their calls made parallel at random, cut at random
// places, folded at random times and undone: calls and results stay together,
// order is kept, what stays is there, undo gives the bytes there were.
func TestRandomCutsSoak(t *testing.T) {
	cuts := quickCuts
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		cuts = soakCuts
	}
	runs := MustRuns(t, "mini_swe_dev", "tau_dev", "swe_agent_demos")
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 0))
	var c cutter
	for c.cuts < cuts {
		run := &runs[r.IntN(len(runs))]
		c = cutter{t: t, r: r, entries: parallel(r, run.Entries), cuts: c.cuts, batches: c.batches, undone: c.undone}
		c.run()
		if t.Failed() {
			t.Fatalf("seed %d, cut %d, run %s", seed, c.cuts, run.ID)
		}
	}
	t.Logf("%d cuts, %d batches, %d of them undone", c.cuts, c.batches, c.undone)
	if c.batches < cuts/100 || c.undone == 0 {
		t.Error("too few batches: the test tests little")
	}
}

// MustRuns reads files of recorded runs, or skips the test.
func MustRuns(tb testing.TB, names ...string) []replay.Run {
	tb.Helper()
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		tb.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	var all []replay.Run
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, "trajectories", name+".jsonl"))
		if err != nil {
			tb.Skipf("no recorded runs: %v", err)
		}
		runs, err := replay.Read(f)
		f.Close()
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, runs...)
	}
	return all
}

// parallel puts neighbouring turns together at random, as if the model had
// made their calls at once; the results come in any order.
func parallel(r *rand.Rand, entries []history.Entry) []history.Entry {
	var out []history.Entry
	for i := 0; i < len(entries); {
		n := 1
		for n < 5 && r.IntN(3) == 0 && pair(entries, i+2*n) {
			n++
		}
		if n == 1 || !pair(entries, i) {
			out = append(out, entries[i])
			i++
			continue
		}
		turn := entries[i]
		turn.Calls = nil
		var results []history.Entry
		for k := range n {
			turn.Calls = append(turn.Calls, entries[i+2*k].Calls...)
			results = append(results, entries[i+2*k+1])
		}
		r.Shuffle(n, func(a, b int) { results[a], results[b] = results[b], results[a] })
		out = append(append(out, turn), results...)
		i += 2 * n
	}
	for i := range out {
		out[i].Position = uint64(i + 1)
		out[i].Pinned = r.IntN(60) == 0
	}
	return out
}

// pair reports whether a turn with one call and its result begin at i.
func pair(entries []history.Entry, i int) bool {
	return i+1 < len(entries) && len(entries[i].Calls) == 1 && entries[i+1].Kind == history.Result
}

// cutter cuts one run again and again.
type cutter struct {
	t       *testing.T
	r       *rand.Rand
	entries []history.Entry
	folds   []history.Fold

	cuts, batches, undone int
}

func (c *cutter) run() {
	ledger := history.New(func(text string) int { return (len(text) + 3) / 4 }, &history.Options{
		KeepTurns: 1 + c.r.IntN(3), BatchTokens: 1 + c.r.IntN(2000), FoldTokens: 2000 + c.r.IntN(8000),
	})
	at, before := 0, ""
	for at < len(c.entries) && !c.t.Failed() {
		at = min(at+1+c.r.IntN(5), len(c.entries))
		h := history.History{Entries: c.entries[:at], Folds: c.folds, Now: c.r.IntN(12) == 0}
		v, err := ledger.Compact(h)
		if err != nil {
			c.t.Fatal(err)
		}
		c.cuts++
		text := bytesOf(v)
		switch {
		case len(v.Made) == 0 && !strings.HasPrefix(text, before):
			c.t.Error("the prefix changed without a batch")
		case len(v.Made) > 0:
			c.batches++
			c.undo(ledger, h, v)
		}
		c.check(at, v)
		c.folds = append(c.folds, v.Made...)
		before = text
	}
}

// undo: without the batch the view has the bytes it had without it.
func (c *cutter) undo(ledger *history.Ledger, h history.History, v history.View) {
	if c.r.IntN(4) > 0 {
		return
	}
	c.undone++
	end := h.Entries[len(h.Entries)-1].Position
	was, err := ledger.Compact(history.History{Entries: h.Entries, Folds: c.folds, Since: end})
	if err != nil {
		c.t.Fatal(err)
	}
	kept := slices.DeleteFunc(slices.Concat(c.folds, v.Made), func(f history.Fold) bool { return f.Batch == v.Made[0].Batch })
	is, err := ledger.Compact(history.History{Entries: h.Entries, Folds: kept, Since: end})
	if err != nil {
		c.t.Fatal(err)
	}
	if bytesOf(was) != bytesOf(is) {
		c.t.Error("undo does not give the bytes there were")
	}
}

// bytesOf is a view as one text.
func bytesOf(v history.View) string {
	var b strings.Builder
	for _, it := range v.Items {
		if it.Fold != nil {
			b.WriteString(it.Fold.Text)
		} else {
			b.WriteString(it.Entry.Text)
			for _, call := range it.Entry.Calls {
				b.WriteString(call.Name + call.Args)
			}
			b.WriteString(it.Output)
		}
		b.WriteByte(0)
	}
	return b.String()
}

func (c *cutter) check(at int, v history.View) {
	c.t.Helper()
	// where has, for each entry, the item that it stands in.
	where := make([]int, at)
	last := uint64(0)
	for i, it := range v.Items {
		if it.Entry != nil {
			where[it.Entry.Position-1] = i + 1
			if it.Entry.Position <= last {
				c.t.Errorf("entry %d stands behind %d", it.Entry.Position, last)
			}
			last = it.Entry.Position
			continue
		}
		last = it.Fold.Spans[0].First
		for _, s := range it.Fold.Spans {
			for p := s.First; p <= s.Last; p++ {
				where[p-1] = -i - 1
			}
		}
	}
	turn := 0
	for i := range at {
		e := &c.entries[i]
		switch {
		case where[i] == 0:
			c.t.Errorf("entry %d is nowhere", i+1)
		case (e.Kind == history.Fixed || e.Pinned) && where[i] < 0:
			c.t.Errorf("entry %d, which stays, was folded", i+1)
		case e.Kind == history.Turn:
			turn = i
		case e.Kind == history.Result && (where[i] < 0) != (where[turn] < 0):
			c.t.Errorf("result %d is apart from its turn %d", i+1, turn+1)
		case e.Kind == history.Result && where[i] < 0 && where[i] != where[turn]:
			c.t.Errorf("result %d is in another fold than its turn %d", i+1, turn+1)
		}
	}
}
