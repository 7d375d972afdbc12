package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// counting is an engine that counts scans and the pairs they yield.
type counting struct {
	kv.Engine
	gets, scans, pairs int
}

func (c *counting) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	c.gets++
	return c.Engine.Get(ctx, ks, keys...)
}

func (c *counting) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	c.scans++
	return func(yield func(kv.Pair, error) bool) {
		for pair, err := range c.Engine.Scan(ctx, ks, r) {
			c.pairs++
			if !yield(pair, err) {
				return
			}
		}
	}
}

// positions are those of entries; three and more in a row are a range.
func positions(entries []session.Entry) string {
	var parts []string
	for len(entries) > 0 {
		first, run := entries[0].Position, 1
		for run < len(entries) && entries[run].Position == first+uint64(run) {
			run++
		}
		if run < 3 {
			run = 1
			parts = append(parts, fmt.Sprint(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d…%d", first, first+uint64(run)-1))
		}
		entries = entries[run:]
	}
	return strings.Join(parts, " ")
}

// What is folded is not read, and what is read again is known.
func TestUnfolded(t *testing.T) {
	memory := memkv.New(nil)
	t.Cleanup(func() { memory.Close() })
	engine := &counting{Engine: memory}
	f := newFixture(t, engine)
	f.fill(t, alice, "s", 100)
	f.fill(t, alice, "s2", 3)
	folds := func(spans ...history.Span) []history.Fold { return []history.Fold{fold(1, spans...)} }
	for name, tt := range map[string]struct {
		folds []history.Fold
		want  string
		// gets has the one of the session's head.
		gets, scans, read int
	}{
		"nothing folded":  {nil, "1…100", 1, 1, 100},
		"short stretches": {folds(span(2, 40), span(43, 98)), "1 41 42 99 100", 2, 0, 0},
		"little folded":   {folds(span(20, 20), span(42, 45), span(47, 47)), "1…19 21…41 46 48…100", 2, 3, 93},
		"long stretches":  {folds(span(20, 40), span(51, 90)), "1…19 41…50 91…100", 1, 3, 39},
		"both":            {folds(span(2, 30), span(32, 40), span(51, 58), span(60, 98)), "1 31 41…50 59 99 100", 3, 1, 10},
		"every other":     {folds(span(2, 2), span(4, 4), span(6, 98)), "1 3 5 99 100", 2, 0, 0},
		"from the first":  {folds(span(1, 97)), "98…100", 2, 0, 0},
		"all":             {folds(span(1, 100)), "", 1, 0, 0},
		"more than all":   {folds(span(1, 1<<64-1)), "", 1, 0, 0},
		"interleaved": {
			[]history.Fold{fold(1, span(2, 30), span(61, 98)), fold(1, span(31, 50)), fold(2, span(40, 60))},
			"1 99 100", 2, 0, 0,
		},
	} {
		log := session.New(engine, f.writer, nil)
		for _, again := range []bool{false, true} {
			engine.gets, engine.scans, engine.pairs = 0, 0, 0
			got := positions(mustCollect(t, log.Unfolded(t.Context(), alice, "s", tt.folds)))
			if got != tt.want {
				t.Errorf("%s: %s, want %s", name, got, tt.want)
			}
			if again {
				tt.gets, tt.scans, tt.read = 1, 0, 0
			}
			if engine.gets != tt.gets || engine.scans != tt.scans || engine.pairs != tt.read {
				t.Errorf("%s: %d gets, %d scans of %d pairs, want %d, %d of %d",
					name, engine.gets, engine.scans, engine.pairs, tt.gets, tt.scans, tt.read)
			}
		}
	}
}

// What is known of a session is read with what came since, by either way of reading, in
// any order; and other sessions are others.
func TestKnownEntriesAndNewOnes(t *testing.T) {
	memory := memkv.New(nil)
	t.Cleanup(func() { memory.Close() })
	engine := &counting{Engine: memory}
	f := newFixture(t, engine)
	n := 0
	for round := range 12 {
		f.fill(t, alice, "s", round)
		f.fill(t, alice, "other", 1)
		n += round
		fresh := session.New(memory, f.writer, nil)
		var folds []history.Fold
		if round%3 == 2 {
			folds = []history.Fold{fold(1, span(2, uint64(round)), span(uint64(n/2), uint64(n/2+2)))}
		}
		want := mustCollect(t, fresh.Unfolded(t.Context(), alice, "s", folds))
		got := mustCollect(t, f.Unfolded(t.Context(), alice, "s", folds))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %s, want %s", round, positions(got), positions(want))
		}
		engine.scans = 0
		back := mustCollect(t, f.Before(t.Context(), alice, "s", 0))
		if want := mustCollect(t, fresh.Entries(t.Context(), alice, "s")); len(back) != n || len(want) != n {
			t.Fatalf("round %d: %d entries back, %d forth, want %d", round, len(back), len(want), n)
		} else if slices.Reverse(back); !reflect.DeepEqual(back, want) {
			t.Fatalf("round %d: Before has other entries than Entries", round)
		}
		if folds == nil && engine.scans > 0 {
			t.Errorf("round %d: %d scans of what is known", round, engine.scans)
		}
	}
}

// A snapshot shows no entry that came later, although it is known.
func TestKnownEntriesOfASnapshot(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 3)
	view, err := f.engine.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	f.fill(t, alice, "s", 2)
	mustCollect(t, f.Unfolded(t.Context(), alice, "s", nil))
	at := f.At(view)
	if got := positions(mustCollect(t, at.Unfolded(t.Context(), alice, "s", nil))); got != "1…3" {
		t.Errorf("the snapshot shows %s, want 1…3", got)
	}
	if got := mustCollect(t, at.Before(t.Context(), alice, "s", 0)); len(got) != 3 || got[0].Position != 3 {
		t.Errorf("the snapshot shows %d entries", len(got))
	}
}

