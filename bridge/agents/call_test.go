package agents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
)

func newEvent(id string) events.Event { return events.Event{ID: id, Topic: "t"} }

// A call reaches the agent as it is, and the answer comes back as it is.
func TestCall(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "echo")
	link := MustOpen(t, d, "one")
	want := agents.ToolCall{
		Name: "echo", Arguments: `{"a": 1}`, CallerID: "two", CorrelationID: "c",
		Headers: map[string]string{"h": "v"}, Timeout: time.Minute, QoS: 1, SessionID: "s",
	}
	answers := ask(t.Context(), d, want)
	call := <-link.Calls()
	if diff := cmp.Diff(want, call.ToolCall); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	if left := time.Until(call.Deadline); left <= 0 || left > time.Minute {
		t.Errorf("deadline in %v", left)
	}
	result := agents.ToolResult{
		Status: agents.ResultError, Output: "null", ErrorCode: "E", ErrorMessage: "m", Details: map[string]string{"d": "1"},
	}
	if !link.Waiting(call.ID) || !link.Complete(call.ID, result) || link.Waiting(call.ID) {
		t.Error("the call was not waited for")
	}
	if link.Complete(call.ID, result) || link.Complete("unknown", result) {
		t.Error("an answer that nobody waits for was taken")
	}
	if a := <-answers; a.err != nil || !cmp.Equal(a.result, result) {
		t.Errorf("got %+v", a)
	}
}

// Callers may use the same arguments and correlation ids: our ids tell their
// calls apart. An answer counts on the stream only that got the call.
func TestAnswersFindTheirCalls(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "echo")
	MustRegister(t, d, "two", "other")
	one, two := MustOpen(t, d, "one"), MustOpen(t, d, "two")
	first := ask(t.Context(), d, agents.ToolCall{Name: "echo", CorrelationID: "same"})
	firstCall := <-one.Calls()
	second := ask(t.Context(), d, agents.ToolCall{Name: "echo", CorrelationID: "same"})
	secondCall := <-one.Calls()
	if firstCall.ID == secondCall.ID || len(firstCall.ID) < 20 {
		t.Fatalf("ids %q and %q", firstCall.ID, secondCall.ID)
	}
	if two.Complete(firstCall.ID, agents.ToolResult{Output: "forged"}) {
		t.Error("another stream answered the call")
	}
	one.Complete(secondCall.ID, agents.ToolResult{Output: "second"})
	one.Complete(firstCall.ID, agents.ToolResult{Output: "first"})
	if a := <-first; a.result.Output != "first" {
		t.Errorf("first: %+v", a)
	}
	if a := <-second; a.result.Output != "second" {
		t.Errorf("second: %+v", a)
	}
}

func TestCallTimesOut(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one", "echo")
		link := MustOpen(t, d, "one")
		for _, tt := range []struct{ timeout, want time.Duration }{
			{200 * time.Millisecond, 200 * time.Millisecond},
			{0, agents.DefaultCallTimeout},
			{-5, agents.DefaultCallTimeout},
		} {
			started := time.Now()
			_, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo", Timeout: tt.timeout})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != tt.want {
				t.Errorf("timeout %v: %v after %v", tt.timeout, err, time.Since(started))
			}
			call := <-link.Calls()
			if link.Waiting(call.ID) || link.Complete(call.ID, agents.ToolResult{}) {
				t.Error("a late answer was taken")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answers := ask(ctx, d, agents.ToolCall{Name: "echo", Timeout: time.Hour})
		if call := <-link.Calls(); time.Until(call.Deadline) != time.Second {
			t.Errorf("deadline in %v, want the caller's own", time.Until(call.Deadline))
		}
		cancel()
		if a := <-answers; !errors.Is(a.err, context.Canceled) {
			t.Errorf("cancelled: %v", a.err)
		}
	})
}

