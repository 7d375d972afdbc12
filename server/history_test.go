package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

const (
	ledger     = loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER
	appendOnly = loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY
	preset     = loombridgev1.HistoryPolicy_HISTORY_POLICY_PRESET
)

// MustConfigure changes the agent's default session.
func MustConfigure(tb testing.TB, s *servertest.Server, r *loombridgev1.ConfigureSessionRequest) *loombridgev1.ConfigureSessionResponse {
	tb.Helper()
	if r.GetAgentId() == "" {
		r.AgentId = agent
	}
	got, err := s.Context.ConfigureSession(tb.Context(), r)
	must(tb, err)
	return got
}

// checkConfigured compares what holds.
func checkConfigured(tb testing.TB, got, want *loombridgev1.ConfigureSessionResponse) {
	tb.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		tb.Errorf("settings (-want +got):\n%s", diff)
	}
}

// untouched is what holds for a session that says nothing.
func untouched() *loombridgev1.ConfigureSessionResponse {
	return &loombridgev1.ConfigureSessionResponse{
		History: &loombridgev1.HistorySettings{Policy: ledger, MaxResultTokens: 3000},
	}
}

func TestConfigureSession(t *testing.T) {
	s := servertest.Start(t, nil)
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{}), untouched())

	want := &loombridgev1.ConfigureSessionResponse{
		History: &loombridgev1.HistorySettings{
			Policy: preset, Preset: "design", Literal: new(true), ExpectedSteps: 40, MaxResultTokens: 500,
			Prices: &loombridgev1.TokenPrices{Input: 3, CachedInput: 0.3, CacheWrite: 3.75},
		},
		Model: "gpt-4", MaxTokens: 32_000,
	}
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{
		Model: "gpt-4", MaxTokens: 32_000,
		History: &loombridgev1.HistorySettings{
			Preset: "design", Literal: new(true), ExpectedSteps: 40, MaxResultTokens: 500,
			Prices: &loombridgev1.TokenPrices{Input: 3, CachedInput: 0.3, CacheWrite: 3.75},
		},
	}), want)
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{}), want)

	want.History.Policy, want.History.Preset, want.MaxTokens = appendOnly, "", 16_000
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{
		MaxTokens: 16_000, History: &loombridgev1.HistorySettings{Policy: appendOnly},
	}), want)

	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "other"}), untouched())
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{AgentId: "other"}), untouched())
	again := untouched()
	again.Model = "gpt-4o"
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{Reset_: true, Model: "gpt-4o"}), again)
}

func TestConfigureSessionRefusals(t *testing.T) {
	s := servertest.Start(t, nil)
	for name, test := range map[string]struct {
		history *loombridgev1.HistorySettings
		field   string
	}{
		"unknown preset":             {&loombridgev1.HistorySettings{Preset: "spiral"}, "history.preset"},
		"a policy without its rules": {&loombridgev1.HistorySettings{Policy: preset}, "history.preset"},
		"rules of another policy":    {&loombridgev1.HistorySettings{Policy: ledger, Preset: "code"}, "history.preset"},
		"prices without input":       {&loombridgev1.HistorySettings{Prices: &loombridgev1.TokenPrices{CacheWrite: 1}}, "history.prices.input"},
	} {
		_, err := s.Context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: agent, History: test.history})
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if diff := cmp.Diff([]string{test.field}, fieldsOf(err)); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, diff)
		}
	}
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{}), untouched())
}

// A repeated request answers again and changes nothing; its id with other
// content is refused.
func TestConfigureSessionOnce(t *testing.T) {
	s := servertest.Start(t, nil)
	request := &loombridgev1.ConfigureSessionRequest{MaxTokens: 100, RequestId: "r1"}
	want := untouched()
	want.MaxTokens = 100
	checkConfigured(t, MustConfigure(t, s, request), want)
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{MaxTokens: 200})
	checkConfigured(t, MustConfigure(t, s, request), want)
	want.MaxTokens = 200
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{}), want)
	_, err := s.Context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: agent, MaxTokens: 300, RequestId: "r1"})
	MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
}

