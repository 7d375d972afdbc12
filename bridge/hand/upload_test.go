package hand_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// chunkOf is a blind commit of a piece of an upload.
func chunkOf(scope kv.Scope, n int) kv.Commit {
	batch := new(kv.Batch)
	batch.Put(kv.Blobs, scope.Key('c', fmt.Appendf(nil, "%032d", n)), []byte("a piece"))
	ref := kv.Ref{Keyspace: kv.Blobs, Scope: scope}
	return kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: batch, Lazy: true}
}

// TestStepBesideUploads records steps while a piece of an upload of the same agent
// comes before every single commit.
func TestStepBesideUploads(t *testing.T) {
	w := MustWorld(t, nil, nil)
	pieces := 0
	w.engine.Replan(kvtest.FailurePlan{Before: func(behind kv.Engine, _ kv.Commit) {
		pieces++
		if err := behind.Commit(t.Context(), chunkOf(agent, pieces)); err != nil {
			t.Error(err)
		}
	}})
	for n := range 5 {
		a := w.mustRecord(largeReport(n))
		if !a.Recorded || a.RecordError != nil {
			t.Fatalf("step %d: %+v", n, a)
		}
	}
	w.engine.Replan(kvtest.FailurePlan{})
	if got := len(w.steps("")); got != 5 || pieces > 10 {
		t.Errorf("%d steps beside %d pieces, want 5 beside at most 10", got, pieces)
	}
}

// largeReport is a call whose result is offloaded, so that its commit guards the
// agent's blobs.
func largeReport(n int) hand.Recorded {
	return hand.Recorded{
		Request: hand.Request{Scope: agent, Name: "shell", Args: []byte(`{}`)},
		Output:  step.Original{Form: step.FormJSON, Data: fmt.Appendf(nil, `{"output":"%020000d"}`, n)},
	}
}
