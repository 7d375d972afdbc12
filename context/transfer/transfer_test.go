package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// Whatever sessions there are, the import of their export is the same export, at once or
// one session after another, and made again it changes nothing.
func TestImportIsTheSameExport(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newMaker(t, seed)
			for range 1 + m.IntN(40) {
				m.do(t)
			}
			all := m.mustExport(t, "")
			var each [][]byte
			others := newStore(t)
			for _, id := range slices.Sorted(slices.Values(m.names)) {
				own := m.mustExport(t, id)
				each = append(each, own...)
				others.mustImport(t, own)
			}
			mustBeSame(t, "the export of all, of those of each", each, all)
			mustBeSame(t, "the export after imports of each", all, others.mustExport(t, ""))
			whole := newStore(t)
			first := whole.mustImport(t, all)
			mustBeSame(t, "the export after the import", all, whole.mustExport(t, ""))
			before := whole.content(t)
			again := whole.mustImport(t, all)
			if first.Unchanged != 0 || again.Saved != 0 || again.Unchanged != first.Saved || again.Bytes != first.Bytes {
				t.Errorf("%+v, and again %+v", first, again)
			}
			if !bytes.Equal(before, whole.content(t)) {
				t.Error("the import made again changed what is stored")
			}
		})
	}
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

// A session that comes with more messages than are there goes on; one that comes as something
// else is an error, or stays as it is.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	lines := func(texts ...string) [][]byte {
		var msgs []session.Message
		for _, text := range texts {
			msgs = append(msgs, session.Message{Role: session.User, Content: text})
		}
		lines, err := Lines("s", msgs, slices.Repeat([]time.Time{noon}, len(msgs)))
		must(t, err)
		return lines
	}
	s := newStore(t)
	for _, one := range []struct {
		lines [][]byte
		want  Imported
	}{
		{lines("a", "b"), Imported{Saved: 1}}, {lines("a", "b"), Imported{Unchanged: 1}}, {lines("a", "b", "c"), Imported{Saved: 1}},
	} {
		if got := s.mustImport(t, one.lines); got != one.want {
			t.Errorf("%+v, want %+v", got, one.want)
		}
		mustBeSame(t, "the export", one.lines, s.mustExport(t, "s"))
	}
	for _, other := range [][][]byte{lines("a", "b"), lines("a", "x", "c"), lines("x")} {
		if err := s.tryImport(t, other); !errors.Is(err, session.ErrExists) {
			t.Error(err)
		}
		for _, dry := range []bool{true, false} {
			if got := s.mustImportAs(t, other, ImportOptions{Skip: true, DryRun: dry}); got != (Imported{Skipped: 1}) {
				t.Errorf("%+v", got)
			}
		}
	}
	mustBeSame(t, "what is there", lines("a", "b", "c"), s.mustExport(t, "s"))
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

