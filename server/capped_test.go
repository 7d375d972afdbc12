package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A result over 3,000 tokens shows two thirds of its beginning and one third of its
// end, of a failure the other way round. What stands between them says how much is
// missing, where all of it lies and what of note is in it.
//
// I19
func TestResultsOver3000Tokens(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, tt := range []struct {
		tokens  int
		problem string
		whole   bool
	}{{2999, "", true}, {3000, "", true}, {3001, "", false}, {6000, "", false}, {6000, "no such table", false}} {
		c := as(t, s, fmt.Sprint("agent", i))
		text := strings.TrimSpace(strings.Repeat("a ", tt.tokens))
		if tt.tokens > 4000 { // a file is named where the cut will be
			text = text[:len(text)/2] + " src/walk/tree.go " + text[len(text)/2:]
		}
		made := c.record(&loombridgev1.RecordStepRequest{
			ToolName: "db:query", Success: tt.problem == "", ErrorMessage: tt.problem, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, text)},
		})
		path := made.GetOutputBlob().GetPath()
		if got := c.read(path); got != text && got != quoted(t, text) { // as text or as it was given
			t.Errorf("%d tokens: %s holds another text", tt.tokens, path)
		}
		messages := c.prompt(nil).GetMessages()
		got := messages[len(messages)-1].GetContent()
		if tt.whole {
			if got != text {
				t.Errorf("%d tokens: changed to %.200q", tt.tokens, got)
			}
			continue
		}
		if n := c.tokens(got); n > 3000 || n < 2900 {
			t.Errorf("%d tokens: %d are shown", tt.tokens, n)
		}
		checkEnds(t, text, got, path, tt.problem != "")
	}
}

// The line that says what went wrong stays in sight, wherever it stands: of a failed call,
// and of a log that is so long that it was cut when it was recorded.
//
// I19
func TestErrorsOfCutResultsStay(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, tt := range []struct {
		lines         int
		line, problem string
		want          string
	}{
		{600, "ok   \tpkg/t%d\t0.1s", "exit 1", "--- FAIL: TestLock (0.00s)\n    lock_test.go:12: expected 3, got 4\n"},
		{1500, "2026-11-30T10:00:00Z INFO request %d served in 12 ms", "", "2026-11-30T10:00:00Z ERROR pool exhausted\n"},
	} {
		c := as(t, s, fmt.Sprint("agent", i))
		var b strings.Builder
		for n := range tt.lines {
			fmt.Fprintf(&b, tt.line+"\n", n)
			if n == tt.lines/2 {
				b.WriteString(tt.want)
			}
		}
		c.record(&loombridgev1.RecordStepRequest{
			ToolName: "bash", Success: tt.problem == "", ErrorMessage: tt.problem, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, b.String())},
		})
		messages := c.prompt(nil).GetMessages()
		if got := messages[len(messages)-1].GetContent(); !strings.Contains(got, "omitted") || !strings.Contains(got, tt.want) || c.tokens(got) > 3000 {
			t.Errorf("%d tokens: %q is cut, or nothing is", c.tokens(got), tt.want)
		}
	}
}

// checkEnds checks what is shown of a text: both ends, and between them a mark.
func checkEnds(t *testing.T, text, got, path string, failed bool) {
	t.Helper()
	shown, rest, found := strings.Cut(got, "\n[...")
	mark, tail, ended := strings.Cut(rest, "]\n")
	head := shown[max(strings.LastIndex(shown, "\n"), 0):] // above it stands how to read all of it
	head = strings.TrimPrefix(head, "\n")
	if !found || !ended || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
		t.Fatalf("is not two ends and a mark: %.300q", got)
	}
	if want := fmt.Sprintf("%d chars omitted. Full data: %s", len(text)-len(head)-len(tail), path); !strings.HasPrefix(mark, want) {
		t.Errorf("mark %q, want %q", mark, want)
	}
	if names := strings.Contains(mark, "src/walk/tree.go"); names != strings.Contains(text, "src/walk") {
		t.Errorf("mark %q", mark)
	}
	want := 2. / 3
	if failed {
		want = 1. / 3
	}
	if share := float64(len(head)) / float64(len(head)+len(tail)); share < want-.02 || share > want+.02 {
		t.Errorf("failed %v: %.2f of what is shown is its beginning, want %.2f", failed, share, want)
	}
}

