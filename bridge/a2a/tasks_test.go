package a2a_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

const (
	tenant = "acme"
	agent  = "research.1"
	giver  = "caller"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// world is a bus whose tasks are asked, or not.
type world struct {
	tb    testing.TB
	bus   *events.Bus
	tasks *a2a.Tasks
}

func MustWorld(tb testing.TB, asked bool) *world {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	w := &world{tb: tb, tasks: a2a.New(engine)}
	opts := &events.Options{}
	if asked {
		opts.Admit = w.tasks.Admit
	}
	w.bus = events.New(engine, writer, opts)
	tb.Cleanup(func() {
		must(tb, w.bus.Close())
		must(tb, writer.Close())
	})
	return w
}

func (w *world) emit(task, source, kind string, headers ...string) (events.Event, error) {
	e := events.Event{Topic: a2a.Topic(agent, task), Source: source, Type: kind}
	for i := 0; i < len(headers); i += 2 {
		e.Headers = map[string]string{headers[i]: headers[i+1]}
	}
	return w.bus.Emit(w.tb.Context(), tenant, e, events.EmitOptions{Volatile: true})
}

func (w *world) mustEmit(task, source, kind string, headers ...string) events.Event {
	w.tb.Helper()
	e, err := w.emit(task, source, kind, headers...)
	must(w.tb, err)
	return e
}

func (w *world) get(task string) *a2a.Task {
	w.tb.Helper()
	found, err := w.tasks.Get(w.tb.Context(), tenant, agent, task)
	must(w.tb, err)
	return found
}

// What a task takes, from whom, and where it stands then.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]struct {
		source, kind string
		refused      error
		state        string
	}{
		"answered": {
			{giver, a2a.Message, nil, a2a.Submitted},
			{agent, a2a.Working, nil, a2a.Working},
			{agent, a2a.Artifact, nil, a2a.Working},
			{agent, "", nil, a2a.Completed},
			{agent, a2a.Artifact, a2a.ErrClosed, a2a.Completed},
			{giver, a2a.Message, a2a.ErrClosed, a2a.Completed},
			{giver, a2a.Canceled, a2a.ErrClosed, a2a.Completed},
		},
		"asked back": {
			{giver, a2a.Message, nil, a2a.Submitted},
			{agent, a2a.InputRequired, nil, a2a.InputRequired},
			{agent, a2a.Working, a2a.ErrClosed, a2a.InputRequired},
			{giver, a2a.Message, nil, a2a.Submitted},
			{agent, a2a.AuthRequired, nil, a2a.AuthRequired},
			{giver, a2a.Canceled, nil, a2a.Canceled},
		},
		"more while it works": {
			{giver, a2a.Message, nil, a2a.Submitted}, {agent, a2a.Working, nil, a2a.Working}, {giver, a2a.Message, nil, a2a.Working}, {agent, a2a.Failed, nil, a2a.Failed},
		},
		"a word": {
			{giver, a2a.Message, nil, a2a.Submitted}, {agent, a2a.Answer, nil, a2a.Answer},
		},
		"a word too late": {
			{giver, a2a.Message, nil, a2a.Submitted}, {agent, a2a.Working, nil, a2a.Working}, {agent, a2a.Answer, a2a.ErrInvalid, a2a.Working},
		},
		"strangers": {
			{agent, a2a.Working, a2a.ErrNotFound, ""},
			{giver, a2a.Message, nil, a2a.Submitted},
			{"other", a2a.Message, a2a.ErrInvalid, a2a.Submitted},
			{"other", a2a.Canceled, a2a.ErrInvalid, a2a.Submitted},
			{"other", a2a.Completed, a2a.ErrInvalid, a2a.Submitted},
			{giver, a2a.Completed, a2a.ErrInvalid, a2a.Submitted},
			{agent, "mine", a2a.ErrInvalid, a2a.Submitted},
			{agent, a2a.Rejected, nil, a2a.Rejected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := MustWorld(t, true)
			for i, s := range steps {
				if _, err := w.emit("one", s.source, s.kind); !errors.Is(err, s.refused) {
					t.Fatalf("step %d (%s): %v, want %v", i, s.kind, err, s.refused)
				}
				if s.state == "" {
					continue
				}
				if got := w.get("one"); got.State != s.state || got.Giver != giver {
					t.Fatalf("step %d (%s): %s of %s", i, s.kind, got.State, got.Giver)
				}
			}
		})
	}
}

