package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What a step said is in no file of a running server's store when that says so, and all that
// other steps said is; the command takes out another one of the stopped store, and the certificates
// of both hold.
//
// Y49
func TestEraseOfAStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	p := MustRun(t, dir)
	said := make([]canaries, 3)
	for i := range said {
		said[i] = make(canaries)
		var lines []string
		for range 40 {
			lines = append(lines, said[i].text("result"), strings.Repeat("line after line ", 60))
		}
		output, err := json.Marshal(strings.Join(lines, "\n"))
		must(t, err)
		_, err = p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: "a", SessionId: "s", ToolName: "own:tool", Success: true, Thought: "I think of " + said[i].text("thought"),
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"question":"` + said[i].text("arguments") + `"}`},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(output)},
			Task:          &loombridgev1.Task{Action: "node.tool_result", Result: "it gave " + said[i].text("task")},
		})
		must(t, err)
		_, err = p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: "a goal", MaxTokens: 30_000})
		must(t, err)
	}
	for i, have := range said {
		if found := sum(have.found(t, copyOf(t, store))); found != len(have) {
			t.Fatalf("of step %d %d of %d canaries are found", i+1, found, len(have))
		}
	}
	subject := erasedAgent("a")
	subject.SessionId, subject.StepId = "s", "step_002"
	done, err := p.eraseScope(t, subject, false)
	must(t, err)
	if done.GetBytesState() != loombridgev1.EraseBytesState_ERASE_BYTES_STATE_RECLAIMED || done.GetCounts()["blobs"] < 1 || done.GetCounts()["tasks"] != 1 {
		t.Errorf("erased were %v", done)
	}
	if left := said[1].found(t, copyOf(t, store)); sum(left) != 0 {
		t.Errorf("left are %v", left)
	}
	must(t, p.Stop())
	out := filepath.Join(dir, "1.json")
	erase := func(flags ...string) (string, error) {
		return loomCommand(t, append([]string{"erase", "--agent", "a", "--key", filepath.Join(dir, "k"), "--out", out, "--data-dir", store}, flags...)...)
	}
	for _, bad := range [][]string{{"--step", "1"}, {"--step", ""}, {"--step", "step_001", "--filter", `kind = "fact"`}, {"--step", "step_001", "--session", "other"}, {"--step", "step_002"}} {
		if answer, err := erase(bad...); err == nil {
			t.Errorf("%q: %s", bad, answer)
		}
	}
	_, err = erase("--step", "step_001", "--session", "s")
	must(t, err)
	if left := said[0].found(t, store); sum(left) != 0 {
		t.Errorf("left by the command are %v", left)
	}
	if kept := sum(said[2].found(t, store)); kept != len(said[2]) {
		t.Errorf("of the third step are left %d of %d", kept, len(said[2]))
	}
	_, err = loomCommand(t, "erase", "verify", out, "--data-dir", store)
	must(t, err)
	if answer, err := loomCommand(t, "check", "--data-dir", store); err != nil || !strings.HasSuffix(answer, "nothing is damaged\n") {
		t.Errorf("check: %v: %s", err, answer)
	}
}
