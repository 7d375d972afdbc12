package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

var (
	alice = kv.AgentScope("t", "alice")
	bob   = kv.AgentScope("t", "bob")
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 123000, time.UTC)
)

type fixture struct {
	*session.Log
	engine kv.Engine
	writer *kv.Writer
	// harmed says that the test has written what the log would not.
	harmed bool
}

func newFixture(tb testing.TB, engine kv.Engine) *fixture {
	tb.Helper()
	writer := kv.NewWriter(engine, nil)
	log := session.New(engine, writer, &session.Options{Now: func() time.Time { return noon }})
	f := &fixture{Log: log, engine: engine, writer: writer}
	tb.Cleanup(func() {
		writer.Close()
		if !f.harmed {
			mustBeWhole(tb, engine)
		}
	})
	return f
}

// mustBeWhole reads back all that a test has stored.
func mustBeWhole(tb testing.TB, engine kv.Engine) {
	tb.Helper()
	for _, part := range []struct {
		ks    kv.Keyspace
		check func(context.Context, kv.Reader, kv.Scope, func(error)) error
	}{{kv.Log, session.Check}, {kv.System, session.CheckIntents}} {
		for scope, err := range kv.Scopes(context.Background(), engine, part.ks) {
			if errors.Is(err, kv.ErrClosed) {
				return
			}
			if err == nil {
				err = part.check(context.Background(), engine, scope, func(err error) { tb.Errorf("%s: %v", scope, err) })
			}
			if err != nil {
				tb.Errorf("read %s back: %v", scope, err)
			}
		}
	}
}

func newMemory(tb testing.TB) *fixture {
	tb.Helper()
	engine := memkv.New(nil)
	tb.Cleanup(func() { engine.Close() })
	return newFixture(tb, engine)
}

// open runs use on the RocksDB store in dir.
func open(t testing.TB, dir string, use func(*fixture)) {
	t.Helper()
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, db)
	use(f)
	f.writer.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// record appends a step as the hand does, and returns it with its position.
func (f *fixture) record(ctx context.Context, scope kv.Scope, s step.Step) (recorded step.Step, position uint64, err error) {
	err = f.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{f.Ref(scope)},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			recorded, position, err = f.StageStep(ctx, tx, scope, func(number uint64) (step.Step, error) {
				s.Observation = step.ID(number)
				return s, nil
			})
			return err
		},
	})
	return recorded, position, err
}

func (f *fixture) mustRecord(tb testing.TB, scope kv.Scope, s step.Step) session.Entry {
	tb.Helper()
	recorded, position, err := f.record(tb.Context(), scope, s)
	if err != nil {
		tb.Fatal(err)
	}
	return session.Entry{Position: position, Time: recorded.Time, Step: &recorded}
}

func (f *fixture) mustAppend(tb testing.TB, scope kv.Scope, id string, msgs ...session.Message) []uint64 {
	tb.Helper()
	positions, err := f.AppendMessages(tb.Context(), scope, id, msgs, "")
	if err != nil {
		tb.Fatal(err)
	}
	return positions
}

func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

func mustCollect[T any](tb testing.TB, seq iter.Seq2[T, error]) []T {
	tb.Helper()
	all, err := collect(seq)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func said(text string) session.Message { return session.Message{Role: session.User, Content: text} }

// A05: one counter for each agent, without gap or duplicate under concurrency.
func TestStepNumbersHaveNoGapAndNoDuplicate(t *testing.T) {
	f := newMemory(t)
	const goroutines, each = 16, 40
	var wg sync.WaitGroup
	numbers := make([][]uint64, goroutines)
	for i := range goroutines {
		wg.Go(func() {
			for j := range each {
				ctx, id := t.Context(), fmt.Sprint("session", j%3)
				if j%10 == 9 {
					// A call that gives up takes no number.
					f.giveUp(ctx, alice)
				}
				s, _, err := f.record(ctx, alice, step.Step{SessionID: id, ToolName: "x"})
				if err != nil {
					t.Error(err)
					return
				}
				numbers[i] = append(numbers[i], s.Number)
				if s.Observation != s.ID() {
					t.Errorf("fill was told %s, the step is %s", s.Observation, s.ID())
				}
			}
		})
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(numbers...)))
	for i, n := range all {
		if n != uint64(i+1) {
			t.Fatalf("step %d of %d has number %d", i+1, len(all), n)
		}
	}
	checkPositions(t, f, alice, 3, goroutines*each)
}

