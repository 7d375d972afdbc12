package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// maxAnswerBytes is the longest answer that is recorded. A longer one is passed on all the same.
const maxAnswerBytes = 16 << 20

// answer is what a model said, in the words of a request.
type answer struct {
	id    string // of Responses, for what goes on from it
	items []item
	usage usage
}

// usage is what a provider counted, as the APIs say it.
type usage struct {
	Prompt     int32   `json:"prompt_tokens"` // of Chat Completions
	Completion int32   `json:"completion_tokens"`
	Input      int32   `json:"input_tokens"` // of the others
	Output     int32   `json:"output_tokens"`
	CacheWrite int32   `json:"cache_creation_input_tokens"` // of Anthropic, which does not count it as input
	CacheRead  int32   `json:"cache_read_input_tokens"`
	PromptHas  details `json:"prompt_tokens_details"`
	InputHas   details `json:"input_tokens_details"`
	AnswerHas  details `json:"completion_tokens_details"`
	OutputHas  details `json:"output_tokens_details"`
}

type details struct {
	Cached    int32 `json:"cached_tokens"`
	Reasoning int32 `json:"reasoning_tokens"`
}

// report is what a provider counted of a prompt, but for tokens of it that are not in the prompt
// as it is known here.
func (u *usage) report(besides int32) *loombridgev1.ReportUsageRequest {
	return &loombridgev1.ReportUsageRequest{
		PromptTokens:     max(u.Prompt, u.Input+u.CacheWrite+u.CacheRead) - besides,
		CompletionTokens: max(u.Completion, u.Output),
		ReasoningTokens:  max(u.AnswerHas.Reasoning, u.OutputHas.Reasoning),
		CachedTokens:     max(u.PromptHas.Cached, u.InputHas.Cached, u.CacheRead),
	}
}

// read reads a whole answer; nil for one that is broken or has not ended, of which nothing is
// recorded: a program that keeps it says it with its next request.
func (d dialect) read(body []byte, events bool) *answer {
	var said json.RawMessage
	if tooMany(body, events) {
		return nil
	}
	switch {
	case !events:
		said = body
	case d == chat:
		said = chatEvents(body)
	case d == anthropic:
		said = anthropicEvents(body)
	case d == responses:
		said = responsesEvents(body)
	}
	var in struct {
		ID      string
		Choices []struct{ Message json.RawMessage }
		Content json.RawMessage
		Output  json.RawMessage
		Usage   json.RawMessage
	}
	if said == nil || json.Unmarshal(said, &in) != nil {
		return nil
	}
	a := &answer{id: in.ID}
	_ = json.Unmarshal(in.Usage, &a.usage) // what is not there is zero
	m := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT}
	switch {
	case d == chat && len(in.Choices) > 0:
		e, err := tellChat(in.Choices[0].Message)
		if err != nil {
			return nil
		}
		m = e.message
	case d == anthropic && len(in.Content) > 0:
		setContent(m, in.Content)
	case d == responses && len(in.Output) > 0:
		setContent(m, in.Output)
	default:
		return nil
	}
	if !blank(m) {
		a.items = []item{{message: m, mark: markOf(m)}}
	}
	return a
}

// tooMany reports whether an answer has more values than are read: of a stream, in the events
// that have many, since the others are read one at a time.
func tooMany(body []byte, events bool) bool {
	if !events {
		return valuesOf(body) > maxValues
	}
	n := 0
	for data := range eventData(body) {
		if many := valuesOf(data); many > manyValues {
			n += many
		}
	}
	return n > maxValues
}

// manyValues is more than an event has that says a part of an answer.
const manyValues = 1 << 10

// eventData are the data of server-sent events, one after the other.
func eventData(body []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok && !yield(bytes.TrimSpace(data)) {
				return
			}
		}
	}
}

// maxCalls bounds the calls and blocks of one answer.
const maxCalls = 1024

// grown is a text that comes in parts.
type grown []byte

func (g *grown) add(s string) { *g = append(*g, s...) }

// chatCallParts is a call that comes in parts.
type chatCallParts struct {
	index           int
	id, kind        string
	name, arguments grown
}

