package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// fold is a fold of a batch that stands for some positions.
func fold(batch uint64, spans ...history.Span) history.Fold {
	f := history.Fold{
		Policy: history.PolicyLedger, Batch: batch, Reason: history.ByPrice, Level: history.LevelLines,
		Spans: spans, Tokens: 7, Before: 90, Turns: 1, Calls: 2, Cuts: 1,
	}
	for _, s := range spans {
		f.Text += fmt.Sprintf("lines of %d to %d ", s.First, s.Last)
		f.Refs = append(f.Refs, fmt.Sprintf("step_%03d", s.First))
		f.Through, f.Seen = s.Last, s.Last
	}
	return f
}

func span(first, last uint64) history.Span { return history.Span{First: first, Last: last} }

func dense(f history.Fold) history.Fold {
	f.Level = history.LevelDense
	f.Text = "dense " + f.Text
	return f
}

func (f *fixture) mustFolds(tb testing.TB, scope kv.Scope, id string) session.Folds {
	tb.Helper()
	folds, err := f.Folds(tb.Context(), scope, id)
	if err != nil {
		tb.Fatal(err)
	}
	return folds
}

func (f *fixture) mustFold(tb testing.TB, scope kv.Scope, id string, made ...history.Fold) {
	tb.Helper()
	version := f.mustFolds(tb, scope, id).Version
	if err := f.AppendFolds(tb.Context(), scope, id, version, made); err != nil {
		tb.Fatal(err)
	}
}

