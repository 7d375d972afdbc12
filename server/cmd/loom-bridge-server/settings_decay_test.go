package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// say appends messages of the user and the model in turns.
func (s *stand) say(texts ...string) {
	s.tb.Helper()
	request := &loombridgev1.AppendMessagesRequest{AgentId: s.agent, SessionId: "s"}
	for i, text := range texts {
		role := loombridgev1.Role_ROLE_USER
		if i%2 == 1 {
			role = loombridgev1.Role_ROLE_ASSISTANT
		}
		request.Messages = append(request.Messages, &loombridgev1.Message{Role: role, Content: text})
	}
	_, err := s.contexts().AppendMessages(s.ctx, request)
	must(s.tb, err)
}

// talked are twenty long messages; a prompt is shown with the preset three_phase, and
// what counts in it is returned.
func talked(count func(text string) string) func(s *stand) func() string {
	return func(s *stand) func() string {
		var texts []string
		for n := range 20 {
			texts = append(texts, fmt.Sprintf("Message %d begins here. ", n+1)+strings.Repeat("It goes on and on. ", 30))
		}
		s.say(texts...)
		return once(count(shownText(s.prompt("s", "three_phase"))))
	}
}

// parts counts how often a text has a part.
func parts(part string) func(text string) string {
	return func(text string) string { return fmt.Sprint(strings.Count(text, part)) }
}

// image is a block of an image that is told about.
const image = `[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoiVBORw0KGgo"},"description":"a cat"}]`

// imaged are four turns, each with an image, and how many of them became a line.
func imaged(s *stand) func() string {
	for range 4 {
		_, err := s.contexts().AppendMessages(s.ctx, &loombridgev1.AppendMessagesRequest{AgentId: s.agent, SessionId: "s", Messages: []*loombridgev1.Message{
			{Role: loombridgev1.Role_ROLE_USER, BlocksJson: image}, {Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I see."},
		}})
		must(s.tb, err)
	}
	lines := 0
	for _, m := range s.prompt("s", "three_phase").GetMessages() {
		lines += strings.Count(m.GetBlocksJson(), ": a cat]")
	}
	return once(fmt.Sprint(lines))
}

// summarizing is a session whose old messages a tool of an attached agent sums up,
// after a while.
func summarizing(wait time.Duration) func(s *stand) func() string {
	return func(s *stand) func() string {
		stream, err := s.bridge().Attach(s.ctx)
		must(s.tb, err)
		must(s.tb, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{
			AgentId: "writer", Tools: []*loombridgev1.ProvidedTool{{Name: "my:sum"}},
		}}}))
		_, err = stream.Recv()
		must(s.tb, err)
		go func() {
			for {
				m, err := stream.Recv()
				if err != nil {
					return
				}
				call := m.GetToolCall()
				if call == nil {
					continue
				}
				time.Sleep(wait)
				_ = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
					CallId: call.GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `"They talked."`},
				}}})
			}
		}()
		return talked(has("] They talked.\n"))(s)
	}
}

// weighed says which of two messages a summary has room for: an old one with all words
// of the goal, or a newer one with most of them.
func weighed(s *stand) func() string {
	goal := "one two three four five six seven eight nine ten"
	texts := []string{"Hello.", "OLD " + goal + "."}
	for range 12 {
		texts = append(texts, "Nothing. "+strings.Repeat("filler ", 60))
	}
	texts = append(texts, "Yes. "+strings.Repeat("filler ", 60), "NEW one two three four five six seven eight.")
	for range 6 {
		texts = append(texts, "x. "+strings.Repeat("other ", 80))
	}
	for n := range 4 {
		texts = append(texts, fmt.Sprint("last ", n))
	}
	s.say(append(texts, goal)...)
	text := shownText(s.prompt("s", "three_phase"))
	return once(fmt.Sprint(strings.Contains(text, "OLD"), strings.Contains(text, "NEW")))
}

// judged says whether a summary has room for what was said or for the result of a tool.
func judged(s *stand) func() string {
	s.say("Hello.")
	s.record("s", "my:tool", `{}`, `"RESULT one two three four five six"`)
	texts := []string{"And?", "SAID one two three four five six seven."}
	for range 8 {
		texts = append(texts, "x. "+strings.Repeat("other ", 80))
	}
	s.say(append(texts, "a", "b", "c", "d", "one two three four five six seven eight")...)
	text := shownText(s.prompt("s", "three_phase"))
	return once(fmt.Sprint(strings.Contains(text, "RESULT"), strings.Contains(text, "SAID")))
}

