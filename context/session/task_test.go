package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func (f *fixture) MustAddTask(tb testing.TB, task session.Task) session.Task {
	tb.Helper()
	added, err := f.AddTask(tb.Context(), alice, task)
	if err != nil {
		tb.Fatal(err)
	}
	return added
}

// G25, P23: all but the action has a default.
func TestTaskDefaults(t *testing.T) {
	f := newMemory(t)
	got := f.MustAddTask(t, session.Task{Action: "plan"})
	want := session.Task{ID: got.ID, Action: "plan", SourceAgent: "alice", SessionID: "default", CreateTime: noon, Number: 1}
	if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(got.ID, "task-") || len(got.ID) < 20 {
		t.Errorf("id %q (-want +got):\n%s", got.ID, diff)
	}
	if other := f.MustAddTask(t, session.Task{Action: "plan"}); other.ID == got.ID || other.Number != 2 {
		t.Errorf("the next one is %+v", other)
	}
	if status := got.Status(); status != session.TaskPending {
		t.Errorf("status %q", status)
	}
	for action, want := range map[string]float64{
		"node.error": .9, "node.planning": .8, "node.tool_result": .75, "node.tool_call": .7, "execute": .65,
		"node.complete": .6, "node.thinking": .55, "node.other": .5, "": .5,
	} {
		if got := session.ImportanceOf(action); got != want {
			t.Errorf("%s: importance %v, want %v", action, got, want)
		}
	}
}

func fullTask() session.Task {
	return session.Task{
		ID: "t-1", Action: "execute", Parameters: json.RawMessage(`{"n":9007199254740993,"a":[1]}`), SourceAgent: "boss", TargetAgent: "bob",
		SessionID: "s1", ParentTaskID: "t-0", Result: "done", Tags: []string{"b", "a"}, Importance: .25, CreateTime: noon.Add(-time.Hour),
	}
}

func TestTaskKeepsEveryField(t *testing.T) {
	f := newMemory(t)
	want := fullTask()
	want.Number = 1
	added := f.MustAddTask(t, fullTask())
	found, err := f.Task(t.Context(), alice, "t-1")
	if err != nil {
		t.Fatal(err)
	}
	last, err := f.LastTasks(t.Context(), alice, "s1", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []session.Task{added, found, last[0]} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if _, err := f.Task(t.Context(), bob, "t-1"); !errors.Is(err, session.ErrTaskNotFound) {
		t.Errorf("another agent's task: %v", err)
	}
}

// G25: the same id is the same task, or refused.
func TestTaskAgain(t *testing.T) {
	for name, test := range map[string]struct {
		again func(*session.Task)
		fails bool
	}{
		"same":               {func(*session.Task) {}, false},
		"spelled otherwise":  {func(t *session.Task) { t.Parameters = json.RawMessage(`{"a": [1], "n": 9007199254740993}`) }, false},
		"without a time":     {func(t *session.Task) { t.CreateTime = time.Time{} }, false},
		"without the result": {func(t *session.Task) { t.Result = "" }, false},
		"other result":       {func(t *session.Task) { t.Result = "failed" }, true},
		"other action":       {func(t *session.Task) { t.Action = "node.error" }, true},
		"other number":       {func(t *session.Task) { t.Parameters = json.RawMessage(`{"n":9007199254740992,"a":[1]}`) }, true},
		"other session":      {func(t *session.Task) { t.SessionID = "s2" }, true},
		"other source":       {func(t *session.Task) { t.SourceAgent = "" }, true},
		"other target":       {func(t *session.Task) { t.TargetAgent = "" }, true},
		"other parent":       {func(t *session.Task) { t.ParentTaskID = "x" }, true},
		"other tags":         {func(t *session.Task) { t.Tags = []string{"a"} }, true},
		"other importance":   {func(t *session.Task) { t.Importance = .3 }, true},
		"other time":         {func(t *session.Task) { t.CreateTime = noon }, true},
	} {
		f := newMemory(t)
		first := f.MustAddTask(t, fullTask())
		task := fullTask()
		test.again(&task)
		got, err := f.AddTask(t.Context(), alice, task)
		if exists := new(session.TaskExistsError); errors.As(err, &exists) != test.fails || test.fails && exists.ID != "t-1" {
			t.Errorf("%s: got %v", name, err)
		}
		if diff := cmp.Diff(first, got); !test.fails && diff != "" {
			t.Errorf("%s (-first +again):\n%s", name, diff)
		}
		if all, _ := f.LastTasks(t.Context(), alice, "s1", 0); len(all) != 1 || all[0].Result != "done" {
			t.Errorf("%s: then there are %+v", name, all)
		}
	}
}

// G25: a second add fills in an empty result, once.
func TestTaskResultIsFilledIn(t *testing.T) {
	f := newMemory(t)
	pending := fullTask()
	pending.Result = ""
	f.MustAddTask(t, pending)
	if got := f.MustAddTask(t, fullTask()); got.Result != "done" || got.Status() != session.TaskCompleted || got.Number != 1 {
		t.Errorf("filled in: %+v", got)
	}
	if got := f.MustAddTask(t, pending); got.Result != "done" {
		t.Errorf("the first one again: %+v", got)
	}
	other := fullTask()
	other.Result = "other"
	if _, err := f.AddTask(t.Context(), alice, other); !errors.Is(err, session.ErrTaskExists) {
		t.Errorf("another result: %v", err)
	}
}

func TestTaskChecks(t *testing.T) {
	f := newMemory(t)
	long := func(n int) string { return strings.Repeat("x", n) }
	for field, spoil := range map[string][]func(*session.Task){
		"task_id":        {func(t *session.Task) { t.ID = long(129) }, func(t *session.Task) { t.ID = "a\x00" }},
		"action":         {func(t *session.Task) { t.Action = "" }, func(t *session.Task) { t.Action = long(65) }, func(t *session.Task) { t.Action = "\xff" }},
		"source_agent":   {func(t *session.Task) { t.SourceAgent = long(257) }},
		"target_agent":   {func(t *session.Task) { t.TargetAgent = long(257) }},
		"parent_task_id": {func(t *session.Task) { t.ParentTaskID = long(129) }},
		"result":         {func(t *session.Task) { t.Result = long(64<<10 + 1) }, func(t *session.Task) { t.Result = "\xff" }},
		"importance":     {func(t *session.Task) { t.Importance = 1.1 }, func(t *session.Task) { t.Importance = math.NaN() }, func(t *session.Task) { t.Importance = -.1 }},
		"create_time":    {func(t *session.Task) { t.CreateTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"session_id":     {func(t *session.Task) { t.SessionID = long(257) }},
		"parameters": {
			func(t *session.Task) { t.Parameters = json.RawMessage(`[]`) }, func(t *session.Task) { t.Parameters = json.RawMessage(`{"a":`) },
			func(t *session.Task) { t.Parameters = json.RawMessage(`null`) },
			func(t *session.Task) { t.Parameters = json.RawMessage(`{"a":"` + long(64<<10) + `"}`) },
		},
		"tags": {
			func(t *session.Task) { t.Tags = []string{""} }, func(t *session.Task) { t.Tags = []string{long(129)} },
			func(t *session.Task) { t.Tags = slices.Repeat([]string{"a"}, 65) }, func(t *session.Task) { t.Tags = []string{"a\x00"} },
		},
	} {
		for i, s := range spoil {
			task := fullTask()
			s(&task)
			_, err := f.AddTask(t.Context(), alice, task)
			if bad := new(invalid.Error); !errors.As(err, &bad) || bad.Field != field {
				t.Errorf("%s %d: got %v", field, i, err)
			}
		}
	}
	if all, _ := f.LastTasks(t.Context(), alice, "s1", 0); len(all) != 0 {
		t.Errorf("bad input left %d tasks", len(all))
	}
}

// F13: tasks are a session's own, and readers of its conversation don't meet them.
func TestTasksOfSessions(t *testing.T) {
	f := newMemory(t)
	if _, err := f.AppendMessages(t.Context(), alice, "s1", []session.Message{{Role: session.User, Content: "hi"}}, ""); err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		f.MustAddTask(t, session.Task{ID: fmt.Sprint(n), Action: "x", SessionID: fmt.Sprintf("s%d", n%3)})
	}
	positions, err := f.AppendMessages(t.Context(), alice, "s1", []session.Message{{Role: session.User, Content: "ho"}}, "")
	if err != nil || positions[0] != 2 {
		t.Errorf("the next message is at %v: %v", positions, err)
	}
	got, err := f.LastTasks(t.Context(), alice, "s1", 4)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"19", "22", "25", "28"}, ids(got)); diff != "" {
		t.Errorf("last (-want +got):\n%s", diff)
	}
	after, err := f.TasksAfter(t.Context(), alice, "s2", 7, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"23", "26"}, ids(after)); diff != "" || after[0].Number != 8 {
		t.Errorf("after 7 (-want +got):\n%s", diff)
	}
	for e, err := range f.Entries(t.Context(), alice, "s1") {
		if err != nil || e.Message == nil {
			t.Errorf("entry %+v: %v", e, err)
		}
	}
}