// A session of 20 MiB is the same export after its import.
// One that is longer than all may be is neither exported nor imported.
func TestImportOfALongSession(t *testing.T) {
	m := plantLong(t, 36, 600_000)
	all := m.mustExport(t, "")
	to := newStore(t)
	if first, again := to.mustImport(t, all), to.mustImport(t, all); first.Saved != 1 || again.Unchanged != 1 {
		t.Errorf("%+v, and again %+v", first, again)
	}
	sum := func(lines [][]byte) [32]byte { return sha256.Sum256(bytes.Join(lines, []byte("\n"))) }
	t.Logf("%d lines, sha256 %x", len(all), sum(all))
	if sum(to.mustExport(t, "")) != sum(all) {
		t.Error("the export after the import differs")
	}
	to.held.Store(maxHeldParts)
	if err := to.Export(t.Context(), alice, "", func([]byte) error { return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("an export beside as much as there may be: %v", err)
	}
	if err := to.tryImport(t, all); !errors.Is(err, ErrBusy) {
		t.Errorf("an import beside as much as there may be: %v", err)
	}
	if to.held.Load() != maxHeldParts {
		t.Errorf("%d bytes are held", to.held.Load()-maxHeldParts)
	}
	to.held.Store(0)
	big := all[0:1:1]
	line := jsonLine{Kind: kindPart, Part: "entry", Stored: make([]byte, kv.MaxValueBytes)}
	for line.Number = 1; line.Number <= session.MaxPartsBytes/kv.MaxValueBytes+1; line.Number++ {
		text, err := line.encode()
		must(t, err)
		big = append(big, text)
	}
	if err := to.tryImport(t, big); !errors.Is(err, session.ErrTooLong) || to.held.Load() != 0 {
		t.Errorf("an import that is too long: %v", err)
	}
}

// Where a commit of a long session fails nothing is shown of it, nobody writes to a part of it,
// and the import made again ends. A line that is missing, doubled or elsewhere changes nothing,
// and neither does an import over what somebody has added meanwhile.
func TestImportOfALongSessionThatFails(t *testing.T) {
	m := plantLong(t, 36, 1000)
	all := m.mustExport(t, "")
	for fails := 1; ; fails++ {
		to := newStore(t)
		to.engine.left = fails
		err := to.tryImport(t, all)
		if to.engine.left = 0; err == nil {
			break
		}
		if !errors.Is(err, errFails) {
			t.Fatalf("commit %d: %v", fails, err)
		}
		to.mustBeWhole(t)
		if shown := to.mustExport(t, ""); len(shown) > 0 {
			t.Errorf("after commit %d had failed %d lines are shown", fails, len(shown))
		}
		if counts := to.mustImport(t, all); counts.Saved != 1 || counts.Unchanged != 0 {
			t.Errorf("after commit %d had failed: %+v", fails, counts)
		}
		mustBeSame(t, fmt.Sprintf("after commit %d had failed", fails), all, to.mustExport(t, ""))
	}
	at := 50 + slices.IndexFunc(all, func(l []byte) bool { return bytes.Contains(l, []byte(`"part":"entry"`)) })
	for name, lines := range map[string][][]byte{
		"missing":  slices.Delete(slices.Clone(all), at, at+1),
		"doubled":  slices.Insert(slices.Clone(all), at, all[at]),
		"swapped":  slices.Concat(all[:at], [][]byte{all[at+1], all[at]}, all[at+2:]),
		"cut off":  all[:len(all)-1],
		"no folds": slices.DeleteFunc(slices.Clone(all), func(l []byte) bool { return bytes.Contains(l, []byte(`"part":"folds"`)) }),
	} {
		to := newStore(t)
		if err := to.tryImport(t, lines); !errors.Is(err, ErrLine) && !errors.Is(err, session.ErrPart) || len(to.content(t)) > 0 || to.held.Load() != 0 {
			t.Errorf("%s: %v; %d bytes are stored, %d held", name, err, len(to.content(t)), to.held.Load())
		}
	}
	begun := newStore(t)
	_, err := begun.log.AppendMessages(t.Context(), alice, m.names[0], []session.Message{{Role: session.User, Content: "more"}}, "")
	must(t, err)
	before := begun.content(t)
	if err := begun.tryImport(t, all); !errors.Is(err, session.ErrExists) || !bytes.Equal(before, begun.content(t)) {
		t.Errorf("over what was added: %v", err)
	}
}

// refusals are the errors of lines that can't be taken.
var refusals = []error{ErrLine, session.ErrPart, session.ErrTooLong, session.ErrExists, session.ErrInvalid, blob.ErrExists, blob.ErrInvalid, blob.ErrQuota}

// FuzzImport: whatever comes, it is refused with a typed error and nothing of the session
// at fault is stored, or what was imported is exported again, which can be imported.
func FuzzImport(f *testing.F) {
	for seed := range uint64(8) {
		m := newMaker(f, seed)
		for range 12 {
			m.do(f)
		}
		m.record(f, m.names[0])
		all := m.mustExport(f, "")
		f.Add(bytes.Join(all, []byte("\n")))
		for range 25 {
			f.Add(bytes.Join(m.damaged(f, all), []byte("\n")))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		to := newStore(t)
		into, before := to.Import(alice, ImportOptions{}), to.content(t)
		var of [][2]string // session and line
		var err error
		id := ""
		for _, text := range bytes.Split(text, []byte("\n")) {
			if err = into.Take(t.Context(), text); err != nil {
				break
			}
			l, _ := parse(text)
			switch l.Kind {
			case kindSession:
				id = l.Session
			case kindEnd:
				before = to.content(t)
				continue
			case kindBytes:
				continue
			}
			of = append(of, [2]string{id, string(text)})
		}
		if err == nil {
			_, err = into.End()
		}
		if err != nil {
			if _, ok := errors.AsType[*LineError](err); !ok || !slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) }) {
				t.Fatalf("an error of another kind: %v", err)
			}
			if !bytes.Equal(before, to.content(t)) {
				t.Fatalf("%v, and something was stored", err)
			}
			return
		}
		all := to.mustExport(t, "")
		exported := make(map[string][][]byte)
		for _, line := range of {
			if _, ok := exported[line[0]]; !ok {
				exported[line[0]] = to.mustExport(t, line[0])
			}
			if !slices.ContainsFunc(exported[line[0]], func(l []byte) bool { return string(l) == line[1] }) {
				t.Fatalf("of session %q there came and is not exported %.500s", line[0], line[1])
			}
		}
		if again := to.mustImport(t, all); again.Saved != 0 || !bytes.Equal(before, to.content(t)) {
			t.Fatalf("the import made again: %+v", again)
		}
		other := newStore(t)
		other.mustImport(t, all)
		mustBeSame(t, "the export after the import", all, other.mustExport(t, ""))
	})
}

