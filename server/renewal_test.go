package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// busy is a session of the preset partitioned whose agent has noted all that a renewal
// keeps.
func busy(tb testing.TB, s *servertest.Server, session string) *loombridgev1.Working {
	tb.Helper()
	pressed(tb, s, session, true)
	MustUpdateWorking(tb, s, &loombridgev1.UpdateWorkingRequest{SessionId: session, Signals: []*loombridgev1.Signal{
		{EventId: "a", Summary: "a"}, {EventId: "b", Summary: "b"}, {EventId: "c", Summary: "c"}, {EventId: "d", Summary: "d"}, {EventId: "e", Summary: "e"}, {EventId: "f", Summary: "f"},
	}})
	r := &loombridgev1.UpdateWorkingRequest{
		SessionId: session, Goal: new("Mend the parser"), GoalProgress: new("half done"), Scratchpad: new("mind the gap"),
		Plan: planOf(
			&loombridgev1.PlanItem{Text: "find the parser", Status: loombridgev1.PlanStatus_PLAN_STATUS_DONE},
			&loombridgev1.PlanItem{Text: "mend it", Status: loombridgev1.PlanStatus_PLAN_STATUS_IN_PROGRESS},
			&loombridgev1.PlanItem{Text: "test it"},
		),
		AddQuestions: []string{"Who wrote it?"}, AddEvidence: []*loombridgev1.Evidence{{Source: "wiki", Title: "Parsers", Content: "They parse.", Score: 0.5}},
		Signals: []*loombridgev1.Signal{{EventId: "rain", Summary: "it rains"}, {EventId: "fire", Summary: "it burns", Urgency: loombridgev1.Urgency_URGENCY_CRITICAL}},
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		r.Acknowledge = append(r.Acknowledge, &loombridgev1.Acknowledgement{EventId: id, Decision: loombridgev1.EventDecision_EVENT_DECISION_IGNORE})
	}
	return MustUpdateWorking(tb, s, r)
}

// kept is what a renewal leaves as it is of a working state.
func kept(w *loombridgev1.Working) *loombridgev1.Working {
	w = proto.CloneOf(w)
	w.Dashboard.Rho, w.Dashboard.TokenBudget, w.Tokens = 0, 0, 0
	return w
}

// atLevel is the level of a prompt's batch.
func atLevel(p *loombridgev1.AssembleResponse) string {
	return strings.TrimPrefix(p.GetReceipt().GetBatch().GetLevel().String(), "PRESSURE_LEVEL_")
}

func mustRenew(tb testing.TB, s *servertest.Server, r *loombridgev1.RenewRequest) *loombridgev1.RenewResponse {
	tb.Helper()
	r.AgentId = agent
	got, err := s.Context.Renew(tb.Context(), r)
	must(tb, err)
	return got
}