func ids(tasks []session.Task) []string {
	all := make([]string, len(tasks))
	for i, task := range tasks {
		all[i] = task.ID
	}
	return all
}

// A task opens a session again that was ended, as every entry does.
func TestTaskOpensTheSession(t *testing.T) {
	f := newMemory(t)
	if _, err := f.End(t.Context(), alice, "s1"); err != nil {
		t.Fatal(err)
	}
	f.MustAddTask(t, fullTask())
	if ended, err := f.Ended(t.Context(), alice, "s1"); ended || err != nil {
		t.Errorf("ended %v, %v", ended, err)
	}
}

// The tally knows from the add on what nothing is to be decided about, and which
// results came after that.
func TestTaskTally(t *testing.T) {
	f := newMemory(t)
	want := session.Tally{}
	check := func(what string) {
		t.Helper()
		got, err := f.Tally(t.Context(), alice, "default")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	check("nothing")
	f.MustAddTask(t, session.Task{ID: "1", Action: "x", Importance: session.ImportantTask})
	want = session.Tally{Last: 1, Through: 1}
	check("at the threshold")
	f.MustAddTask(t, session.Task{ID: "2", Action: "x", Importance: .61})
	f.MustAddTask(t, session.Task{ID: "3", Action: "x", Importance: .1})
	want.Last = 3
	check("over it")
	set := func(change func(*session.Tally) error) error {
		return f.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{f.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			return f.StageTally(ctx, tx, alice, "", change)
		}})
	}
	if err := set(func(tally *session.Tally) error { tally.Through, tally.Second = 3, 1; return nil }); err != nil {
		t.Fatal(err)
	}
	want.Through, want.Second = 3, 1
	check("decided")
	f.MustAddTask(t, session.Task{ID: "3", Action: "x", Importance: .1, Result: "r"})
	f.MustAddTask(t, session.Task{ID: "2", Action: "x", Importance: .61, Result: "r"})
	f.MustAddTask(t, session.Task{ID: "2", Action: "x", Importance: .61, Result: "r"})
	want.Filled = []uint64{2}
	check("filled in")
	refused := errors.New("no")
	if err := set(func(tally *session.Tally) error { tally.Moved = 9; return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	check("refused")
}
