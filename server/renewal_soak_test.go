package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

// soakRuns are enough runs for 50 renewals of a window.
const soakRuns = 20

// joinedRuns is a session of recorded runs, one behind the other, and what its prompts
// show of the names that the next action needs.
type joinedRuns struct {
	tb      testing.TB
	server  *servertest.Server
	session string
	window  int32
	history *loombridgev1.HistorySettings

	// Names of all messages so far, and of those that were no results.
	earlier, elsewhere map[string]bool
	// What was counted: names that actions needed, those that stood in the prompt, and
	// the same of names that only results had; the cost of all prompts, and what they would
	// have cost with nothing folded.
	needed, visible, neededTool, visibleTool int
	prompts, renewals                        int
	cost, plain                              float64
	tokens, worst                            float64
}

func namesIn(texts ...string) map[string]bool {
	names := make(map[string]bool)
	for _, text := range texts {
		excerpt.EachIdentifier(text, func(id string) { names[id] = true })
	}
	return names
}

// callTexts are the texts of a message's calls, name and arguments.
func callTexts(m *replay.Message) []string {
	var texts []string
	for i := range m.Calls {
		texts = append(texts, m.Calls[i].Name+" "+m.Calls[i].Args)
	}
	return texts
}

// ask makes the prompt before an action, and looks for what that needs.
func (j *joinedRuns) ask(next *replay.Message) {
	p, err := j.server.Context.Assemble(j.tb.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: j.session, MaxTokens: j.window, WithoutTools: true, History: j.history,
	})
	must(j.tb, err)
	r := p.GetReceipt()
	j.prompts++
	if r.GetBatch().GetLevel() == loombridgev1.PressureLevel_PRESSURE_LEVEL_RENEWAL {
		j.renewals++
	}
	j.cost, j.plain = j.cost+r.GetCost(), j.plain+r.GetAppendOnlyCost()
	j.tokens += float64(p.GetTokens().GetTokens())
	j.worst = max(j.worst, r.GetPressure())
	shown := make(map[string]bool)
	for _, m := range p.GetMessages() {
		excerpt.EachIdentifier(m.GetContent(), func(id string) { shown[id] = true })
		for _, c := range m.GetToolCalls() {
			excerpt.EachIdentifier(c.GetName()+" "+c.GetArgumentsJson(), func(id string) { shown[id] = true })
		}
	}
	for id := range namesIn(callTexts(next)...) {
		if !j.earlier[id] {
			continue
		}
		seen := 0
		if shown[id] {
			seen = 1
		}
		j.needed, j.visible = j.needed+1, j.visible+seen
		if !j.elsewhere[id] {
			j.neededTool, j.visibleTool = j.neededTool+1, j.visibleTool+seen
		}
	}
}

// add says a run. Instructions are those of the first.
func (j *joinedRuns) add(run *replay.Run, first bool) {
	roles := map[string]loombridgev1.Role{
		"system": loombridgev1.Role_ROLE_SYSTEM, "user": loombridgev1.Role_ROLE_USER,
		"assistant": loombridgev1.Role_ROLE_ASSISTANT, "tool": loombridgev1.Role_ROLE_TOOL,
	}
	for i := range run.Messages {
		m := &run.Messages[i]
		if m.Role == "system" && !first {
			continue
		}
		if m.Role == "assistant" && len(m.Calls) > 0 {
			j.ask(m)
		}
		message := &loombridgev1.Message{Role: roles[m.Role], Content: m.Text, ToolCallId: m.CallID}
		for _, call := range m.Calls {
			message.ToolCalls = append(message.ToolCalls, &loombridgev1.ModelToolCall{Id: call.ID, Name: call.Name, ArgumentsJson: call.Args})
		}
		if message.GetRole() == 0 || message.GetContent() == "" && len(message.GetToolCalls()) == 0 {
			continue
		}
		_, err := j.server.Context.AppendMessages(j.tb.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: j.session, Messages: []*loombridgev1.Message{message}})
		must(j.tb, err)
		for id := range namesIn(append(callTexts(m), m.Text)...) {
			j.earlier[id] = true
			if m.Role != "tool" {
				j.elsewhere[id] = true
			}
		}
	}
}

// Recorded runs, one behind the other in one session: how much of what the next action
// needs stands in prompts whose window is renewed again and again, and what they cost,
// beside those of the ledger and those with nothing folded. A few renewals by default, 50
// and more with LOOM_SOAK_ROUNDS.
//
// H29, P37
func TestRenewalsOverRecordedRunsSoak(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	runs := MustRuns(t, filepath.Join(dir, "trajectories", "mini_swe_dev.jsonl"))
	most := 4
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		most = min(len(runs), soakRuns)
	}
	for _, arm := range []struct {
		name    string
		window  int32
		history *loombridgev1.HistorySettings
	}{
		{"levels and renewals", 24_000, &loombridgev1.HistorySettings{Preset: "partitioned"}},
		{"ledger", 400_000, &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER}},
	} {
		t.Run(arm.name, func(t *testing.T) {
			j := &joinedRuns{
				tb: t, server: servertest.Start(t, nil), session: "s", window: arm.window, history: arm.history,
				earlier: make(map[string]bool), elsewhere: make(map[string]bool),
			}
			for i := range runs[:most] {
				j.add(&runs[i], i == 0)
			}
			t.Logf("%d prompts, %d renewals, names %.4f of %d, only of results %.4f of %d, cost %.3f of append-only, mean prompt %.0f tokens, highest pressure %.3f",
				j.prompts, j.renewals, float64(j.visible)/float64(max(j.needed, 1)), j.needed, float64(j.visibleTool)/float64(max(j.neededTool, 1)), j.neededTool,
				j.cost/j.plain, j.tokens/float64(j.prompts), j.worst)
			if j.worst >= 1 {
				t.Errorf("a prompt has a pressure of %v", j.worst)
			}
		})
	}
}