// pressedTo is a prompt of the preset partitioned that takes a share of its window, and
// what counts in it. refused is told before.
func pressedTo(share float64, refused bool, count func(p *loombridgev1.AssembleResponse) string) func(s *stand) func() string {
	return func(s *stand) func() string {
		long := func(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }
		call := func(id string) *loombridgev1.Message {
			return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: id, Name: "look", ArgumentsJson: "{}"}}}
		}
		gave := func(id string) *loombridgev1.Message {
			return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: id, Content: long("beta", 300)}
		}
		s.say("Find the parser.", "OLD the parser "+long("alpha", 60), "And?", "GOAL vectors "+long("gamma", 60))
		_, err := s.contexts().AppendMessages(s.ctx, &loombridgev1.AppendMessagesRequest{AgentId: s.agent, SessionId: "s", Messages: []*loombridgev1.Message{call("c1"), gave("c1"), call("c2"), gave("c2")}})
		must(s.tb, err)
		s.say("x", "Not yet.", "y", "Soon.", "z", "Now.", "Mend the parser.")
		window := int32(100_000)
		assemble := func(h *loombridgev1.HistorySettings) *loombridgev1.AssembleResponse {
			got, err := s.contexts().Assemble(s.ctx, &loombridgev1.AssembleRequest{
				AgentId: s.agent, SessionId: "s", WithoutTools: true, MaxTokens: window, History: h,
				Settings: &loombridgev1.PromptSettings{Layout: loombridgev1.PromptLayout_PROMPT_LAYOUT_PARTITIONED},
			})
			must(s.tb, err)
			return got
		}
		for range 4 { // the prompt has figures of itself
			window = int32(float64(assemble(&loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY}).GetTokens().GetTokens()) / share)
		}
		levels := &loombridgev1.HistorySettings{Preset: "partitioned", Literal: new(true)}
		if refused {
			_, err := s.contexts().ConfigureSession(s.ctx, &loombridgev1.ConfigureSessionRequest{AgentId: s.agent, SessionId: "s", History: levels})
			must(s.tb, err)
			_, err = s.contexts().ReportOverflow(s.ctx, &loombridgev1.ReportOverflowRequest{AgentId: s.agent, SessionId: "s"})
			must(s.tb, err)
		}
		return once(count(assemble(levels)))
	}
}

// atThreshold tells whether a level of half the window begins at that or over it: what is
// one token under the largest window in which it begins is twice a number of tokens, or not.
func atThreshold(s *stand) func() string {
	pressedTo(0.4, false, level)(s)
	prompt := func(window int32, h *loombridgev1.HistorySettings) *loombridgev1.AssembleResponse {
		got, err := s.contexts().Assemble(s.ctx, &loombridgev1.AssembleRequest{
			AgentId: s.agent, SessionId: "s", WithoutTools: true, MaxTokens: window, History: h, DryRun: true,
			Settings: &loombridgev1.PromptSettings{Layout: loombridgev1.PromptLayout_PROMPT_LAYOUT_PARTITIONED},
		})
		must(s.tb, err)
		return got
	}
	whole := prompt(100_000, &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY}).GetTokens().GetTokens()
	window := 2*whole + 60
	for level(prompt(window, &loombridgev1.HistorySettings{Preset: "partitioned", Literal: new(true)})) != "SNIP" {
		if window--; window < whole {
			return once("never")
		}
	}
	if window%2 == 0 {
		return once("at it")
	}
	return once("over it")
}

// level is that of a prompt's batch.
func level(p *loombridgev1.AssembleResponse) string {
	return strings.TrimPrefix(p.GetReceipt().GetBatch().GetLevel().String(), "PRESSURE_LEVEL_")
}

// inPrompt counts how often a prompt has a part.
func inPrompt(part string) func(p *loombridgev1.AssembleResponse) string {
	return func(p *loombridgev1.AssembleResponse) string { return fmt.Sprint(strings.Count(shownText(p), part)) }
}