// A prompt fits its budget or is refused, to the token, by the counter that its
// answer names.
//
// N11
func TestBudgetsByCounter(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	for i := range 10 {
		c.report("db:query", fmt.Sprintf(`{"part":%d}`, i), quoted(t, strings.Repeat(fmt.Sprintf("Zeile %d über Bäume, 天地玄黄.\n", i), 20)))
	}
	sizes := map[int32]string{}
	for model, counter := range map[string]string{"gpt-4o": "o200k_base", "gpt-4": "cl100k_base", "claude-3-opus": "anthropic", "of-nobody": "estimate"} {
		request := &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: "s", Goal: "go on", System: "You are an agent.", Model: model, MaxTokens: 100_000, DryRun: true,
			History: &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY},
		}
		whole, err := s.Context.Assemble(t.Context(), request)
		must(t, err)
		size := whole.GetTokens().GetTokens()
		if whole.GetTokens().GetCounter() != counter {
			t.Errorf("%s is counted by %s, want %s", model, whole.GetTokens().GetCounter(), counter)
		}
		if other, taken := sizes[size]; taken {
			t.Errorf("%s and %s count the same: %d", model, other, size)
		}
		sizes[size] = model
		for _, budget := range []int32{size - 1, size, size + 1} {
			request.MaxTokens = budget
			got, err := s.Context.Assemble(t.Context(), request)
			// Where not all fits, the newest results are shortened.
			must(t, err)
			if got.GetTokens().GetTokens() > budget || got.GetTokens().GetCounter() != counter {
				t.Errorf("%s, budget %d of %d: %v", model, budget, size, got.GetTokens())
			}
		}
	}
}

// Calls of a model and their results stand together, in order, or leave together,
// also those that came at once, whatever folds them; and once folded they stay.
//
// P02
func TestCallsAndResultsStayTogether(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, preset := range append(allPresets(), "design literal", "reduction literal") {
		seed := chance.Seed(t)
		random := rand.New(rand.NewPCG(seed, 0))
		c := as(t, s, fmt.Sprint("agent", i))
		settings := &loombridgev1.HistorySettings{Preset: strings.TrimSuffix(preset, " literal")}
		if strings.HasSuffix(preset, " literal") {
			settings = literally(settings.GetPreset())
		}
		called := map[string]string{} // arguments by id
		for n := range 25 {
			c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprint("Look at part ", n)})
			message := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I look."}
			for range 1 + random.IntN(4) {
				id := fmt.Sprint("call-", len(called))
				called[id] = fmt.Sprintf(`{"part": %d, "of": %q}`, n, id)
				message.ToolCalls = append(message.ToolCalls, &loombridgev1.ModelToolCall{Id: id, Name: "db_query", ArgumentsJson: called[id]})
			}
			c.say(message)
			for _, at := range random.Perm(len(message.GetToolCalls())) {
				call := message.GetToolCalls()[at]
				c.record(&loombridgev1.RecordStepRequest{
					ToolName: "db:query", CallId: call.GetId(), Success: true, ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: call.GetArgumentsJson()},
					OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: quoted(t, strings.Repeat("a row of "+call.GetId()+"\n", 1+random.IntN(120)))},
				})
			}
			request := &loombridgev1.AssembleRequest{AgentId: c.id, SessionId: "s", WithoutTools: true, MaxTokens: 8000, History: settings}
			prompt, err := s.Context.Assemble(t.Context(), request)
			must(t, err)
			checkCalls(t, fmt.Sprintf("%q, seed %d, prompt %d", preset, seed, n), prompt.GetMessages(), called)
			again, err := s.Context.Assemble(t.Context(), request)
			must(t, err)
			if again.GetPrefixSha256() != prompt.GetPrefixSha256() {
				t.Errorf("%q, seed %d, prompt %d: a second time it is another", preset, seed, n)
			}
			if prompt.GetTokens().GetTokens() > 8000 {
				t.Errorf("%q, prompt %d: %d tokens", preset, n, prompt.GetTokens().GetTokens())
			}
		}
	}
}