// chatEvents puts the parts of a stream of Chat Completions together.
func chatEvents(body []byte) json.RawMessage {
	var said, refusal, reasoning grown
	var calls []*chatCallParts
	var used json.RawMessage
	ended := false
	for data := range eventData(body) {
		var event struct {
			Usage   json.RawMessage
			Choices []struct {
				Index int
				Delta struct {
					Content, Refusal string
					Reasoning        string `json:"reasoning_content"`
					ToolCalls        []struct {
						Index    int
						ID, Type string
						Function struct{ Name, Arguments string }
						Custom   struct{ Name, Input string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Error json.RawMessage
		}
		if json.Unmarshal(data, &event) != nil {
			continue // [DONE], or what no API says
		}
		if len(event.Error) > 0 && string(event.Error) != "null" {
			return nil
		}
		if len(event.Usage) > 0 {
			used = event.Usage
		}
		for _, choice := range event.Choices {
			if choice.Index != 0 {
				continue
			}
			ended = ended || choice.Finish != ""
			said.add(choice.Delta.Content)
			refusal.add(choice.Delta.Refusal)
			reasoning.add(choice.Delta.Reasoning)
			for _, part := range choice.Delta.ToolCalls {
				i := slices.IndexFunc(calls, func(c *chatCallParts) bool { return c.index == part.Index && (part.ID == "" || part.ID == c.id) })
				if i < 0 {
					if i = len(calls); i >= maxCalls {
						return nil
					}
					calls = append(calls, &chatCallParts{index: part.Index, id: part.ID, kind: cmp.Or(part.Type, "function")})
				}
				calls[i].name.add(part.Function.Name + part.Custom.Name)
				calls[i].arguments.add(part.Function.Arguments + part.Custom.Input)
			}
		}
	}
	if !ended {
		return nil
	}
	message := map[string]any{"role": "assistant"}
	for name, text := range map[string]grown{"content": said, "refusal": refusal, "reasoning_content": reasoning} {
		if len(text) > 0 {
			message[name] = string(text)
		}
	}
	var made []any
	for _, c := range calls {
		argument := "arguments"
		if c.kind == "custom" {
			argument = "input"
		}
		made = append(made, map[string]any{"id": c.id, "type": c.kind, c.kind: map[string]any{"name": string(c.name), argument: string(c.arguments)}})
	}
	if len(made) > 0 {
		message["tool_calls"] = made
	}
	out, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": message}}, "usage": used}) //nolint:errchkjson // of plain data
	return out
}

// anthropicEvents puts the parts of a stream of the Messages API together.
func anthropicEvents(body []byte) json.RawMessage {
	type block struct {
		fields    map[string]any
		parts     map[string]*grown // by field; input is JSON
		citations []any
	}
	var blocks []*block
	used := map[string]json.RawMessage{}
	ended := false
	for data := range eventData(body) {
		var event struct {
			Type    string
			Index   int
			Message struct{ Usage map[string]json.RawMessage }
			Usage   map[string]json.RawMessage
			Block   map[string]any `json:"content_block"`
			Delta   struct {
				Text, Thinking, Signature string
				Input                     string `json:"partial_json"`
				Citation                  any
			}
		}
		if json.Unmarshal(data, &event) != nil {
			continue
		}
		maps.Copy(used, event.Message.Usage)
		maps.Copy(used, event.Usage)
		switch event.Type {
		case "content_block_start":
			if event.Index != len(blocks) || event.Index >= maxCalls || event.Block == nil {
				return nil
			}
			blocks = append(blocks, &block{fields: event.Block, parts: map[string]*grown{}})
		case "content_block_delta":
			if event.Index < 0 || event.Index >= len(blocks) {
				return nil
			}
			b, d := blocks[event.Index], event.Delta
			for name, more := range map[string]string{"text": d.Text, "thinking": d.Thinking, "signature": d.Signature, "input": d.Input} {
				if more == "" {
					continue
				}
				if b.parts[name] == nil {
					before, _ := b.fields[name].(string)
					b.parts[name] = new(grown)
					b.parts[name].add(before)
				}
				b.parts[name].add(more)
			}
			if d.Citation != nil {
				b.citations = append(b.citations, d.Citation)
			}
		case "error":
			return nil
		case "message_stop":
			ended = true
		}
	}
	if !ended {
		return nil
	}
	content := make([]any, len(blocks))
	for i, b := range blocks {
		for name, text := range b.parts {
			b.fields[name] = string(*text)
			if name == "input" {
				if !json.Valid(*text) {
					return nil
				}
				b.fields[name] = json.RawMessage(*text)
			}
		}
		if len(b.citations) > 0 {
			b.fields["citations"] = b.citations
		}
		content[i] = b.fields
	}
	out, _ := json.Marshal(map[string]any{"content": content, "usage": used}) //nolint:errchkjson // it was decoded from JSON
	return out
}

// responsesEvents is the response with which a stream of Responses ends.
func responsesEvents(body []byte) json.RawMessage {
	var whole json.RawMessage
	for data := range eventData(body) {
		var event struct {
			Type     string
			Response json.RawMessage
		}
		if json.Unmarshal(data, &event) == nil && (event.Type == "response.completed" || event.Type == "response.incomplete") {
			whole = event.Response
		}
	}
	return whole
}
