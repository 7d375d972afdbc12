package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// patient settings wait for knowledge however busy the machine is: what came too late is
// missing, and another prompt.
func patient(user string) *loombridgev1.PromptSettings {
	return &loombridgev1.PromptSettings{UserId: user, Sources: &loombridgev1.SourceSettings{KnowledgeTimeout: durationpb.New(10 * time.Second)}}
}

// With the cache on, a prompt is given again where nothing has changed that it is made of,
// byte for byte as it would be made; whatever changes makes it anew. It is off by default.
//
// G19
func TestPromptsAreReused(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Assemble: assemble.Options{CacheBytes: -1}}})
	plainly := servertest.Start(t, nil)
	ask := func(s *servertest.Server, change func(*loombridgev1.AssembleRequest)) *loombridgev1.AssembleResponse {
		t.Helper()
		r := &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "Repair the pump", Settings: patient("eva")}
		if change != nil {
			change(r)
		}
		got, err := s.Context.Assemble(t.Context(), r)
		must(t, err)
		return got
	}
	both := func(work func(s *servertest.Server)) { work(s); work(plainly) }
	both(func(s *servertest.Server) {
		remember(t, s, &loombridgev1.MemorySaveRequest{UserId: "eva", Text: "Eva wants the pump quiet", Key: "quiet"})
		must(t, tell(t, s, "s"))
	})
	same := func(when string, reused bool, change func(*loombridgev1.AssembleRequest)) {
		t.Helper()
		got, want := ask(s, change), ask(plainly, change)
		if got.GetReceipt().GetReused() != reused {
			t.Errorf("%s: reused is %v", when, !reused)
		}
		got.Receipt.Reused = false
		for _, p := range []*loombridgev1.AssembleResponse{got, want} {
			for _, section := range p.GetReceipt().GetSections() {
				section.Refs = nil // of records with random ids
			}
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-without a cache +with it):\n%s", when, diff)
		}
	}
	// The receipt of a second prompt tells of the first, and cache marks of the third of what
	// the second has cached.
	settled := func(when string) {
		t.Helper()
		same(when+", at first", false, nil)
		same(when+", for the second time", false, nil)
		ask(s, nil)
		ask(plainly, nil)
		same(when+", for the fourth time", true, nil)
		same(when+", for the fifth time", true, nil)
	}
	settled("at the beginning")
	for name, change := range map[string]func(*loombridgev1.AssembleRequest){
		"goal":     func(r *loombridgev1.AssembleRequest) { r.Goal = "Sell the pump" },
		"system":   func(r *loombridgev1.AssembleRequest) { r.System = "Be brief." },
		"budget":   func(r *loombridgev1.AssembleRequest) { r.MaxTokens = 9000 },
		"model":    func(r *loombridgev1.AssembleRequest) { r.Model = "claude-opus-4-7" },
		"format":   func(r *loombridgev1.AssembleRequest) { r.Format = loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT },
		"turn":     func(r *loombridgev1.AssembleRequest) { r.TurnId = "another" },
		"no tools": func(r *loombridgev1.AssembleRequest) { r.WithoutTools = true },
		"own tool": func(r *loombridgev1.AssembleRequest) { r.Tools = []*loombridgev1.ToolDescriptor{look()} },
		"preset":   func(r *loombridgev1.AssembleRequest) { r.History = &loombridgev1.HistorySettings{Preset: "design"} },
		"settings": func(r *loombridgev1.AssembleRequest) { r.Settings.Limits = &loombridgev1.InjectionLimits{Total: 5000} },
		"user":     func(r *loombridgev1.AssembleRequest) { r.Settings.UserId = "adam" },
	} {
		dry := func(r *loombridgev1.AssembleRequest) { change(r); r.DryRun = true }
		same(name, false, dry)
		same(name+" again", true, dry)
	}
	for _, c := range []struct {
		name string
		work func(s *servertest.Server)
	}{
		{"a message", func(s *servertest.Server) { must(t, tell(t, s, "s")) }},
		{"a step", func(s *servertest.Server) { MustRecord(t, s, "s", "my:tool", `{}`, "done") }},
		{"a plan", func(s *servertest.Server) { mustPlan(t, s, "s") }},
		{"a setting", func(s *servertest.Server) {
			MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "s", Prompt: &loombridgev1.PromptSettings{System: "You repair."}})
		}},
		{"a memory", func(s *servertest.Server) {
			remember(t, s, &loombridgev1.MemorySaveRequest{UserId: "eva", Text: "Eva's pump is a Grundfos pump"})
		}},
		{"a task", func(s *servertest.Server) {
			_, err := s.Bridge.Emit(t.Context(), taskEvent("s", "execute", `{"parameters":{"content":"go on"}}`))
			must(t, err)
		}},
		{"a result of a tool with AGENTS.md", func(s *servertest.Server) { MustWrite(t, s, "AGENTS.md", "Use tabs.") }},
		{"usage", func(s *servertest.Server) {
			id := ask(s, nil).GetReceipt().GetPromptId()
			_, err := s.Context.ReportUsage(t.Context(), &loombridgev1.ReportUsageRequest{AgentId: agent, SessionId: "s", PromptId: id, PromptTokens: 1500})
			must(t, err)
			must(t, tell(t, s, "s"))
		}},
	} {
		both(c.work)
		settled(c.name)
	}
	if text := wholeText(ask(s, nil)); !strings.Contains(text, "Use tabs.") || !strings.Contains(text, "quiet") {
		t.Errorf("the prompt is\n%s", text)
	}
	if ask(plainly, nil).GetReceipt().GetReused() {
		t.Error("without a cache a prompt is reused")
	}
}