// A prompt that would take all of its window begins it anew: what the agent is at stays and
// is kept as a snapshot, the handoff stands first, and the prompt fits. A turn has one
// renewal; the next one has another. Both outlive the server, and Undo takes the window
// back.
//
// F21, H20, H21, H28, H29, P36, P37, P38
func TestRenewal(t *testing.T) {
	o := &servertest.Options{Engine: MustEngine(t)}
	s := servertest.Start(t, o)
	before := busy(t, s, "s")
	if n := len(before.GetDecisions()); n != 5 {
		t.Fatalf("%d decisions", n)
	}
	at := window(t, s, "s", 1.3)
	dry := pressedPrompt(t, s, "s", at, true)
	if got, err := s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: agent, SessionId: "s"}); err != nil || len(got.GetSnapshots()) > 0 {
		t.Fatalf("a dry run left %v, %v", got, err)
	}
	p := pressedPrompt(t, s, "s", at, false)
	r := p.GetReceipt()
	if atLevel(p) != "RENEWAL" || r.GetSprint() != 1 || r.GetPressure() >= 1 || promptText(p) != promptText(dry) {
		t.Fatalf("level %s, sprint %d, pressure %v; a dry run says\n%s", atLevel(p), r.GetSprint(), r.GetPressure(), promptText(dry))
	}
	golden(t, "levels/renewal", historyOf(p))
	if text := promptText(p); strings.Index(text, "it burns") > strings.Index(text, "it rains") {
		t.Errorf("the critical event is not first:\n%s", text)
	}
	check := func() {
		t.Helper()
		if after := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s"}); !proto.Equal(kept(after), kept(before)) {
			t.Errorf("the working state was\n%v\nand is\n%v", before, after)
		}
		got, err := s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: agent, SessionId: "s", Sprint: 1})
		must(t, err)
		snapshot := got.GetSnapshots()[0]
		if !proto.Equal(kept(snapshot.GetWorking()), kept(before)) || snapshot.GetWorking().GetDashboard().GetRho() < 1 || snapshot.GetSprint() != 1 {
			t.Errorf("the snapshot is\n%v\nof\n%v", snapshot, before)
		}
		h := snapshot.GetHandoff()
		for _, text := range []string{"Mend the parser", "half done", "mend it", "test it"} {
			if !strings.Contains(h, text) || !strings.Contains(promptText(p), h) {
				t.Errorf("the handoff has no %q, or is not in the prompt: %s", text, h)
			}
		}
	}
	check()
	for range 2 { // the same turn
		if again := pressedPrompt(t, s, "s", at, false); atLevel(again) != "UNSPECIFIED" || again.GetReceipt().GetSprint() != 1 || historyOf(again) != historyOf(p) {
			t.Errorf("again: %s, sprint %d\n%s", atLevel(again), again.GetReceipt().GetSprint(), historyOf(again))
		}
	}
	if again := mustRenew(t, s, &loombridgev1.RenewRequest{SessionId: "s"}); again.GetRenewed() || again.GetSnapshot().GetSprint() != 1 {
		t.Errorf("Renew in the same turn: %v", again)
	}
	s = servertest.Start(t, o)
	check()
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: strings.Repeat("omega ", 2500)}, {Role: loombridgev1.Role_ROLE_USER, Content: "Go on."},
	}})
	must(t, err)
	second := pressedPrompt(t, s, "s", at, false)
	if atLevel(second) != "RENEWAL" || second.GetReceipt().GetSprint() != 2 || second.GetReceipt().GetPressure() >= 1 || strings.Count(promptText(second), "# Handoff Document") != 1 {
		t.Errorf("the second: %s, sprint %d, pressure %v\n%s", atLevel(second), second.GetReceipt().GetSprint(), second.GetReceipt().GetPressure(), historyOf(second))
	}
	_, err = s.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	if undone := pressedPrompt(t, s, "s", 100_000, true); !strings.Contains(historyOf(undone), "(Sprint 1)") {
		t.Errorf("undone:\n%s", historyOf(undone))
	}
	list, err := s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: agent, SessionId: "s", PageSize: 1})
	must(t, err)
	rest, err := s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: agent, SessionId: "s", PageSize: 1, PageToken: list.GetNextPageToken()})
	must(t, err)
	if len(list.GetSnapshots()) != 1 || len(rest.GetSnapshots()) != 1 || rest.GetSnapshots()[0].GetSprint() != 2 {
		t.Errorf("the pages are %v and %v", list, rest)
	}
}

// A window begins anew from a pressure of 1.0 on, and not before.
//
// H28
func TestWhenAWindowBeginsAnew(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, tt := range []struct {
		share float64
		renew bool
	}{{0.97, false}, {1.02, true}, {1.04, true}, {1.2, true}} {
		session := fmt.Sprint("s", i)
		pressed(t, s, session, true)
		p := pressedPrompt(t, s, session, window(t, s, session, tt.share), false)
		if got := atLevel(p) == "RENEWAL"; got != tt.renew || got != (p.GetReceipt().GetSprint() == 1) {
			t.Errorf("at %v: level %s, sprint %d", tt.share, atLevel(p), p.GetReceipt().GetSprint())
		}
	}
}

// A caller may renew a window at any pressure; the same request again does nothing more,
// and a policy that has no renewal says so.
//
// H28, P37, P38
func TestRenew(t *testing.T) {
	s := servertest.Start(t, nil)
	before := busy(t, s, "s")
	first := mustRenew(t, s, &loombridgev1.RenewRequest{SessionId: "s", RequestId: "r"})
	if !first.GetRenewed() || first.GetSnapshot().GetSprint() != 1 || !proto.Equal(kept(first.GetSnapshot().GetWorking()), kept(before)) {
		t.Fatalf("%v", first)
	}
	golden(t, "levels/handoff", first.GetSnapshot().GetHandoff()+"\n")
	p := pressedPrompt(t, s, "s", 100_000, false)
	if !strings.Contains(historyOf(p), "[user] # Handoff Document (Sprint 1)") || p.GetReceipt().GetSprint() != 1 {
		t.Errorf("the prompt is\n%s", historyOf(p))
	}
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Go on."},
	}})
	must(t, err)
	if again := mustRenew(t, s, &loombridgev1.RenewRequest{SessionId: "s", RequestId: "r"}); again.GetRenewed() || again.GetSnapshot().GetSprint() != 1 {
		t.Errorf("the same request: %v", again)
	}
	if next := mustRenew(t, s, &loombridgev1.RenewRequest{SessionId: "s"}); !next.GetRenewed() || next.GetSnapshot().GetSprint() != 2 {
		t.Errorf("the next turn: %v", next)
	}
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "other", History: &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY}})
	_, err = s.Context.Renew(t.Context(), &loombridgev1.RenewRequest{AgentId: agent, SessionId: "other"})
	MustFail(t, err, codes.FailedPrecondition, "NO_RENEWAL")
	for _, sprint := range []int32{1, 3} {
		id := map[int32]string{1: "other", 3: "s"}[sprint]
		_, err = s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: agent, SessionId: id, Sprint: sprint})
		MustFail(t, err, codes.NotFound, "SNAPSHOT_NOT_FOUND")
	}
	if _, err := s.Context.ListSnapshots(t.Context(), &loombridgev1.ListSnapshotsRequest{AgentId: "somebody", SessionId: "s", Last: true}); err == nil {
		t.Error("another agent reads the snapshot")
	}
}

