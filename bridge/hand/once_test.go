package hand_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// give is a tool with a fixed result.
func give(out map[string]any, err error) tools.Func {
	return func(context.Context, tools.Input) (tools.Output, error) { return tools.Output{Values: out}, err }
}

// counted is a tool that counts its runs.
func counted(runs *atomic.Int64, err error) tools.Func {
	return func(context.Context, tools.Input) (tools.Output, error) {
		return tools.Output{Values: map[string]any{"run": runs.Add(1)}}, err
	}
}

func TestSameRequestGivesTheFirstAnswer(t *testing.T) {
	var runs atomic.Int64
	w := MustWorld(t, map[string]string{"a": strings.Repeat("x\n", 100_000)}, nil)
	w.add(tools.Descriptor{Name: "count:read"}, counted(&runs, nil))
	w.add(tools.Descriptor{Name: "count:write", Mutates: true}, counted(&runs, nil))
	w.add(tools.Descriptor{Name: "count:fail"}, counted(&runs, tools.Errorf(tools.TooLarge, "too much")))
	for _, req := range []hand.Request{
		request("count:read", map[string]any{"a": 1, "b": 2}),
		request("count:write", nil),
		request("count:fail", nil),
		request("fs:read_file", map[string]any{"path": "a"}),
		request("fs:write_file", map[string]any{"path": "b", "content": "x"}),
	} {
		req.RequestID = "id of " + req.Name
		runs.Store(0)
		first := w.must(req)
		again := w.must(req)
		if !again.Replayed || first.Replayed || runs.Load() > 1 {
			t.Errorf("%s: ran %d times, replayed %v", req.Name, runs.Load(), again.Replayed)
		}
		again.Replayed = false
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: another answer (-first +again):\n%.2000s", req.Name, diff)
		}
		changed := req
		changed.Thought = "another"
		if _, err := w.Call(t.Context(), changed); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("%s with other content: got %v", req.Name, err)
		}
		elsewhere := req
		elsewhere.Scope = other
		if a := w.must(elsewhere); a.Replayed {
			t.Errorf("%s: another agent got this agent's answer", req.Name)
		}
	}
	if got := len(w.steps("default")); got != 5 {
		t.Errorf("got %d steps, want 5", got)
	}
}

func TestSameRequestInOtherWords(t *testing.T) {
	w := MustWorld(t, map[string]string{"a": "x"}, nil)
	req := hand.Request{Scope: agent, Name: "fs:read_file", Args: []byte(`{"path":"a","offset":null}`), RequestID: "r"}
	w.must(req)
	req.Name, req.Args, req.SessionID = "read_file", []byte(` { "path" : "\u0061" } `), "default"
	if a := w.must(req); !a.Replayed {
		t.Error("the same call in another spelling ran again")
	}
}

func TestSameRequestAtOnceRunsOnce(t *testing.T) {
	var runs atomic.Int64
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "count:write", Mutates: true}, counted(&runs, nil))
	req := request("count:write", nil)
	req.RequestID = "r"
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { w.must(req) })
	}
	all.Wait()
	if runs.Load() != 1 || len(w.steps("default")) != 1 {
		t.Errorf("ran %d times, %d steps", runs.Load(), len(w.steps("default")))
	}
}

// TestLostOutcomeIsUnknown loses the commit of a tool that took effect, as a
// process does that dies behind it.
func TestLostOutcomeIsUnknown(t *testing.T) {
	for name, c := range map[string]struct{ recovered, older bool }{
		"recovered":                  {recovered: true},
		"repeated":                   {},
		"of an older store":          {recovered: true, older: true},
		"repeated on an older store": {older: true},
	} {
		t.Run(name, func(t *testing.T) { testLostOutcome(t, c.recovered, c.older) })
	}
}

