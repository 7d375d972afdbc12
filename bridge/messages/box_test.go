package messages_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

const tenant = "acme"

// clock is a time that the test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// MustBox returns a box whose store is read back at the end.
func MustBox(tb testing.TB, opts *messages.Options) (*messages.Box, *clock) {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	c := &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	o := messages.Options{}
	if opts != nil {
		o = *opts
	}
	o.Now = c.Now
	tb.Cleanup(func() {
		for scope, err := range kv.Scopes(context.Background(), engine, kv.System) {
			must(tb, err)
			must(tb, messages.Check(context.Background(), engine, scope, func(err error) { tb.Errorf("%s: %v", scope, err) }))
		}
		_ = writer.Close()
	})
	return messages.New(engine, writer, &o), c
}

func ids(all []messages.Message) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].TaskID
	}
	return out
}

func mustList(tb testing.TB, b *messages.Box, target string, q messages.Query) []string {
	tb.Helper()
	all, err := b.List(tb.Context(), tenant, target, q)
	must(tb, err)
	return ids(all)
}

func wantIDs(tb testing.TB, what string, got []string, want ...string) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s: %v, want %v", what, got, want)
	}
}

// By priority, the highest first, then the newest, then by task id; of a session only
// where one is asked for; as many as asked for.
func TestOrder(t *testing.T) {
	b, c := MustBox(t, nil)
	for _, m := range []messages.Message{
		{TaskID: "low", Priority: 0},
		{TaskID: "b", Priority: 0.5, SessionID: "s"},
		{TaskID: "a", Priority: 0.5, SessionID: "s"},
		{TaskID: "top", Priority: 1, ParentTaskID: "p"},
	} {
		m.Source, m.Target, m.Content = "x", "y", "hello"
		_, err := b.Send(t.Context(), tenant, m)
		must(t, err)
	}
	c.now = c.now.Add(time.Microsecond)
	_, err := b.Send(t.Context(), tenant, messages.Message{TaskID: "newer", Source: "x", Target: "y", Content: "hi", Priority: 0.5})
	must(t, err)
	wantIDs(t, "all", mustList(t, b, "y", messages.Query{}), "top", "newer", "a", "b", "low")
	wantIDs(t, "a session", mustList(t, b, "y", messages.Query{SessionID: "s"}), "a", "b")
	wantIDs(t, "a task", mustList(t, b, "y", messages.Query{ParentTaskID: "p"}), "top")
	two, err := b.List(t.Context(), tenant, "y", messages.Query{Limit: 2})
	must(t, err)
	wantIDs(t, "two", ids(two), "top", "newer")
	wantIDs(t, "behind one", mustList(t, b, "y", messages.Query{Limit: 1, After: two[0].Place()}), "newer")
	wantIDs(t, "nobody's", mustList(t, b, "x", messages.Query{}))
	if other, err := b.List(t.Context(), "other", "y", messages.Query{}); err != nil || len(other) != 0 {
		t.Errorf("another tenant reads %v, %v", other, err)
	}
}

// The same message under the same id is one message, however often it is sent, and
// also when it was deleted meanwhile; another one under that id is refused.
func TestSentOnce(t *testing.T) {
	b, c := MustBox(t, nil)
	m := messages.Message{TaskID: "t", Source: "x", Target: "y", Content: "hello", Priority: 0.5, Metadata: []byte(`{"b":1, "a":2}`)}
	first, err := b.Send(t.Context(), tenant, m)
	must(t, err)
	c.now = c.now.Add(time.Hour)
	m.Metadata = []byte(`{"a":2,"b":1}`)
	again, err := b.Send(t.Context(), tenant, m)
	must(t, err)
	if !again.Time.Equal(first.Time) || again.TaskID != "t" {
		t.Errorf("sent again: %+v, at first %+v", again, first)
	}
	for _, other := range []func(*messages.Message){
		func(m *messages.Message) { m.Content = "other" }, func(m *messages.Message) { m.Source = "z" },
		func(m *messages.Message) { m.Priority = 0.6 }, func(m *messages.Message) { m.TTL = time.Second },
	} {
		changed := m
		other(&changed)
		if _, err := b.Send(t.Context(), tenant, changed); !errors.Is(err, messages.ErrExists) {
			t.Errorf("%+v: %v", changed, err)
		}
	}
	wantIDs(t, "sent twice", mustList(t, b, "y", messages.Query{}), "t")
	if n, err := b.Delete(t.Context(), tenant, "y", []string{"t", "t", "none"}); err != nil || n != 1 {
		t.Errorf("deleted %d, %v", n, err)
	}
	_, err = b.Send(t.Context(), tenant, m)
	must(t, err)
	wantIDs(t, "sent after it was deleted", mustList(t, b, "y", messages.Query{}))
}

// An id is made where none is given.
func TestMadeID(t *testing.T) {
	b, _ := MustBox(t, nil)
	seen := make(map[string]bool)
	for range 3 {
		m, err := b.Send(t.Context(), tenant, messages.Message{Source: "x", Target: "y", Content: "hello"})
		must(t, err)
		if !strings.HasPrefix(m.TaskID, "task-") || !strings.HasSuffix(m.TaskID, ":event:node.message") || seen[m.TaskID] {
			t.Errorf("id %q", m.TaskID)
		}
		seen[m.TaskID] = true
	}
}

