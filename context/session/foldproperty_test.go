package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// model is what a session should hold.
type model struct {
	*rand.Rand
	f  *fixture
	id string

	last           uint64
	done           []done // changes that were not undone
	marks          map[string]history.Mark
	since, version uint64
	given          uint64 // highest number of a batch
}

// done is a change and the stored state before it.
type done struct {
	made  []history.Fold
	marks map[string]history.Mark // before the change
	raw   []byte
}

// folds are those that were not undone, in the order in which they were made.
func (m *model) folds() []history.Fold {
	var all []history.Fold
	for _, d := range m.done {
		all = append(all, d.made...)
	}
	return all
}

// want is what Folds should return.
func (m *model) want() session.Folds {
	all := m.folds()
	live := history.Live(all)
	w := session.Folds{Since: m.since, Version: m.version, Batch: m.given}
	for _, f := range all {
		w.Through = max(w.Through, f.Through)
		if slices.ContainsFunc(live, func(l history.Fold) bool { return l.Batch == f.Batch && l.Text == f.Text }) {
			w.Live = append(w.Live, f)
		}
	}
	if len(m.marks) > 0 {
		w.Marks = m.marks
	}
	return w
}

func (m *model) check(t *testing.T) {
	t.Helper()
	got, want := m.f.mustFolds(t, alice, m.id), m.want()
	if len(got.Live) == 0 {
		got.Live = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	var left []uint64
	for p := uint64(1); p <= m.last; p++ {
		if !held(got.Live, p) {
			left = append(left, p)
		}
	}
	var unfolded []uint64
	for _, e := range mustCollect(t, m.f.Unfolded(t.Context(), alice, m.id, got.Live)) {
		unfolded = append(unfolded, e.Position)
	}
	if diff := cmp.Diff(left, unfolded); diff != "" {
		t.Fatalf("%s: unfolded: %s", m.id, diff)
	}
}

func held(folds []history.Fold, position uint64) bool {
	return slices.ContainsFunc(folds, func(f history.Fold) bool {
		return slices.ContainsFunc(f.Spans, func(s history.Span) bool { return s.First <= position && position <= s.Last })
	})
}

// step does one thing at random.
func (m *model) step(t *testing.T) {
	switch m.IntN(10) {
	case 0, 1, 2:
		m.f.fill(t, alice, m.id, 1+m.IntN(12))
		m.last = m.mustLast(t)
	case 3, 4:
		m.f.mustRecord(t, alice, step.Step{SessionID: m.id, ToolName: "x"})
		m.last = m.mustLast(t)
	case 5, 6, 7:
		m.fold(t)
	case 8:
		m.move(t)
	case 9:
		m.undo(t)
	}
}

func (m *model) mustLast(t *testing.T) uint64 {
	t.Helper()
	last, err := m.f.Last(t.Context(), alice, m.id)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// fold folds some of what is unfolded, and at times older folds again.
func (m *model) fold(t *testing.T) {
	batch := m.want().Batch + 1
	live := history.Live(m.folds())
	var made []history.Fold
	var spans []history.Span
	end := func() {
		if len(spans) > 0 {
			made = append(made, fold(batch, spans...))
			spans = nil
		}
	}
	for p := m.want().Through + 1; p <= m.last; p++ {
		switch {
		case m.IntN(5) == 0:
			end()
		case m.IntN(4) > 0 && !held(live, p):
			if n := len(spans); n > 0 && spans[n-1].Last+1 == p {
				spans[n-1].Last = p
			} else {
				spans = append(spans, span(p, p))
			}
		}
	}
	end()
	if n := len(live); n > 1 && m.IntN(3) == 0 {
		made = append(made, m.dense(live[:1+m.IntN(n)], batch))
	}
	if len(made) > 0 {
		m.append(t, made)
	}
}

func (m *model) dense(group []history.Fold, batch uint64) history.Fold {
	var spans []history.Span
	for _, f := range group {
		spans = append(spans, f.Spans...)
	}
	slices.SortFunc(spans, func(a, b history.Span) int { return int(a.First) - int(b.First) })
	f := dense(fold(batch, spans...))
	for _, old := range group {
		f.Through = max(f.Through, old.Through)
	}
	return f
}

func (m *model) append(t *testing.T, made []history.Fold) {
	t.Helper()
	err := m.f.AppendFolds(t.Context(), alice, m.id, m.version+1, made)
	if !errors.Is(err, session.ErrFoldsChanged) {
		t.Fatalf("at a wrong version: %v", err)
	}
	d := done{made: made, marks: maps.Clone(m.marks), raw: m.f.rawState(t, alice, m.id)}
	if err := m.f.AppendFolds(t.Context(), alice, m.id, m.version, made); err != nil {
		t.Fatal(err)
	}
	m.version += uint64(len(made))
	m.given = made[0].Batch
	m.done = append(m.done, d)
}

func (m *model) move(t *testing.T) {
	preset, to := fmt.Sprint("p", m.IntN(3)), history.Mark{Older: m.IntN(3), Seen: m.IntN(2), Bare: m.IntN(2)}
	if m.IntN(2) == 0 {
		to.Left, to.Lost, to.Summary = m.IntN(3), m.IntN(3), history.Summary{First: 1, Last: 1 + m.Uint64N(3), Count: 1 + m.IntN(3), Text: "[Summary of 2 earlier messages] ü"}
	}
	before, marked := m.marks[preset]
	d := done{marks: maps.Clone(m.marks), raw: m.f.rawState(t, alice, m.id)}
	if err := m.f.MoveMark(t.Context(), alice, m.id, m.version, preset, to); err != nil {
		t.Fatal(err)
	}
	if marked && before == to {
		return
	}
	m.version++
	m.marks[preset] = to
	m.done = append(m.done, d)
}

// undo takes up to three changes back, each of which leaves the state that was
// stored before.
func (m *model) undo(t *testing.T) {
	for range 1 + m.IntN(3) {
		if len(m.done) == 0 {
			if _, err := m.f.Undo(t.Context(), alice, m.id, 0, ""); !errors.Is(err, session.ErrNothingToUndo) {
				t.Fatalf("got %v, want ErrNothingToUndo", err)
			}
			return
		}
		batch := uint64(0)
		last := m.done[len(m.done)-1]
		if len(last.made) > 0 && m.IntN(2) == 0 {
			batch = last.made[0].Batch
		}
		if _, err := m.f.Undo(t.Context(), alice, m.id, batch, ""); err != nil {
			t.Fatal(err)
		}
		m.done = m.done[:len(m.done)-1]
		m.marks = last.marks
		m.since = m.last
		m.version++
		if raw := m.f.rawState(t, alice, m.id); !bytes.Equal(raw, last.raw) {
			t.Fatalf("undo left %x, want %x", raw, last.raw)
		}
		m.check(t)
	}
}

// What is stored is what a model in memory says, whatever is done.
func TestFoldsAgainstAModel(t *testing.T) {
	run := func(f *fixture, seeds, steps int) {
		for seed := range seeds {
			m := &model{
				Rand: rand.New(rand.NewPCG(uint64(seed), 5)), f: f,
				id: fmt.Sprint("session", seed), marks: make(map[string]history.Mark),
			}
			for range steps {
				m.step(t)
				m.check(t)
			}
		}
	}
	t.Run("memkv", func(t *testing.T) { run(newMemory(t), 40, 60) })
	t.Run("rockskv", func(t *testing.T) {
		open(t, filepath.Join(t.TempDir(), "store"), func(f *fixture) { run(f, 3, 60) })
	})
}

// The journal, the settings and the end of a session are there after a restart.
func TestFoldsSurviveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var want session.Folds
	open(t, dir, func(f *fixture) {
		f.fill(t, alice, "s", 30)
		f.mustFold(t, alice, "s", fold(1, span(2, 9)))
		f.mustFold(t, alice, "s", dense(fold(2, span(2, 9))), fold(2, span(12, 14)))
		if err := f.MoveMark(t.Context(), alice, "s", 3, "design", history.Mark{Older: 2, Seen: 3}); err != nil {
			t.Fatal(err)
		}
		f.mustUndo(t, alice, "s")
		want = f.mustFolds(t, alice, "s")
	})
	open(t, dir, func(f *fixture) {
		if diff := cmp.Diff(want, f.mustFolds(t, alice, "s")); diff != "" {
			t.Error(diff)
		}
		f.mustUndo(t, alice, "s")
		if got := f.mustFolds(t, alice, "s"); len(got.Live) != 1 || got.Live[0].Level != history.LevelLines {
			t.Errorf("got %+v", got)
		}
	})
}
