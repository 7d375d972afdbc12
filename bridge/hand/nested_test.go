package hand_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The tool of another agent calls, to answer, a tool of the server, as `@ctx.tool`
// functions do. With the hand's defaults: two agents ask a third one, each as often as one agent
// may run tools. The third reads a folder for each. Nothing here takes longer than
// a millisecond.
func TestNestedCallsFinish(t *testing.T) {
	w := MustWorld(t, map[string]string{"a": "a"}, nil)
	worker := kv.AgentScope("default", "worker")
	var inner atomic.Int64
	run, err := tools.NewRemote(tools.Descriptor{Name: "agent:research", Level: tools.LevelFunction, Mutates: true},
		func(ctx context.Context, _ tools.Input) (tools.Output, error) {
			time.Sleep(50 * time.Millisecond) // on its way to the agent and back
			_, err := w.Call(ctx, hand.Request{Scope: worker, Name: "fs:list_dir", Args: []byte(`{}`)})
			if err == nil {
				inner.Add(1)
			}
			return tools.Output{Values: map[string]any{"ok": err == nil}}, err
		})
	if err != nil {
		t.Fatal(err)
	}
	w.Tools.Add(relay{run})
	var done sync.WaitGroup
	var ok atomic.Int64
	began := time.Now()
	for _, caller := range []string{"a", "b"} {
		for range hand.DefaultMaxPerAgent {
			done.Go(func() {
				a, err := w.Call(t.Context(), hand.Request{
					Scope: kv.AgentScope("default", caller), Name: "agent:research", Args: []byte(`{}`), Timeout: 5 * time.Second,
				})
				if err == nil && a.Success {
					ok.Add(1)
				}
			})
		}
	}
	// Somebody who has nothing to do with it.
	stranger := make(chan time.Duration, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		began := time.Now()
		_, _ = w.Call(context.Background(), hand.Request{Scope: kv.AgentScope("another-tenant", "c"), Name: "fs:stat", Args: []byte(`{"path":"a"}`)})
		stranger <- time.Since(began)
	}()
	done.Wait()
	t.Logf("%d of %d calls succeeded, %d inner ones, after %v; a stranger of another tenant waited %v",
		ok.Load(), 2*hand.DefaultMaxPerAgent, inner.Load(), time.Since(began), <-stranger)
	if ok.Load() != 2*hand.DefaultMaxPerAgent {
		t.Fail()
	}
}
