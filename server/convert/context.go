package convert

import (
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// Messages are the messages to append to a log.
func Messages(in []*loombridgev1.Message) []session.Message {
	out := make([]session.Message, len(in))
	for i, m := range in {
		out[i] = session.Message{
			Role: session.Role(m.GetRole()), Content: m.GetContent(), BlocksJSON: json.RawMessage(m.GetBlocksJson()),
			Name: m.GetName(), ToolCallID: m.GetToolCallId(), Pinned: m.GetPinned(), Observation: m.GetObservation(),
			ExtraJSON: json.RawMessage(m.GetExtraJson()),
		}
		for _, call := range m.GetToolCalls() {
			out[i].ToolCalls = append(out[i].ToolCalls, session.ToolCall{
				ID: call.GetId(), Name: call.GetName(), Arguments: call.GetArgumentsJson(), Extra: call.GetExtraJson(),
			})
		}
	}
	return out
}

func messagesOf(in []session.Message) []*loombridgev1.Message {
	out, all := make([]*loombridgev1.Message, len(in)), make([]loombridgev1.Message, len(in))
	for i := range in {
		out[i] = &all[i]
		writeMessage(out[i], &in[i])
	}
	return out
}

// writeMessage writes a message as a model gets it.
func writeMessage(out *loombridgev1.Message, m *session.Message) {
	out.Role, out.Content, out.BlocksJson = loombridgev1.Role(m.Role), utf8Text(m.Content), string(m.BlocksJSON)
	out.Name, out.ToolCallId, out.ExtraJson = m.Name, m.ToolCallID, string(m.ExtraJSON)
	for _, call := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, &loombridgev1.ModelToolCall{
			Id: call.ID, Name: call.Name, ArgumentsJson: utf8Text(call.Arguments), ExtraJson: call.Extra,
		})
	}
}

// Step writes a step of the log that stands at a position.
func Step(s step.Step, position uint64, asText bool) *loombridgev1.Step {
	out := &loombridgev1.Step{
		Id: s.ID(), ToolName: s.ToolName, Observation: utf8Text(s.Observation),
		OutcomeRef: s.OutcomeRef, OutcomePath: s.OutcomePath, CreateTime: Timestamp(s.Time),
		Success: s.Success(), Outcome: loombridgev1.StepOutcome(s.Outcome + 1), Thought: s.Thought, Error: utf8Text(s.Error),
		Inline: utf8Text(s.Inline), SessionId: s.SessionID, TurnId: s.TurnID, CallId: s.CallID,
		Position: int64(position), Pinned: s.Pinned,
		ResultForm: formOf(s.Given.Form), Refused: s.Refused(),
	}
	// Figures are flat and made by the reducer, so they always have this form.
	out.Metadata, _ = structOf(s.Metadata)
	if args, ok := pleasantStruct(s.MinimalArgs, asText); ok {
		out.MinimalArgsForm = &loombridgev1.Step_MinimalArgs{MinimalArgs: args}
	} else {
		out.MinimalArgsForm = &loombridgev1.Step_MinimalArgsJson{MinimalArgsJson: string(s.MinimalArgs)}
	}
	return out
}

// Steps writes entries of the log, all of which are steps.
func Steps(entries []session.Entry, asText bool) []*loombridgev1.Step {
	out := make([]*loombridgev1.Step, len(entries))
	for i, e := range entries {
		out[i] = Step(*e.Step, e.Position, asText)
	}
	return out
}

// StepPage is the first page of found that has at most size steps and fits
// into limit bytes; the token leads to the rest.
func StepPage(found []session.Entry, size, limit int, asText bool) *loombridgev1.ListStepsResponse {
	out := &loombridgev1.ListStepsResponse{}
	// The frame of a step in the page, and the token at its end.
	const overhead = 64
	used := 0
	for i, e := range found {
		one := Step(*e.Step, e.Position, asText)
		used += proto.Size(one) + overhead
		if i == size || (i > 0 && used > limit) {
			out.NextPageToken = page.Token(found[i-1].Position)
			return out
		}
		out.Steps = append(out.Steps, one)
	}
	if n := len(found); n == session.MaxListed {
		out.NextPageToken = page.Token(found[n-1].Position)
	}
	return out
}

// TokenCount is a count with how certain it is.
func TokenCount(c tokens.Count) *loombridgev1.TokenCount {
	certainty := loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ESTIMATED
	switch {
	case c.Exact:
		certainty = loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT
	case c.Anchored:
		certainty = loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ANCHORED
	}
	return &loombridgev1.TokenCount{Tokens: Int32(c.Tokens), Counter: c.Counter, Certainty: certainty}
}

// AssembleRequest bounds the prompt by what an answer can carry, so that a
// budget without end does not collect a history without end.
func AssembleRequest(scope kv.Scope, r *loombridgev1.AssembleRequest, maxBytes int) assemble.Request {
	request := assemble.Request{
		Scope: scope, SessionID: r.GetSessionId(), Goal: r.GetGoal(), Model: r.GetModel(), System: r.GetSystem(),
		MaxTokens: int(r.GetMaxTokens()), MaxBytes: maxBytes, Format: assemble.Neutral,
		DryRun: r.GetDryRun(), History: Config(r.GetHistory()), WithoutTools: r.GetWithoutTools(),
		Settings: PromptSettings(r.GetSettings()), TurnID: r.GetTurnId(),
	}
	for _, tool := range r.GetTools() {
		request.Tools = append(request.Tools, assemble.Tool{
			Name: tool.GetName(), Description: tool.GetDescription(), Schema: json.RawMessage(tool.GetParametersSchemaJson()),
		})
	}
	request.Format = formats[r.GetFormat()]
	return request
}

// formats are the neutral one where a request names none.
var formats = map[loombridgev1.PromptFormat]assemble.Format{
	loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT:      provider.OpenAIChat,
	loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_RESPONSES: provider.OpenAIResponses,
	loombridgev1.PromptFormat_PROMPT_FORMAT_ANTHROPIC:        provider.Anthropic,
	loombridgev1.PromptFormat_PROMPT_FORMAT_GEMINI:           provider.Gemini,
}

func formatOf(f assemble.Format) loombridgev1.PromptFormat {
	for number, format := range formats {
		if format == f {
			return number
		}
	}
	return loombridgev1.PromptFormat_PROMPT_FORMAT_NEUTRAL
}

// Prompt is an assembled prompt in a format, with its receipt.
func Prompt(p assemble.Prompt, f assemble.Format) *loombridgev1.AssembleResponse {
	out := &loombridgev1.AssembleResponse{
		Messages: messagesOf(p.Messages), ToolsJson: string(p.ToolsJSON), PromptJson: string(p.Body), Format: formatOf(f),
		Tokens: TokenCount(p.Tokens), PrefixSha256: p.PrefixSHA256, Receipt: promptReceiptOf(p.Receipt),
	}
	if f == provider.OpenAIChat {
		out.PromptJson = string(p.OpenAIChatJSON)
	}
	for _, m := range p.Marks {
		out.CacheMarks = append(out.CacheMarks, &loombridgev1.CacheMark{
			What: m.What, MessageIndex: Int32(m.Message), BlockIndex: Int32(m.Block), Tokens: Int32(m.Tokens),
		})
	}
	out.Parts = make(map[string]int32, len(p.Parts))
	for _, part := range p.Parts {
		out.Parts[part.Name] = Int32(part.Tokens)
	}
	return out
}
