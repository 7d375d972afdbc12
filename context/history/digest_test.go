package history_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// longSession grows a session whose folded entries are left out, and calls
// seen with each view.
func longSession(t *testing.T, l *history.Ledger, steps int, seen func(step int, v history.View)) {
	t.Helper()
	s := session{tb: t, ledger: l}
	var live []history.Fold
	batch, through := uint64(0), uint64(0)
	for i := range steps {
		s.step(fmt.Sprintf("make part_%d", i), listing(fmt.Sprintf("part_%d", i), 6))
		if i%50 == 7 {
			s.fail(fmt.Sprintf("make part_%d", i), fmt.Sprintf("error: cannot link part_%d", i), 2)
		}
		v := MustCompact(t, l, history.History{
			Entries: s.entries, Folds: live, Batch: batch, Through: through, Budget: 32_000,
			Originals: func(uint64, uint64) ([]history.Entry, error) { return nil, errors.New("originals were read") },
		})
		seen(i, v)
		for _, f := range v.Made {
			batch, through = max(batch, f.Batch), max(through, f.Through)
		}
		live = history.Live(append(live, v.Made...))
		if n := len(live); n > 0 {
			for len(s.entries) > 1 && s.entries[0].Position <= live[n-1].Spans[len(live[n-1].Spans)-1].Last {
				s.entries = s.entries[1:]
			}
		}
	}
}

// However long a session is, a dense fold is made of what was recorded, not of
// the entries, and what is recorded is bounded. The newest failures stay word
// for word.
func TestDigestsAreBounded(t *testing.T) {
	const most = 200 << 10
	dense, failed := 0, ""
	longSession(t, history.New(count, nil), 6000, func(step int, v history.View) {
		if step%50 == 7 {
			failed = fmt.Sprintf("error: cannot link part_%d", step)
		}
		total := 0
		for _, it := range v.Items {
			if it.Fold != nil {
				total += it.Tokens
			}
		}
		if total > history.DefaultFoldTokens {
			t.Fatalf("step %d: folds take %d tokens", step, total)
		}
		for _, f := range v.Made {
			if len(f.Digest) > most || f.Level == history.LevelLines && len(f.Digest) > most/2 {
				t.Fatalf("step %d: the digest of a fold of level %d takes %d bytes", step, f.Level, len(f.Digest))
			}
			if f.Level == history.LevelDense {
				dense++
				if failed != "" && !strings.Contains(render(v), failed) {
					t.Fatalf("step %d: the newest failure is lost", step)
				}
			}
		}
	})
	if dense < 10 {
		t.Errorf("only %d dense folds: the test tests little", dense)
	}
}

// A digest that is damaged is not used: the entries are read again.
func FuzzDigest(f *testing.F) {
	opts := &history.Options{FoldTokens: 300, KeepTurns: 1}
	s := session{tb: f, ledger: history.New(count, opts)}
	for i := range 8 {
		s.step(fmt.Sprintf("cat file_%d", i), listing(fmt.Sprintf("part_%d", i), 5))
	}
	s.batch()
	for i := range 8 {
		s.step(fmt.Sprintf("cat other_%d", i), listing(fmt.Sprintf("other_%d", i), 5))
	}
	if len(s.folds) == 0 {
		f.Fatal("nothing was folded")
	}
	f.Add([]byte(s.folds[0].Digest))
	f.Add([]byte("\xff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, digest []byte) {
		h := history.History{Entries: s.entries, Now: true}
		for _, fold := range s.folds {
			fold.Digest = string(digest)
			h.Folds = append(h.Folds, fold)
		}
		first := render(MustCompact(t, s.ledger, h))
		if diff := cmp.Diff(first, render(MustCompact(t, s.ledger, h))); diff != "" {
			t.Errorf("not the same twice:\n%s", diff)
		}
	})
}

// A memo changes no result, however little it keeps and whoever shares it.
func TestMemoChangesNothing(t *testing.T) {
	grown := func(seed uint64, memo *history.Memo) string {
		opts := eager
		opts.Memo = memo
		g := newRandom(t, seed, &opts)
		for range 60 {
			g.grow()
			g.view()
		}
		return render(g.view())
	}
	for seed := range uint64(4) {
		want := grown(seed, nil)
		for _, memo := range []*history.Memo{history.NewMemo(0), history.NewMemo(1), history.NewMemo(20_000)} {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if got := grown(seed, memo); got != want {
						t.Errorf("seed %d: with a memo the history is another", seed)
					}
				})
			}
			all.Wait()
		}
	}
}

// Pinned entries are shown whole: no line is left out because it is shown
// already, and nothing because it is long. Others may refer to theirs.
//
// P03
func TestPinnedStaysWhole(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, &history.Options{ResultTokens: 100})}
	const text = 1000
	s.step("cat a", lines(1, text))
	s.step("cat a", lines(1, text))
	s.entries[3].Pinned = true
	s.step("cat a", lines(1, 20))
	s.add(history.Entry{Kind: history.Step, Ref: "009", Output: lines(1, text), Pinned: true})
	for range 3 {
		shown := make(map[uint64]string)
		for _, it := range s.batch().Items {
			if it.Entry != nil {
				shown[it.Entry.Position] = it.Output
			}
		}
		for _, position := range []uint64{4, 7} {
			if shown[position] != lines(1, text) {
				t.Errorf("pinned entry %d is shown as %.200q…", position, shown[position])
			}
		}
		for i := range 5 {
			s.step("cat b", lines(2000+20*i, 2020+20*i))
		}
	}
}
