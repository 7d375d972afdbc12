package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustAssemble is the prompt of a request of the usual agent.
func MustAssemble(tb testing.TB, s *servertest.Server, r *loombridgev1.AssembleRequest) *loombridgev1.AssembleResponse {
	tb.Helper()
	r.AgentId = agent
	got, err := s.Context.Assemble(tb.Context(), r)
	must(tb, err)
	return got
}

// promptText is all that a prompt says.
func promptText(p *loombridgev1.AssembleResponse) string {
	var b strings.Builder
	for _, m := range p.GetMessages() {
		b.WriteString(m.GetContent() + "\n")
	}
	return b.String()
}

func partitioned() *loombridgev1.PromptSettings {
	return &loombridgev1.PromptSettings{Layout: loombridgev1.PromptLayout_PROMPT_LAYOUT_PARTITIONED, Tools: &loombridgev1.ToolSelection{None: true}}
}

// What an agent notes stands in its prompts, survives the server, and is answered as it
// is; the dashboard has the figures of the prompt that it stands in.
//
// H03, H09, H10, H11, H12, H13, H16, H17, H18, H19, P32
func TestWorkingState(t *testing.T) {
	o := &servertest.Options{Engine: MustEngine(t)}
	s := servertest.Start(t, o)
	for i := range 12 {
		MustRecord(t, s, "", "fs:stat", "{}", map[string]any{"size": i})
	}
	for range 3 {
		mustFailStep(t, s)
	}
	got := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{
		Goal: new("Win"), Plan: planOf(&loombridgev1.PlanItem{Text: "look"}), Scratchpad: new("mind the gap"),
		AddQuestions: []string{"Who?"}, AddEvidence: []*loombridgev1.Evidence{{Source: "wiki", Title: "Keys", Content: "They open doors."}},
		Signals: []*loombridgev1.Signal{
			{EventId: "low", Summary: "it rains"},
			{EventId: "fire", Summary: "it burns", Urgency: loombridgev1.Urgency_URGENCY_CRITICAL},
		},
	})
	if d := got.GetDashboard(); d.GetErrorCount() != 3 || !d.GetInterruptRequested() || d.GetGoalProgress() != "Goal: Win" || d.GetDepth() != 0 {
		t.Errorf("dashboard %v", d)
	}
	if len(got.GetPendingEvents()) != 2 || got.GetPendingEvents()[0].GetSummary() != "it burns" || got.GetPendingEvents()[0].GetUrgency() < loombridgev1.Urgency_URGENCY_HIGH {
		t.Errorf("events %v", got.GetPendingEvents())
	}
	s = servertest.Start(t, o)
	p := MustAssemble(t, s, &loombridgev1.AssembleRequest{Settings: partitioned(), MaxTokens: 9000})
	rho := float64(p.GetTokens().GetTokens()) / 9000
	want := fmt.Sprintf(`## Dashboard
- Context Pressure (ρ): %.2f
- Token Budget: %d
- Goal Progress: Goal: Win
- Error Count: 3
- Depth: 0
**INTERRUPT REQUESTED**

## Current Plan
1. look

## Pending Events
- [critical] it burns
- [normal] it rains

## Active Risks
- [critical] it burns

## Active Questions
- Who?

## Knowledge Evidence
### [wiki] Keys
They open doors.

## Knowledge Citations
- wiki

## Scratchpad
mind the gap`, rho, 9000-p.GetTokens().GetTokens())
	last := p.GetMessages()[len(p.GetMessages())-1].GetContent()
	if last != want+"\n\n---\n\nWin" {
		t.Errorf("the prompt ends with\n%s\nwant\n%s", last, want)
	}
	got = MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{GoalProgress: new("half"), Acknowledge: []*loombridgev1.Acknowledgement{
		{EventId: "fire", Decision: loombridgev1.EventDecision_EVENT_DECISION_HANDOFF},
	}})
	if d := got.GetDashboard(); d.GetInterruptRequested() || d.GetGoalProgress() != "half" || d.GetRho() != p.GetReceipt().GetPressure() || d.GetTokenBudget() != 9000-p.GetTokens().GetTokens() {
		t.Errorf("dashboard %v", d)
	}
	if v := got.GetDecisions(); len(v) != 1 || v[0].GetSummary() != "it burns" || v[0].GetDecision() != loombridgev1.EventDecision_EVENT_DECISION_HANDOFF {
		t.Errorf("decisions %v", v)
	}
	for range 10 {
		MustRecord(t, s, "", "fs:stat", "{}", map[string]any{"size": 1})
	}
	if d := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{}).GetDashboard(); d.GetErrorCount() != 0 {
		t.Errorf("after ten steps that worked: %v", d)
	}
}