// A stream that ends fails its calls at once, those that wait in its queue too.
func TestStreamEndsDuringCall(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one", "echo")
		link := MustOpen(t, d, "one")
		var answers []<-chan answer
		for range 40 {
			answers = append(answers, ask(t.Context(), d, agents.ToolCall{Name: "echo", Timeout: time.Hour}))
		}
		<-link.Calls()
		synctest.Wait()
		started := time.Now()
		link.Close()
		link.Close()
		for _, a := range answers {
			gone, ok := errors.AsType[*agents.NotConnectedError]((<-a).err)
			if !ok || gone.Error() != "agent one is not connected" {
				t.Fatalf("got %v", gone)
			}
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("it took %v", took)
		}
		_, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo"})
		if !errors.Is(err, agents.ErrNotConnected) {
			t.Errorf("without a stream: %v", err)
		}
		for range link.Calls() { // closed, so that this ends
		}
		<-link.Done()
	})
}

// Of agents with a tool of one name the first that registered it and has a stream is
// called, on its newest stream.
func TestWhoIsCalled(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	called := func() string {
		r, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo"})
		if err != nil {
			return err.Error()
		}
		return r.Output
	}
	open := func(id, prefix string) *agents.Link {
		link := MustOpen(t, d, id)
		go echo(link, prefix)
		return link
	}
	check := func(want string) {
		t.Helper()
		if got := called(); got != want {
			t.Errorf("called %q, want %q", got, want)
		}
		tool, ok := d.Lookup(tenant, "echo")
		if connected := len(want) < 10; ok && (tool.Connected != connected || connected && tool.AgentID != want[:1]) {
			t.Errorf("looked up %+v, want %q", tool, want)
		}
		if listed := d.Tools(tenant); ok && tool.Connected && !cmp.Equal(listed, []agents.AgentTool{tool}) {
			t.Errorf("listed %+v, want %+v", listed, tool)
		}
	}
	check("agents: not found: tool echo")
	MustRegister(t, d, "a", "echo")
	MustRegister(t, d, "b", "echo")
	check("agent b is not connected")
	a1 := open("a", "a1")
	check("a1")
	b1 := open("b", "b1")
	check("a1")
	a2 := open("a", "a2")
	check("a2")
	MustRegister(t, d, "a", "echo") // it keeps its place
	check("a2")
	a2.Close()
	check("a1")
	a3 := open("a", "a3")
	a1.Close()
	check("a3")
	a3.Close()
	check("b1")
	MustRegister(t, d, "b", "other")
	check("agent a is not connected")
	b1.Close()
	if got := d.Tools(tenant); len(got) > 0 {
		t.Errorf("listed without a stream: %+v", got)
	}
	for _, name := range []string{"echo", "other"} {
		if tool, ok := d.Lookup(tenant, name); !ok || tool.Connected {
			t.Errorf("%s: %+v, %v", name, tool, ok)
		}
	}
}

// What waits for one stream is bounded, and what nobody waits for any more makes
// room.
func TestBusy(t *testing.T) {
	for _, opts := range []agents.Options{{QueueCalls: 20}, {PendingCalls: 20}} {
		bubble(t, &opts, func(t *testing.T, d *agents.Directory) {
			MustRegister(t, d, "one", "echo")
			link := MustOpen(t, d, "one")
			ctx, cancel := context.WithCancel(t.Context())
			busy := make(map[bool]int)
			var answers []<-chan answer
			for range 30 {
				answers = append(answers, ask(ctx, d, agents.ToolCall{Name: "echo"}))
			}
			synctest.Wait()
			cancel()
			for _, a := range answers {
				busy[errors.Is((<-a).err, agents.ErrBusy)]++
			}
			if busy[true] < 9 || busy[false] < 20 {
				t.Errorf("%d of 30 calls were refused, want all over 20", busy[true])
			}
			go echo(link, "")
			if _, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo"}); err != nil {
				t.Errorf("after they gave up: %v", err)
			}
			link.Close()
		})
	}
}

