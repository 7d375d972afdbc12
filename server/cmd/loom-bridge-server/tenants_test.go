package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// fill writes a text into everything that an agent's prompts are made of: its log, tasks,
// events, plan, settings and results, the memory of it and of a user, and AGENTS.md.
func (s *stand) fill(tenant, text string) {
	s.tb.Helper()
	t := s.tb
	must(t, os.WriteFile(filepath.Join(s.dir, tenant, "AGENTS.md"), []byte(text), 0o600))
	for _, r := range []*loombridgev1.MemorySaveRequest{
		{},
		{UserId: "eva"},
		{Kind: "knowledge"},
		{Kind: "knowledge", UserId: "eva"},
		{Kind: "note"},
		{Kind: "note", UserId: "eva"},
		{Kind: "skill", Key: "pump"},
		{Kind: "playbook", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(
			`{"name":"pump","description":%q,"status":"approved","tool_sequence":[{"tool":%q}]}`, text, text)}},
	} {
		r.AgentId, r.Text = s.agent, text
		_, err := s.bridge().MemorySave(s.ctx, r)
		must(t, err)
	}
	for _, topic := range []string{"execute", "node.thinking", "node.planning"} {
		for range 2 {
			_, err := s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{AgentId: s.agent, SessionId: "s", Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
				PayloadJson: fmt.Sprintf(`{"content":%q,"goal":%[1]q,"importance":0.9}`, text),
			}})
			must(t, err)
		}
	}
	_, err := s.contexts().AppendMessages(s.ctx, &loombridgev1.AppendMessagesRequest{AgentId: s.agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: text}, {Role: loombridgev1.Role_ROLE_ASSISTANT, Content: text},
	}})
	must(t, err)
	s.record("s", "my:tool", fmt.Sprintf(`{"for":%q}`, text), fmt.Sprintf("%q", strings.Repeat(text+"\n", 200)))
	_, err = s.contexts().RecordStep(s.ctx, &loombridgev1.RecordStepRequest{AgentId: s.agent, SessionId: "s", ToolName: "my:tool", ErrorMessage: text})
	must(t, err)
	_, err = s.contexts().UpdateWorking(s.ctx, &loombridgev1.UpdateWorkingRequest{
		AgentId: s.agent, SessionId: "s", Goal: new(text), Activate: []string{"pump"}, Plan: &loombridgev1.Plan{Items: []*loombridgev1.PlanItem{{Text: text}}},
	})
	must(t, err)
	_, err = s.contexts().ConfigureSession(s.ctx, &loombridgev1.ConfigureSessionRequest{AgentId: s.agent, SessionId: "s", Prompt: &loombridgev1.PromptSettings{
		System: text, FewShot: []*loombridgev1.Example{{Input: text, Output: text}},
		Injections: []*loombridgev1.Injection{{Name: "own", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_RUNTIME, Content: text}},
	}})
	must(t, err)
}

// Two tenants have an agent, a session and a user of the same names. No byte of one stands
// in a prompt of the other, whatever the layout and the sources, and each finds its own.
//
// G01
func TestPromptsOfTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	credentials := "[[credential]]\ntoken = \"acme-token\"\ntenant = \"acme\"\nagents = [\"*\"]\n\n[[credential]]\ntoken = \"umbrella-token\"\ntenant = \"umbrella\"\nagents = [\"*\"]\n"
	callers := MustFile(t, credentials)
	p := MustRun(t, dir, "--credentials", callers)
	stands := make(map[string]*stand)
	for _, tenant := range []string{"acme", "umbrella"} {
		must(t, os.MkdirAll(filepath.Join(dir, tenant), 0o700))
		stands[tenant] = &stand{tb: t, ctx: as(t.Context(), tenant+"-token"), dir: dir, agent: "lead", process: p}
	}
	const words = "Which oil does the pump need in the hall?"
	canary := func(tenant string) string { return "CANARY-" + tenant + " says which oil the pump needs in the hall" }
	stands["acme"].fill("acme", canary("acme"))
	stands["umbrella"].fill("umbrella", canary("umbrella"))
	for tenant, s := range stands {
		foreign := "CANARY-umbrella"
		if tenant == "umbrella" {
			foreign = "CANARY-acme"
		}
		_, err := s.contexts().AppendMessages(s.ctx, &loombridgev1.AppendMessagesRequest{AgentId: "lead", SessionId: "s", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: words}}})
		must(t, err)
		for _, session := range []string{"s", "fresh"} {
			for _, preset := range []string{"", "design", "reduction", "task_context", "three_phase"} {
				request := &loombridgev1.AssembleRequest{
					AgentId: "lead", SessionId: session, Goal: words, MaxTokens: 60_000,
					Settings: &loombridgev1.PromptSettings{UserId: "eva", Sources: &loombridgev1.SourceSettings{MemoryLayers: []string{"L1", "L2"}, EventActions: []string{"node.thinking", "node.planning"}}},
				}
				if preset != "" {
					request.History = &loombridgev1.HistorySettings{Preset: preset}
				}
				got, err := s.contexts().Assemble(s.ctx, request)
				must(t, err)
				all, err := proto.Marshal(got)
				must(t, err)
				if strings.Contains(string(all), foreign) {
					t.Errorf("%s, session %s, preset %q has %s:\n%s", tenant, session, preset, foreign, shownText(got))
				}
				if n := strings.Count(shownText(got), "CANARY-"+tenant); n < 3 {
					t.Errorf("%s, session %s, preset %q has %d of its own:\n%s", tenant, session, preset, n, shownText(got))
				}
			}
		}
	}
}

// Who asks for the status of an agent must be one that may act for it; what is said of the
// server is for everybody.
func TestStatusOfAnothersAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("one"))
	credentials := filepath.Join(dir, "credentials.toml")
	must(t, os.WriteFile(credentials, fmt.Appendf(nil, "[[credential]]\ntoken_sha256 = \"%x\"\ntenant = \"acme\"\nagents = [\"mine-*\"]\n", sum), 0o600))
	p := MustRun(t, dir, "--credentials", credentials)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer one")
	for agent, want := range map[string]string{"": "", "mine-1": "WORKSPACE_ELSEWHERE", "theirs": "AGENT_NOT_OWNED", "mine": "AGENT_NOT_OWNED"} {
		got, err := p.admin().GetStatus(ctx, &loombridgev1.GetStatusRequest{AgentId: agent})
		if reasonOf(err) != want || got.GetWorkspace() != nil {
			t.Errorf("%q: %v, %v", agent, got, err)
		}
	}
}
