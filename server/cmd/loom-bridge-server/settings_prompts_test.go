package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// made is a prompt of session s with the tools of the server.
func (s *stand) made(settings *loombridgev1.PromptSettings, change func(r *loombridgev1.AssembleRequest)) *loombridgev1.AssembleResponse {
	s.tb.Helper()
	request := &loombridgev1.AssembleRequest{AgentId: s.agent, SessionId: "s", Settings: settings}
	if change != nil {
		change(request)
	}
	got, err := s.contexts().Assemble(s.ctx, request)
	must(s.tb, err)
	return got
}

// shows makes a prompt, and returns what is seen in its text.
func shows(settings *loombridgev1.PromptSettings, change func(r *loombridgev1.AssembleRequest), seen func(text string) string) func(s *stand) func() string {
	return func(s *stand) func() string { return once(seen(shownText(s.made(settings, change)))) }
}

// after is see behind other work.
func after(work func(s *stand), see func(s *stand) func() string) func(s *stand) func() string {
	return func(s *stand) func() string {
		work(s)
		return see(s)
	}
}

// offers tells whether a prompt offers a tool.
func offers(tool string) func(s *stand) func() string {
	return func(s *stand) func() string {
		return once(fmt.Sprint(strings.Contains(s.made(nil, nil).GetToolsJson(), tool)))
	}
}

// told sends sixty messages of six tokens.
func told(s *stand) {
	for range 60 {
		_, err := loombridgev1.NewEventServiceClient(s.conn).SendMessage(s.ctx, &loombridgev1.SendMessageRequest{
			AgentId: "other", TargetAgentId: s.agent, SessionId: "s", Content: "come home",
		})
		must(s.tb, err)
	}
}

// remembers saves records on the same subject.
func remembers(n int, to *loombridgev1.MemorySaveRequest) func(s *stand) {
	return func(s *stand) {
		for i := range n {
			_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{
				AgentId: to.GetAgentId(), UserId: to.GetUserId(), Kind: to.GetKind(),
				Text: fmt.Sprintf("The pump in hall %d wants oil.", i), MetadataForm: to.GetMetadataForm(),
			})
			must(s.tb, err)
		}
	}
}

// thinks emits what the agent thinks and does.
func thinks(s *stand) {
	for i, topic := range []string{"node.thinking", "node.thinking", "node.planning"} {
		_, err := s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{AgentId: s.agent, Topic: topic, SessionId: "s", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
			PayloadJson: fmt.Sprintf(`{"content":"THOUGHT %d","goal":"THOUGHT %[1]d"}`, i),
		}})
		must(s.tb, err)
	}
}

// tasked adds three tasks that matter.
func tasked(s *stand) {
	for i := range 3 {
		_, err := s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{AgentId: s.agent, Topic: "execute", SessionId: "s", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
			PayloadJson: fmt.Sprintf(`{"content":"WORK %d","importance":0.9}`, i),
		}})
		must(s.tb, err)
	}
}

// plans gives the agent a plan.
func plans(s *stand) {
	_, err := s.contexts().UpdateWorking(s.ctx, &loombridgev1.UpdateWorkingRequest{
		AgentId: s.agent, SessionId: "s", Plan: &loombridgev1.Plan{Items: []*loombridgev1.PlanItem{{Text: "look"}, {Text: "act"}}},
	})
	must(s.tb, err)
}

// repeated makes the same call ten times over.
func repeated(s *stand) {
	for range 11 {
		s.read("s", "a.txt", 10)
	}
}

// ofTurn names a turn whose form is another one at a higher level of variation.
func ofTurn(id string) func(r *loombridgev1.AssembleRequest) {
	return func(r *loombridgev1.AssembleRequest) { r.TurnId, r.Goal = id, "act" }
}

// changes shows what is known of a user, changes it, and tells whether the next prompt
// shows it as it was.
func changes(s *stand) func() string {
	settings := &loombridgev1.PromptSettings{UserId: "u"}
	goal := func(r *loombridgev1.AssembleRequest) { r.Goal = "the pump in the hall" }
	save := func(text, before string) string {
		got, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: s.agent, UserId: "u", Text: text, Supersedes: before})
		must(s.tb, err)
		return got.GetId()
	}
	first := save("The pump in the hall wants oil.", "")
	s.made(settings, goal)
	save("The pump in the hall wants grease.", first)
	return once(has("wants oil")(shownText(s.made(settings, goal))))
}