// Many short stretches are fetched some at a time, in order.
func TestUnfoldedOfManyStretches(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 2000)
	var folds []history.Fold
	for p := uint64(1); p < 1990; p += 10 {
		folds = append(folds, fold(1, span(p, p+8)))
	}
	got := mustCollect(t, f.Unfolded(t.Context(), alice, "s", folds))
	if len(got) != 209 {
		t.Fatalf("%d entries", len(got))
	}
	for i, e := range got {
		want := uint64(10*i + 10)
		if i >= 199 {
			want = uint64(1990 + i - 198)
		}
		if e.Position != want {
			t.Fatalf("entry %d is at %d, want %d", i, e.Position, want)
		}
	}
}

func TestUnfoldedEndsEarlyAndTellsErrors(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 50)
	folds := []history.Fold{fold(1, span(2, 40))}
	for e, err := range f.Unfolded(t.Context(), alice, "s", folds) {
		if e.Position != 1 || err != nil {
			t.Fatalf("got %+v, %v", e, err)
		}
		break
	}
	if _, err := collect(f.Unfolded(t.Context(), alice, "\x00", folds)); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("bad session: %v", err)
	}
	if _, err := collect(f.Range(t.Context(), kv.Scope{}, "s", 1, 2)); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("bad scope: %v", err)
	}
	f.mustPut(t, append(kv.AppendEscaped(alice.Key('e'), "s"), 0, 0, 0, 0, 0, 0, 0, 45), []byte{0xff})
	got, err := collect(f.Unfolded(t.Context(), alice, "s", folds))
	if len(got) != 5 || !errors.Is(err, session.ErrDamaged) {
		t.Errorf("%d entries before %v", len(got), err)
	}
	if got := mustCollect(t, f.Unfolded(t.Context(), alice, "s", []history.Fold{fold(1, span(40, 45))})); len(got) != 44 {
		t.Errorf("a damaged entry that is folded: %d entries", len(got))
	}
}

func TestRange(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 9)
	f.fill(t, alice, "s ", 9)
	for _, tt := range []struct {
		first, last uint64
		want        string
	}{
		{1, 3, "1…3"},
		{4, 4, "4"},
		{8, 100, "8 9"},
		{0, 1, "1"},
		{0, 1<<64 - 1, "1…9"},
		{5, 4, ""},
		{10, 20, ""},
		{1<<64 - 1, 1<<64 - 1, ""},
	} {
		if got := positions(mustCollect(t, f.Range(t.Context(), alice, "s", tt.first, tt.last))); got != tt.want {
			t.Errorf("%d to %d: %q, want %q", tt.first, tt.last, got, tt.want)
		}
	}
}

// benchmarks runs a benchmark on both engines.
func benchmarks(b *testing.B, prepare func(*fixture), run func(*testing.B, *fixture)) {
	b.Run("memkv", func(b *testing.B) {
		f := newMemory(b)
		prepare(f)
		run(b, f)
	})
	b.Run("rockskv", func(b *testing.B) {
		open(b, filepath.Join(b.TempDir(), "store"), func(f *fixture) {
			prepare(f)
			run(b, f)
		})
	})
}

// BenchmarkFolds reads about 100 kB of folds after so many batches.
func BenchmarkFolds(b *testing.B) {
	for _, batches := range []int{5, 50, 500} {
		b.Run(fmt.Sprint(batches), func(b *testing.B) {
			benchmarks(b, func(f *fixture) {
				f.fill(b, alice, "s", 20*batches)
				for i := range uint64(batches) {
					made := fold(i+1, span(20*i+2, 20*i+18))
					made.Text = strings.Repeat("evidence ", 100_000/9/batches)
					f.mustFold(b, alice, "s", made)
				}
			}, func(b *testing.B, f *fixture) {
				b.ReportAllocs()
				for b.Loop() {
					if got := f.mustFolds(b, alice, "s"); len(got.Live) != batches {
						b.Fatal(len(got.Live))
					}
				}
			})
		})
	}
}

// BenchmarkUnfolded reads what is not folded of 10,000 entries of 2 kB: 50 at
// the end, and so many that stand between folds.
func BenchmarkUnfolded(b *testing.B) {
	for _, between := range []int{0, 20, 200} {
		b.Run(fmt.Sprint(between), func(b *testing.B) {
			const entries, tail = 10_000, 50
			var folds []history.Fold
			benchmarks(b, func(f *fixture) {
				msgs := make([]session.Message, 250)
				for i := range msgs {
					msgs[i] = said(strings.Repeat("evidence ", 220))
				}
				for range entries / len(msgs) {
					f.mustAppend(b, alice, "s", msgs...)
				}
				folds = nil
				each := uint64(entries-tail) / uint64(between+1)
				for i := range uint64(between + 1) {
					last := (i+1)*each - 1
					if i == uint64(between) {
						last = entries - tail
					}
					folds = append(folds, fold(i+1, span(i*each+1, last)))
				}
			}, func(b *testing.B, f *fixture) {
				b.ReportAllocs()
				for b.Loop() {
					if got := mustCollect(b, f.Unfolded(b.Context(), alice, "s", folds)); len(got) != tail+between {
						b.Fatal(len(got))
					}
				}
			})
		})
	}
}
