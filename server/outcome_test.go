package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Results that are too long together are cut to the same length in the outcome, the short
// ones not, and each names the step of the parent from which all of it can be read.
//
// P20
func TestOutcomeOfLongResults(t *testing.T) {
	const children, long = 20, 250 << 10 // 5 MB together: more than an answer may have
	s := servertest.Start(t, nil)
	whole := map[string]string{}
	for i := range children {
		id := fmt.Sprintf("c%02d", i)
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: id})
		whole[id] = fmt.Sprintf("%s found %s the end of %s", id, strings.Repeat("much ", long/5), id)
		mustReturn(t, s, id, whole[id])
	}
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "short"})
	mustReturn(t, s, "short", "little")
	got := mustWait(t, s, 0)
	said := strings.Split(got.GetOutcome(), "\n\n")
	if n := len(got.GetOutcome()); !got.GetCut() || len(got.GetPending()) > 0 || n > 1<<20 || n < 1<<19 || len(said) != children+1 || len(got.GetChildren()) != children+1 {
		t.Fatalf("cut %v, %d bytes in %d paragraphs of %d children", got.GetCut(), n, len(said), len(got.GetChildren()))
	}
	for i, c := range got.GetChildren() {
		id := c.GetChildId()
		if id == "short" {
			if said[i] != "[short] little" {
				t.Errorf("the short one is %q", said[i])
			}
			continue
		}
		if !strings.HasPrefix(said[i], "["+id+"] "+id+" found much") || !strings.HasSuffix(said[i], "full text: "+c.GetResultStepId()+"]") || c.GetResult() != "" {
			t.Fatalf("%s: %.40q ... %q, result of %d bytes", id, said[i], said[i][len(said[i])-80:], len(c.GetResult()))
		}
	}
	step := got.GetChildren()[3].GetResultStepId()
	_, content := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: "p", Name: step})
	if text := string(content); !strings.Contains(text, whole["c03"]) {
		t.Errorf("%s has %d bytes, not all of the result", step, len(content))
	}
	few := mustWait(t, s, 0, "c01", "short")
	if few.GetCut() || few.GetChildren()[0].GetResult() != whole["c01"] || !strings.Contains(few.GetOutcome(), whole["c01"]) {
		t.Errorf("two of them: cut %v", few.GetCut())
	}
}
