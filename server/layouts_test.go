package server_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

var updateLayouts = flag.Bool("update", false, "rewrite the golden prompts in testdata")

// layoutOf is a prompt for people: its tools, messages, sections and what each takes.
func layoutOf(p *loombridgev1.AssembleResponse) string {
	var b strings.Builder
	for _, m := range p.GetMessages() {
		fmt.Fprintf(&b, "[%s]\n", strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_")))
		if m.GetContent() != "" {
			b.WriteString(m.GetContent() + "\n")
		}
		if m.GetBlocksJson() != "" {
			b.WriteString(m.GetBlocksJson() + "\n")
		}
		for _, c := range m.GetToolCalls() {
			fmt.Fprintf(&b, "call %s %s\n", c.GetName(), c.GetArgumentsJson())
		}
	}
	r := p.GetReceipt()
	fmt.Fprintf(&b, "-- receipt --\n%s\n", strings.ToLower(strings.TrimPrefix(r.GetLayout().String(), "PROMPT_LAYOUT_")))
	for _, s := range r.GetSections() {
		fmt.Fprintf(&b, "%s: %s, %d tokens", s.GetName(), strings.ToLower(strings.TrimPrefix(s.GetOutcome().String(), "SECTION_OUTCOME_")), s.GetTokens())
		if s.GetReason() != "" {
			b.WriteString(", " + s.GetReason())
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "all: %d tokens\n", p.GetTokens().GetTokens())
	return b.String()
}

// golden compares a text with a file in testdata, behind the prose on its top.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txtar")
	file, err := os.ReadFile(path)
	must(t, err)
	prose, want, _ := strings.Cut(string(file), "-- prompt --\n")
	if *updateLayouts {
		must(t, os.WriteFile(path, []byte(prose+"-- prompt --\n"+got), 0o600))
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it:\n%s", name, diff)
	}
}

// everything is what a caller can put into a prompt.
func everything() *loombridgev1.PromptSettings {
	return &loombridgev1.PromptSettings{
		System:  "You are a careful editor.",
		Tools:   &loombridgev1.ToolSelection{None: true},
		FewShot: []*loombridgev1.Example{{Input: "Shorten: very big", Output: "huge"}},
		Skills: []*loombridgev1.Skill{
			{Name: "style", Description: "house style", Text: "Write short sentences.", Active: true},
			{Name: "law", Description: "what may be said"},
		},
		Injections: []*loombridgev1.Injection{
			{Name: "facts", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_USER_CONTEXT, Cache: loombridgev1.CacheStrategy_CACHE_STRATEGY_SESSION, XmlTag: "facts", Content: "The paper is called Dawn."},
			{Name: "clock", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_RUNTIME, Content: "It is late."},
		},
		Variation: new(0.0),
	}
}

// Each layout has the same sections in its own order; what is stable stands first, the
// goal last.
//
// I01, I02, I03, I04, I08, K18, M03
func TestLayouts(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, layout := range []string{"three_phase", "task_context", "react", "partitioned"} {
		t.Run(layout, func(t *testing.T) {
			settings := everything()
			settings.Layout = loombridgev1.PromptLayout(loombridgev1.PromptLayout_value["PROMPT_LAYOUT_"+strings.ToUpper(layout)])
			_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: layout, Messages: []*loombridgev1.Message{
				{Role: loombridgev1.Role_ROLE_USER, Content: "Read the draft."},
				{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "It is long."},
				{Role: loombridgev1.Role_ROLE_USER, Content: "Then cut it."},
			}})
			must(t, err)
			mustPlan(t, s, layout)
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: layout, Settings: settings, Goal: "Publish the draft"})
			must(t, err)
			golden(t, "layouts/"+layout, layoutOf(got))
		})
	}
}

// mustPlan gives a session a plan of two steps, the first of which is done.
func mustPlan(tb testing.TB, s *servertest.Server, session string) {
	tb.Helper()
	_, err := s.Context.UpdateWorking(tb.Context(), &loombridgev1.UpdateWorkingRequest{
		AgentId: agent, SessionId: session,
		Plan: &loombridgev1.Plan{Items: []*loombridgev1.PlanItem{
			{Text: "read", Status: loombridgev1.PlanStatus_PLAN_STATUS_DONE}, {Text: "cut", Status: loombridgev1.PlanStatus_PLAN_STATUS_PENDING},
		}},
	})
	must(tb, err)
}

