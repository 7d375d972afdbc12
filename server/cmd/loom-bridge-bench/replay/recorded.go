package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// record is an object of a log: a run, a request, or a message, of whatever
// provider. All fields may be missing, null, or of another type.
type record struct {
	ID        loose
	SessionID loose
	fields    map[string]json.RawMessage
	whole     json.RawMessage
}

// UnmarshalJSON reads any object.
func (r *record) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &r.fields); err != nil {
		return err
	}
	r.whole = bytes.Clone(text)
	decode(r.fields["id"], &r.ID)
	decode(r.fields["session_id"], &r.SessionID)
	if r.SessionID == "" {
		decode(r.fields["sessionId"], &r.SessionID)
	}
	return nil
}

// decode reads what it can; what is of another type is as if it were missing.
func decode(text json.RawMessage, into any) bool {
	return len(text) > 0 && json.Unmarshal(text, into) == nil
}

// wrappers are the keys that logs put a request or its messages in.
var wrappers = []string{"request", "body", "params", "kwargs", "payload", "data", "json"}

// answers are the keys that logs put a response or its message in.
var answers = []string{"response", "output", "completion", "result", "body"}

// depth is how deep a log may wrap a request.
const depth = 3

// conversation finds the object that holds messages: this one, or one that it
// wraps. Nil when there is none.
func (r *record) conversation() *conversation { return find(r.fields, depth) }

func find(fields map[string]json.RawMessage, deep int) *conversation {
	for _, key := range []string{"messages", "input"} {
		if list := bytes.TrimSpace(fields[key]); len(list) > 0 && list[0] == '[' {
			return &conversation{system: fields["system"], instructions: fields["instructions"], list: list}
		}
	}
	if deep == 0 {
		return nil
	}
	for _, key := range wrappers {
		var inner map[string]json.RawMessage
		if decode(fields[key], &inner) {
			if c := find(inner, deep-1); c != nil {
				return c
			}
		}
	}
	return nil
}

// conversation is a list of messages, with the system prompt where a provider
// has it next to them.
type conversation struct{ system, instructions, list json.RawMessage }

func (c *conversation) messages() ([]Message, error) {
	var all []Message
	for _, text := range []json.RawMessage{c.system, c.instructions} {
		if m := (&recordedMessage{Role: roleSystem, Content: text}).plain(); m.Text != "" {
			all = append(all, m.Message)
		}
	}
	messages, err := messagesOf(c.list)
	return append(all, messages...), err
}

// messagesOf converts a list of messages.
func messagesOf(list json.RawMessage) ([]Message, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil || len(items) == 0 {
		return nil, fmt.Errorf("no messages")
	}
	var all []Message
	for i, item := range items {
		var m recordedMessage
		if err := json.Unmarshal(item, &m); err != nil {
			return nil, fmt.Errorf("message %d is no message: %w", i+1, err)
		}
		messages, err := m.convert()
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		all = append(all, messages...)
	}
	return all, nil
}

// answer finds what the model answered to a request, if the log has it.
func (r *record) answer() []Message { return reply(r.fields, depth) }

func reply(fields map[string]json.RawMessage, deep int) []Message {
	var choices []struct{ Message json.RawMessage }
	if decode(fields["choices"], &choices) && len(choices) > 0 {
		return said(choices[0].Message)
	}
	for _, key := range answers {
		if m := said(fields[key]); m != nil {
			return m
		}
		var inner map[string]json.RawMessage
		if deep > 0 && decode(fields[key], &inner) {
			if m := reply(inner, deep-1); m != nil {
				return m
			}
		}
	}
	return nil
}

// said reads an answer: a message of the assistant, a list of such items, or
// its text.
func said(text json.RawMessage) []Message {
	var plain string
	if decode(text, &plain) && plain != "" {
		return []Message{{Role: roleAssistant, Text: plain}}
	}
	if all, err := messagesOf(text); err == nil && len(all) > 0 && all[0].Role == roleAssistant {
		return all
	}
	var m recordedMessage
	if !decode(text, &m) || m.Role != roleAssistant {
		return nil
	}
	all, err := m.convert()
	if err != nil {
		return nil
	}
	return all
}

// message finds the message that an object is, or holds.
func (r *record) message() *recordedMessage {
	for _, text := range []json.RawMessage{r.fields["message"], r.whole} {
		var m recordedMessage
		if decode(text, &m) && m.Role != "" {
			return &m
		}
	}
	return nil
}

// aside reports whether an object is a line of a transcript that is no message.
func (r *record) aside() bool {
	var kind string
	return decode(r.fields["type"], &kind) && kind != "" && r.fields["role"] == nil
}

// recordedMessage is a message as it lies in a log.
type recordedMessage struct {
	ID         loose           `json:"id"`
	Role       loose           `json:"role"`
	Type       loose           `json:"type"`
	Name       loose           `json:"name"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID loose           `json:"tool_call_id"`
	RawOutput  *loose          `json:"raw_output"`
	ReturnCode loose           `json:"returncode"`
	IsError    loose           `json:"is_error"`
	// FunctionCall is OpenAI's older form of a call; the results of such calls
	// have the role function and no id.
	FunctionCall json.RawMessage `json:"function_call"`
	// CallID, Arguments and Output are fields of items of OpenAI's responses.
	CallID    loose           `json:"call_id"`
	Arguments loose           `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

type recordedCall struct {
	ID       loose            `json:"id"`
	Function recordedFunction `json:"function"`
}

type recordedFunction struct {
	Name      loose `json:"name"`
	Arguments loose `json:"arguments"`
}

// loose is the text of a string, or the JSON of anything else; null is empty.
type loose string

// UnmarshalJSON takes any value.
func (l *loose) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) != nil {
		s = string(text)
	}
	*l = loose(s)
	return nil
}