// Calls of one caller reach the agent in order, however many wait.
func TestCallsKeepTheirOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one", "echo")
		link := MustOpen(t, d, "one")
		for i := range 100 {
			ask(t.Context(), d, agents.ToolCall{Name: "echo", Arguments: fmt.Sprint(i)})
			synctest.Wait()
		}
		for i := range 100 {
			call := <-link.Calls()
			if call.Arguments != fmt.Sprint(i) {
				t.Fatalf("call %d has arguments %s", i, call.Arguments)
			}
			link.Complete(call.ID, agents.ToolResult{})
		}
	})
}

func TestSend(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		if err := d.Send(t.Context(), tenant, "one", newEvent("e")); !errors.Is(err, agents.ErrNotConnected) {
			t.Errorf("unknown agent: %v", err)
		}
		older := MustOpen(t, d, "one")
		newer := MustOpen(t, d, "one")
		sent := 0
		var err error
		for ; err == nil; sent++ {
			err = d.Send(t.Context(), tenant, "one", newEvent(fmt.Sprint(sent)))
			synctest.Wait()
		}
		if !errors.Is(err, agents.ErrBusy) || sent < 64 || sent > 80 {
			t.Errorf("event %d: %v", sent, err)
		}
		for i := range sent - 1 {
			if e := <-newer.Direct(); e.ID != fmt.Sprint(i) {
				t.Fatalf("event %d is %s", i, e.ID)
			}
		}
		newer.Close()
		if err := d.Send(t.Context(), tenant, "one", newEvent("last")); err != nil {
			t.Error(err)
		}
		if e := <-older.Direct(); e.ID != "last" {
			t.Errorf("got %s", e.ID)
		}
		select {
		case e := <-newer.Direct():
			t.Errorf("the ended stream got %+v", e)
		default:
		}
	})
}

// Many callers, agents that come and go: every call ends, with its own answer or
// a typed error.
func TestStorm(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	for i := range 4 {
		MustRegister(t, d, fmt.Sprint("agent-", i), "echo")
	}
	ctx, stop := context.WithCancel(t.Context())
	var links, callers sync.WaitGroup
	for i := range 8 {
		links.Go(func() {
			for ctx.Err() == nil {
				link, err := d.Open(tenant, fmt.Sprint("agent-", i%4), agents.OpenOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					if call, ok := <-link.Calls(); ok {
						link.Complete(call.ID, agents.ToolResult{Output: call.Arguments})
					}
				}
				link.Close()
			}
		})
	}
	for i := range 8 {
		callers.Go(func() {
			for j := range 200 {
				text := fmt.Sprint(i, " ", j)
				r, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo", Arguments: text, Timeout: 30 * time.Second})
				if err == nil && r.Output != text || err != nil && !errors.Is(err, agents.ErrNotConnected) {
					t.Errorf("call %s: %+v, %v", text, r, err)
				}
			}
		})
	}
	callers.Wait()
	stop()
	drain(d)
	links.Wait()
	for i := range 4 {
		if a, _ := d.Get(tenant, fmt.Sprint("agent-", i)); a.Status == agents.Active {
			t.Errorf("active without a stream: %+v", a)
		}
	}
}

// drain calls until nobody is connected.
func drain(d *agents.Directory) {
	for {
		_, err := d.Call(context.Background(), tenant, agents.ToolCall{Name: "echo"})
		if err != nil && strings.Contains(err.Error(), "not connected") && len(d.Tools(tenant)) == 0 {
			return
		}
	}
}

func BenchmarkCall(b *testing.B) {
	d := MustDirectory(b, nil, nil)
	MustRegister(b, d, "one", "echo")
	go echo(MustOpen(b, d, "one"), "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Call(b.Context(), tenant, agents.ToolCall{Name: "echo"}); err != nil {
			b.Fatal(err)
		}
	}
}