// The prompt of preset design or reduction is the one text of its document: system
// prompt, tools, history, goal, each behind a blank line, in two messages.
//
// N04, G05, E06, K37
func TestReactIsOneText(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, preset := range []string{"design", "reduction"} {
		MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: preset, History: &loombridgev1.HistorySettings{Preset: preset}})
		for i := range 3 {
			MustRecord(t, s, preset, "fs:stat", fmt.Sprintf(`{"path":"%d.txt"}`, i), map[string]any{"size": i})
		}
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: preset, System: "Be brief.", Goal: "Find the file",
			Settings: &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{None: true, Names: nil}},
			Tools:    []*loombridgev1.ToolDescriptor{{Name: "look", Description: "Looks.", ParametersSchemaJson: `{"type":"object","properties":{"at":{"type":"string","description":"where"}},"required":["at"]}`}},
		})
		must(t, err)
		m := got.GetMessages()
		if len(m) != 2 || m[0].GetRole() != loombridgev1.Role_ROLE_SYSTEM || m[1].GetRole() != loombridgev1.Role_ROLE_USER {
			t.Fatalf("%s: %v", preset, m)
		}
		if want := "Be brief.\n\n# Available tools\n<tool name=\"look\">\nLooks.\n- at (string, required): where\n</tool>"; m[0].GetContent() != want {
			t.Errorf("%s: the system message is %q, want %q", preset, m[0].GetContent(), want)
		}
		if got.GetToolsJson() != "[]" && got.GetToolsJson() != "" {
			t.Errorf("%s: tools stand in the prompt twice: %s", preset, got.GetToolsJson())
		}
		if text := m[1].GetContent(); !strings.HasSuffix(text, "\n\nGoal: Find the file") || strings.Count(text, "Step ") != 3 {
			t.Errorf("%s: the user message is %q", preset, text)
		}
	}
}

// What a section says changes no byte of the others.
//
// I01, I07, X05
func TestSectionsLeaveOthersAlone(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Read the draft."}, {Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "It is long."},
	}})
	must(t, err)
	assemble := func(change func(*loombridgev1.PromptSettings)) string {
		settings := everything()
		change(settings)
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "Publish it", Settings: settings, DryRun: true})
		must(t, err)
		text, _, _ := strings.Cut(layoutOf(got), "-- receipt --")
		return text
	}
	whole := assemble(func(*loombridgev1.PromptSettings) {})
	for name, test := range map[string]struct {
		change func(*loombridgev1.PromptSettings)
		gone   string
	}{
		"facts": {func(p *loombridgev1.PromptSettings) { p.Injections = p.Injections[1:] }, "[user]\n<facts>\nThe paper is called Dawn.\n</facts>\n"},
		"clock": {func(p *loombridgev1.PromptSettings) { p.Injections = p.Injections[:1] }, "It is late.\n\n"},
		"skills": {func(p *loombridgev1.PromptSettings) {
			p.Sources = &loombridgev1.SourceSettings{Exclude: []string{"skills"}}
		}, "\n\n# Skill: style\nWrite short sentences.\n\n# Other skills\n- law: what may be said"},
		"few_shot": {func(p *loombridgev1.PromptSettings) {
			p.Sources = &loombridgev1.SourceSettings{Exclude: []string{"few_shot"}}
		}, "[user]\nShorten: very big\n[assistant]\nhuge\n"},
	} {
		if got, want := assemble(test.change), strings.Replace(whole, test.gone, "", 1); got != want || got == whole {
			t.Errorf("without %s:\n%s\nwant\n%s", name, got, want)
		}
	}
	for range 1000 {
		if again := assemble(func(*loombridgev1.PromptSettings) {}); again != whole {
			t.Fatalf("the same request has another prompt:\n%s\nwas\n%s", again, whole)
		}
	}
}