// What does not fit a renewed window gives way in order: history, then skills, which are
// shown by name, then memory; system and working state never.
//
// H04, H05, H06, H07, P37
func TestEvictionOrder(t *testing.T) {
	s := servertest.Start(t, nil)
	busy(t, s, "s")
	skill := strings.TrimSpace(strings.Repeat("skill ", 400))
	for i := range 8 {
		_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{
			AgentId: agent, Kind: "knowledge", Text: fmt.Sprintf("How to mend the parser, part %d: %s", i, strings.Repeat("memory ", 50)),
			MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"title":"Parser %d","type":"manual"}`, i)},
		})
		must(t, err)
	}
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "s", Prompt: &loombridgev1.PromptSettings{
		Skills: []*loombridgev1.Skill{{Name: "mending", Description: "How to mend", Text: skill, Active: true}},
	}})
	full := pressedPrompt(t, s, "s", 100_000, true)
	parts := full.GetReceipt().GetPartitions()
	if parts["skill"] < 300 || parts["memory"] < 300 || parts["history"] < 1000 {
		t.Fatalf("nothing to evict: %v", parts)
	}
	order := 0
	for at := full.GetTokens().GetTokens() - 10; ; at -= 10 {
		p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", System: "Be brief.", MaxTokens: at, DryRun: true})
		if err != nil {
			MustFail(t, err, codes.FailedPrecondition, "CONTEXT_OVERFLOW")
			if order != 2 {
				t.Errorf("a window of %d is refused before all was evicted", at)
			}
			break
		}
		now := p.GetReceipt().GetPartitions()
		skills := strings.Contains(promptText(p), "skill skill")
		switch {
		case p.GetReceipt().GetPressure() >= 1:
			t.Fatalf("a window of %d: pressure %v", at, p.GetReceipt().GetPressure())
		case !strings.Contains(promptText(p), "Be brief.") || !strings.Contains(promptText(p), "mind the gap"):
			t.Fatalf("a window of %d: system or working state is gone:\n%s", at, promptText(p))
		case skills && now["memory"] != parts["memory"]:
			t.Fatalf("a window of %d: memory went before skills: %v", at, now)
		case !skills && now["history"] >= parts["history"]:
			t.Fatalf("a window of %d: skills went before history: %v", at, now)
		case !skills && !strings.Contains(promptText(p), "mending"):
			t.Fatalf("a window of %d: the name of the skill is gone", at)
		case now["memory"] < parts["memory"]:
			order = 2
		case !skills:
			order = max(order, 1)
		}
	}
}

// A session that is served in a window is served in each that is larger, whatever its prompt
// is made of: what stands around the history may take more beside it than alone, and memory
// and skills still give way by as little as is needed.
//
// P37
func TestEachLargerWindowIsServed(t *testing.T) {
	t.Parallel()
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := servertest.Start(t, nil)
	words := func(word string, most int) string {
		return strings.TrimSpace(strings.Repeat(word+" ", 1+rng.IntN(most)))
	}
	served, withMemory := 0, 0
	for n := range 5 {
		who, session := fmt.Sprint("agent-", n), "s"
		for i := range rng.IntN(8) {
			_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{
				AgentId: who, Kind: "knowledge", Text: fmt.Sprintf("How to mend the parser, part %d: %s", i, words("memory", 80)),
			})
			must(t, err)
		}
		prompt := &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{None: true}}
		for i := range rng.IntN(3) {
			prompt.Skills = append(prompt.Skills, &loombridgev1.Skill{Name: fmt.Sprint("mending", i), Description: words("how", 10), Text: words("skill", 200), Active: true})
		}
		preset := &loombridgev1.HistorySettings{Preset: "partitioned"}
		if n%4 == 3 {
			preset = &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER}
		}
		_, err := s.Context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: who, SessionId: session, History: preset, Prompt: prompt})
		must(t, err)
		var said []*loombridgev1.Message
		for range 2 + rng.IntN(8) {
			said = append(said,
				&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: words("ask", 40)},
				&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: words("do", 120)})
		}
		if rng.IntN(2) == 0 {
			said = append(said, &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: "Now mend the parser."})
		}
		_, err = s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: who, SessionId: session, Messages: said})
		must(t, err)
		if rng.IntN(2) == 0 {
			_, err = s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: who, SessionId: session, Goal: new("Mend the parser"), Scratchpad: new(words("note", 60))})
			must(t, err)
		}
		refused := int32(0)
		for at := int32(2000); at > 30; at -= 1 + rng.Int32N(1+at/15) {
			p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: who, SessionId: session, System: "Be brief.", MaxTokens: at, DryRun: true})
			if err != nil {
				MustFail(t, err, codes.FailedPrecondition, "CONTEXT_OVERFLOW")
				refused = max(refused, at)
				continue
			}
			if refused > 0 {
				t.Fatalf("session %d: a window of %d is refused, one of %d is served:\n%s", n, refused, at, promptText(p))
			}
			if got := p.GetTokens().GetTokens(); got > at {
				t.Fatalf("session %d: %d tokens in a window of %d", n, got, at)
			}
			served++
			if p.GetReceipt().GetPartitions()["memory"] > 0 {
				withMemory++
			}
		}
		if refused == 0 {
			t.Errorf("session %d: no window is too small", n)
		}
	}
	if withMemory == 0 || withMemory == served {
		t.Errorf("memory stands in %d of %d prompts: the test tests little", withMemory, served)
	}
}

// Behind the default ledger the levels come where nothing more can be folded and the prompt
// still does not fit: once Reactive, then a renewal, and only then it is refused. What the
// user said stays whole.
//
// H26, H28, X02
func TestLevelsBehindTheLedger(t *testing.T) {
	s := servertest.Start(t, nil)
	wish := "The user wants this: " + strings.TrimSpace(strings.Repeat("wish ", 100))
	say := func(role loombridgev1.Role, content string) {
		t.Helper()
		_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{{Role: role, Content: content}}})
		must(t, err)
	}
	MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s", GoalProgress: new("well on")})
	say(loombridgev1.Role_ROLE_USER, wish)
	for n := range 120 {
		MustRecord(t, s, "s", "my:tool", fmt.Sprintf(`{"file":"src/part_%d.go"}`, n), fmt.Sprintf("src/part_%d.go has %s", n, strings.Repeat(fmt.Sprintf("name_%d_a name_%d_b ", n, n), 40)))
	}
	seen := map[string]bool{}
	whole := MustAssemble(t, s, &loombridgev1.AssembleRequest{SessionId: "s", MaxTokens: 100_000, DryRun: true, WithoutTools: true})
	sprint := int32(0)
	for at := whole.GetTokens().GetTokens(); ; at = at * 19 / 20 {
		say(loombridgev1.Role_ROLE_ASSISTANT, "I go on.")
		p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: at, WithoutTools: true})
		if err != nil {
			MustFail(t, err, codes.FailedPrecondition, "CONTEXT_OVERFLOW")
			break
		}
		now := atLevel(p)
		seen[now] = true
		if text := promptText(p); !strings.Contains(text, wish) || p.GetReceipt().GetPressure() > 1 {
			t.Fatalf("a window of %d: pressure %v\n%s", at, p.GetReceipt().GetPressure(), text)
		}
		if now == "RENEWAL" {
			sprint++
			if p.GetReceipt().GetPressure() >= 1 || p.GetReceipt().GetSprint() != sprint || !strings.Contains(promptText(p), fmt.Sprintf("(Sprint %d)", sprint)) {
				t.Fatalf("a window of %d: sprint %d, pressure %v", at, p.GetReceipt().GetSprint(), p.GetReceipt().GetPressure())
			}
		}
		again, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", MaxTokens: at, WithoutTools: true})
		must(t, err)
		if promptText(again) != promptText(p) {
			t.Fatalf("a window of %d: the same turn differs:\n%s\n%s", at, promptText(p), promptText(again))
		}
	}
	if !seen["UNSPECIFIED"] || !seen["REACTIVE"] {
		t.Errorf("levels %v", seen)
	}
	got := mustRenew(t, s, &loombridgev1.RenewRequest{SessionId: "s"})
	if !got.GetRenewed() || got.GetSnapshot().GetSprint() != sprint+1 || got.GetSnapshot().GetWorking().GetDashboard().GetGoalProgress() != "well on" {
		t.Errorf("Renew: %v", got)
	}
	p := MustAssemble(t, s, &loombridgev1.AssembleRequest{SessionId: "s", MaxTokens: 100_000, WithoutTools: true})
	if text := promptText(p); !strings.Contains(text, "# Handoff Document") || !strings.Contains(text, wish) {
		t.Errorf("the prompt is\n%s", text)
	}
}
