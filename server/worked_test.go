package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The worked examples that the documents give of prompts, each as a file in
// testdata/worked: what a client gets for them, byte for byte.

// sentOf are the messages of a prompt for people: the part of layoutOf that is sent.
func sentOf(p *loombridgev1.AssembleResponse) string {
	text, _, _ := strings.Cut(layoutOf(p), "-- receipt --")
	if tools := p.GetToolsJson(); tools != "" && tools != "[]" {
		text += "-- tools --\n" + tools + "\n"
	}
	return text
}

func user(text string) *loombridgev1.Message {
	return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: text}
}

func assistant(text string) *loombridgev1.Message {
	return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: text}
}

// look is a tool of the caller's own.
func look() *loombridgev1.ToolDescriptor {
	return &loombridgev1.ToolDescriptor{
		Name: "look", Description: "Looks.",
		ParametersSchemaJson: `{"type":"object","properties":{"at":{"type":"string","description":"where"}},"required":["at"]}`,
	}
}

// ownTools are the settings of a prompt that offers the caller's tools alone, and whose
// form does not vary.
func ownTools(preset string) *loombridgev1.AssembleRequest {
	settings := plain()
	settings.Tools = &loombridgev1.ToolSelection{None: true}
	return &loombridgev1.AssembleRequest{
		SessionId: "s", System: "You repair pumps.", Settings: settings, MaxTokens: 8000, Model: "gpt-4o",
		Tools: []*loombridgev1.ToolDescriptor{look()}, History: &loombridgev1.HistorySettings{Preset: preset},
	}
}

// worked compares the prompt of a request with the file of an example.
func (c caller) worked(t *testing.T, name string, r *loombridgev1.AssembleRequest) {
	t.Helper()
	r.AgentId = c.id
	got, err := c.Context.Assemble(t.Context(), r)
	must(t, err)
	golden(t, "worked/"+name, sentOf(got))
}