func (f *fixture) mustUndo(tb testing.TB, scope kv.Scope, id string) session.Undone {
	tb.Helper()
	u, err := f.Undo(tb.Context(), scope, id, 0, "")
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// fill gives a session so many messages.
func (f *fixture) fill(tb testing.TB, scope kv.Scope, id string, messages int) {
	tb.Helper()
	for messages > 0 {
		n := min(messages, session.MaxMessages)
		f.mustAppend(tb, scope, id, slices.Repeat([]session.Message{said("m")}, n)...)
		messages -= n
	}
}

// rawState is the stored state of a session's folds, without its version and
// without where the log ended at the last undo.
func (f *fixture) rawState(tb testing.TB, scope kv.Scope, id string) []byte {
	tb.Helper()
	values, err := f.engine.Get(tb.Context(), kv.Log, kv.AppendEscaped(scope.Key('h'), id))
	if err != nil {
		tb.Fatal(err)
	}
	const format, version, since, given = 1, 2, 7, 9
	var left []byte
	for field, err := range wire.Fields(values[0]) {
		switch {
		case err != nil:
			tb.Fatal(err)
		case field.Number == format || field.Number == version || field.Number == since || field.Number == given:
		case field.Bytes != nil:
			left = wire.AppendItem(left, field.Number, field.Bytes)
		default:
			left = wire.AppendNumber(left, field.Number, field.Value)
		}
	}
	return left
}

func TestFoldsOfASession(t *testing.T) {
	f := newMemory(t)
	if diff := cmp.Diff(session.Folds{}, f.mustFolds(t, alice, "s"), cmp.Comparer(sameFolds)); diff != "" {
		t.Fatal(diff)
	}
	f.fill(t, alice, "s", 20)
	a, b := fold(1, span(2, 4), span(6, 6)), fold(1, span(8, 9))
	f.mustFold(t, alice, "s", a, b)
	c := fold(2, span(11, 14))
	f.mustFold(t, alice, "s", c)
	want := session.Folds{Live: []history.Fold{a, b, c}, Batch: 2, Through: 14, Version: 3}
	if diff := cmp.Diff(want, f.mustFolds(t, alice, "s")); diff != "" {
		t.Error(diff)
	}
	// Another session and another agent have none of them.
	for _, got := range []session.Folds{f.mustFolds(t, alice, "s2"), f.mustFolds(t, bob, "s")} {
		if !sameFolds(got, session.Folds{}) {
			t.Errorf("got %+v", got)
		}
	}
}

func sameFolds(a, b session.Folds) bool {
	return len(a.Live) == len(b.Live) && len(a.Marks) == len(b.Marks) && a.Version == b.Version && a.Since == b.Since
}

// A dense fold stands for older ones, and an undo brings these back.
func TestUndoBringsSupersededFoldsBack(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 30)
	a, b, c := fold(1, span(2, 4)), fold(2, span(5, 9)), fold(3, span(11, 14))
	f.mustFold(t, alice, "s", a)
	f.mustFold(t, alice, "s", b)
	f.mustFold(t, alice, "s", c)
	before := f.mustFolds(t, alice, "s")
	raw := f.rawState(t, alice, "s")
	d, e := dense(fold(4, span(2, 9))), fold(4, span(16, 20))
	f.mustFold(t, alice, "s", e, d)
	if diff := cmp.Diff([]history.Fold{c, e, d}, f.mustFolds(t, alice, "s").Live); diff != "" {
		t.Error(diff)
	}
	f.fill(t, alice, "s", 5)
	u := f.mustUndo(t, alice, "s")
	if diff := cmp.Diff(session.Undone{Batch: 4, Refs: []string{"step_016", "step_002"}}, u); diff != "" {
		t.Error(diff)
	}
	after := f.mustFolds(t, alice, "s")
	before.Version, before.Since, before.Batch = 6, 35, 4
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(raw, f.rawState(t, alice, "s")); diff != "" {
		t.Error(diff)
	}
	// Undo again goes one further back, and no number is given again.
	for _, want := range []uint64{3, 2} {
		if u := f.mustUndo(t, alice, "s"); u.Batch != want {
			t.Errorf("undid batch %d, want %d", u.Batch, want)
		}
	}
	f.mustFold(t, alice, "s", fold(5, span(5, 6)))
	for _, want := range []uint64{5, 1} {
		if u := f.mustUndo(t, alice, "s"); u.Batch != want {
			t.Errorf("undid batch %d, want %d", u.Batch, want)
		}
	}
	if _, err := f.Undo(t.Context(), alice, "s", 0, ""); !errors.Is(err, session.ErrNothingToUndo) || strings.Count(err.Error(), "session:") != 1 {
		t.Errorf("got %v, want ErrNothingToUndo, said once", err)
	}
	if got := f.mustFolds(t, alice, "s"); len(got.Live) != 0 || got.Batch != 5 || got.Through != 0 {
		t.Errorf("after all was undone: %+v", got)
	}
}