// convert splits a message into messages of one form: each result in a message of
// Anthropic's is its own message.
func (m *recordedMessage) convert() ([]Message, error) {
	switch {
	case m.Role == "" && m.Type == "function_call":
		call := history.Call{ID: string(m.CallID), Name: string(m.Name), Args: string(m.Arguments)}
		return []Message{{Role: roleAssistant, Calls: []history.Call{call}, continues: true}}, nil
	case m.Role == "" && m.Type == "function_call_output":
		out := contentOf(m.Output)
		return []Message{{Role: roleTool, CallID: string(m.CallID), Text: out.Text, ExtraTokens: out.ExtraTokens}}, nil
	case m.Role == "" && m.Type != "":
		return nil, nil
	case m.Role == "":
		return nil, fmt.Errorf("it has no role")
	}
	out := m.plain()
	if len(out.results) == 0 {
		return []Message{out.Message}, nil
	}
	if out.Text == "" && len(out.Calls) == 0 && out.ExtraTokens == 0 {
		return out.results, nil
	}
	return append(out.results, out.Message), nil
}

// plain is a message in one form, with the results that it holds apart.
func (m *recordedMessage) plain() content {
	out := contentOf(m.Content)
	out.Role, out.CallID = string(m.Role), string(m.ToolCallID)
	if out.Role == "function" {
		out.Role = roleTool
	}
	out.Failed = m.IsError == "true"
	if m.RawOutput != nil {
		raw := string(*m.RawOutput)
		out.Raw = &raw
	}
	if code, err := strconv.ParseFloat(string(m.ReturnCode), 64); err == nil {
		exit := int(code)
		out.Exit = &exit
	}
	var calls []recordedCall
	decode(m.ToolCalls, &calls)
	var older recordedFunction
	if decode(m.FunctionCall, &older) && older.Name != "" {
		calls = append(calls, recordedCall{Function: older})
	}
	for _, c := range calls {
		out.Calls = append(out.Calls, history.Call{ID: string(c.ID), Name: string(c.Function.Name), Args: string(c.Function.Arguments)})
	}
	return out
}

// contentBlock is a content block, of Anthropic or OpenAI.
type contentBlock struct {
	Type      loose           `json:"type"`
	Text      loose           `json:"text"`
	ID        loose           `json:"id"`
	Name      loose           `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID loose           `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   loose           `json:"is_error"`
}

// content is a message, and the results that its blocks hold.
type content struct {
	Message
	results []Message
	// texts are the texts of the blocks that make up Text.
	texts []string
}

// maxBlockDepth is how deep blocks may lie in one another. Providers have two
// levels; what lies deeper is the text that it is, since each level is read
// again with those below.
const maxBlockDepth = 8

// contentOf reads the content of a message: a string, a list of blocks, or
// nothing.
func contentOf(text json.RawMessage) content { return contentAt(text, maxBlockDepth) }

// contentAt is contentOf for what may have so many more levels of blocks.
func contentAt(text json.RawMessage, levels int) content {
	var out content
	var blocks []json.RawMessage
	if levels == 0 || !decode(text, &blocks) {
		var plain loose
		if decode(text, &plain) {
			out.Text = string(plain)
		}
		return out
	}
	for _, text := range blocks {
		out.add(text, levels)
	}
	out.Text = strings.Join(out.texts, "\n")
	return out
}

// say adds the text of a block.
func (c *content) say(text string) {
	if text != "" {
		c.texts = append(c.texts, text)
	}
}

func (c *content) add(text json.RawMessage, levels int) {
	var b contentBlock
	if !decode(text, &b) {
		var plain loose
		decode(text, &plain)
		c.say(string(plain))
		return
	}
	switch {
	case b.Type == "tool_use":
		c.Calls = append(c.Calls, history.Call{ID: string(b.ID), Name: string(b.Name), Args: string(b.Input)})
	case b.Type == "tool_result":
		inner := contentAt(b.Content, levels-1)
		for _, r := range inner.results {
			inner.Text = joinText(inner.Text, r.Text) // a result within a result is a part of it
			inner.ExtraTokens += r.ExtraTokens
		}
		c.results = append(c.results, Message{
			Role: roleTool, CallID: string(b.ToolUseID), Text: inner.Text,
			ExtraTokens: inner.ExtraTokens, Failed: b.IsError == "true",
		})
	case media(string(b.Type)):
		c.ExtraTokens += tokens.ImageTokens
	case b.Text != "" || b.Type == "text":
		c.say(string(b.Text))
	case strings.Contains(string(b.Type), "thinking") || b.Type == "reasoning":
		// Providers leave the reasoning of earlier turns out of the prompt.
	default:
		c.say(string(text))
	}
}

// media reports whether a block holds no text: an image, a sound, a file.
func media(kind string) bool {
	for _, part := range []string{"image", "audio", "video", "file", "document"} {
		if strings.Contains(kind, part) {
			return true
		}
	}
	return false
}