// mustFailStep records a step that failed.
func mustFailStep(tb testing.TB, s *servertest.Server) {
	tb.Helper()
	_, err := s.Context.RecordStep(tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "fs:stat", ErrorMessage: "no such file",
	})
	must(tb, err)
}

// What takes more than 4,000 tokens of each prompt is refused and changes nothing; events
// from elsewhere never are.
//
// H03
func TestWorkingIsBounded(t *testing.T) {
	s := servertest.Start(t, nil)
	words := 3900
	pad := func(n int) *loombridgev1.UpdateWorkingRequest {
		return &loombridgev1.UpdateWorkingRequest{AgentId: agent, Scratchpad: new(strings.Repeat("word ", n) + "end")}
	}
	words += 4000 - int(MustUpdateWorking(t, s, pad(words)).GetTokens())
	for _, n := range []int{words - 1, words} {
		if got := MustUpdateWorking(t, s, pad(n)); int(got.GetTokens()) != 4000-words+n {
			t.Fatalf("%d words take %d tokens", n, got.GetTokens())
		}
	}
	before := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{})
	_, err := s.Context.UpdateWorking(t.Context(), pad(words+1))
	MustFail(t, err, codes.ResourceExhausted, "WORKING_TOO_LARGE")
	if after := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{}); after.GetScratchpad() != before.GetScratchpad() || after.GetTokens() != 4000 {
		t.Errorf("the refused change is kept: %d tokens", after.GetTokens())
	}
	got := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{Signals: []*loombridgev1.Signal{{EventId: "e", Summary: "it rains"}}})
	if len(got.GetPendingEvents()) != 1 {
		t.Error("an event from elsewhere was refused")
	}
	for i := range 8 {
		r := &loombridgev1.UpdateWorkingRequest{AgentId: agent}
		for k := range 64 {
			r.Signals = append(r.Signals, &loombridgev1.Signal{EventId: fmt.Sprint(i, "-", k), Summary: "it rains"})
		}
		if i == 7 {
			_, err := s.Context.UpdateWorking(t.Context(), r)
			MustFail(t, err, codes.ResourceExhausted, "WORKING_TOO_LARGE")
			r.Signals = r.Signals[1:]
		}
		MustUpdateWorking(t, s, r)
	}
}

// The working state stands behind what the cache keeps.
//
// K19
func TestWorkingCostsNoCachedByte(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Read the draft."}, {Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "It is long."},
	}})
	must(t, err)
	for _, layout := range []loombridgev1.PromptLayout{loombridgev1.PromptLayout_PROMPT_LAYOUT_PARTITIONED, loombridgev1.PromptLayout_PROMPT_LAYOUT_THREE_PHASE} {
		settings := partitioned()
		settings.Layout = layout
		prompt := func(pad string) *loombridgev1.AssembleResponse {
			MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{Goal: new("Win"), Scratchpad: &pad})
			return MustAssemble(t, s, &loombridgev1.AssembleRequest{System: "Be brief.", Settings: settings})
		}
		one, two := prompt("one"), prompt("two")
		text := promptText(two)
		if !strings.Contains(text, "## Scratchpad\ntwo") || strings.Index(text, "## Dashboard") < strings.Index(text, "It is long.") {
			t.Errorf("%v:\n%s", layout, text)
		}
		if one.GetPrefixSha256() != two.GetPrefixSha256() {
			t.Errorf("%v: not the same up to the end of the history", layout)
		}
	}
}