// again tells whether the last of equal prompts is that of one before.
func again(s *stand) func() string {
	for range 3 {
		s.made(nil, nil)
	}
	return once(fmt.Sprint(s.made(nil, nil).GetReceipt().GetReused()))
}

func promptEffects() []effect {
	return slices.Concat(layoutEffects(), offerEffects(), sourceEffects(), capEffects(), formEffects())
}

func layoutEffects() []effect {
	return []effect{
		{
			setting: "prompt-layout", args: []string{"--prompt-layout", "react"},
			see:  func(s *stand) func() string { return once(s.made(nil, nil).GetReceipt().GetLayout().String()) },
			with: loombridgev1.PromptLayout_PROMPT_LAYOUT_REACT.String(), without: loombridgev1.PromptLayout_PROMPT_LAYOUT_THREE_PHASE.String(),
		},
		{
			setting: "prompt-system-file", args: []string{"--prompt-system-file", "$DIR/system.txt"}, files: map[string]string{"system.txt": "Be brief.\n"},
			see: shows(nil, nil, func(text string) string { return text }), with: "Be brief.\n", without: "",
		},
		{
			setting: "runtime-position", args: []string{"--runtime-position", "prepend"},
			see: func(s *stand) func() string {
				s.say("ASKED")
				text := shownText(s.made(&loombridgev1.PromptSettings{Injections: []*loombridgev1.Injection{
					{Name: "now", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_RUNTIME, Content: "NOW"},
				}}, nil))
				return once(fmt.Sprint(strings.Index(text, "NOW") < strings.Index(text, "ASKED")))
			},
			with: "true", without: "false",
		},
		{
			setting: "working-position", args: []string{"--working-position", "after_system"},
			see: func(s *stand) func() string {
				s.say("ASKED")
				_, err := s.context().UpdateWorking(s.ctx, &loombridgev1.UpdateWorkingRequest{AgentId: s.agent, SessionId: "s", Scratchpad: new("NOTED")})
				must(s.tb, err)
				text := shownText(s.made(nil, nil))
				return once(fmt.Sprint(strings.Index(text, "NOTED") < strings.Index(text, "ASKED")))
			},
			with: "true", without: "false",
		},
		{
			setting: "exclude-sections", args: []string{"--exclude-sections", "plan", "--exclude-sections", "few_shot"},
			see:  shows(&loombridgev1.PromptSettings{FewShot: []*loombridgev1.Example{{Input: "EXAMPLE", Output: "x"}}}, nil, has("EXAMPLE")),
			with: "false", without: "true",
		},
	}
}

func offerEffects() []effect {
	return []effect{
		{
			setting: "tool-rendering", args: []string{"--tool-rendering", "text"},
			see: shows(nil, nil, has("# Available tools\n")), with: "true", without: "false",
		},
		{setting: "tool-levels", args: []string{"--tool-levels", "2"}, see: offers("fs:stat"), with: "false", without: "true"},
		{setting: "tool-names", args: []string{"--tool-names", "fs:s*"}, both: []string{"--tool-levels", "2"}, see: offers("fs:stat"), with: "true", without: "false"},
		{
			setting: "tool-level", args: []string{"--tool-level", "fs:stat=2", "--tool-level", "fs:delete=3"}, see: offers("fs:stat"), with: "false", without: "true",
		},
	}
}

