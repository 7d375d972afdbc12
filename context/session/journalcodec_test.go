package session

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// knownError fails unless a decoder's error is one of the package's.
func knownError(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
		t.Fatal(err)
	}
}

// FuzzDecodeState: garbage never panics, and what decodes encodes to what
// decodes to the same.
func FuzzDecodeState(f *testing.F) {
	f.Add(encodeState(foldState{}))
	f.Add(encodeState(foldState{
		version: 300, live: []uint64{1, 3, 155}, marks: map[string]history.Mark{"a": {Older: 1, Seen: 2, Bare: 3, Omitted: 1}},
		batch: 5, through: 9, since: 11, change: 12,
	}))
	f.Add([]byte{0x08, 0x03})
	f.Add([]byte(" 0\x100")) // a mark before the version
	f.Add([]byte{0x1a, 0x0b, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := decodeState(value)
		if err != nil {
			knownError(t, err)
			return
		}
		again, err := decodeState(encodeState(s))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(foldState{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzDecodeJournalEntry(f *testing.F) {
	mark := history.Mark{Older: 1, Seen: 2, Bare: 3, Omitted: 1}
	for _, e := range []journalEntry{
		{kind: kindFold, time: time.UnixMicro(5).UTC(), body: []byte("b"), change: &undoneChange{before: 2, entries: 3, superseded: []uint64{1, 300}, batch: 5, through: 9}},
		{kind: kindMark, body: encodeMark("chat", mark), change: &undoneChange{entries: 1, mark: &mark}},
		{kind: kindUndo, body: encodeCounter(7)},
		{kind: kindUndo + 1},
	} {
		f.Add(encodeJournalEntry(e))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := decodeJournalEntry(value)
		if err != nil {
			knownError(t, err)
			return
		}
		again, err := decodeJournalEntry(encodeJournalEntry(e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(journalEntry{}, undoneChange{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if preset, m, err := decodeMark(e.body); err == nil {
			p, again, err := decodeMark(encodeMark(preset, m))
			if err != nil || p != preset || again != m {
				t.Fatalf("mark %q %+v became %q %+v, %v", preset, m, p, again, err)
			}
		}
		if _, err := e.fold(); err != nil {
			knownError(t, err)
		}
	})
}

// FuzzSmallStates: settings, anchors, heads and answers, none of which may
// panic.
func FuzzSmallStates(f *testing.F) {
	literal := true
	f.Add(encodeConfig(Config{
		Policy: PolicyPreset, Preset: "chat", Literal: &literal, Prices: history.DefaultPrices(),
		ExpectedTurns: 1, ResultTokens: 2, Model: "o3", MaxTokens: 3,
	}))
	f.Add(encodeAnchor(tokens.Anchor{Model: "o3", ID: "p", Local: 7, Real: 300, Answer: 1}))
	f.Add(encodeHead(head{last: 3, ended: true}))
	f.Add(encodeUndone(Undone{Batch: 3, Refs: []string{"step_001", ""}}))
	f.Fuzz(func(t *testing.T, value []byte) {
		if c, err := decodeConfig(value); err == nil {
			again, err := decodeConfig(encodeConfig(c))
			same := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a == b })
			if diff := cmp.Diff(c, again, same); diff != "" || err != nil {
				t.Fatal(diff, err)
			}
		}
		if a, err := decodeAnchor(value); err == nil {
			if again, err := decodeAnchor(encodeAnchor(a)); err != nil || again != a {
				t.Fatalf("%+v became %+v, %v", a, again, err)
			}
		}
		if h, err := decodeHead(value); err == nil {
			if again, err := decodeHead(encodeHead(h)); err != nil || again != h {
				t.Fatalf("%+v became %+v, %v", h, again, err)
			}
			// Who knows no end reads the position all the same.
			if last, err := decodeCounter(encodeHead(h)); err != nil || last != h.last {
				t.Fatalf("%+v is read as %d, %v", h, last, err)
			}
		}
		if u, err := decodeUndone(value); err == nil {
			if again, err := decodeUndone(encodeUndone(u)); err != nil || !cmp.Equal(again, u) {
				t.Fatalf("%+v became %+v, %v", u, again, err)
			}
		}
	})
}

// A dense fold takes out of the live ones what history takes out.
func TestSupersededAsHistoryTellsIt(t *testing.T) {
	old := history.Fold{Batch: 1, Level: history.LevelLines, Text: "old", Spans: []history.Span{{First: 3, Last: 4}, {First: 8, Last: 9}}}
	for _, tt := range []struct{ first, last uint64 }{{1, 2}, {1, 3}, {3, 3}, {4, 9}, {8, 9}, {1, 20}, {5, 7}} {
		dense := history.Fold{Batch: 2, Level: history.LevelDense, Text: "dense", Spans: []history.Span{{First: tt.first, Last: tt.last}}}
		for _, level := range []int{history.LevelLines, history.LevelDense} {
			dense.Level = level
			want := len(history.Live([]history.Fold{old, dense})) == 1
			if got := isDense(dense) && dense.Holds(old.Spans[0].First); got != want {
				t.Errorf("level %d, %v: superseded %v, want %v", level, tt, got, want)
			}
		}
	}
}
