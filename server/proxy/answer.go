package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// maxAnswerBytes is the longest answer that is recorded. A longer one is passed on all the same.
const maxAnswerBytes = 16 << 20

// answer is what a model said, in the words of a request.
type answer struct {
	id    string // of Responses, for what goes on from it
	items []item
}

// read reads a whole answer; nil for one that is broken or has not ended, of which nothing is
// recorded: a program that keeps it says it with its next request.
func (d dialect) read(body []byte, events bool) *answer {
	var said json.RawMessage
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
	}
	if said == nil || json.Unmarshal(said, &in) != nil {
		return nil
	}
	t := &talk{previous: "a request"}
	switch {
	case d == chat && len(in.Choices) > 0:
		if t.chat(in.Choices[0].Message, called{}) != nil {
			return nil
		}
	case d == anthropic && len(in.Content) > 0:
		m := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT}
		setContent(m, in.Content)
		t.add(m)
	case d == responses && len(in.Output) > 0:
		m := &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT}
		setContent(m, in.Output)
		t.add(m)
	default:
		return nil
	}
	return &answer{in.ID, t.items}
}

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
	ended := false
	for data := range eventData(body) {
		var event struct {
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
	out, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": message}}}) //nolint:errchkjson // of plain data
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
	ended := false
	for data := range eventData(body) {
		var event struct {
			Type  string
			Index int
			Block map[string]any `json:"content_block"`
			Delta struct {
				Text, Thinking, Signature string
				Input                     string `json:"partial_json"`
				Citation                  any
			}
		}
		if json.Unmarshal(data, &event) != nil {
			continue
		}
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
	out, _ := json.Marshal(map[string]any{"content": content}) //nolint:errchkjson // it was decoded from JSON
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
