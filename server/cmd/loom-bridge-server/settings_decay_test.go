package main

import (
	"fmt"
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
		{
			setting: "recent-steps-limit", args: []string{"--recent-steps-limit", "7"},
			see: func(s *stand) func() string {
				for range 9 {
					s.read("s", "a.txt", 10)
				}
				got, err := s.contexts().ListSteps(s.ctx, &loombridgev1.ListStepsRequest{AgentId: s.agent, SessionId: "s"})
				must(s.tb, err)
				return once(fmt.Sprint(len(got.GetSteps())))
			},
			with: "7", without: "5",
		},
	}
}
