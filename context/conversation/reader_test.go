package conversation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var scope = kv.AgentScope("t", "a")

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustOpen(tb testing.TB) *session.Log {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	tb.Cleanup(func() {
		must(tb, writer.Close())
		must(tb, engine.Close())
	})
	return session.New(engine, writer, nil)
}

// read reads a session in pages of a size, each of which begins at the place where
// the one before ended.
func read(tb testing.TB, r *conversation.Reader, id string, newestFirst bool, size int) []string {
	tb.Helper()
	var all []string
	for from, more := (conversation.Cursor{}), true; more; {
		n := 0
		more = false
		for item, err := range r.Items(context.Background(), scope, id, newestFirst, from) {
			must(tb, err)
			if n++; n > size {
				more = true
				break
			}
			what := fmt.Sprint(item.Position)
			if item.Task != nil {
				what += " task " + item.Task.ID
			}
			all, from = append(all, what), item.Place
		}
	}
	return all
}

// Whatever was said and done, in whatever order: a conversation is the same from
// both ends and in pages of all sizes, and tasks stand where they were added.
func TestBothEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	log := mustOpen(t)
	r := conversation.New(log)
	for round := range 60 {
		id := fmt.Sprint("s", round)
		var want []string
		position, tasks := 0, 0
		for range rng.IntN(120) {
			if rng.IntN(3) == 0 {
				task := session.Task{ID: fmt.Sprintf("%d-%d", round, tasks), Action: "x", SessionID: id}
				_, err := log.AddTask(t.Context(), scope, task)
				must(t, err)
				want = append(want, fmt.Sprintf("%d task %s", position, task.ID))
				tasks++
				continue
			}
			_, err := log.AppendMessages(t.Context(), scope, id, []session.Message{{Role: session.User, Content: "x"}}, "")
			must(t, err)
			position++
			want = append(want, fmt.Sprint(position))
		}
		for _, size := range []int{1, 2, 7, 31, 32, 33, 1000} {
			if got := read(t, r, id, false, size); !slices.Equal(got, want) {
				t.Fatalf("round %d, pages of %d: %q, want %q", round, size, got, want)
			}
			got := read(t, r, id, true, size)
			if slices.Reverse(got); !slices.Equal(got, want) {
				t.Fatalf("round %d, pages of %d, newest first: %q, want %q", round, size, got, want)
			}
		}
	}
}

// An agent without a session has none, and another scope has no part in it.
func TestNothing(t *testing.T) {
	log := mustOpen(t)
	_, err := log.AppendMessages(t.Context(), kv.AgentScope("t", "b"), "canary", []session.Message{{Role: session.User, Content: "x"}}, "")
	must(t, err)
	r := conversation.New(log)
	for sum, err := range r.Sessions(t.Context(), scope, "", true) {
		t.Errorf("a session %v, %v", sum, err)
	}
	if got := read(t, r, "canary", false, 1); len(got) != 0 {
		t.Errorf("entries %q", got)
	}
	for _, err := range r.Sessions(t.Context(), kv.Scope{}, "", true) {
		if err == nil {
			t.Error("a scope without an owner has sessions")
		}
	}
}