func TestMarksMoveAndAreUndone(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 9)
	move := func(preset string, older int) {
		t.Helper()
		version := f.mustFolds(t, alice, "s").Version
		if err := f.MoveMark(t.Context(), alice, "s", version, preset, history.Mark{Older: older, Seen: older + 3}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(version uint64, want map[string]history.Mark) {
		t.Helper()
		got := f.mustFolds(t, alice, "s")
		if diff := cmp.Diff(want, got.Marks); diff != "" || got.Version != version {
			t.Errorf("version %d, want %d: %s", got.Version, version, diff)
		}
	}
	move("design", 4)
	move("design", 4) // no change
	check(1, map[string]history.Mark{"design": {Older: 4, Seen: 7}})
	f.mustFold(t, alice, "s", fold(1, span(1, 3)))
	move("chat", 2)
	move("design", 6)
	check(4, map[string]history.Mark{"design": {Older: 6, Seen: 9}, "chat": {Older: 2, Seen: 5}})
	if _, err := f.Undo(t.Context(), alice, "s", 1, ""); !errors.Is(err, session.ErrNothingToUndo) {
		t.Errorf("a batch before a mark: %v, want ErrNothingToUndo", err)
	}
	if u := f.mustUndo(t, alice, "s"); u.Batch != 0 || u.Refs != nil {
		t.Errorf("undone: %+v", u)
	}
	check(5, map[string]history.Mark{"design": {Older: 4, Seen: 7}, "chat": {Older: 2, Seen: 5}})
	f.mustUndo(t, alice, "s")
	check(6, map[string]history.Mark{"design": {Older: 4, Seen: 7}})
	if u := f.mustUndo(t, alice, "s"); u.Batch != 1 {
		t.Errorf("undone: %+v", u)
	}
	f.mustUndo(t, alice, "s")
	check(8, nil)
}

func TestUndoIsSafeToRepeat(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 9)
	f.mustFold(t, alice, "s", fold(1, span(1, 2)))
	f.mustFold(t, alice, "s", fold(2, span(4, 5)))
	if _, err := f.Undo(t.Context(), alice, "s", 1, "r"); !errors.Is(err, session.ErrNothingToUndo) {
		t.Errorf("not the last batch: %v, want ErrNothingToUndo", err)
	}
	want := session.Undone{Batch: 2, Refs: []string{"step_004"}}
	for range 3 {
		got, err := f.Undo(t.Context(), alice, "s", 2, "r")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if got := f.mustFolds(t, alice, "s"); got.Batch != 2 || len(got.Live) != 1 || got.Version != 3 {
		t.Errorf("got %+v", got)
	}
	for name, undo := range map[string]func() error{
		"another batch":   func() error { _, err := f.Undo(t.Context(), alice, "s", 0, "r"); return err },
		"another session": func() error { _, err := f.Undo(t.Context(), alice, "s2", 2, "r"); return err },
		"another method": func() error {
			_, err := f.AppendMessages(t.Context(), alice, "s", []session.Message{said("m")}, "r")
			return err
		},
	} {
		if err := undo(); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("%s: %v, want ErrRequestReused", name, err)
		}
	}
}

