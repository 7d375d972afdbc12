package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/hooks"
)

// dialect is the API that a request speaks.
type dialect int

const (
	foreign dialect = iota // is passed on, and nothing more
	chat
	responses
	anthropic
)

// dialects are those of the paths behind an upstream's name.
var dialects = map[string]dialect{"v1/chat/completions": chat, "v1/responses": responses, "v1/messages": anthropic}

// maxErrorBytes is the longest error of a failed tool that a step has.
const maxErrorBytes = 64 << 10

// mark is what two tellings of the same message have in common: who speaks, the words without
// white space around them, the ids of calls. Thoughts do not count, since programs drop them.
type mark [sha256.Size]byte

// item is one thing that was said or done, as a session's log takes it.
type item struct {
	message *loombridgev1.Message
	step    *loombridgev1.RecordStepRequest // without its session; nil for a message
	result  string                          // of the step
	mark    mark
	at      int // in the request's list; negative where that is a text
}

// talk is what a request says.
type talk struct {
	model    string
	items    []item // the conversation without the instructions that it begins with
	previous string // names what was said before and is not in items; empty: nothing was
	at       int    // while it is read
}

// called are the calls so far, by their ids.
type called map[string]struct {
	name      string
	arguments json.RawMessage
}

var errUnread = errors.New("proxy: the body is not what the API takes")