// The server's own settings hold where a session says nothing, come back with
// reset, and settings outlive the server.
func TestConfigureSessionOverTheServer(t *testing.T) {
	o := &servertest.Options{Engine: MustEngine(t), History: session.Config{Policy: session.PolicyPreset, Preset: "reduction", MaxTokens: 9000}}
	s := servertest.Start(t, o)
	want := untouched()
	want.History.Policy, want.History.Preset, want.MaxTokens = preset, "reduction", 9000
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{}), want)
	checkPolicy(t, s, "reduction")
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{History: &loombridgev1.HistorySettings{Policy: ledger}})
	checkPolicy(t, s, "ledger")

	s = servertest.Start(t, o)
	kept := untouched()
	kept.MaxTokens = 9000
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{}), kept)
	checkConfigured(t, MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{Reset_: true}), want)
}

// checkPolicy checks how prompts of the default session are made.
func checkPolicy(tb testing.TB, s *servertest.Server, want string) {
	tb.Helper()
	prompt, err := s.Context.Assemble(tb.Context(), &loombridgev1.AssembleRequest{AgentId: agent, DryRun: true})
	must(tb, err)
	if got := prompt.GetReceipt().GetPolicy(); got != want || prompt.GetReceipt().GetPressure() <= 0 {
		tb.Errorf("receipt = %v, want the policy %s", prompt.GetReceipt(), want)
	}
}

func TestEndSession(t *testing.T) {
	s := servertest.Start(t, nil)
	end := &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: "s1"}
	none, err := s.Context.EndSession(t.Context(), end)
	must(t, err)
	if none.GetLastPosition() != 0 {
		t.Errorf("a session without entries ends at %d", none.GetLastPosition())
	}
	add := &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s1", Messages: conversation()}
	_, err = s.Context.AppendMessages(t.Context(), add)
	must(t, err)
	for range 2 {
		got, err := s.Context.EndSession(t.Context(), end)
		must(t, err)
		if got.GetLastPosition() != 4 {
			t.Errorf("last position = %d", got.GetLastPosition())
		}
	}
	ended := func() bool {
		t.Helper()
		got, err := s.Context.ListSessions(t.Context(), &loombridgev1.ListSessionsRequest{AgentId: agent, IncludeClosed: true})
		must(t, err)
		return len(got.GetSessions()) == 1 && got.GetSessions()[0].GetEnded()
	}
	if !ended() {
		t.Error("the session goes on")
	}
	_, err = s.Context.AppendMessages(t.Context(), add)
	must(t, err)
	if ended() {
		t.Error("a message did not open the session again")
	}
}

func TestUndoNothing(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, batch := range []int64{0, 1} {
		_, err := s.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, Batch: batch})
		MustFail(t, err, codes.FailedPrecondition, "NOTHING_TO_UNDO")
	}
}

func TestPinnedAndObservation(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "ls", Observation: true},
	}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if diff := cmp.Diff([]string{"messages[0].observation"}, fieldsOf(err)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	recorded, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{AgentId: agent, ToolName: "x", Success: true, Pinned: true})
	must(t, err)
	listed, err := s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: agent, StepId: "step_001"})
	must(t, err)
	if !recorded.GetStep().GetPinned() || !listed.GetPinned() {
		t.Errorf("recorded %v, listed %v", recorded, listed)
	}
}

// Another tenant, and another agent of the same tenant, know nothing of a
// session's settings and end.
func TestSessionsOfTenantsAreApart(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	acme, umbrella := withToken(t.Context(), "Bearer acme-token"), withToken(t.Context(), "Bearer umbrella-token")
	_, err := s.Context.ConfigureSession(acme, &loombridgev1.ConfigureSessionRequest{AgentId: "lead", MaxTokens: 7000})
	must(t, err)
	_, err = s.Context.EndSession(acme, &loombridgev1.EndSessionRequest{AgentId: "lead"})
	must(t, err)
	got, err := s.Context.ConfigureSession(umbrella, &loombridgev1.ConfigureSessionRequest{AgentId: "lead"})
	must(t, err)
	checkConfigured(t, got, untouched())
	got, err = s.Context.ConfigureSession(acme, &loombridgev1.ConfigureSessionRequest{AgentId: "research-1"})
	must(t, err)
	checkConfigured(t, got, untouched())
}