func (f *fixture) giveUp(ctx context.Context, scope kv.Scope) {
	_ = f.writer.Do(ctx, kv.Request{Refs: []kv.Ref{f.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := f.StageStep(ctx, tx, scope, func(uint64) (step.Step, error) {
			return step.Step{ToolName: "never"}, nil
		})
		return errors.Join(err, errors.New("gave up"))
	}})
}

// checkPositions: each session's positions are 1, 2, 3 …, and every step is
// where its number says.
func checkPositions(t *testing.T, f *fixture, scope kv.Scope, sessions, steps int) {
	t.Helper()
	for i := range sessions {
		entries := mustCollect(t, f.Entries(t.Context(), scope, fmt.Sprint("session", i)))
		steps -= len(entries)
		for j, e := range entries {
			if e.Position != uint64(j+1) {
				t.Fatalf("entry %d of session %d has position %d", j+1, i, e.Position)
			}
			byNumber, err := f.Step(t.Context(), scope, e.Step.Number)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, byNumber); diff != "" {
				t.Fatal(diff)
			}
		}
	}
	if steps != 0 {
		t.Errorf("%d steps are in no session", steps)
	}
}

// A05, A03: the counter and the steps are there after a restart.
func TestTheLogSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var want []session.Entry
	open(t, dir, func(f *fixture) {
		want = append(want, f.mustRecord(t, alice, step.Step{
			SessionID: "s", ToolName: "fs:read_file", CalledAs: "read_file", MinimalArgs: []byte(`{"path":"a"}`),
			Args: []byte(`{"path":"a"}`), OutcomeRef: "r", OutcomePath: "p", Thought: "t", Inline: "i",
			Metadata: []byte(`{"size":1}`), TurnID: "turn", CallID: "call", Outcome: step.Failed, Error: "e", ErrorCode: "c",
		}))
		f.mustAppend(t, alice, "s", said("hello"))
	})
	open(t, dir, func(f *fixture) {
		want = append(want, f.mustRecord(t, alice, step.Step{SessionID: "s", ToolName: "x"}))
		got, err := f.Steps(t.Context(), alice, "s", 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if want[1].Step.Number != 2 || want[1].Position != 3 {
			t.Errorf("the step after the restart is %d at %d", want[1].Step.Number, want[1].Position)
		}
	})
}

func TestStepsOfAnAgentAreFoundInOneSessionOnly(t *testing.T) {
	f := newMemory(t)
	for i := range 10 {
		f.mustAppend(t, alice, "s", said("m"))
		f.mustRecord(t, alice, step.Step{SessionID: "s", ToolName: fmt.Sprint("t", i)})
		f.mustRecord(t, alice, step.Step{SessionID: "s2", ToolName: "other"})
		f.mustRecord(t, bob, step.Step{SessionID: "s", ToolName: "bob"})
	}
	tools := func(entries []session.Entry, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Step.ToolName)
		}
		return strings.Join(names, " ")
	}
	ctx := t.Context()
	tests := []struct{ name, got, want string }{
		{"all", tools(f.Steps(ctx, alice, "s", 0, 0)), "t0 t1 t2 t3 t4 t5 t6 t7 t8 t9"},
		{"first two", tools(f.Steps(ctx, alice, "s", 0, 2)), "t0 t1"},
		{"behind a step", tools(f.Steps(ctx, alice, "s", 4, 2)), "t2 t3"},
		{"behind a message", tools(f.Steps(ctx, alice, "s", 3, 1)), "t1"},
		{"behind the end", tools(f.Steps(ctx, alice, "s", 20, 2)), ""},
		{"last five", tools(f.LastSteps(ctx, alice, "s", 5)), "t5 t6 t7 t8 t9"},
		{"last of few", tools(f.LastSteps(ctx, alice, "s", 50)), "t0 t1 t2 t3 t4 t5 t6 t7 t8 t9"},
		{"no session", tools(f.LastSteps(ctx, alice, "nobody", 5)), ""},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestStepNotFound(t *testing.T) {
	f := newMemory(t)
	f.mustRecord(t, alice, step.Step{ToolName: "x"})
	for _, n := range []uint64{0, 2, 1 << 63} {
		if _, err := f.Step(t.Context(), alice, n); !errors.Is(err, session.ErrStepNotFound) {
			t.Errorf("step %d: %v", n, err)
		}
	}
	if _, err := f.Step(t.Context(), bob, 1); !errors.Is(err, session.ErrStepNotFound) {
		t.Errorf("bob sees alice's step: %v", err)
	}
	if _, err := f.Step(t.Context(), kv.Scope{}, 1); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("bad scope: %v", err)
	}
}