func TestFoldsThatAreRefused(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 9)
	f.mustFold(t, alice, "s", fold(1, span(1, 2)))
	before := f.mustFolds(t, alice, "s")
	good := fold(2, span(4, 5))
	change := func(edit func(*history.Fold)) []history.Fold {
		bad := good
		edit(&bad)
		return []history.Fold{good, bad}
	}
	large := strings.Repeat("x", session.MaxFoldBytes)
	for name, tt := range map[string]struct {
		version uint64
		made    []history.Fold
		want    error
	}{
		"older version": {0, []history.Fold{good}, session.ErrFoldsChanged},
		"newer version": {2, []history.Fold{good}, session.ErrFoldsChanged},
		"none":          {1, nil, session.ErrInvalid},
		"number":        {1, change(func(f *history.Fold) { f.Batch = 3 }), session.ErrInvalid},
		"no text":       {1, change(func(f *history.Fold) { f.Text = "" }), session.ErrInvalid},
		"not UTF-8":     {1, change(func(f *history.Fold) { f.Text = "\xff" }), session.ErrInvalid},
		"no level":      {1, change(func(f *history.Fold) { f.Level = 0 }), session.ErrInvalid},
		"no spans":      {1, change(func(f *history.Fold) { f.Spans = nil }), session.ErrInvalid},
		"position 0":    {1, change(func(f *history.Fold) { f.Spans = []history.Span{{}} }), session.ErrInvalid},
		"order":         {1, change(func(f *history.Fold) { f.Spans = []history.Span{span(5, 6), span(4, 4)} }), session.ErrInvalid},
		"behind end":    {1, change(func(f *history.Fold) { f.Spans = []history.Span{span(5, 10)} }), session.ErrInvalid},
		"through":       {1, change(func(f *history.Fold) { f.Through = 10 }), session.ErrInvalid},
		"large":         {1, change(func(f *history.Fold) { f.Text = large }), kv.ErrLimit},
		"many":          {1, slices.Repeat(change(func(f *history.Fold) { f.Text = large[1000:] }), 9), kv.ErrLimit},
	} {
		err := f.AppendFolds(t.Context(), alice, "s", tt.version, tt.made)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	for name, err := range map[string]error{
		"stale mark":   f.MoveMark(t.Context(), alice, "s", 0, "design", history.Mark{Older: 1}),
		"no preset":    f.MoveMark(t.Context(), alice, "s", 1, "", history.Mark{}),
		"long preset":  f.MoveMark(t.Context(), alice, "s", 1, strings.Repeat("x", session.MaxPresetBytes+1), history.Mark{}),
		"less than 0":  f.MoveMark(t.Context(), alice, "s", 1, "design", history.Mark{Older: -1}),
		"bad session":  f.AppendFolds(t.Context(), alice, "\x00", 1, []history.Fold{good}),
		"bad scope":    f.AppendFolds(t.Context(), kv.Scope{}, "s", 1, []history.Fold{good}),
		"bad scope, m": f.MoveMark(t.Context(), kv.Scope{}, "s", 1, "design", history.Mark{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if diff := cmp.Diff(before, f.mustFolds(t, alice, "s")); diff != "" {
		t.Error(diff)
	}
}

func TestMarksHaveALimit(t *testing.T) {
	f := newMemory(t)
	for i := range session.MaxMarks {
		if err := f.MoveMark(t.Context(), alice, "s", uint64(i), fmt.Sprint("p", i), history.Mark{Older: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.MoveMark(t.Context(), alice, "s", session.MaxMarks, "one more", history.Mark{Older: 1}); !errors.Is(err, kv.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if err := f.MoveMark(t.Context(), alice, "s", session.MaxMarks, "p0", history.Mark{Older: 9}); err != nil {
		t.Errorf("a mark that is there: %v", err)
	}
}

// The folds of a prompt may be as large as a prompt ever holds.
func TestLargeFolds(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 9)
	large := fold(1, span(1, 2))
	large.Text = strings.Repeat("a name, ", 24_000) + "…"
	f.mustFold(t, alice, "s", large)
	if diff := cmp.Diff([]history.Fold{large}, f.mustFolds(t, alice, "s").Live); diff != "" {
		t.Error(diff)
	}
}

// Of many that fold the same version one does.
func TestOneBatchWinsARace(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 9)
	errs := make(chan error)
	for i := range uint64(8) {
		go func() {
			errs <- f.AppendFolds(t.Context(), alice, "s", 0, []history.Fold{fold(1, span(1, i+1)), fold(1, span(9, 9))})
		}()
	}
	won := 0
	for range 8 {
		switch err := <-errs; {
		case err == nil:
			won++
		case !errors.Is(err, session.ErrFoldsChanged):
			t.Error(err)
		}
	}
	if got := f.mustFolds(t, alice, "s"); won != 1 || len(got.Live) != 2 || got.Version != 2 {
		t.Errorf("%d batches won: %+v", won, got)
	}
}

// What a later version wrote is refused, never passed over.
func TestFoldsOfALaterVersion(t *testing.T) {
	key := kv.AppendEscaped(alice.Key('h'), "s")
	second := append(kv.AppendEscaped(alice.Key('f'), "s"), 0, 0, 0, 0, 0, 0, 0, 2)
	for name, put := range map[string]struct{ key, value []byte }{
		"state":      {key, wire.AppendUint(nil, 1, 4)},
		"entry":      {second, wire.AppendUint(nil, 1, 4)},
		"last entry": {second, wire.AppendItem(wire.AppendUint(nil, 1, 99), 3, "new")},
	} {
		f := newMemory(t)
		f.fill(t, alice, "s", 9)
		f.mustFold(t, alice, "s", fold(1, span(1, 2)))
		f.mustFold(t, alice, "s", fold(2, span(4, 5)))
		f.mustPut(t, put.key, put.value)
		_, readErr := f.Folds(t.Context(), alice, "s")
		_, undoErr := f.Undo(t.Context(), alice, "s", 0, "")
		for what, err := range map[string]error{"Folds": readErr, "Undo": undoErr} {
			if !errors.Is(err, session.ErrNewer) {
				t.Errorf("%s: %s: %v, want ErrNewer", name, what, err)
			}
		}
	}
}

func TestDamagedFolds(t *testing.T) {
	state := kv.AppendEscaped(alice.Key('h'), "s")
	first := append(kv.AppendEscaped(alice.Key('f'), "s"), 0, 0, 0, 0, 0, 0, 0, 1)
	for name, put := range map[string]struct{ key, value []byte }{
		"state":      {state, []byte{0xff}},
		"numbers":    {state, wire.AppendItem(nil, 3, []byte{1, 0})},
		"no entry":   {first, nil},
		"entry":      {first, []byte{0xff}},
		"empty":      {first, []byte{}},
		"no fold":    {first, wire.AppendItem(wire.AppendUint(nil, 1, 1), 3, "\xff")},
		"other kind": {first, wire.AppendUint(nil, 1, 3)},
	} {
		f := newMemory(t)
		f.fill(t, alice, "s", 9)
		f.mustFold(t, alice, "s", fold(1, span(1, 2)))
		f.mustPut(t, put.key, put.value)
		if _, err := f.Folds(t.Context(), alice, "s"); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%s: Folds: %v, want ErrDamaged", name, err)
		}
		if _, err := f.Undo(t.Context(), alice, "s", 0, ""); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%s: Undo: %v, want ErrDamaged", name, err)
		}
	}
}

// mustPut writes a key of alice's log past the package; nil deletes it.
func (f *fixture) mustPut(tb testing.TB, key, value []byte) {
	tb.Helper()
	f.harmed = true
	batch := &kv.Batch{}
	if value == nil {
		batch.Delete(kv.Log, key)
	} else {
		batch.Put(kv.Log, key, value)
	}
	guard := kv.Guard{Ref: f.Ref(alice), Any: true}
	if err := f.engine.Commit(tb.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}); err != nil {
		tb.Fatal(err)
	}
}

// An undo that is sent again without a request id can't take back a newer batch.
func TestNumbersOfBatchesAreNotGivenTwice(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 12)
	f.mustFold(t, alice, "s", fold(1, span(1, 4)))
	if _, err := f.Undo(t.Context(), alice, "s", 1, ""); err != nil {
		t.Fatal(err)
	}
	err := f.AppendFolds(t.Context(), alice, "s", f.mustFolds(t, alice, "s").Version, []history.Fold{fold(1, span(1, 5))})
	if !errors.Is(err, session.ErrInvalid) {
		t.Errorf("number 1 again: %v, want ErrInvalid", err)
	}
	f.mustFold(t, alice, "s", fold(f.mustFolds(t, alice, "s").Batch+1, span(1, 5)))
	if u, err := f.Undo(t.Context(), alice, "s", 1, ""); !errors.Is(err, session.ErrNothingToUndo) {
		t.Errorf("undid %+v: %v, want ErrNothingToUndo", u, err)
	}
	if u := f.mustUndo(t, alice, "s"); u.Batch != 2 {
		t.Errorf("undid batch %d, want 2", u.Batch)
	}
}

// What a caller does with the folds it got changes nothing that others get.
func TestFoldsBelongToTheReceiver(t *testing.T) {
	f := newMemory(t)
	f.fill(t, alice, "s", 12)
	f.mustFold(t, alice, "s", fold(1, span(1, 4)))
	f.mustFold(t, alice, "s", fold(2, span(5, 8)))
	want := f.mustFolds(t, alice, "s")
	for range 3 {
		got := f.mustFolds(t, alice, "s")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the folds have changed (-want +got):\n%s", diff)
		}
		for i := range got.Live {
			got.Live[i].Tokens = 1
			_ = append(got.Live[i].Spans, span(99, 99))
		}
		got.Live = append(got.Live[:1], fold(9, span(9, 9)))
		_ = got
	}
}
