package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var (
	alice = kv.AgentScope("t", "alice")
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 123000, time.UTC)
	// oddNames are those of sessions, as odd as they may be.
	oddNames = []string{
		"s", session.DefaultSession, " ", "a\nb\r", `"\`, "<&>", "ü/ö", "\u2028\ufffd\ufeff", "../s", "\x01\x7f", "s\U0010ffff",
		strings.Repeat("é", session.MaxSessionIDBytes/2),
	}
)

// store is one with sessions and a Mover.
type store struct {
	*Mover
	engine *failing
	writer *kv.Writer
}

func newStore(tb testing.TB) *store {
	tb.Helper()
	engine := &failing{Engine: memkv.New(nil)}
	writer := kv.NewWriter(engine, nil)
	now := func() time.Time { return noon }
	s := &store{engine: engine, writer: writer, Mover: New(Options{
		Log: session.New(engine, writer, &session.Options{Now: now}), Blobs: blob.New(engine, writer, &blob.Options{Now: now}),
		Engine: engine, Writer: writer,
	})}
	tb.Cleanup(func() {
		s.mustBeWhole(tb)
		must(tb, s.blobs.Close())
		writer.Close()
		must(tb, engine.Close())
	})
	return s
}

// failing is an engine that fails from some commit on.
type failing struct {
	kv.Engine
	left int // commits before that; zero: all
}

var errFails = errors.New("the engine fails")

// Commit is kv.Engine's.
func (f *failing) Commit(ctx context.Context, c kv.Commit) error {
	if f.left == 1 {
		return errFails
	}
	f.left = max(0, f.left-1)
	return f.Engine.Commit(ctx, c)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// mustBeWhole reads back all that is stored.
func (s *store) mustBeWhole(tb testing.TB) {
	tb.Helper()
	for _, check := range []func(context.Context, kv.Reader, kv.Scope, func(error)) error{session.Check, blob.Check} {
		err := check(context.Background(), s.engine, alice, func(err error) { tb.Errorf("the store is damaged: %v", err) })
		must(tb, err)
	}
}

// mustExport returns the lines of a session, of all without an id.
func (s *store) mustExport(tb testing.TB, id string) (lines [][]byte) {
	tb.Helper()
	must(tb, s.Export(tb.Context(), alice, id, func(line []byte) error {
		lines = append(lines, line)
		return nil
	}))
	return lines
}

// mustImport imports lines, and first in a dry run, which says the same and stores nothing.
func (s *store) mustImport(tb testing.TB, lines [][]byte) Imported {
	tb.Helper()
	before := s.content(tb)
	dry := s.mustImportAs(tb, lines, ImportOptions{DryRun: true})
	if !bytes.Equal(before, s.content(tb)) {
		tb.Error("a dry run changes what is stored")
	}
	got := s.mustImportAs(tb, lines, ImportOptions{})
	if dry != got {
		tb.Errorf("the dry run says %+v, the run %+v", dry, got)
	}
	return got
}

func (s *store) mustImportAs(tb testing.TB, lines [][]byte, o ImportOptions) Imported {
	tb.Helper()
	into := s.Import(alice, o)
	for _, line := range lines {
		must(tb, into.Take(tb.Context(), line))
	}
	counts, err := into.End()
	must(tb, err)
	return counts
}

// content is all that is stored.
func (s *store) content(tb testing.TB) []byte {
	tb.Helper()
	var all []byte
	for _, ks := range []kv.Keyspace{kv.Log, kv.Blobs} {
		for pair, err := range s.engine.Scan(tb.Context(), ks, kv.Range{}) {
			must(tb, err)
			all = fmt.Appendf(all, "%x %x\n", pair.Key, pair.Value)
		}
	}
	return all
}

// maker does to a store what its users do, at random.
type maker struct {
	*rand.Rand
	*store
	names []string
	tasks int
}

func newMaker(tb testing.TB, seed uint64) *maker {
	tb.Helper()
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 7)), store: newStore(tb)}
	for _, i := range m.Perm(len(oddNames))[:1+m.IntN(5)] {
		m.names = append(m.names, oddNames[i])
	}
	return m
}

// do does one thing in one of the sessions.
func (m *maker) do(tb testing.TB) {
	tb.Helper()
	id := m.names[m.IntN(len(m.names))]
	switch m.IntN(12) {
	case 0, 1:
		_, err := m.log.AppendMessages(tb.Context(), alice, id, []session.Message{{Role: session.User, Content: m.text(), Pinned: m.IntN(2) == 0}}, "")
		must(tb, err)
	case 2, 3, 4:
		m.record(tb, id)
	case 5:
		m.fold(tb, id)
	case 6:
		must(tb, m.log.MoveMark(tb.Context(), alice, id, m.folds(tb, id).Version, fmt.Sprint("p", m.IntN(2)), history.Mark{Older: m.IntN(3), Seen: m.IntN(3)}))
	case 7:
		if _, err := m.log.Undo(tb.Context(), alice, id, 0, ""); !errors.Is(err, session.ErrNothingToUndo) {
			must(tb, err)
		}
	case 8:
		goal := m.text()
		_, err := m.log.UpdateWorking(tb.Context(), alice, id, session.WorkingUpdate{Change: working.Change{Goal: &goal}})
		must(tb, err)
	case 9:
		m.renew(tb, id)
	case 10:
		m.tasks++
		_, err := m.log.AddTask(tb.Context(), alice, session.Task{ID: fmt.Sprintf("%.9s %d", m.text(), m.tasks), Action: "execute", SessionID: id, Result: m.text()})
		must(tb, err)
	case 11:
		m.end(tb, id)
	}
}

func (m *maker) text() string {
	return []string{"said", "two\nlines", "<b> & \u2028", `{"a":"\\"}`, strings.Repeat("long ", 300)}[m.IntN(5)]
}

// record records a step, mostly with a result that is offloaded, and at times keeps that.
func (m *maker) record(tb testing.TB, id string) {
	tb.Helper()
	size := m.IntN(3000)
	if m.IntN(40) == 0 {
		size = pieceBytes + m.IntN(2)
	}
	result := make([]byte, size*m.IntN(4))
	for i := range result {
		result[i] = byte(m.Uint32())
	}
	stored, err := m.blobs.Add(tb.Context(), alice, result)
	must(tb, err)
	offload, path := m.IntN(4) > 0, ""
	must(tb, m.writer.Do(tb.Context(), kv.Request{
		Refs: []kv.Ref{m.log.Ref(alice), m.blobs.Ref(alice)},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := m.log.StageStep(ctx, tx, alice, func(number uint64) (step.Step, error) {
				s := step.Step{SessionID: id, ToolName: "fs:read", Observation: m.text(), MinimalArgs: []byte("{}")}
				if !offload {
					return s, nil
				}
				e := blob.Entry{StepID: step.ID(number), SessionID: []string{id, ""}[m.IntN(2)], Category: blob.CategoryTool, TaskID: m.text()}
				e, err := m.blobs.StageNamed(ctx, tx, alice, stored, e, blob.Name{Kind: "read", Step: number, Ext: "txt"})
				s.OutcomeRef, s.OutcomePath, path = e.Ref, e.Path, e.Path
				return s, err
			})
			return err
		},
	}))
	if offload {
		m.keep(tb, path)
	}
}

func (m *maker) keep(tb testing.TB, path string) {
	tb.Helper()
	if m.IntN(3) == 0 {
		_, err := m.blobs.Promote(tb.Context(), alice, path, blob.Promotion{Tier: blob.ShortTerm, Name: "ö <&>.txt", Important: m.IntN(2) == 0})
		must(tb, err)
	}
	if m.IntN(3) == 0 {
		_, err := m.blobs.Archive(tb.Context(), alice, path, blob.Archiving{Tags: []string{"<&>", "\u2028 ü"}[m.IntN(2):]})
		must(tb, err)
	}
}

func (m *maker) folds(tb testing.TB, id string) session.Folds {
	tb.Helper()
	folds, err := m.log.Folds(tb.Context(), alice, id)
	must(tb, err)
	return folds
}

// made are folds of what is not folded yet.
func (m *maker) made(tb testing.TB, id string, folds session.Folds) []history.Fold {
	tb.Helper()
	last, err := m.log.Last(tb.Context(), alice, id)
	must(tb, err)
	if last <= folds.Through {
		return nil
	}
	spans := []history.Span{{First: folds.Through + 1, Last: last}}
	return []history.Fold{{
		Policy: history.PolicyLedger, Batch: folds.Batch + 1, Reason: history.ByPrice, Level: history.LevelLines, Spans: spans,
		Through: last, Seen: last, Text: m.text(), Digest: "\xff\x00hash", Refs: []string{step.ID(1)}, Tokens: 7, Before: 90, Turns: 1, Calls: 1,
	}}
}

func (m *maker) fold(tb testing.TB, id string) {
	tb.Helper()
	folds := m.folds(tb, id)
	if made := m.made(tb, id, folds); made != nil {
		must(tb, m.log.AppendFolds(tb.Context(), alice, id, folds.Version, made))
	}
}

func (m *maker) renew(tb testing.TB, id string) {
	tb.Helper()
	folds := m.folds(tb, id)
	before, err := m.log.Working(tb.Context(), alice, id)
	must(tb, err)
	sprint, err := m.log.Sprint(tb.Context(), alice, id)
	must(tb, err)
	_, err = m.log.Renew(tb.Context(), alice, id, folds.Version, &session.Renewal{
		Made: m.made(tb, id, folds), Snapshot: working.Snapshot{Sprint: sprint + 1, Time: noon}, Before: before, Preset: "p", Mark: history.Mark{Older: sprint + 1},
	}, "")
	must(tb, err)
}

// end ends a session, changes its settings, or deletes it.
func (m *maker) end(tb testing.TB, id string) {
	tb.Helper()
	var err error
	switch m.IntN(3) {
	case 0:
		_, err = m.log.End(tb.Context(), alice, id)
	case 1:
		_, err = m.log.Configure(tb.Context(), alice, id, func(c session.Config) (session.Config, error) {
			c.Model, c.MaxTokens = m.text()[:4], 1000+m.IntN(9)
			return c, nil
		}, "", nil)
	default:
		_, err = m.log.Delete(tb.Context(), alice, id, noon.Add(time.Hour))
	}
	must(tb, err)
}

func mustBeSame(tb testing.TB, what string, want, got [][]byte) {
	tb.Helper()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || !bytes.Equal(want[i], got[i]) {
			at := func(lines [][]byte) []byte { return slices.Concat(lines[min(i, len(lines)):min(i+1, len(lines))]...) }
			tb.Fatalf("%s: line %d of %d is\n%.500s\nof %d\n%.500s", what, i+1, len(got), at(got), len(want), at(want))
		}
	}
}

// plantLong gives a session so many messages of a size, and steps between.
func plantLong(tb testing.TB, messages, size int) *maker {
	tb.Helper()
	m := newMaker(tb, 1)
	m.names = m.names[:1]
	text := strings.Repeat("said <&> \u2028 ", size/13)
	for range messages {
		_, err := m.log.AppendMessages(tb.Context(), alice, m.names[0], []session.Message{{Role: session.User, Content: text}}, "")
		must(tb, err)
		m.record(tb, m.names[0])
	}
	m.fold(tb, m.names[0])
	return m
}

// tryImport imports lines, and gives up at the first error.
func (s *store) tryImport(tb testing.TB, lines [][]byte) error {
	tb.Helper()
	into := s.Import(alice, ImportOptions{})
	defer into.Abort()
	for _, line := range lines {
		if err := into.Take(tb.Context(), line); err != nil {
			return err
		}
	}
	_, err := into.End()
	return err
}
