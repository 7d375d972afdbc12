package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// pressed is a session of the preset partitioned with a history that every level finds
// something in.
func pressed(tb testing.TB, s *servertest.Server, session string, literal bool) {
	tb.Helper()
	MustConfigure(tb, s, &loombridgev1.ConfigureSessionRequest{SessionId: session, History: &loombridgev1.HistorySettings{
		Preset: "partitioned", Literal: &literal,
	}, Prompt: &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{None: true}}})
	long := func(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }
	call := func(id string) *loombridgev1.Message {
		return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I look.", ToolCalls: []*loombridgev1.ModelToolCall{{Id: id, Name: "look", ArgumentsJson: "{}"}}}
	}
	gave := func(id, content string) *loombridgev1.Message {
		return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: id, Content: content}
	}
	say := func(role loombridgev1.Role, content string) *loombridgev1.Message {
		return &loombridgev1.Message{Role: role, Content: content}
	}
	user, model := loombridgev1.Role_ROLE_USER, loombridgev1.Role_ROLE_ASSISTANT
	_, err := s.Context.AppendMessages(tb.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: session, Messages: []*loombridgev1.Message{
		say(loombridgev1.Role_ROLE_SYSTEM, "Obey the rules."),
		say(user, "Find the parser. "+long("alpha", 600)),
		say(model, "It is in the yard."),
		call("c1"), gave("c1", long("beta", 300)),
		call("c1"), gave("c1", long("beta", 300)),
		call("c2"), gave("c2", long("gamma", 100)),
		call("c2"), gave("c2", long("delta", 90)),
		say(model, "The parser is done. "+long("omega", 500)),
		say(user, "Mend the gate."), say(model, "Mended."),
		say(user, "And the door?"), say(model, "Not yet."),
		say(user, "Now mend the parser."),
	}})
	must(tb, err)
}

// prompt is a prompt of such a session.
func pressedPrompt(tb testing.TB, s *servertest.Server, session string, window int32, dry bool) *loombridgev1.AssembleResponse {
	tb.Helper()
	return MustAssemble(tb, s, &loombridgev1.AssembleRequest{SessionId: session, System: "Be brief.", MaxTokens: window, DryRun: dry})
}

// historyOf is what a prompt shows between its system message and its last one, with runs
// of a word as their number.
func historyOf(p *loombridgev1.AssembleResponse) string {
	var b strings.Builder
	m := p.GetMessages()
	for _, one := range m[1 : len(m)-1] {
		text := one.GetContent()
		for _, word := range []string{"alpha", "beta", "gamma", "delta", "omega"} {
			if n := strings.Count(text, word); n > 3 {
				at, end := strings.Index(text, word), strings.LastIndex(text, word)+len(word)
				text = fmt.Sprintf("%s(%s x %d)%s", text[:at], word, n, text[end:])
			}
		}
		fmt.Fprintf(&b, "[%s] %s", strings.ToLower(strings.TrimPrefix(one.GetRole().String(), "ROLE_")), text)
		for _, c := range one.GetToolCalls() {
			fmt.Fprintf(&b, " <%s %s>", c.GetName(), c.GetId())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// window is the smallest window in which a session's whole prompt takes at most a share.
func window(tb testing.TB, s *servertest.Server, session string, share float64) int32 {
	tb.Helper()
	whole := MustAssemble(tb, s, &loombridgev1.AssembleRequest{
		SessionId: session, System: "Be brief.", MaxTokens: 100_000, DryRun: true,
		History:  &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY},
		Settings: &loombridgev1.PromptSettings{Layout: loombridgev1.PromptLayout_PROMPT_LAYOUT_PARTITIONED},
	})
	return int32(float64(whole.GetTokens().GetTokens())/share) + 1
}

// Each level does to the history what the documents say, in the window that asks for it.
//
// H01, H02, H06, H08, H20, H22, H23, H24, H25, H27, K27, K28, K29, P02, P03, X01, X04
func TestLevels(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, tt := range []struct {
		level    string
		pressure float64
	}{{"none", 0.69}, {"snip", 0.75}, {"micro", 0.85}, {"collapse", 0.93}, {"auto", 0.98}} {
		pressed(t, s, tt.level, true)
		p := pressedPrompt(t, s, tt.level, window(t, s, tt.level, tt.pressure), false)
		if got := strings.ToLower(strings.TrimPrefix(p.GetReceipt().GetBatch().GetLevel().String(), "PRESSURE_LEVEL_")); got != tt.level && tt.level != "none" {
			t.Errorf("%s: the level is %s at %v", tt.level, got, p.GetReceipt().GetPressure())
		}
		parts := p.GetReceipt().GetPartitions()
		if sum := parts["system"] + parts["memory"] + parts["skill"] + parts["history"] + parts["working"]; sum+3 != p.GetTokens().GetTokens() {
			t.Errorf("%s: the partitions are %v of %d", tt.level, parts, p.GetTokens().GetTokens())
		}
		if p.GetMessages()[0].GetContent() != "Be brief." {
			t.Errorf("%s: the system message is %q", tt.level, p.GetMessages()[0].GetContent())
		}
		golden(t, "levels/"+tt.level, historyOf(p))
	}
}

// A level begins over its threshold, not at it; the highest one runs. The pressure is that
// of the whole prompt.
//
// H20, H27
func TestPressureThresholds(t *testing.T) {
	s := servertest.Start(t, nil)
	pressed(t, s, "s", true)
	levels := []string{"UNSPECIFIED", "SNIP", "MICRO", "COLLAPSE", "AUTO"}
	for i, threshold := range []float64{0.7, 0.8, 0.9, 0.95} {
		under := window(t, s, "s", threshold) + 8 // the digits of the dashboard
		for at, want := range map[int32]string{under: levels[i], under - 60: levels[i+1]} {
			p := pressedPrompt(t, s, "s", at, true)
			if got := strings.TrimPrefix(p.GetReceipt().GetBatch().GetLevel().String(), "PRESSURE_LEVEL_"); got != want {
				t.Errorf("a window of %d around %v: %s, want %s", at, threshold, got, want)
			}
		}
	}
}

// A turn has one level; the next prompt of the turn, and a dry run, change nothing, and
// what a level did stays. Undo takes it back.
//
// H21, X03, X05, P02
func TestOneLevelATurn(t *testing.T) {
	s := servertest.Start(t, nil)
	pressed(t, s, "s", true)
	at := window(t, s, "s", 0.98)
	before := historyOf(pressedPrompt(t, s, "s", 100_000, true))
	dry := historyOf(pressedPrompt(t, s, "s", at, true))
	first := pressedPrompt(t, s, "s", at, false)
	if historyOf(first) != dry || dry == before {
		t.Errorf("a dry run says\n%s\nand the prompt is\n%s", dry, historyOf(first))
	}
	for range 3 {
		p := pressedPrompt(t, s, "s", at*3/4, false)
		if historyOf(p) != dry || p.GetReceipt().GetBatch() != nil {
			t.Fatalf("another call of the turn: %v\n%s", p.GetReceipt().GetBatch(), historyOf(p))
		}
	}
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I go."},
	}})
	must(t, err)
	if p := pressedPrompt(t, s, "s", 100_000, false); !strings.HasPrefix(promptText(p), promptText(first)[:strings.Index(promptText(first), "## Dashboard")]) {
		t.Errorf("what a level did is gone:\n%s", historyOf(p))
	}
	_, err = s.Context.Undo(t.Context(), &loombridgev1.UndoRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	if p := pressedPrompt(t, s, "s", 100_000, true); !strings.HasPrefix(historyOf(p), before) {
		t.Errorf("undone it is\n%s", historyOf(p))
	}
}