func TestSessionIDs(t *testing.T) {
	f := newMemory(t)
	e := f.mustRecord(t, alice, step.Step{ToolName: "x"})
	if e.Step.SessionID != session.DefaultSession {
		t.Errorf("a step without a session is in %q", e.Step.SessionID)
	}
	if got := mustCollect(t, f.Entries(t.Context(), alice, "")); len(got) != 1 {
		t.Errorf("%d entries in the default session", len(got))
	}
	// One session's id may begin with another's, and hold any character.
	for _, id := range []string{"s", "s\x01", "s\xc3\xbf", "s ", strings.Repeat("x", session.MaxSessionIDBytes)} {
		f.mustAppend(t, alice, id, said(id))
		got := mustCollect(t, f.Entries(t.Context(), alice, id))
		if len(got) != 1 || got[0].Message.Content != id || got[0].Position != 1 {
			t.Errorf("session %q holds %d entries", id, len(got))
		}
	}
	for _, id := range []string{"a\x00b", "\xff", strings.Repeat("x", session.MaxSessionIDBytes+1)} {
		_, err := f.AppendMessages(t.Context(), alice, id, []session.Message{said("m")}, "")
		_, _, recordErr := f.record(t.Context(), alice, step.Step{SessionID: id, ToolName: "x"})
		_, readErr := collect(f.Entries(t.Context(), alice, id))
		for what, err := range map[string]error{"append": err, "record": recordErr, "read": readErr} {
			if !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s in session %.10q: %v, want ErrInvalid", what, id, err)
			}
		}
	}
}

func TestAnErrorOfFillLeavesNothing(t *testing.T) {
	f := newMemory(t)
	wrong := errors.New("wrong")
	err := f.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{f.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := f.StageStep(ctx, tx, alice, func(uint64) (step.Step, error) { return step.Step{}, wrong })
		return err
	}})
	if !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	large := step.Step{ToolName: "x", Inline: strings.Repeat("x", kv.MaxValueBytes)}
	if _, _, err := f.record(t.Context(), alice, large); !errors.Is(err, kv.ErrLimit) {
		t.Errorf("a step larger than a value: %v, want ErrLimit", err)
	}
	if got := mustCollect(t, f.Entries(t.Context(), alice, "")); len(got) != 0 {
		t.Errorf("entries are left: %v", got)
	}
	if e := f.mustRecord(t, alice, step.Step{ToolName: "x"}); e.Step.Number != 1 || e.Position != 1 {
		t.Errorf("the first step is %d at %d", e.Step.Number, e.Position)
	}
}

func BenchmarkRecord(b *testing.B) {
	f := newMemory(b)
	s := step.Step{SessionID: "s", ToolName: "fs:read_file", MinimalArgs: []byte(`{"path":"a"}`), Inline: strings.Repeat("x", 4096)}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := f.record(b.Context(), alice, s); err != nil {
			b.Fatal(err)
		}
	}
}
