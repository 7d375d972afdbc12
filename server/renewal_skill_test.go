package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// No window is refused under the ledger that the active skill and a long handoff could make
// room in: the history is as short as it can be, then the handoff says less, and then the
// skill is shown by its name alone. What is refused is smaller than all that is left, and
// the error counts all of it.
//
// H05, H07, H28, P37, X02
func TestLedgerEvictsSkills(t *testing.T) {
	s := servertest.Start(t, nil)
	skill := strings.TrimSpace(strings.Repeat("skill ", 400))
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "s", Prompt: &loombridgev1.PromptSettings{
		Skills: []*loombridgev1.Skill{{Name: "mending", Description: "How to mend", Text: skill, Active: true}},
	}})
	MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s", Scratchpad: new(strings.TrimSpace(strings.Repeat("note ", 100)))})
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Mend the parser."},
	}})
	must(t, err)
	for n := range 40 {
		MustRecord(t, s, "s", "my:tool", fmt.Sprintf(`{"file":"src/part_%d.go"}`, n), fmt.Sprintf("src/part_%d.go has %s", n, strings.Repeat(fmt.Sprintf("name_%d_a name_%d_b ", n, n), 40)))
	}
	// System, wish, working state, one line of folds and the shortest handoff take 340.
	const leastWindow = 360
	full, named := 0, 0
	for at := int32(1000); ; at -= 20 {
		p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: at, WithoutTools: true, DryRun: true})
		if err != nil {
			MustFail(t, err, codes.FailedPrecondition, "CONTEXT_OVERFLOW")
			if at > leastWindow {
				t.Errorf("a window of %d is refused: %v", at, err)
			}
			break
		}
		text := promptText(p)
		skills := strings.Contains(text, "skill skill")
		switch {
		case !strings.Contains(text, "Mend the parser.") || !strings.Contains(text, "mending"):
			t.Fatalf("a window of %d has lost the wish or the name of the skill:\n%s", at, text)
		case skills && named > 0:
			t.Fatalf("a window of %d shows the skill that a larger one left out", at)
		case !skills:
			named++
		default:
			full++
		}
	}
	if full == 0 || named == 0 {
		t.Errorf("%d windows with the skill, %d without", full, named)
	}
}

// A window that is too full under the ledger begins anew by itself: the snapshot is kept,
// the active skill is shown by its name, and the turn has no second renewal.
//
// H28, H29, P36, P37, X02
func TestLedgerRenewsByPressure(t *testing.T) {
	s := servertest.Start(t, nil)
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "s", Prompt: &loombridgev1.PromptSettings{
		Skills: []*loombridgev1.Skill{{Name: "mending", Description: "How to mend", Text: strings.TrimSpace(strings.Repeat("skill ", 400)), Active: true}},
	}})
	MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s", GoalProgress: new("half done")})
	for n := range 40 {
		MustRecord(t, s, "s", "my:tool", fmt.Sprintf(`{"file":"src/part_%d.go"}`, n), fmt.Sprintf("src/part_%d.go has %s", n, strings.Repeat(fmt.Sprintf("name_%d_a name_%d_b ", n, n), 40)))
	}
	var first *loombridgev1.AssembleResponse
	for range 2 { // the same turn
		p := MustAssemble(t, s, &loombridgev1.AssembleRequest{SessionId: "s", MaxTokens: 480, WithoutTools: true})
		text := promptText(p)
		if r := p.GetReceipt(); r.GetSprint() != 1 || r.GetPressure() >= 1 || strings.Contains(text, "skill skill") || !strings.Contains(text, "mending") || !strings.Contains(text, "half done") || !strings.Contains(text, "(Sprint 1)") {
			t.Fatalf("sprint %d, pressure %v\n%s", r.GetSprint(), r.GetPressure(), text)
		}
		if first == nil {
			first = p
			if atLevel(p) != "RENEWAL" {
				t.Errorf("level %s", atLevel(p))
			}
		} else if promptText(first) != text || atLevel(p) != "UNSPECIFIED" {
			t.Errorf("again: level %s\n%s", atLevel(p), text)
		}
	}
	got, err := s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: agent, SessionId: "s", Sprint: 1})
	must(t, err)
	if snapshot := got.GetSnapshots()[0]; snapshot.GetWorking().GetDashboard().GetGoalProgress() != "half done" || !strings.Contains(promptText(first), snapshot.GetHandoff()) {
		t.Errorf("the snapshot is %v", snapshot)
	}
}