// testLostOutcome: the tool runs once. older puts its intent where stores before format 4
// have it.
func testLostOutcome(t *testing.T, recovered, older bool) {
	var runs atomic.Int64
	w := MustWorld(t, nil, nil)
	d := tools.Descriptor{Name: "count:write", Mutates: true}
	w.add(d, counted(&runs, nil))
	req := request("count:write", map[string]any{"a": "b"})
	req.RequestID, req.Thought, req.TurnID, req.CallID, req.SessionID = "r", "why", "t", "c", "s"
	w.engine.Replan(kvtest.FailurePlan{Commit: 2, Repeat: true}) // the intent is written, the step is not
	if a, err := w.Call(t.Context(), req); err != nil || a.Recorded {
		t.Fatalf("the lost call: %+v, %v", a, err)
	}
	w.engine.Replan(kvtest.FailurePlan{})
	w.stop()
	if older && kvtest.Undivide(t, w.engine, "intents") != 1 {
		t.Fatal("no intent was left")
	}
	w.start(nil)
	w.add(d, counted(&runs, nil))
	if recovered {
		if n, err := w.Recover(t.Context()); n != 1 || err != nil {
			t.Fatalf("Recover: %d, %v", n, err)
		}
		if n, err := w.Recover(t.Context()); n != 0 || err != nil {
			t.Errorf("Recover again: %d, %v", n, err)
		}
	}
	a := w.must(req)
	if a.Success || a.ErrorCode != tools.OutcomeUnknown || runs.Load() != 1 {
		t.Errorf("the repeated call: %+v after %d runs", a, runs.Load())
	}
	want := step.Step{
		Number: 1, SessionID: "s", ToolName: "count:write", CalledAs: "count:write",
		Outcome: step.Unknown, ErrorCode: "OUTCOME_UNKNOWN", Thought: "why", TurnID: "t", CallID: "c", Time: epoch,
		MinimalArgs: []byte(`{"a":"b"}`), Metadata: []byte(`{}`),
	}
	got := w.steps("s")[0]
	want.Error, want.Observation, want.Inline = got.Error, got.Observation, got.Inline
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(got.Observation, "may or may not") {
		t.Errorf("the step says %q (-want +got):\n%s", got.Observation, diff)
	}
	if left := w.intents(); len(left) != 0 || len(w.steps("s")) != 1 {
		t.Errorf("%d intents, %d steps are left", len(left), len(w.steps("s")))
	}
	changed := req
	changed.Args = nil
	if _, err := w.Call(t.Context(), changed); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("other content: got %v", err)
	}
}

// A call with a request id asks about its own intent only. Those of others cost
// it nothing, however many there were, and one that can't be read is theirs.
func TestIntentsOfOthersDoNotMatter(t *testing.T) {
	var runs atomic.Int64
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "count:write", Mutates: true}, counted(&runs, nil))
	stranger := kv.Scope{Tenant: "another", Kind: kv.OwnerSystem, Owner: "intents"}
	err := w.writer.Do(t.Context(), kv.Request{
		Blind: []kv.Ref{{Keyspace: kv.System, Scope: stranger}},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.System, stranger.Key('i', []byte("a no end")), []byte("no intent"))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	req := request("count:write", nil)
	req.RequestID = "r"
	if w.must(req); runs.Load() != 1 {
		t.Errorf("ran %d times", runs.Load())
	}
	// Nor does it keep those behind it from being recovered.
	if err := w.log.WriteIntent(t.Context(), agent, session.Intent{ID: "left", Tool: "count:write"}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Recover(t.Context()); n != 1 || err != nil {
		t.Errorf("recovered %d, %v; want the one that can be read", n, err)
	}
}

// The request id of a call whose outcome got lost is taken, for calls that
// change nothing as well. Where it was given away all the same, recovering goes
// on.
func TestLostRequestIsNotUsedAgain(t *testing.T) {
	var runs atomic.Int64
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "count:write", Mutates: true}, counted(&runs, nil))
	w.add(tools.Descriptor{Name: "count:read"}, counted(&runs, nil))
	lost, read := request("count:write", nil), request("count:read", nil)
	lost.RequestID, read.RequestID = "r", "r"
	w.engine.Replan(kvtest.FailurePlan{Commit: 2, Repeat: true})
	if a, err := w.Call(t.Context(), lost); err != nil || a.Recorded {
		t.Fatalf("the lost call: %+v, %v", a, err)
	}
	w.engine.Replan(kvtest.FailurePlan{})
	if _, err := w.Call(t.Context(), read); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("another tool under the same id: got %v", err)
	}
	err := w.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{w.log.Ref(agent)}, Stage: func(_ context.Context, tx *kv.Tx) error {
		kv.StageOnce(tx, w.log.Ref(agent), "r", [32]byte{1}, nil, epoch)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Recover(t.Context()); n != 1 || err != nil {
		t.Errorf("Recover: %d, %v", n, err)
	}
	if got := w.steps("default"); len(got) != 1 || got[0].Outcome != step.Unknown || len(w.intents()) != 0 {
		t.Errorf("steps %+v, intents %v", got, w.intents())
	}
}
