package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// caller is an agent with one session, "s". Several share a server: each has steps
// and results of its own.
type caller struct {
	*servertest.Server
	tb testing.TB
	id string
}

func as(tb testing.TB, s *servertest.Server, id string) caller { return caller{s, tb, id} }

// report records a call that did its work; the output is JSON, none if empty.
func (c caller) report(tool, args, output string) *loombridgev1.RecordStepResponse {
	c.tb.Helper()
	r := &loombridgev1.RecordStepRequest{ToolName: tool, Success: true, ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args}}
	if output != "" {
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output}
	}
	return c.record(r)
}

// fail records a call that failed.
func (c caller) fail(tool, args, problem string) *loombridgev1.RecordStepResponse {
	c.tb.Helper()
	return c.record(&loombridgev1.RecordStepRequest{
		ToolName: tool, ErrorMessage: problem, ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
	})
}

// record records a call, of whatever kind.
func (c caller) record(r *loombridgev1.RecordStepRequest) *loombridgev1.RecordStepResponse {
	c.tb.Helper()
	r.AgentId, r.SessionId = c.id, "s"
	got, err := c.Context.RecordStep(c.tb.Context(), r)
	must(c.tb, err)
	return got
}

// say appends messages.
func (c caller) say(messages ...*loombridgev1.Message) {
	c.tb.Helper()
	_, err := c.Context.AppendMessages(c.tb.Context(), &loombridgev1.AppendMessagesRequest{AgentId: c.id, SessionId: "s", Messages: messages})
	must(c.tb, err)
}

// step reads a step with its arguments as text.
func (c caller) step(id string) *loombridgev1.Step {
	c.tb.Helper()
	got, err := c.Context.GetStep(convert.AskText(c.tb.Context()), &loombridgev1.GetStepRequest{AgentId: c.id, StepId: id})
	must(c.tb, err)
	return got
}

// read reads by a name what lies outside of prompts.
func (c caller) read(name string) string {
	c.tb.Helper()
	_, content := MustReadBlob(c.tb, c.Server, &loombridgev1.ReadBlobRequest{AgentId: c.id, SessionId: "s", Name: name})
	return string(content)
}

// prompt assembles the prompt of nothing but the history, counted for gpt-4o.
func (c caller) prompt(history *loombridgev1.HistorySettings) *loombridgev1.AssembleResponse {
	c.tb.Helper()
	got, err := c.Context.Assemble(c.tb.Context(), &loombridgev1.AssembleRequest{
		AgentId: c.id, SessionId: "s", WithoutTools: true, Model: "gpt-4o", MaxTokens: 100_000, History: history,
		// Tests of the history look at its end.
		Settings: &loombridgev1.PromptSettings{Sources: &loombridgev1.SourceSettings{Exclude: []string{"errors"}}},
	})
	must(c.tb, err)
	return got
}

// tokens counts a text for gpt-4o.
func (c caller) tokens(text string) int {
	c.tb.Helper()
	got, err := c.Context.CountTokens(c.tb.Context(), &loombridgev1.CountTokensRequest{AgentId: c.id, Text: text, Model: "gpt-4o"})
	must(c.tb, err)
	return int(got.GetTokens())
}

// literally are the settings of a preset that goes by its rules with every call.
func literally(preset string) *loombridgev1.HistorySettings {
	return &loombridgev1.HistorySettings{Preset: preset, Literal: new(true)}
}

// quoted is a text as JSON.
func quoted(tb testing.TB, text string) string {
	tb.Helper()
	b, err := json.Marshal(text)
	must(tb, err)
	return string(b)
}

// words are n words, each a token of gpt-4o.
func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
