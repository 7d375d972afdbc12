package proxy

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// told is what an element of a conversation says, whatever stands before it. It never changes.
type told struct {
	raw     []byte // the element; nil where it is not kept
	role    loombridgev1.Role
	message *loombridgev1.Message // all of it but results that may be steps; nil for a part of an answer
	blocks  json.RawMessage       // of a message with results: all of it
	alone   bool                  // it is one result, which is the message where it is no step
	answer  json.RawMessage       // of Responses: a part of an answer
	results []result
	calls   []call
	mark    mark // of the message, or of the part
	asks    bool // the user says something
}

// result is what a call gave.
type result struct {
	id     string
	text   string
	plain  bool // it is text alone
	failed bool
	raw    json.RawMessage // the block
}

// call is what a model asks for.
type call struct {
	id, name  string
	arguments json.RawMessage
}

// keptBytes bounds what is known of elements that were read, and what is kept of memory; a known
// one takes about toldTimes its text, and toldBeside.
const keptBytes, toldTimes, toldBeside = 32 << 20, 3, 256

// known are elements that were read before: programs say a conversation again with each request,
// so that most of one was. It is safe for concurrent use; nil knows none.
type known struct {
	kept atomic.Pointer[cache.Cache[elementKey, *told]]
}

// elementKey is what an element is found by. Two may have the same: their bytes are compared.
type elementKey struct {
	d    dialect
	hash uint64
}

// seed is that of the hashes of this process: nobody else knows which elements have the same.
var seed = maphash.MakeSeed()

func keyOf(d dialect, raw []byte) elementKey { return elementKey{d, maphash.Bytes(seed, raw)} }

func newKnown() *known {
	k := &known{}
	k.forget()
	return k
}

func (k *known) forget() { k.kept.Store(cache.New[elementKey, *told](keptBytes)) }

// tell is what an element says.
func (k *known) tell(d dialect, raw json.RawMessage) (*told, error) {
	if k == nil {
		return d.tell(raw)
	}
	key := keyOf(d, raw)
	kept := k.kept.Load()
	if e, ok := kept.Get(key); ok && bytes.Equal(e.raw, raw) {
		return e, nil
	}
	own := bytes.Clone(raw) // the request's body goes
	e, err := d.tell(own)
	if err == nil {
		e.raw = own
		kept.Put(key, e, toldTimes*len(raw)+toldBeside)
	}
	return e, err
}

// roles are those of messages.
var roles = map[string]loombridgev1.Role{
	"system": loombridgev1.Role_ROLE_SYSTEM, "developer": loombridgev1.Role_ROLE_DEVELOPER, "user": loombridgev1.Role_ROLE_USER,
	"assistant": loombridgev1.Role_ROLE_ASSISTANT, "tool": loombridgev1.Role_ROLE_TOOL, "function": loombridgev1.Role_ROLE_TOOL,
}

// tell reads an element.
func (d dialect) tell(raw json.RawMessage) (e *told, err error) {
	switch d {
	case chat:
		e, err = tellChat(raw)
	case anthropic:
		e, err = tellAnthropic(raw)
	default:
		e, err = tellResponses(raw)
	}
	if err == nil {
		e.finish()
	}
	return e, err
}

// finish fills in what follows from the rest.
func (e *told) finish() {
	if e.answer == nil && e.message != nil {
		e.mark = markOf(e.message)
		e.asks = saidBy(e.message) != ""
	}
}