// damaged changes one line of an export, leaves it out, or takes it twice.
func (m *maker) damaged(tb testing.TB, all [][]byte) [][]byte {
	tb.Helper()
	all = slices.Clone(all)
	at := m.IntN(len(all))
	if results := slices.IndexFunc(all, func(l []byte) bool { return bytes.Contains(l, []byte(`"kind":"result"`)) }); results >= 0 && m.IntN(2) == 0 {
		at = results
	}
	l, err := parse(all[at])
	must(tb, err)
	switch {
	case m.IntN(8) == 0:
		return slices.Delete(all, at, at+1)
	case m.IntN(8) == 0:
		return slices.Insert(all, at, all[at])
	case m.IntN(8) == 0:
		other := m.IntN(len(all))
		all[at], all[other] = all[other], all[at]
		return all
	case l.Kind == kindPart && len(l.Stored) > 0:
		l.Stored[m.IntN(len(l.Stored))] ^= 1 << m.IntN(8)
	case l.Result != nil:
		m.change(l.Result)
	default:
		l.Session, l.Lines = m.text(), l.Lines+m.IntN(2)
	}
	all[at], err = l.encode()
	must(tb, err)
	return all
}

// change makes another result of one, mostly one that there can't be.
func (m *maker) change(r *result) {
	switch m.IntN(10) {
	case 0:
		r.Time = r.Time.In(time.FixedZone("", 3600))
	case 1:
		r.Time = r.Time.Add(time.Nanosecond)
	case 2:
		r.Time = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	case 3:
		r.TTL = []string{"0.001s", "1ms", "-1s", "2540400h10m10s"}[m.IntN(4)]
	case 4:
		r.Paths = append(r.Paths, r.Paths[0])
	case 5:
		r.Paths = append([]string{"workspace/outputs/aside.txt"}, r.Paths...)
	case 6:
		r.PromoteTime = &time.Time{}
	case 7:
		r.Session = m.text()
	case 8:
		r.Tags = append(r.Tags, "", m.text())
	default:
		r.Paths[0], r.Tier = m.text(), uint8(m.IntN(4))
	}
}