// System prompt, recent tasks, knowledge as messages of the system with their source, and
// the current task last; tools are no message.
//
// G05, G23, E06
func TestWorkedTaskOrder(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "worker")
	remember(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: c.id, Text: "The pump needs oil of grade 7", Kind: "knowledge",
		MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"title":"Pump manual","path":"docs/pump.md"}`},
	})
	for _, e := range []struct{ action, payload string }{
		{"execute", `{"content":"Look at the pump"}`},
		{"node.thinking", `{"content":"It leaks oil"}`},
		{"node.tool_call", `{"tool_name":"look","args":{"at":"the seal"}}`},
	} {
		event := taskEvent("s", e.action, `{"parameters":`+e.payload+`}`)
		event.AgentId = c.id
		_, err := s.Bridge.Emit(t.Context(), event)
		must(t, err)
	}
	c.say(user("Which oil does the pump need?"))
	c.worked(t, "task_order", ownTools("task_context"))
}

// Of nine messages with 5000 tokens the system message and the newest three stay at 4000.
//
// G14, P06
func TestWorkedNineMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "nine")
	frame := c.prompt(nil).GetTokens().GetTokens()
	// A message has three tokens and its role's one beside its text; a prompt has some.
	sized := func(name string, size int) string { return name + strings.Repeat(" word", size-5) }
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_SYSTEM, Content: sized("system", 200)})
	for i, size := range []int{100, 100, 100, 100, 1400, 1000, 1000, 1000} {
		m := user(sized("msg", size-1) + fmt.Sprint(i+1))
		if i%2 == 0 {
			m.Role = loombridgev1.Role_ROLE_ASSISTANT
		}
		c.say(m)
	}
	got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: c.id, SessionId: "s", WithoutTools: true, Model: "gpt-4o", MaxTokens: 4000 + frame, History: &loombridgev1.HistorySettings{Preset: "task_context"},
	})
	must(t, err)
	text := sentOf(got)
	for n := 1; n <= 8; n++ {
		text = strings.ReplaceAll(text, fmt.Sprint(" word", n, "\n"), fmt.Sprint(" … msg", n, "\n"))
	}
	golden(t, "worked/nine_messages", strings.ReplaceAll(text, " word", ""))
}

// The array of three phases, with everything that a client can put into one.
//
// I08
func TestWorkedThreePhases(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "eva's")
	remember(t, s, &loombridgev1.MemorySaveRequest{AgentId: c.id, UserId: "eva", Text: "Eva wants the pump quiet at night"})
	c.say(user("The pump is loud."), assistant("Since when?"), user("Since Monday. Is the pump quiet at night?"))
	r := ownTools("")
	r.Goal, r.Settings.UserId, r.Settings.ToolRendering = "Repair the pump", "eva", loombridgev1.ToolRendering_TOOL_RENDERING_TEXT
	r.Settings.Skills = []*loombridgev1.Skill{{Name: "tact", Description: "how to talk", Text: "Be friendly.", Active: true}}
	r.Settings.Injections = []*loombridgev1.Injection{{Name: "clock", Phase: runtimePhase, Content: "It is Friday."}}
	c.worked(t, "three_phases", r)
}

// Of twenty messages ten are a summary, six have head and tail, four are whole.
//
// L01, L02, L03, L04, L06
func TestWorkedTwentyMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "talker")
	c.talkOf(1, 20)
	c.worked(t, "twenty_messages", &loombridgev1.AssembleRequest{SessionId: "s", WithoutTools: true, Model: "gpt-4o", History: literally("three_phase")})
}

// Calls of one message fold together, a line each; that of a search has its first titles.
//
// L05
func TestWorkedFoldedCalls(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "sorter")
	c.say(user("Hello."), assistant("Hello."), user("Are you well?"), assistant("Yes."), user("How can one sort?"))
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{
		{Id: "c1", Name: "web_search", ArgumentsJson: `{"query":"sorting"}`}, {Id: "c2", Name: "read_file", ArgumentsJson: `{"path":"sort.go"}`},
	}})
	var hits []string
	for _, title := range []string{"quicksort O(nlogn)", "mergesort", "TimSort", "heapsort", "radix", "shell", "bubble", "bogo"} {
		hits = append(hits, fmt.Sprintf(`{"title":%q,"url":"https://example.org/sort","snippet":%q}`, title, strings.Repeat("words ", 20)))
	}
	c.record(&loombridgev1.RecordStepRequest{
		ToolName: "web_search", CallId: "c1", Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"query":"sorting"}`},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{"results":[` + strings.Join(hits, ",") + `]}`},
	})
	c.record(&loombridgev1.RecordStepRequest{
		ToolName: "read_file", CallId: "c2", Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"path":"sort.go"}`},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{"path":"sort.go","content":"package sort\n"}`},
	})
	c.say(assistant("In many ways."), user("Name one."), assistant("TimSort."), user("Why?"))
	c.worked(t, "folded_calls", &loombridgev1.AssembleRequest{SessionId: "s", WithoutTools: true, Model: "gpt-4o", History: literally("three_phase")})
}

// An image of the third turn is a line in the sixth.
//
// L07
func TestWorkedOldImage(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "viewer")
	const blocks = `[{"type":"text","text":"What is wrong here?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="},` +
		`"description":"user uploaded a screenshot of the settings page"}]`
	c.say(user("Hello."), assistant("Hello."), user("Help me."), assistant("Gladly."))
	c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, BlocksJson: blocks}, assistant("Dark mode is off."))
	c.say(user("And now?"), assistant("It is on."), user("Good."), assistant("Yes."), user("Bye."))
	h := literally("three_phase")
	c.worked(t, "old_image", &loombridgev1.AssembleRequest{SessionId: "s", WithoutTools: true, Model: "gpt-4o", History: h})
}

// The goal, how far it is and what comes next are the last bytes of the last message.
//
// M10, M11
func TestWorkedGoal(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "traveller")
	_, err := s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{
		AgentId: c.id, SessionId: "s", Goal: new("Fly to Rome"),
		Plan: planOf(&loombridgev1.PlanItem{Text: "look", Status: done}, &loombridgev1.PlanItem{Text: "book", Status: inProgress}, &loombridgev1.PlanItem{Text: "pay"}),
	})
	must(t, err)
	c.say(user("Is there a seat?"), assistant("By the window."), user("Take it."))
	c.worked(t, "goal", &loombridgev1.AssembleRequest{SessionId: "s", WithoutTools: true, Model: "gpt-4o", Settings: plain()})
}

// System prompt, tools, history and goal are one text with blank lines between, sent as two
// messages.
//
// N04
func TestWorkedOneText(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "doer")
	c.report("fs:stat", `{"path":"pump.txt"}`, `{"size":7}`)
	c.fail("fs:read_file", `{"path":"valve.txt"}`, "no such file")
	r := ownTools("design")
	r.Goal = "Find the file"
	c.worked(t, "one_text", r)
}

// What a playbook says in a prompt.
//
// P44, P45, I14
func TestWorkedPlaybook(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, "fixer")
	remember(t, s, &loombridgev1.MemorySaveRequest{AgentId: c.id, Text: "Repair a pump that leaks", Kind: "playbook", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{
		"name": "pump", "description": "Repair a pump: find the leak, then change the seal", "status": "approved", "source": "manual",
		"trigger": {"task_types": ["repair"], "complexity_range": [4, 8]},
		"strategy": {"execution_strategy": "sequential", "suggested_tools": ["look"], "max_turns": 12},
		"tool_sequence": [{"tool": "look", "purpose": "find the leak", "is_critical": true}, {"tool": "order", "purpose": "a seal"}, {"tool": "wait"}, {"tool": "mount"}, {"tool": "test"}, {"tool": "clean"}],
		"quality_metrics": {"avg_reward": 0.9, "success_rate": 0.87, "avg_turns": 6.5}}`}})
	hint := func(words string) string {
		c.say(user(words))
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: c.id, SessionId: "s", WithoutTools: true, Settings: plain()})
		must(t, err)
		_, text, _ := strings.Cut(wholeText(got), "<playbook_hint")
		text, _, found := strings.Cut(text, "</playbook_hint>")
		if !found {
			t.Errorf("%q: no hint in\n%s", words, wholeText(got))
		}
		return "<playbook_hint" + text + "</playbook_hint>\n"
	}
	sure := hint("Repair a pump that leaks")
	s.Clock.Advance(301 * 1e9) // what stands there is kept for five minutes
	golden(t, "worked/playbook", sure+hint("My cellar is wet and cold: which of all the things that I have bought last year, may I ask, leaks?"))
}