// checkCalls checks that right behind each message with calls stand their results,
// and results nowhere else.
func checkCalls(t *testing.T, when string, messages []*loombridgev1.Message, called map[string]string) {
	t.Helper()
	open := map[string]bool{}
	for _, m := range messages {
		if m.GetRole() == loombridgev1.Role_ROLE_TOOL {
			if !open[m.GetToolCallId()] {
				t.Errorf("%s: a result of %q without its call", when, m.GetToolCallId())
			}
			delete(open, m.GetToolCallId())
			continue
		}
		if len(open) > 0 {
			t.Errorf("%s: calls without results: %v", when, open)
		}
		clear(open)
		for _, call := range m.GetToolCalls() {
			open[call.GetId()] = true
			if args, ok := called[call.GetId()]; !ok || call.GetArgumentsJson() != args || call.GetName() != "db_query" {
				t.Errorf("%s: call %v, want arguments %s", when, call, args)
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: calls without results at its end: %v", when, open)
	}
}

// With every part over its cap, and callers that add more, all that is no message of the
// history has at most 12,000 tokens.
func TestWorstCaseOfCaps(t *testing.T) {
	// I20, Q13, K39
	s := servertest.Start(t, nil)
	prose := func(lines int) string {
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "Line %d of a text about flights to Rome, in src/part_%d.go.\n", i, i)
		}
		return b.String()
	}
	long := prose(600) // over 10,000 tokens
	for _, kind := range []string{"knowledge", "fact", "note"} {
		for range 3 {
			MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: "eve", Kind: kind, Text: prose(200)})
		}
	}
	for range 6 {
		_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{AgentId: agent, ToolName: "code:grep", ErrorMessage: prose(20)})
		must(t, err)
	}
	settings := plain()
	settings.UserId = "eve"
	settings.Sources = &loombridgev1.SourceSettings{KnowledgeTimeout: durationpb.New(10 * time.Second)} // on a busy machine too
	settings.ToolRendering, settings.Tools = loombridgev1.ToolRendering_TOOL_RENDERING_TEXT, &loombridgev1.ToolSelection{None: true}
	settings.Skills = []*loombridgev1.Skill{{Name: "a", Text: long, Active: true}}
	for i := range 10 {
		settings.FewShot = append(settings.FewShot, &loombridgev1.Example{Input: prose(3), Output: prose(3)})
		settings.Injections = append(settings.Injections, injection(fmt.Sprint("own", i), []loombridgev1.InjectionPhase{systemPhase, contextPhase, runtimePhase}[i%3], 0, 0, long))
	}
	plan := &loombridgev1.Plan{}
	for range 64 {
		plan.Items = append(plan.Items, &loombridgev1.PlanItem{Text: strings.TrimSpace(prose(1))})
	}
	MustUpdateWorking(t, s, &loombridgev1.UpdateWorkingRequest{Plan: plan})
	var tools []*loombridgev1.ToolDescriptor
	for i := range 60 {
		tools = append(tools, &loombridgev1.ToolDescriptor{Name: fmt.Sprint("tool", i), Description: prose(2)})
	}
	p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, Model: "gpt-4o", MaxTokens: 100_000, System: prose(90), Goal: "Flights to Rome", Settings: settings, Tools: tools,
	})
	must(t, err)
	shown := int32(0)
	for _, section := range p.GetReceipt().GetSections() {
		if section.GetName() != "history" {
			shown += section.GetTokens()
		}
	}
	const frames = 4 * 30 // what messages take beside their texts, of at most thirty
	if shown > 12_000+frames || shown < 11_500 {
		t.Errorf("%d tokens are no history: %v", shown, p.GetReceipt().GetSections())
	}
	for _, name := range []string{"system", "tools", "skills", "few_shot", "user_memory", "knowledge", "notes", "plan", "errors", "goal"} {
		if section := sectionOf(p, name); section.GetTokens() == 0 || section.GetMaxTokens() > 0 && section.GetTokens() > section.GetMaxTokens()+frames {
			t.Errorf("%s: %v", name, section)
		}
	}
}

// The same holds of tools in a field of their own, as they are by default: what is no message
// of the history and the tools keep 12,000 tokens together, whatever the form.
func TestToolsInTheirOwnFieldCount(t *testing.T) {
	// I20, Q13
	for _, tools := range []int{0, 20, 60} {
		for _, format := range []loombridgev1.PromptFormat{0, loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT, loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC} {
			s := servertest.Start(t, nil)
			line := "A sentence about flights to Rome, in March, by night. "
			for range 6 {
				MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Kind: "note", Text: strings.Repeat(line, 60)})
				MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Kind: "knowledge", Text: strings.Repeat(line, 60)})
			}
			settings := &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{None: true}}
			for i := range 10 {
				settings.Injections = append(settings.Injections, injection(fmt.Sprint("own", i), []loombridgev1.InjectionPhase{systemPhase, contextPhase, runtimePhase}[i%3], 0, 0, strings.Repeat(line, 400)))
			}
			var own []*loombridgev1.ToolDescriptor
			for i := range tools {
				own = append(own, &loombridgev1.ToolDescriptor{Name: fmt.Sprint("tool", i), Description: strings.Repeat(line, 6), ParametersSchemaJson: `{"type":"object"}`})
			}
			p, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
				AgentId: agent, Model: "gpt-4o", MaxTokens: 100_000, System: strings.Repeat(line, 100), Goal: "Flights to Rome", Settings: settings, Tools: own, Format: format,
			})
			must(t, err)
			const frames = 4*30 + 20
			if n := p.GetTokens().GetTokens(); n > 12_000+frames || n < 11_000 {
				t.Errorf("%d tools, format %v: %d tokens without a history", tools, format, n)
			}
		}
	}
}