func sourceEffects() []effect {
	goal := func(r *loombridgev1.AssembleRequest) { r.Goal = "which pump in the hall wants oil" }
	user, knowledge := &loombridgev1.MemorySaveRequest{AgentId: "a", UserId: "u"}, &loombridgev1.MemorySaveRequest{AgentId: "a", Kind: "knowledge"}
	events := &loombridgev1.PromptSettings{Layout: loombridgev1.PromptLayout_PROMPT_LAYOUT_TASK_CONTEXT, Sources: &loombridgev1.SourceSettings{Exclude: []string{"tasks"}}}
	least := &loombridgev1.PromptSettings{Layout: events.Layout, Sources: &loombridgev1.SourceSettings{Exclude: []string{"tasks"}, Events: 1}}
	return []effect{
		{
			setting: "memory-layers", args: []string{"--memory-layers", "L1,L2"}, both: []string{"--memory-l1-tasks", "1"},
			see: after(tasked, shows(nil, nil, parts("WORK"))), with: "3", without: "1",
		},
		{
			setting: "user-memories", args: []string{"--user-memories", "1"},
			see: after(remembers(5, user), shows(&loombridgev1.PromptSettings{UserId: "u"}, goal, parts("wants oil."))), with: "1", without: "3",
		},
		{
			setting: "knowledge-items", args: []string{"--knowledge-items", "1"},
			see: after(remembers(5, knowledge), shows(nil, goal, parts("wants oil."))), with: "1", without: "3",
		},
		{
			// The knowledge base answers after 300 ms, without a piece.
			setting: "knowledge-timeout", args: []string{"--knowledge-timeout", "10s"}, both: []string{"--knowledge-endpoint", "$API"},
			see: func(s *stand) func() string {
				s.model.holdFor(300 * time.Millisecond)
				for _, section := range s.made(nil, goal).GetReceipt().GetSections() {
					if section.GetName() == "knowledge" {
						return once(section.GetOutcome().String())
					}
				}
				return once("no line")
			},
			with: loombridgev1.SectionOutcome_SECTION_OUTCOME_EMPTY.String(), without: loombridgev1.SectionOutcome_SECTION_OUTCOME_TIMED_OUT.String(),
		},
		{
			setting: "event-actions", args: []string{"--event-actions", "node.thinking,node.planning"},
			see: after(thinks, shows(events, nil, parts("THOUGHT"))), with: "3", without: "2",
		},
		{setting: "events-shown", args: []string{"--events-shown", "1"}, both: []string{"--min-events", "1"}, see: after(thinks, shows(events, nil, parts("THOUGHT"))), with: "1", without: "2"},
		{setting: "min-events", args: []string{"--min-events", "1"}, see: after(thinks, shows(least, nil, parts("THOUGHT"))), with: "1", without: "0"},
		{
			setting: "direct-messages", args: []string{"--direct-messages", "7"}, both: []string{"--section-tokens", "tasks=0"},
			see: after(told, shows(nil, nil, parts("[Direct message from "))), with: "7", without: "50",
		},
		{
			setting: "direct-share", args: []string{"--direct-share", "1"}, both: []string{"--section-tokens", "tasks=80"},
			see: after(told, shows(nil, nil, parts("[Direct message from "))), with: "10", without: "3",
		},
		{
			setting: "direct-min", args: []string{"--direct-min", "5"}, both: []string{"--section-tokens", "tasks=80"},
			see: after(told, shows(nil, nil, parts("[Direct message from "))), with: "5", without: "3",
		},
		{
			setting: "errors-shown", args: []string{"--errors-shown", "7"},
			see: after(func(s *stand) {
				for i := range 8 {
					request := recordOf(s.agent, "s", "my:tool", "{}", "null")
					request.Success, request.OutputForm, request.ErrorMessage = false, nil, fmt.Sprintf("E%d", i)
					_, err := s.contexts().RecordStep(s.ctx, request)
					must(s.tb, err)
				}
			}, shows(nil, nil, parts("\n- my:tool: E"))),
			with: "7", without: "5",
		},
	}
}