// An expired message is not listed, one as old as its time to live is.
func TestTimeToLive(t *testing.T) {
	b, c := MustBox(t, &messages.Options{MaxMessages: 2})
	send := func(id string, ttl time.Duration) error {
		_, err := b.Send(t.Context(), tenant, messages.Message{TaskID: id, Source: "x", Target: "y", Content: "hello", TTL: ttl})
		return err
	}
	must(t, send("a", time.Minute))
	must(t, send("b", time.Hour))
	c.now = c.now.Add(time.Minute)
	wantIDs(t, "as old as it may be", mustList(t, b, "y", messages.Query{}), "a", "b")
	if err := send("c", 0); !errors.Is(err, messages.ErrFull) {
		t.Errorf("a third one: %v", err)
	}
	c.now = c.now.Add(time.Microsecond)
	wantIDs(t, "older", mustList(t, b, "y", messages.Query{}), "b")
	must(t, send("c", 0)) // the expired one makes room
	wantIDs(t, "in its place", mustList(t, b, "y", messages.Query{}), "c", "b")
}

// A message for a node stands in the boxes of both, once in each.
func TestNode(t *testing.T) {
	b, _ := MustBox(t, nil)
	m := messages.Message{TaskID: "t", Source: "x", Target: "y", Node: "n", Content: "hello"}
	for range 2 {
		_, err := b.Send(t.Context(), tenant, m)
		must(t, err)
	}
	own := m
	own.TaskID, own.Node = "u", "y"
	_, err := b.Send(t.Context(), tenant, own)
	must(t, err)
	wantIDs(t, "the node", mustList(t, b, "n", messages.Query{}), "t")
	wantIDs(t, "the agent", mustList(t, b, "y", messages.Query{}), "t", "u")
	if n, err := b.Delete(t.Context(), tenant, "n", []string{"t"}); err != nil || n != 1 {
		t.Errorf("deleted %d, %v", n, err)
	}
	wantIDs(t, "the agent after the node deleted it", mustList(t, b, "y", messages.Query{}), "t", "u")
}

// A sender that fills its part of a box leaves the rest to others.
func TestShares(t *testing.T) {
	b, _ := MustBox(t, &messages.Options{MaxMessages: 5, MaxFromSender: 3})
	var full int
	for i := range 5 {
		_, err := b.Send(t.Context(), tenant, messages.Message{Source: "loud", Target: "y", Content: fmt.Sprint(i)})
		if errors.Is(err, messages.ErrFull) {
			full++
		} else {
			must(t, err)
		}
	}
	if full != 2 {
		t.Errorf("%d of 5 were refused", full)
	}
	_, err := b.Send(t.Context(), tenant, messages.Message{TaskID: "calm", Source: "calm", Target: "y", Content: "hello"})
	must(t, err)
	if n, err := b.Delete(t.Context(), tenant, "y", mustList(t, b, "y", messages.Query{})); err != nil || n != 4 {
		t.Errorf("deleted %d, %v", n, err)
	}
	_, err = b.Send(t.Context(), tenant, messages.Message{Source: "loud", Target: "y", Content: "again"})
	must(t, err)
}

// What breaks a rule is refused by its field, and nothing is kept.
func TestBadMessages(t *testing.T) {
	b, _ := MustBox(t, nil)
	for _, tt := range []struct {
		field string
		wrong func(*messages.Message)
	}{
		{"source_agent_id", func(m *messages.Message) { m.Source = " " }},
		{"target_agent_id", func(m *messages.Message) { m.Target = "" }},
		{"target_agent_id", func(m *messages.Message) { m.Target = "a\x00b" }},
		{"content", func(m *messages.Message) { m.Content = " \n" }},
		{"content", func(m *messages.Message) { m.Content = strings.Repeat("x", messages.MaxContentBytes+1) }},
		{"content", func(m *messages.Message) { m.Content = "\xff" }},
		{"priority", func(m *messages.Message) { m.Priority = 1.01 }},
		{"priority", func(m *messages.Message) { m.Priority = -0.01 }},
		{"priority", func(m *messages.Message) { m.Priority = math.NaN() }},
		{"ttl", func(m *messages.Message) { m.TTL = -1 }},
		{"context_role", func(m *messages.Message) { m.Role = "tool" }},
		{"metadata", func(m *messages.Message) { m.Metadata = []byte(`[1]`) }},
		{"metadata", func(m *messages.Message) { m.Metadata = []byte(`{`) }},
		{"metadata", func(m *messages.Message) {
			m.Metadata = []byte(`{"a":"` + strings.Repeat("x", messages.MaxMetadataBytes) + `"}`)
		}},
		{"metadata", func(m *messages.Message) {
			m.Metadata = []byte(strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20))
		}},
		{"task_id", func(m *messages.Message) { m.TaskID = strings.Repeat("x", messages.MaxTaskIDBytes+1) }},
		{"session_id", func(m *messages.Message) { m.SessionID = strings.Repeat("x", messages.MaxSessionBytes+1) }},
	} {
		m := messages.Message{Source: "x", Target: "y", Content: "hello"}
		tt.wrong(&m)
		_, err := b.Send(t.Context(), tenant, m)
		if bad, ok := errors.AsType[*invalid.Error](err); !ok || bad.Field != tt.field || !errors.Is(err, messages.ErrInvalid) {
			t.Errorf("%s: %v", tt.field, err)
		}
	}
	wantIDs(t, "kept", mustList(t, b, "y", messages.Query{}))
}