// parse reads a request. A fault in reading hostile text is an error of that text alone.
func (d dialect) parse(body []byte) (t *talk, err error) {
	defer func() {
		if recover() != nil {
			t, err = nil, errUnread
		}
	}()
	var in struct {
		Model        string            `json:"model"`
		Messages     []json.RawMessage `json:"messages"`
		Input        json.RawMessage   `json:"input"`
		Previous     *string           `json:"previous_response_id"`
		Conversation json.RawMessage   `json:"conversation"`
	}
	if json.Unmarshal(body, &in) != nil {
		return nil, errUnread
	}
	t = &talk{model: in.Model}
	calls := called{}
	switch d {
	case chat:
		for i, raw := range in.Messages {
			t.at = i
			if err := t.chat(raw, calls); err != nil {
				return nil, err
			}
		}
	case anthropic:
		for i, raw := range in.Messages {
			t.at = i
			if err := t.anthropic(raw, calls); err != nil {
				return nil, err
			}
		}
	case responses:
		if in.Previous != nil {
			t.previous = *in.Previous
		} else if len(in.Conversation) > 0 && string(in.Conversation) != "null" {
			t.previous = string(in.Conversation)
		}
		if err := t.responses(in.Input, calls); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add takes a message up, unless it says nothing, or belongs to the instructions at the begin.
func (t *talk) add(m *loombridgev1.Message) {
	instructs := m.Role == loombridgev1.Role_ROLE_SYSTEM || m.Role == loombridgev1.Role_ROLE_DEVELOPER
	if instructs && len(t.items) == 0 && t.previous == "" || m.Content == "" && m.BlocksJson == "" && len(m.ToolCalls) == 0 && m.ExtraJson == "" {
		return
	}
	t.items = append(t.items, item{message: m, mark: markOf(m), at: t.at})
}

// addResult takes up what a call gave; false where only a message can hold it.
func (t *talk) addResult(calls called, id string, given json.RawMessage, failed bool) bool {
	call, known := calls[id]
	said, plain := plainText(given)
	if !known || !plain || id == "" {
		return false
	}
	step := &loombridgev1.RecordStepRequest{ToolName: hooks.ToolName(call.name), CallId: id, Success: !failed}
	if step.ToolName == "" {
		return false
	}
	if arguments := hooks.Arguments(call.arguments); len(arguments) > 0 {
		step.ArgumentsForm = &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: string(arguments)}
	}
	if failed {
		step.ErrorMessage = text.Head(said, maxErrorBytes)
	}
	t.items = append(t.items, item{step: step, result: said, mark: stepMark(id), at: t.at})
	return true
}

// plainText is content that is nothing but text: a string, or blocks of text.
func plainText(given json.RawMessage) (string, bool) {
	var s string
	if len(given) == 0 || string(given) == "null" || json.Unmarshal(given, &s) == nil {
		return s, true
	}
	blocks := content.Parse(given)
	if len(blocks) == 0 || !content.OnlyText(blocks) {
		return "", false
	}
	return strings.Join(content.Texts(blocks), "\n"), true
}

// roles are those of messages.
var roles = map[string]loombridgev1.Role{
	"system": loombridgev1.Role_ROLE_SYSTEM, "developer": loombridgev1.Role_ROLE_DEVELOPER, "user": loombridgev1.Role_ROLE_USER,
	"assistant": loombridgev1.Role_ROLE_ASSISTANT, "tool": loombridgev1.Role_ROLE_TOOL, "function": loombridgev1.Role_ROLE_TOOL,
}

// chat reads a message of Chat Completions.
func (t *talk) chat(raw json.RawMessage, calls called) error {
	var fields map[string]json.RawMessage
	var in struct {
		Role, Name string
		Content    json.RawMessage
		ToolCallID string            `json:"tool_call_id"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(raw, &in) != nil || roles[in.Role] == 0 {
		return errUnread
	}
	if in.Role == "tool" && t.addResult(calls, in.ToolCallID, in.Content, false) {
		return nil
	}
	m := &loombridgev1.Message{Role: roles[in.Role], Name: in.Name, ToolCallId: in.ToolCallID}
	setContent(m, in.Content)
	for _, raw := range in.ToolCalls {
		call := chatCall(raw)
		arguments, _ := json.Marshal(call.ArgumentsJson) //nolint:errchkjson // a string
		calls[call.Id] = struct {
			name      string
			arguments json.RawMessage
		}{call.Name, arguments}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	for _, known := range []string{"role", "name", "content", "tool_call_id", "tool_calls"} {
		delete(fields, known)
	}
	m.ExtraJson = objectOf(fields)
	t.add(m)
	return nil
}

// chatCall reads a call of Chat Completions.
func chatCall(raw json.RawMessage) *loombridgev1.ModelToolCall {
	var in struct {
		ID, Type string
		Function struct{ Name, Arguments string }
		Custom   struct{ Name, Input string }
	}
	_ = json.Unmarshal(raw, &in) // what is not there is empty
	call := &loombridgev1.ModelToolCall{Id: in.ID, Name: in.Function.Name, ArgumentsJson: in.Function.Arguments}
	if in.Type == "custom" {
		call.Name, call.ArgumentsJson, call.ExtraJson = in.Custom.Name, in.Custom.Input, `{"type":"custom"}`
	}
	return call
}

// objectOf are fields as a JSON object, but for those that are null; empty for none.
func objectOf(fields map[string]json.RawMessage) string {
	for name, value := range fields {
		if string(value) == "null" {
			delete(fields, name)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	out, _ := json.Marshal(fields) //nolint:errchkjson // it was decoded from JSON
	return string(out)
}

// setContent gives a message its content: a text, or blocks as they came.
func setContent(m *loombridgev1.Message, given json.RawMessage) {
	if json.Unmarshal(given, &m.Content) != nil && len(bytes.TrimSpace(given)) > len("[]") {
		m.BlocksJson = string(given)
	}
}

// anthropic reads a message of the Messages API.
func (t *talk) anthropic(raw json.RawMessage, calls called) error {
	var in struct {
		Role    string
		Content json.RawMessage
	}
	if json.Unmarshal(raw, &in) != nil || roles[in.Role] == 0 {
		return errUnread
	}
	m := &loombridgev1.Message{Role: roles[in.Role]}
	setContent(m, in.Content)
	if m.BlocksJson == "" {
		t.add(m)
		return nil
	}
	var rest []json.RawMessage
	for _, block := range content.Parse(in.Content) {
		calls.note(&block)
		if block.Kind == content.Result {
			var given struct{ Content json.RawMessage }
			_ = json.Unmarshal(block.Raw, &given) // it is an object
			if t.addResult(calls, block.ID, given.Content, block.Failed) {
				continue
			}
		}
		rest = append(rest, block.Raw)
	}
	if m.BlocksJson = ""; len(rest) > 0 {
		m.BlocksJson = string(listOf(rest))
	}
	t.add(m)
	return nil
}

// note keeps a call for its result.
func (c called) note(block *content.Block) {
	if block.Kind != content.Call {
		return
	}
	arguments := json.RawMessage(block.Arguments)
	if block.Dialect == content.Responses || !json.Valid(arguments) {
		arguments, _ = json.Marshal(block.Arguments) //nolint:errchkjson // a string
	}
	c[block.ID] = struct {
		name      string
		arguments json.RawMessage
	}{block.Name, arguments}
}

func listOf(blocks []json.RawMessage) json.RawMessage {
	return slices.Concat([]byte("["), bytes.Join(rawBytes(blocks), []byte(",")), []byte("]"))
}

func rawBytes(blocks []json.RawMessage) [][]byte {
	out := make([][]byte, len(blocks))
	for i, b := range blocks {
		out[i] = b
	}
	return out
}

// responses reads the input of Responses. What the model said between two others is one message.
func (t *talk) responses(input json.RawMessage, calls called) error {
	var said string
	if json.Unmarshal(input, &said) == nil {
		t.at = -1
		t.add(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: said})
		return nil
	}
	var items, answer []json.RawMessage
	if json.Unmarshal(input, &items) != nil {
		return errUnread
	}
	flush := func() {
		if len(answer) > 0 {
			t.add(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, BlocksJson: string(listOf(answer))})
		}
		answer = nil
	}
	for i, raw := range items {
		t.at = i
		var in struct {
			Type, Role      string
			CallID          string `json:"call_id"`
			Content, Output json.RawMessage
		}
		if json.Unmarshal(raw, &in) != nil {
			return errUnread
		}
		switch {
		case in.Role != "" && in.Role != "assistant":
			flush()
			m := &loombridgev1.Message{Role: roles[in.Role]}
			if m.Role == 0 {
				return errUnread
			}
			setContent(m, in.Content)
			t.add(m)
		case strings.HasSuffix(in.Type, "_output"):
			flush()
			if !t.addResult(calls, in.CallID, in.Output, false) {
				t.add(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, BlocksJson: string(listOf([]json.RawMessage{raw}))})
			}
		default:
			if in.Type == "" && in.Role == "" {
				return errUnread
			}
			if in.Type == "" { // a message may leave it out
				raw = append([]byte(`{"type":"message",`), bytes.TrimLeft(raw, " \t\r\n{")...)
			}
			for _, block := range content.Parse(listOf([]json.RawMessage{raw})) {
				calls.note(&block)
			}
			answer = append(answer, raw)
		}
	}
	flush()
	return nil
}

func stepMark(id string) mark { return sha256.Sum256([]byte("step\x00" + id)) }

// markOf is the mark of a message.
func markOf(m *loombridgev1.Message) mark {
	if m.Role == loombridgev1.Role_ROLE_TOOL {
		return stepMark(m.ToolCallId + "\x00" + m.Name)
	}
	var said, others strings.Builder
	said.WriteString(m.Content)
	if m.BlocksJson != "" {
		markBlocks(content.Parse([]byte(m.BlocksJson)), &said, &others)
	}
	for _, call := range m.ToolCalls {
		others.WriteString("call\x00" + call.Id + "\x00")
	}
	return sha256.Sum256([]byte(m.Role.String() + "\x00" + strings.Join(strings.Fields(said.String()), " ") + "\x00" + others.String()))
}

func markBlocks(blocks []content.Block, said, others *strings.Builder) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case content.Said:
			markBlocks(b.Parts, said, others)
		case content.Thought:
		case content.Call, content.Result:
			others.WriteString("call\x00" + b.ID + "\x00")
		case content.Image, content.Audio, content.File:
			m := b.Media()
			others.WriteString("media\x00" + m.Data + m.URL + m.FileID + m.Text + "\x00")
		default:
			said.WriteString(b.Text + " ")
		}
	}
}