// A prompt that a provider refused is made once more, by the last level; the second time
// the error names what takes most.
//
// H26
func TestReportOverflow(t *testing.T) {
	s := servertest.Start(t, nil)
	pressed(t, s, "s", true)
	report := func() error {
		got, err := s.Context.ReportUsage(t.Context(), &loombridgev1.ReportUsageRequest{Overflow: true, AgentId: agent, SessionId: "s"})
		if err == nil && got.GetLevel() != loombridgev1.PressureLevel_PRESSURE_LEVEL_REACTIVE {
			t.Errorf("the level is %v", got.GetLevel())
		}
		return err
	}
	before := pressedPrompt(t, s, "s", 100_000, false)
	must(t, report())
	p := pressedPrompt(t, s, "s", 100_000, false)
	if p.GetReceipt().GetBatch().GetLevel() != loombridgev1.PressureLevel_PRESSURE_LEVEL_REACTIVE || p.GetTokens().GetTokens() >= before.GetTokens().GetTokens()/2 {
		t.Errorf("of %d tokens %d are left: %v", before.GetTokens().GetTokens(), p.GetTokens().GetTokens(), p.GetReceipt().GetBatch())
	}
	golden(t, "levels/reactive", historyOf(p))
	err := report()
	info := MustFail(t, err, codes.ResourceExhausted, "CONTEXT_OVERFLOW")
	if !strings.Contains(err.Error(), "largest is") || info == nil {
		t.Errorf("the error is %v", err)
	}
	_, err = s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Go on."},
	}})
	must(t, err)
	must(t, report())
}

// Between two levels each prompt begins with the one before, and a level comes only where
// it pays or the prompt would not fit; literally it comes with every threshold.
//
// X03, X04
func TestLevelsAreSticky(t *testing.T) {
	s := servertest.Start(t, nil)
	batches := map[bool]int{}
	for _, literal := range []bool{false, true} {
		session := fmt.Sprint(literal)
		pressed(t, s, session, literal)
		before := ""
		for i := range 40 {
			_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: session, Messages: []*loombridgev1.Message{
				{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: fmt.Sprint("Done ", i, ". ", strings.Repeat("epsilon ", 300))},
				{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprint("Go on to ", i)},
			}})
			must(t, err)
			p := pressedPrompt(t, s, session, 9000, false)
			text, _, _ := strings.Cut(promptText(p), "## Dashboard")
			if p.GetReceipt().GetBatch() != nil {
				batches[literal]++
			} else if !strings.HasPrefix(text, before) {
				t.Fatalf("literal %t, prompt %d has no batch, but does not begin with the one before:\n%s\n---\n%s", literal, i, before, text)
			}
			if rho := p.GetReceipt().GetPressure(); rho > 1 {
				t.Fatalf("prompt %d is over its window: %v", i, rho)
			}
			before = text
		}
	}
	if batches[false] == 0 || batches[false] >= batches[true] {
		t.Errorf("%d batches, literally %d", batches[false], batches[true])
	}
}
