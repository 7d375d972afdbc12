package topics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// tasks notes what is added, by scope.
type tasks map[string]session.Task

func (t tasks) Add(_ context.Context, scope kv.Scope, task session.Task) (session.Task, error) {
	key := fmt.Sprint(scope.Tenant, "/", scope.Owner, "/", task.ID)
	if _, there := t[key]; there {
		return session.Task{}, session.ErrTaskExists
	}
	t[key] = task
	return task, nil
}

func TestAdmit(t *testing.T) {
	const reserved, task, refused, passes = "reserved", "task", "refused", ""
	legacy, volatile := events.EmitOptions{Legacy: true}, events.EmitOptions{Volatile: true}
	for _, tt := range []struct {
		topic string
		opts  events.EmitOptions
		want  string
	}{
		{"execute", events.EmitOptions{}, task},
		{"node.thinking", events.EmitOptions{}, task},
		{"node.a.b", events.EmitOptions{}, task},
		{"execute", volatile, passes},
		{"execute", legacy, task},
		{"node.x", legacy, task},
		{"agent.spawn", legacy, passes},
		{"agent.result", legacy, passes},
		{"agent.a.spawn", events.EmitOptions{}, reserved},
		{"agent.a.results", legacy, reserved},
		{"agent.a.messages", events.EmitOptions{}, reserved},
		{"agent.a.messages", legacy, reserved},
		{"node.message", legacy, refused},
		{"agent.status", events.EmitOptions{}, reserved},
		{"tool.progress", events.EmitOptions{}, reserved},
		{"agent.status", legacy, reserved},
		{"context.folded", legacy, reserved},
		{"node", events.EmitOptions{}, passes},
		{"nodes.x", events.EmitOptions{}, passes},
		{"agent.spawned", events.EmitOptions{}, passes},
		{"agent.a.replies", events.EmitOptions{}, passes},
	} {
		added := tasks{}
		e := events.Event{Topic: tt.topic, Source: "a", Payload: []byte(`{"task_id":"t"}`)}
		err := topics.NewRules(added, nil, nil, nil).Admit(t.Context(), "acme", &e, &tt.opts)
		var detail *topics.ReservedError
		got := passes
		switch {
		case errors.Is(err, topics.ErrReserved) && errors.As(err, &detail) && detail.Topic == tt.topic:
			got = reserved
		case errors.Is(err, messages.ErrInvalid):
			got = refused
		case err != nil:
			t.Errorf("%s: %v", tt.topic, err)
		case len(added) > 0:
			got = task
		}
		if got != tt.want {
			t.Errorf("%s, %+v: %q, want %q", tt.topic, tt.opts, got, tt.want)
		}
	}
}

// An answer of loom.v1 is not stored, wherever it goes.
func TestMailboxesAreVolatile(t *testing.T) {
	for topic, want := range map[string]bool{topics.Mailbox("a"): true, ".replies": true, "replies": false, "agent.a": false} {
		opts := events.EmitOptions{Legacy: true}
		if err := topics.NewRules(nil, nil, nil, nil).Admit(t.Context(), "acme", &events.Event{Topic: topic}, &opts); err != nil || opts.Volatile != want {
			t.Errorf("%s: volatile %v, %v", topic, opts.Volatile, err)
		}
	}
}

// The same request adds a task without an id once; the second time says that the
// request was used.
func TestTaskOfARequest(t *testing.T) {
	added := tasks{}
	rules := topics.NewRules(added, nil, nil, nil)
	for i, want := range []error{nil, kv.ErrRequestReused} {
		e := events.Event{Topic: "execute", Source: "a", SessionID: "s", Payload: []byte(`{"depth":2,"result":"done","tags":["x"]}`)}
		if err := rules.Admit(t.Context(), "acme", &e, &events.EmitOptions{RequestID: "r"}); !errors.Is(err, want) {
			t.Errorf("request %d: %v, want %v", i, err, want)
		}
	}
	for key, got := range added {
		want := session.Task{
			ID: got.ID, Action: "execute", SessionID: "s", Parameters: []byte(`{"depth":2}`), Result: "done", Tags: []string{"x"},
			Importance: session.ImportanceOf("execute"),
		}
		if diff := cmp.Diff(want, got); diff != "" || key != "acme/a/"+got.ID {
			t.Errorf("%s differs:\n%s", key, diff)
		}
	}
	if len(added) != 1 {
		t.Errorf("%d tasks", len(added))
	}
}

func TestReadableBy(t *testing.T) {
	readable := topics.ReadableBy(func(agent string) bool { return agent == "a" || agent == "a.b" })
	for topic, want := range map[string]bool{
		"news": true, "agents.x.y": true, "agent.x": true, "agent.a.jobs": true, "agent.a.b.replies": true, "agent.a.replies": true,
		"agent.x.jobs": false, "agent.x.replies": false, "agent.a.c.replies": false, "agent.a.c": true,
	} {
		if got := readable(topic); got != want {
			t.Errorf("%s: %v, want %v", topic, got, want)
		}
	}
}