// K27, K28, K29, K30
func pressureEffects() []effect {
	half := []string{"--pressure-thresholds", "0.5,0.8,0.9,0.95"}
	return []effect{
		{setting: "pressure-thresholds", args: half, both: []string{"--snip-chars", "100"}, see: pressedTo(0.55, false, level), with: "SNIP", without: "UNSPECIFIED"},
		{
			setting: "pressure-inclusive-thresholds", args: []string{"--pressure-inclusive-thresholds"}, both: append([]string{"--snip-chars", "100"}, half...),
			see: atThreshold, with: "at it", without: "over it",
		},
		{setting: "pressure-renew", args: []string{"--pressure-renew", "0.96"}, see: pressedTo(0.98, false, level), with: "RENEWAL", without: "AUTO"},
		{setting: "micro-same-content", args: []string{"--micro-same-content=false"}, see: pressedTo(0.85, false, inPrompt("[cached look result from c1]")), with: "0", without: "1"},
		{setting: "micro-preview-chars", args: []string{"--micro-preview-chars", "40"}, see: pressedTo(0.85, false, inPrompt("[tool result cached: 1499 chars] beta beta")), with: "1", without: "0"},
		{setting: "snip-chars", args: []string{"--snip-chars", "100"}, see: pressedTo(0.75, false, inPrompt("\n[...snipped ")), with: "4", without: "0"},
		{setting: "snip-reactive-chars", args: []string{"--snip-reactive-chars", "100"}, see: pressedTo(0.1, true, inPrompt("\n[...snipped ")), with: "1", without: "0"},
		{
			setting: "score-rel", args: []string{"--score-rel", "embedding"}, both: embedded(), after: 50 * time.Millisecond,
			see: func(s *stand) func() string {
				pressedTo(0.98, false, level)(s)
				return func() string {
					return fmt.Sprint(slices.ContainsFunc(s.model.questions(), func(q question) bool { return slices.Contains(q.Input, "Mend the parser.") && len(q.Input) > 5 }))
				}
			},
			with: "true", without: "false",
		},
	}
}

func decayEffects() []effect {
	callback := []string{"--summary-mode", "callback", "--summary-tool", "my:sum"}
	return []effect{
		{setting: "history-style", args: []string{"--history-style", "design"}, see: reads(8, 10, "reduction", has("Previous steps:")), with: "true", without: "false"},
		{setting: "tool-results", args: []string{"--tool-results", "full"}, see: reads(2, 5000, "design", has("xxxxx")), with: "true", without: "false"},
		{setting: "decay-unit", args: []string{"--decay-unit", "turns"}, see: talked(parts("chars omitted")), with: "12", without: "6"},
		{setting: "decay-full", args: []string{"--decay-full", "6"}, see: talked(has("[Summary of 8 earlier")), with: "true", without: "false"},
		{setting: "decay-fold", args: []string{"--decay-fold", "3"}, see: talked(parts("chars omitted")), with: "3", without: "6"},
		{setting: "decay-image-turns", args: []string{"--decay-image-turns", "1"}, see: imaged, with: "2", without: "1"},
		{setting: "summary-mode", args: []string{"--summary-mode", "callback"}, both: []string{"--summary-tool", "my:sum"}, see: summarizing(0), with: "true", without: "false"},
		{setting: "summary-tool", args: []string{"--summary-tool", "my:sum"}, both: []string{"--summary-mode", "callback"}, see: summarizing(0), with: "true", without: notStarted},
		{setting: "summary-timeout", args: []string{"--summary-timeout", "20ms"}, both: callback, see: summarizing(time.Second), with: "false", without: "true"},
		{setting: "summary-max-tokens", args: []string{"--summary-max-tokens", "40"}, see: talked(has("Message 2 begins here. |")), with: "false", without: "true"},
		{setting: "score-lambda", args: []string{"--score-lambda", "0.01"}, both: []string{"--summary-max-tokens", "40"}, see: weighed, with: "true false", without: "false true"},
		{
			setting: "score-tool-result-factor", args: []string{"--score-tool-result-factor", "1.5"}, both: []string{"--summary-max-tokens", "40"},
			see: judged, with: "true false", without: "false true",
		},
	}
}
