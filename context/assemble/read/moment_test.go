package read_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var scope = kv.AgentScope("default", "agent-1")

// world is a session in a real log.
type world struct {
	*testing.T
	log    *session.Log
	writer *kv.Writer
	source *read.Sessions
}

func newWorld(t *testing.T, bytes int) *world {
	t.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	t.Cleanup(func() {
		if err := errors.Join(writer.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	w := &world{T: t, log: session.New(engine, writer, nil), writer: writer}
	w.source = read.New(w.log, engine, nil, bytes)
	return w
}

func (w *world) say(role session.Role, words string) {
	w.Helper()
	if _, err := w.log.AppendMessages(w.Context(), scope, "", []session.Message{{Role: role, Content: words}}, ""); err != nil {
		w.Fatal(err)
	}
}

func (w *world) do(s step.Step) {
	w.Helper()
	stage := func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := w.log.StageStep(ctx, tx, scope, func(uint64) (step.Step, error) { return s, nil })
		return err
	}
	if err := w.writer.Do(w.Context(), kv.Request{Refs: []kv.Ref{w.log.Ref(scope)}, Stage: stage}); err != nil {
		w.Fatal(err)
	}
}

// open is the session as it is now.
func (w *world) open() *read.Moment {
	w.Helper()
	m, err := w.source.Open(w.Context(), scope, "", false)
	if err == nil {
		err = m.Load(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(m.Close)
	return m
}

// What is said later is in no moment that was opened before.
func TestMomentIsOfOneMoment(t *testing.T) {
	w := newWorld(t, 0)
	w.say(session.User, "first wish")
	m := w.open()
	w.say(session.User, "second wish")
	groups, more, err := m.Groups(t.Context(), nil, 0, 0, "")
	if err != nil || more || len(groups) != 1 || m.End.Newest != "first wish" || m.End.Through != 1 || m.SessionID != session.DefaultSession {
		t.Fatalf("%d groups, more %v, end %+v, %v", len(groups), more, m.End, err)
	}
	if later := w.open(); later.End.Newest != "second wish" || later.End.Turn() != "2" {
		t.Errorf("end %+v", later.End)
	}
}

func TestEndKnowsFailures(t *testing.T) {
	w := newWorld(t, 0)
	w.do(step.Step{ToolName: "shell:exec", Outcome: step.Failed, Error: "no such file", MinimalArgs: []byte(`{"command":"ls /none"}`)})
	w.do(step.Step{ToolName: "fs:stat", Outcome: step.Succeeded})
	if m := w.open(); m.End.Errors() != 1 || len(m.End.Failures()) != 1 || m.End.Failures()[0].Recovery != "" {
		t.Errorf("end %+v", m.End)
	}
	w.do(step.Step{ToolName: "shell:exec", Outcome: step.Succeeded, MinimalArgs: []byte(`{"command":"cat notes"}`)})
	if got := w.open().End.Failures(); len(got) != 1 || got[0].Recovery != "" {
		t.Errorf("another command is no remedy: %+v", got)
	}
	w.do(step.Step{ToolName: "shell:exec", Outcome: step.Succeeded, MinimalArgs: []byte(`{"command":"ls"}`)})
	m := w.open()
	if got := m.End.Failures(); len(got) != 1 || got[0].Recovery != `worked with {"command":"ls"}` {
		t.Errorf("failures %+v", got)
	}
	w.source.Forget(func(kv.Scope) bool { return true })
	if again := w.open(); fmt.Sprint(again.End) != fmt.Sprint(m.End) {
		t.Errorf("read anew %+v, want %+v", again.End, m.End)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	w := newWorld(t, 1000)
	for range 4 {
		w.do(step.Step{ToolName: "fs:read_file", Outcome: step.Succeeded, Inline: strings.Repeat("x", 400)})
	}
	w.say(session.User, strings.Repeat("y", 400))
	m := w.open()
	if m.Room() != 1000 {
		t.Errorf("room %d", m.Room())
	}
	groups, more, err := m.Groups(t.Context(), nil, m.Room(), 0, "")
	if err != nil || !more || len(groups) != 3 {
		t.Errorf("%d groups, more %v, %v", len(groups), more, err)
	}
	if _, _, err := m.Groups(t.Context(), nil, 0, 399, ""); !errors.Is(err, render.ErrTooLarge) {
		t.Errorf("what is never folded is over its bound: %v", err)
	}
	entries, err := m.Originals(t.Context())(2, 3)
	if err != nil || len(entries) != 2 || entries[0].Kind != history.Step {
		t.Errorf("originals %+v, %v", entries, err)
	}
}

func TestSteps(t *testing.T) {
	w := newWorld(t, 0)
	for range 3 {
		w.do(step.Step{ToolName: "fs:stat"})
	}
	m := w.open()
	for _, tt := range []struct {
		asked []uint64
		want  int
		err   error
	}{{nil, 3, nil}, {[]uint64{3, 1}, 2, nil}, {[]uint64{3, 4}, 0, session.ErrStepNotFound}} {
		if steps, err := m.Steps(t.Context(), tt.asked); len(steps) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v: %d steps, %v", tt.asked, len(steps), err)
		}
	}
}

// A name that only a fold has is taken up once a new message says it.
func TestTakenUp(t *testing.T) {
	w := newWorld(t, 0)
	w.do(step.Step{ToolName: "fs:read_file", Outcome: step.Succeeded, Inline: "before\nfunc parseInvoiceTotals(rows []Row) error {\nafter"})
	w.say(session.User, "look at parseInvoiceTotals")
	m := w.open()
	finder := rehydrate.NewFinder()
	if lines, err := m.TakenUp(t.Context(), finder, "goal"); err != nil || len(lines) > 0 {
		t.Errorf("nothing is folded, and %v comes back: %v", lines, err)
	}
	fold := history.Fold{Level: history.LevelLines, Reason: history.ByCaller, Batch: 1, Spans: []history.Span{{First: 1, Last: 1}}, Through: 1, Refs: []string{"step_001"}, Text: "[Folded]\n1 fs:read_file → parseInvoiceTotals"}
	if err := w.log.AppendFolds(t.Context(), scope, "", m.Folds.Version, []history.Fold{fold}); err != nil {
		t.Fatal(err)
	}
	if err := m.Again(t.Context()); err != nil || len(m.Folds.Live) != 1 {
		t.Fatalf("%d folds, %v", len(m.Folds.Live), err)
	}
	lines, err := m.TakenUp(t.Context(), finder, "goal")
	if err != nil || len(lines) != 1 || lines[0].Ref != "step_001" || !strings.Contains(lines[0].Text, "parseInvoiceTotals(rows") {
		t.Errorf("lines %+v, %v", lines, err)
	}
}

// A log of the same name and length that is another has another time.
func TestEndDistinguishesLogs(t *testing.T) {
	w := newWorld(t, 0)
	if end := w.open().End; end.Through != 0 || !end.At.IsZero() {
		t.Errorf("an empty log: %+v", end)
	}
	w.say(session.User, "a")
	first := w.open().End
	again := w.open().End
	w.say(session.User, "b")
	if second := w.open().End; first.At.IsZero() || !again.At.Equal(first.At) || !second.At.After(first.At) {
		t.Errorf("%v, again %v, then %v", first.At, again.At, second.At)
	}
}