// A reply is of the message that it names, and one with an error fails the task. Every event is
// stored, also one that asks not to be.
func TestReplies(t *testing.T) {
	t.Parallel()
	w := MustWorld(t, true)
	first := w.mustEmit("one", giver, a2a.Message)
	second := w.mustEmit("one", giver, a2a.Message)
	if _, err := w.emit("one", agent, "", "correlation_id", first.ID); !errors.Is(err, a2a.ErrClosed) {
		t.Errorf("an answer to the message before the last: %v", err)
	}
	for _, m := range []events.Event{first, second} {
		if !w.tasks.Waits(t.Context(), tenant, &m) {
			t.Errorf("message %d does not wait", m.Sequence)
		}
	}
	if e := w.mustEmit("one", agent, a2a.InputRequired, "correlation_id", second.ID); e.Sequence != 3 {
		t.Errorf("the answer is event %d", e.Sequence)
	}
	third := w.mustEmit("one", giver, a2a.Message)
	if w.tasks.Waits(t.Context(), tenant, &second) || !w.tasks.Waits(t.Context(), tenant, &third) {
		t.Error("not the last message alone waits")
	}
	w.mustEmit("one", agent, "", a2a.HeaderError, "no")
	if got := w.get("one"); got.State != a2a.Failed || w.tasks.Waits(t.Context(), tenant, &third) {
		t.Errorf("a reply with an error: %s", got.State)
	}
	if other := (events.Event{Topic: "news", Type: a2a.Message}); !w.tasks.Waits(t.Context(), tenant, &other) {
		t.Error("an event that is none of a task does not come")
	}
}

// Events that two emit at once are both stored: the first that ends a turn counts, in every read.
func TestOnlyTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	w := MustWorld(t, false)
	for _, e := range []struct{ source, kind string }{
		{giver, a2a.Message}, {agent, a2a.Completed}, {giver, a2a.Canceled}, {agent, a2a.Artifact}, {giver, a2a.Message}, {"other", a2a.Failed},
	} {
		_, err := w.bus.Emit(t.Context(), tenant, events.Event{Topic: a2a.Topic(agent, "one"), Source: e.source, Type: e.kind}, events.EmitOptions{})
		must(t, err)
	}
	got := w.get("one")
	if got.State != a2a.Completed || len(got.Events) != 2 || got.Last != 6 {
		t.Errorf("%s, %d events of %d", got.State, len(got.Events), got.Last)
	}
	if then := got.At(1); then.State != a2a.Submitted || len(then.Events) != 1 {
		t.Errorf("at first it was %s", then.State)
	}
}

// A task goes with its first event, and its name is not given again.
func TestATaskWithoutItsFirstEvent(t *testing.T) {
	t.Parallel()
	w := MustWorld(t, true)
	message := w.mustEmit("one", giver, a2a.Message)
	_, err := w.bus.Erase(t.Context(), tenant, store.Erasing{Source: giver})
	must(t, err)
	if _, err := w.tasks.Get(t.Context(), tenant, agent, "one"); !errors.Is(err, a2a.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	for _, source := range []string{giver, agent} {
		if _, err := w.emit("one", source, a2a.Message); !errors.Is(err, a2a.ErrNotFound) {
			t.Errorf("a message of %s: %v", source, err)
		}
	}
	if w.tasks.Waits(t.Context(), tenant, &message) {
		t.Error("the message still comes")
	}
}

// A task has an end, and can be ended when it is there.
func TestAFullTask(t *testing.T) {
	t.Parallel()
	w := MustWorld(t, true)
	w.mustEmit("one", giver, a2a.Message)
	large := events.Event{
		Topic: a2a.Topic(agent, "one"), Source: agent, Type: a2a.Artifact, PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte("x"), a2a.MaxBytes/2),
	}
	var err error
	for n := 0; n < 4 && err == nil; n++ {
		_, err = w.bus.Emit(t.Context(), tenant, large, events.EmitOptions{})
	}
	if !errors.Is(err, a2a.ErrFull) {
		t.Fatalf("four halves of a task: %v", err)
	}
	w.mustEmit("one", agent, a2a.Completed)
}

// The newest come first, and those of an agent whose id only begins like it do not come.
func TestList(t *testing.T) {
	t.Parallel()
	w := MustWorld(t, true)
	for n := range 3 {
		w.mustEmit(fmt.Sprint("t", n), giver, a2a.Message)
	}
	w.mustEmit("t0", agent, a2a.Working)
	_, err := w.bus.Emit(t.Context(), tenant, events.Event{Topic: a2a.Topic(agent+".2", "other"), Source: giver, Type: a2a.Message}, events.EmitOptions{})
	must(t, err)
	all, err := w.tasks.List(t.Context(), tenant, agent, everybody)
	must(t, err)
	var ids []string
	for _, task := range all {
		ids = append(ids, task.ID)
	}
	if want := []string{"t0", "t2", "t1"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
	if none, err := w.tasks.List(t.Context(), tenant, agent, func(string) bool { return false }); err != nil || len(none) > 0 {
		t.Errorf("who sees nothing is given %d, %v", len(none), err)
	}
	if none, err := w.tasks.List(context.Background(), "other", agent, everybody); err != nil || len(none) > 0 {
		t.Errorf("another tenant has %d, %v", len(none), err)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string][2]string{
		"agent.x.a2a.1": {"x", "1"}, "agent.x.a2a.y.a2a.1": {"x.a2a.y", "1"}, "agent.a.b.a2a.1": {"a.b", "1"},
		"agent.x.a2a.": {}, "agent..a2a.1": {}, "agent.a2a.1": {}, "agent.x.a2a.1.2": {}, "x.a2a.1": {}, "agent.x.messages": {},
	} {
		got, task, ok := a2a.Of(topic)
		if ok != (want[1] != "") || ok && (got != want[0] || task != want[1]) {
			t.Errorf("%s: %q %q %v", topic, got, task, ok)
		}
	}
}

func everybody(string) bool { return true }