func capEffects() []effect {
	own := &loombridgev1.PromptSettings{Injections: []*loombridgev1.Injection{
		{Name: "facts", Phase: loombridgev1.InjectionPhase_INJECTION_PHASE_SYSTEM, Content: strings.Repeat("FACT\n", 100)},
	}}
	skill := &loombridgev1.PromptSettings{Skills: []*loombridgev1.Skill{{Name: "count", Text: strings.Repeat("COUNT\n", 100), Active: true}}}
	long := func(r *loombridgev1.AssembleRequest) {
		r.WithoutTools, r.Goal, r.MaxTokens = true, strings.Repeat("word ", 100), 200
	}
	return []effect{
		{
			setting: "section-profile", args: []string{"--section-profile", "react_8k"},
			see: func(s *stand) func() string {
				got := s.made(&loombridgev1.PromptSettings{System: "S"}, nil)
				return once(fmt.Sprint(got.GetReceipt().GetSections()[0].GetMaxTokens()))
			},
			with: "1500", without: "2000",
		},
		{setting: "section-tokens", args: []string{"--section-tokens", "skills=50,plan=10"}, see: shows(skill, nil, has(strings.Repeat("COUNT\n", 50))), with: "false", without: "true"},
		{setting: "injection-total-tokens", args: []string{"--injection-total-tokens", "50"}, see: shows(own, nil, has(strings.Repeat("FACT\n", 50))), with: "false", without: "true"},
		{
			setting: "output-reserve", args: []string{"--output-reserve", "150"},
			see: func(s *stand) func() string {
				request := &loombridgev1.AssembleRequest{AgentId: s.agent, SessionId: "s"}
				long(request)
				_, err := s.contexts().Assemble(s.ctx, request)
				return once(ended(err))
			},
			with: "CONTEXT_OVERFLOW", without: "OK",
		},
	}
}

func formEffects() []effect {
	act := func(r *loombridgev1.AssembleRequest) { r.Goal = "act" }
	hours := func(s *stand) func() string {
		got := s.made(nil, func(r *loombridgev1.AssembleRequest) {
			r.System, r.Format, r.Model = strings.Repeat("Be careful. ", 2000), loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC, "claude-opus-4-5"
			r.MaxTokens = 100_000
		})
		return once(has(`"ttl":"1h"`)(strings.ReplaceAll(got.GetAnthropicJson(), " ", "")))
	}
	return []effect{
		{setting: "variation", args: []string{"--variation=false"}, see: after(plans, shows(nil, act, has("% complete"))), with: "false", without: "true"},
		{setting: "variation-level", args: []string{"--variation-level", "0.8"}, see: after(plans, shows(nil, ofTurn("18"), has("Status:"))), with: "false", without: "true"},
		{setting: "variation-adaptive", args: []string{"--variation-adaptive"}, see: after(repeated, after(plans, shows(nil, ofTurn("18"), has("Status:")))), with: "false", without: "true"},
		{setting: "stable-ttl", args: []string{"--stable-ttl", "1h"}, see: hours, with: "true", without: "false"},
		{setting: "session-ttl", args: []string{"--session-ttl", "1ns"}, both: []string{"--keep-on-write"}, see: changes, with: "false", without: "true"},
		{setting: "assemble-cache", args: []string{"--assemble-cache"}, see: again, with: "true", without: "false"},
		{setting: "keep-on-write", args: []string{"--keep-on-write"}, see: changes, with: "true", without: "false"},
	}
}

// A level of what is no tool, and a system prompt that can't be read or is too long,
// stop the server from starting, and say which setting it was.
func TestPromptSettingsThatStopAServer(t *testing.T) {
	t.Parallel()
	long := MustFile(t, strings.Repeat("x", 600<<10))
	for _, tt := range []struct{ arg, want string }{
		{"--tool-level=fs:stats=2", `--tool-level (LOOM_BRIDGE_TOOL_LEVEL) "fs:stats=2": "fs:stats" is no tool of the server, nearest is fs:stat`},
		{"--prompt-system-file=/nowhere/system.txt", `--prompt-system-file (LOOM_BRIDGE_PROMPT_SYSTEM_FILE) "/nowhere/system.txt": open`},
		{"--prompt-system-file=" + long, `over the limit of 524288`},
		{"--prompt-system-file=" + MustFile(t, "a\xffb"), `is not UTF-8`},
	} {
		err := runBriefly(t, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()+"/store", tt.arg)
		if bad, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(bad.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.arg, err, tt.want)
		}
	}
}

// The help of the caps names every section that has one, with its default.
func TestHelpOfCaps(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	c := NewConfig()
	printGroup(&b, group{name: "prompts", settings: c.promptSettings()})
	for _, part := range []string{"system=2000", "tools=3000", "skills=1000", "few_shot=500", "user_memory=500", "knowledge=800", "playbook=300", "plan=300", "errors=300", "goal=200"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %s in\n%s", part, b.String())
		}
	}
}
