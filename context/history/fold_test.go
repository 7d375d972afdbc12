package history_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
)

func fold(batch uint64, level int, spans ...history.Span) history.Fold {
	return history.Fold{
		Policy: history.PolicyLedger, Batch: batch, Reason: history.ByBudget, Level: level, Spans: spans,
		Through: spans[len(spans)-1].Last, Seen: 99, Text: "text", Refs: []string{"001", "002"},
		Tokens: 10, Before: 400, Original: 7777, Turns: 4, Calls: 5, Cuts: 1,
	}
}

func TestFoldRoundTrip(t *testing.T) {
	want := fold(3, history.LevelLines, history.Span{First: 2, Last: 9}, history.Span{First: 11, Last: 11})
	stored := history.AppendFold(nil, want)
	got, err := history.DecodeFold(stored)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	// A field of a later version is passed over.
	if got, err = history.DecodeFold(append(stored, 0xfa, 0x07, 1, 'x')); err != nil || got.Text != want.Text {
		t.Errorf("with an unknown field: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, f := range map[string]history.Fold{
		"no spans":       {Level: 1, Text: "x"},
		"no text":        {Level: 1, Spans: []history.Span{{First: 1, Last: 2}}},
		"no level":       {Text: "x", Spans: []history.Span{{First: 1, Last: 2}}},
		"position 0":     {Level: 1, Text: "x", Spans: []history.Span{{First: 0, Last: 2}}},
		"out of order":   {Level: 1, Text: "x", Spans: []history.Span{{First: 5, Last: 6}, {First: 1, Last: 2}}},
		"text no UTF-8":  {Level: 1, Text: "\xff", Spans: []history.Span{{First: 1, Last: 2}}},
		"span backwards": {Level: 1, Text: "x", Spans: []history.Span{{First: 5, Last: 4}}},
	} {
		if _, err := history.DecodeFold(history.AppendFold(nil, f)); !errors.Is(err, history.ErrDamaged) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := history.DecodeFold([]byte{0xff}); !errors.Is(err, history.ErrDamaged) {
		t.Errorf("garbage: error %v", err)
	}
}

func FuzzDecodeFold(f *testing.F) {
	f.Add(history.AppendFold(nil, fold(1, 2, history.Span{First: 1, Last: 1})))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := history.DecodeFold(stored)
		if err != nil {
			return
		}
		again, err := history.DecodeFold(history.AppendFold(nil, got))
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Errorf("error %v (-first +second):\n%s", err, diff)
		}
	})
}

func TestLive(t *testing.T) {
	one := fold(1, history.LevelLines, history.Span{First: 2, Last: 5})
	two := fold(2, history.LevelLines, history.Span{First: 7, Last: 9})
	dense := fold(3, history.LevelDense, history.Span{First: 2, Last: 5}, history.Span{First: 7, Last: 9})
	three := fold(3, history.LevelLines, history.Span{First: 10, Last: 12})
	all := []history.Fold{one, two, three, dense}
	if diff := cmp.Diff([]history.Fold{dense, three}, history.Live(all)); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	kept := withoutBatch(all, 3)
	if diff := cmp.Diff([]history.Fold{one, two}, history.Live(kept)); diff != "" {
		t.Errorf("without the last batch the older folds stand again (-want +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	for reason, want := range map[history.Reason]string{0: "none", history.ByPrice: "price", history.ByBudget: "budget", history.ByCaller: "caller", 9: "none"} {
		if got := reason.String(); got != want {
			t.Errorf("reason %d is %q, want %q", reason, got, want)
		}
	}
	for class, want := range map[excerpt.Class]string{excerpt.Path: "path", excerpt.Failure: "failure", excerpt.Number: "number", excerpt.Link: "link", excerpt.Symbol: "symbol"} {
		if got := class.String(); got != want {
			t.Errorf("class %d is %q, want %q", class, got, want)
		}
	}
}