// A heartbeat says that the agent is alive, by the server's clock, and what was seen around
// it: a signal that breaks a rule stops none of the others. What is urgent reaches the
// attached agent at once, its next heartbeat's answer and its next prompt, whoever signals.
//
// H14, H15, H30, P35
func TestHeartbeatsAndSignals(t *testing.T) {
	s := servertest.Start(t, nil)
	hello := helloOf(agent, "agent."+agent+".interrupts")
	hello.SessionId = "s"
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	beat := func(ref int64, signals ...*loombridgev1.Signal) *loombridgev1.AttachAnswer {
		a.send(&loombridgev1.AttachRequest{Ref: ref, Item: &loombridgev1.AttachRequest_Heartbeat{Heartbeat: &loombridgev1.AttachHeartbeat{Signals: signals}}})
		return a.answer(ref)
	}
	working := func() *loombridgev1.Working {
		return MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s"})
	}
	if got := beat(1); got.GetError() != nil || got.GetInterruptRequested() || working().GetDashboard().GetLastHeartbeatTime() != nil {
		t.Errorf("a heartbeat of an agent that notes nothing: %v", got)
	}
	MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s", Goal: new("Win")})
	beat(2)
	if got := working().GetDashboard().GetLastHeartbeatTime().AsTime(); !got.Equal(s.Clock.Now()) {
		t.Errorf("the last heartbeat is %v, now is %v", got, s.Clock.Now())
	}
	got := beat(3, &loombridgev1.Signal{EventId: "rain", Summary: "it rains"}, &loombridgev1.Signal{EventId: "bad"},
		&loombridgev1.Signal{EventId: "calm", Summary: "nothing", DeltaH: new(0.1)}, &loombridgev1.Signal{EventId: "wind", Summary: "it blows", DeltaH: new(0.3)})
	if len(got.GetError().GetFields()) != 1 || got.GetError().GetFields()["heartbeat.signals[1].summary"] == "" || got.GetInterruptRequested() {
		t.Errorf("a bad signal among others: %v", got)
	}
	if w := working(); len(w.GetPendingEvents()) != 2 || w.GetDashboard().GetInterruptRequested() {
		t.Errorf("pending %v", w.GetPendingEvents())
	}
	text := promptText(MustAssemble(t, s, &loombridgev1.AssembleRequest{SessionId: "s", Settings: partitioned()}))
	if !strings.Contains(text, "- Last Heartbeat: "+s.Clock.Now().UTC().Format("2006-01-02T15:04:05Z")) || strings.Contains(text, "INTERRUPT") {
		t.Errorf("the prompt says\n%s", text)
	}
	MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{SessionId: "s", Signals: []*loombridgev1.Signal{{EventId: "fire", Summary: "it burns", DeltaH: new(0.81)}}})
	if e := a.event(); e.GetTopic() != "agent."+agent+".interrupts" || !strings.Contains(e.GetPayloadJson(), `"summary":"it burns"`) || !strings.Contains(e.GetPayloadJson(), `"urgency":"critical"`) {
		t.Errorf("the agent hears %v", e)
	}
	if got := beat(4); !got.GetInterruptRequested() {
		t.Errorf("the next heartbeat: %v", got)
	}
	text = promptText(MustAssemble(t, s, &loombridgev1.AssembleRequest{SessionId: "s", Settings: partitioned()}))
	if !strings.Contains(text, "**INTERRUPT REQUESTED**") || !strings.Contains(text, "## Active Risks\n- [critical] it burns") {
		t.Errorf("the next prompt says\n%s", text)
	}
	_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: agent, Topic: "agent." + agent + ".interrupts"})
	MustFail(t, err, codes.InvalidArgument, "RESERVED_TOPIC")
	if got := beat(5, make([]*loombridgev1.Signal, 65)...); got.GetError().GetReason() != loombridgev1.ErrorReason_ERROR_REASON_INVALID_REQUEST {
		t.Errorf("65 signals: %v", got)
	}
}

// A child stands one deeper than its parent.
//
// H13
func TestDepthOnTheDashboard(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: agent, ChildId: "kid", Goal: "Look"})
	must(t, err)
	for id, want := range map[string]int32{agent: 0, "kid": 1} {
		if got := MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{AgentId: id, Scratchpad: new("x")}); got.GetDashboard().GetDepth() != want {
			t.Errorf("%s is at depth %d", id, got.GetDashboard().GetDepth())
		}
	}
}