// tellChat reads a message of Chat Completions.
func tellChat(raw json.RawMessage) (*told, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, errUnread
	}
	var in struct {
		Role, Name string
		ToolCallID string            `json:"tool_call_id"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
	}
	given := fields["content"]
	delete(fields, "content") // it is the long one
	rest, _ := json.Marshal(fields)
	if json.Unmarshal(rest, &in) != nil || roles[in.Role] == 0 {
		return nil, errUnread
	}
	e := &told{role: roles[in.Role]}
	m := &loombridgev1.Message{Role: e.role, Name: in.Name, ToolCallId: in.ToolCallID}
	if in.Role == "tool" {
		said, plain := plainText(given)
		e.results, e.alone = []result{{id: in.ToolCallID, text: said, plain: plain, raw: raw}}, true
	}
	setContent(m, given)
	for _, raw := range in.ToolCalls {
		c := chatCall(raw)
		arguments, _ := json.Marshal(c.ArgumentsJson) //nolint:errchkjson // a string
		e.calls = append(e.calls, call{c.Id, c.Name, arguments})
		m.ToolCalls = append(m.ToolCalls, c)
	}
	for _, known := range []string{"role", "name", "tool_call_id", "tool_calls"} {
		delete(fields, known)
	}
	m.ExtraJson = objectOf(fields)
	e.message = m
	return e, nil
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

// tellAnthropic reads a message of the Messages API.
func tellAnthropic(raw json.RawMessage) (*told, error) {
	var in struct {
		Role    string
		Content json.RawMessage
	}
	if json.Unmarshal(raw, &in) != nil || roles[in.Role] == 0 {
		return nil, errUnread
	}
	e := &told{role: roles[in.Role], message: &loombridgev1.Message{Role: roles[in.Role]}}
	if setContent(e.message, in.Content); e.message.BlocksJson == "" {
		return e, nil
	}
	var rest []json.RawMessage
	for _, block := range content.Parse(in.Content) {
		e.note(&block)
		if block.Kind != content.Result {
			rest = append(rest, block.Raw)
			continue
		}
		var given struct{ Content json.RawMessage }
		_ = json.Unmarshal(block.Raw, &given) // it is an object
		said, plain := plainText(given.Content)
		e.results = append(e.results, result{id: block.ID, text: said, plain: plain, failed: block.Failed, raw: block.Raw})
	}
	if len(e.results) > 0 {
		e.blocks, e.message.BlocksJson = in.Content, ""
		if len(rest) > 0 {
			e.message.BlocksJson = string(listOf(rest))
		}
	}
	return e, nil
}

// note keeps a call for its result.
func (e *told) note(block *content.Block) {
	if block.Kind != content.Call {
		return
	}
	arguments := json.RawMessage(block.Arguments)
	if block.Dialect == content.Responses || !json.Valid(arguments) {
		arguments, _ = json.Marshal(block.Arguments) //nolint:errchkjson // a string
	}
	e.calls = append(e.calls, call{block.ID, block.Name, arguments})
}

// tellResponses reads an item of Responses.
func tellResponses(raw json.RawMessage) (*told, error) {
	var in struct {
		Type, Role      string
		CallID          string `json:"call_id"`
		Content, Output json.RawMessage
	}
	if json.Unmarshal(raw, &in) != nil {
		return nil, errUnread
	}
	switch {
	case in.Role != "" && in.Role != "assistant":
		if roles[in.Role] == 0 {
			return nil, errUnread
		}
		e := &told{role: roles[in.Role], message: &loombridgev1.Message{Role: roles[in.Role]}}
		setContent(e.message, in.Content)
		return e, nil
	case strings.HasSuffix(in.Type, "_output"):
		said, plain := plainText(in.Output)
		return &told{
			role: loombridgev1.Role_ROLE_USER, alone: true, results: []result{{id: in.CallID, text: said, plain: plain, raw: raw}},
			message: &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, BlocksJson: string(listOf([]json.RawMessage{raw}))},
		}, nil
	case in.Type == "" && in.Role == "":
		return nil, errUnread
	case in.Type == "": // a message may leave it out
		raw = append([]byte(`{"type":"message",`), bytes.TrimLeft(raw, " \t\r\n{")...)
	}
	e := &told{role: loombridgev1.Role_ROLE_ASSISTANT, answer: raw}
	blocks := content.Parse(listOf([]json.RawMessage{raw}))
	for i := range blocks {
		e.note(&blocks[i])
	}
	e.mark = partMark(blocks)
	return e, nil
}

// setContent gives a message its content: a text, or blocks as they came.
func setContent(m *loombridgev1.Message, given json.RawMessage) {
	if json.Unmarshal(given, &m.Content) != nil && len(bytes.TrimSpace(given)) > len("[]") {
		m.BlocksJson = string(given)
	}
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

// wordsOf are the words of a message.
func wordsOf(m *loombridgev1.Message) string {
	said := m.GetContent()
	if m.GetBlocksJson() == "" {
		return said
	}
	for _, b := range content.Parse([]byte(m.GetBlocksJson())) {
		if b.Kind == content.Text {
			said += b.Text + "\n"
		}
	}
	return said
}

// saidBy is what a message of the user says, and nothing of others.
func saidBy(m *loombridgev1.Message) string {
	if m.GetRole() != loombridgev1.Role_ROLE_USER {
		return ""
	}
	return strings.TrimSpace(wordsOf(m))
}

func listOf(blocks []json.RawMessage) json.RawMessage {
	raw := make([][]byte, len(blocks))
	for i, b := range blocks {
		raw[i] = b
	}
	return slices.Concat([]byte("["), bytes.Join(raw, []byte(",")), []byte("]"))
}
