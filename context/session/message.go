package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of what a caller may append.
const (
	// MaxSessionIDBytes bounds a session id, which stands in every key.
	MaxSessionIDBytes = 256
	// MaxMessages bounds the messages of one append.
	MaxMessages = 256
	// MaxMessageBytes bounds all text of one message together: content, blocks,
	// names, and the ids and arguments of its calls.
	MaxMessageBytes = 1 << 20
	// MaxMediaBytes bounds the same with the bytes of images, sounds and files among the
	// blocks, as base64: an image of about 2.9 MiB, or several of less. It is what fits one
	// value.
	MaxMediaBytes = 4 << 20
	// MaxAppendBytes bounds the text of one append, so that it fits one commit.
	MaxAppendBytes = 8 << 20
	// MaxNameBytes bounds a speaker's name.
	MaxNameBytes = 256
	// MaxToolCalls bounds the calls of one message.
	MaxToolCalls = 128
	// MaxCallIDBytes bounds the id of a tool call. Proxies in front of Gemini put the
	// signature of a thought into it.
	MaxCallIDBytes = 4 << 10
	// MaxToolNameBytes bounds the name of a tool a message asks for.
	MaxToolNameBytes = 128
)

// Role is who speaks.
type Role uint8

// The roles; the zero Role is none.
const (
	// System gives instructions.
	System Role = iota + 1
	// User is the person or program that asks.
	User
	// Assistant is the model.
	Assistant
	// Tool is the result of a tool that the caller ran itself.
	Tool
	// Developer gives instructions, as some models call them: a System in
	// everything but its name.
	Developer
)

// Stays reports whether what the role says stays in every prompt as it is: the
// instructions and who asks, but for observations.
func (r Role) Stays() bool { return r == System || r == Developer || r == User }

// String returns the role's name as providers write it.
func (r Role) String() string {
	switch r {
	case System:
		return "system"
	case User:
		return "user"
	case Assistant:
		return "assistant"
	case Tool:
		return "tool"
	case Developer:
		return "developer"
	}
	return "unknown"
}

// Message is one message of a conversation, kept as it came.
type Message struct {
	// Role is who speaks. Required.
	Role Role
	// Content is plain text.
	Content string
	// BlocksJSON is a JSON array of the provider's own content blocks, in place
	// of Content: blocks, items of OpenAI's Responses, or parts of Gemini. An
	// Assistant asks for at most MaxToolCalls tools in it.
	BlocksJSON json.RawMessage
	// Name is the speaker's name, or empty.
	Name string
	// ToolCalls are what an Assistant asks for.
	ToolCalls []ToolCall
	// ToolCallID says which call a Tool message answers. Some hosts give calls no id:
	// without one, a Tool message answers the first call that waits and has its Name.
	ToolCallID string
	// Pinned keeps the message in every prompt as it is.
	Pinned bool
	// Observation says that a User message holds what an action of the model
	// gave, and no wish of anybody, so that it may be folded. In a User message
	// only.
	Observation bool
	// ExtraJSON is a JSON object of the provider's further fields of the message,
	// such as reasoning_content, or empty. None is called as one that stands above.
	ExtraJSON json.RawMessage
}

// ToolCall is a model's wish to call a tool.
type ToolCall struct {
	// ID is the model's id of the call, empty where its host gave none; Name, which is
	// required, is the tool as the model wrote it.
	ID, Name string
	// Arguments are as the model wrote them; they need not be JSON.
	Arguments string
	// Extra is the text of a JSON object of the provider's further fields of the
	// call, or empty.
	Extra string
}

// messageFields and callFields are the names that providers give to the fields of
// a message and of a call: what stands there is no extra.
var (
	messageFields = []string{"role", "content", "name", "tool_calls", "tool_call_id"}
	callFields    = []string{"id", "function", "custom"}
)

// AppendMessages adds 1 to MaxMessages messages to a session, all or nothing, and
// returns their positions. A request id makes the call safe to repeat: the same
// id and messages again give the first answer and write nothing, other messages
// are kv.ErrRequestReused. Input that breaks a rule is an *invalid.Error.
func (l *Log) AppendMessages(ctx context.Context, scope kv.Scope, session string, msgs []Message, requestID string) ([]uint64, error) {
	session, err := sessionID(session)
	if err != nil {
		return nil, err
	}
	if err := CheckMessages(msgs); err != nil {
		return nil, err
	}
	digest := messagesDigest(session, msgs)
	var positions []uint64
	err = l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		answer, replayed, err := kv.LookupOnce(ctx, tx, l.Ref(scope), requestID, digest)
		if replayed {
			positions, err = decodePositions(answer)
		}
		if replayed || err != nil {
			return err
		}
		now := l.now().UTC()
		if positions, err = l.stageMessages(ctx, tx, scope, session, msgs, now); err != nil {
			return err
		}
		kv.StageOnce(tx, l.Ref(scope), requestID, digest, encodePositions(positions), now)
		return nil
	}})
	if err != nil {
		return nil, fmt.Errorf("session: append messages: %w", err)
	}
	if len(positions) > 0 {
		l.Committed(scope, positions[0])
	}
	return positions, nil
}

// StageMessages adds messages to a session, under the rules of AppendMessages, and
// returns their positions; call Committed with the first after the commit.
func (l *Log) StageMessages(ctx context.Context, tx *kv.Tx, scope kv.Scope, session string, msgs []Message) ([]uint64, error) {
	session, err := sessionID(session)
	if err != nil {
		return nil, err
	}
	if err := CheckMessages(msgs); err != nil {
		return nil, err
	}
	return l.stageMessages(ctx, tx, scope, session, msgs, l.now().UTC())
}

func (l *Log) stageMessages(ctx context.Context, tx *kv.Tx, scope kv.Scope, session string, msgs []Message, now time.Time) ([]uint64, error) {
	entries := make([]Entry, len(msgs))
	for i := range msgs {
		entries[i] = Entry{Time: now, Message: &msgs[i]}
	}
	return l.stageEntries(ctx, tx, scope, session, entries)
}

// messagesDigest distinguishes appends with the same request id.
func messagesDigest(session string, msgs []Message) [32]byte {
	content := kv.AppendEscaped(nil, session)
	for i := range msgs {
		content = appendEntry(content, Entry{Message: &msgs[i]})
	}
	return sha256.Sum256(content)
}

// sessionID checks a session id and fills in the default.
func sessionID(id string) (string, error) {
	switch {
	case id == "":
		return DefaultSession, nil
	case len(id) > MaxSessionIDBytes:
		return "", invalid.Field(ErrInvalid, "session_id", "is longer than %d bytes", MaxSessionIDBytes)
	case !utf8.ValidString(id) || strings.IndexByte(id, 0) >= 0:
		return "", invalid.Field(ErrInvalid, "session_id", "holds NUL or is not UTF-8")
	}
	return id, nil
}

// scoped checks a scope and a session id for reading, and fills in the default.
// Writes leave the scope to the writer.
func scoped(scope kv.Scope, id string) (string, error) {
	if err := scope.Validate(); err != nil {
		return "", err
	}
	return sessionID(id)
}

// CheckMessages says what AppendMessages would refuse of messages, as an
// *invalid.Error.
func CheckMessages(msgs []Message) error {
	if len(msgs) == 0 || len(msgs) > MaxMessages {
		return invalid.Field(ErrInvalid, "messages", "must be 1 to %d", MaxMessages)
	}
	total := 0
	for i, m := range msgs {
		if field, problem := m.check(); problem != "" {
			return invalid.Field(ErrInvalid, fmt.Sprintf("messages[%d].%s", i, field), "%s", problem)
		}
		if total += m.size(); total > MaxAppendBytes {
			return invalid.Field(ErrInvalid, "messages", "hold more than %d bytes of text", MaxAppendBytes)
		}
	}
	return nil
}

// size is the bytes of all text.
func (m Message) size() int {
	n := len(m.Content) + len(m.BlocksJSON) + len(m.Name) + len(m.ToolCallID) + len(m.ExtraJSON)
	for _, c := range m.ToolCalls {
		n += len(c.ID) + len(c.Name) + len(c.Arguments) + len(c.Extra)
	}
	return n
}

// check returns the first field that breaks a rule, and the rule.
func (m Message) check() (field, problem string) {
	switch {
	case m.Role < System || m.Role > Developer:
		return "role", "is required"
	case m.size() > MaxMediaBytes:
		return m.largest(), fmt.Sprintf("and the other text and media of a message are longer than %d bytes: send smaller images, or an address or a file id of the provider in their place", MaxMediaBytes)
	case m.size() > MaxMessageBytes && m.size()-mediaBytes(m.BlocksJSON) > MaxMessageBytes:
		return m.largest(), fmt.Sprintf("and the other text of a message are longer than %d bytes", MaxMessageBytes)
	case !validText(m.Content, m.Name, m.ToolCallID, string(m.BlocksJSON), string(m.ExtraJSON)):
		return "content", "or another text of the message is not UTF-8"
	case len(m.BlocksJSON) > 0 && !isArray(m.BlocksJSON):
		return "blocks_json", "is not a JSON array"
	case len(m.BlocksJSON) > 0 && m.Content != "":
		return "blocks_json", "stands in place of content, so only one of them may be set"
	case len(m.Name) > MaxNameBytes:
		return "name", fmt.Sprintf("is longer than %d bytes", MaxNameBytes)
	case m.Role != Tool && m.ToolCallID != "":
		return "tool_call_id", "belongs into tool messages only"
	case len(m.ToolCallID) > MaxCallIDBytes:
		return "tool_call_id", fmt.Sprintf("is longer than %d bytes", MaxCallIDBytes)
	case m.Role != Assistant && len(m.ToolCalls) > 0:
		return "tool_calls", "belong into assistant messages only"
	case m.Role != User && m.Observation:
		return "observation", "belongs into user messages only"
	case len(m.ToolCalls) > MaxToolCalls:
		return "tool_calls", fmt.Sprintf("are more than %d", MaxToolCalls)
	case m.Role == Assistant && asked(m.BlocksJSON) > MaxToolCalls:
		return "blocks_json", fmt.Sprintf("asks for more than %d tools", MaxToolCalls)
	}
	if problem := checkExtra(m.ExtraJSON, messageFields); problem != "" {
		return "extra_json", problem
	}
	for i, c := range m.ToolCalls {
		if field, problem := c.check(); problem != "" {
			return fmt.Sprintf("tool_calls[%d].%s", i, field), problem
		}
	}
	return "", ""
}

// largest names the larger one of the fields that hold what is said.
func (m Message) largest() string {
	if len(m.BlocksJSON) > len(m.Content) {
		return "blocks_json"
	}
	return "content"
}

// mediaBytes returns the bytes of the images, sounds and files among blocks, including
// blocks of results.
func mediaBytes(blocks json.RawMessage) int {
	return mediaOf(content.Parse(blocks))
}

func mediaOf(parts []content.Block) int {
	n := 0
	for i := range parts {
		n += len(parts[i].Media().Data) + mediaOf(parts[i].Parts)
	}
	return n
}

func (c ToolCall) check() (field, problem string) {
	switch {
	case len(c.ID) > MaxCallIDBytes:
		return "id", fmt.Sprintf("must be at most %d bytes", MaxCallIDBytes)
	case c.Name == "" || len(c.Name) > MaxToolNameBytes:
		return "name", fmt.Sprintf("must be 1 to %d bytes", MaxToolNameBytes)
	case !validText(c.ID, c.Name, c.Arguments, c.Extra):
		return "arguments_json", "or another text of the call is not UTF-8"
	}
	if kind := c.kind(); kind != "" && kind != customCall {
		return "extra_json", fmt.Sprintf("holds the type %q: a call is of the type %s, or else a function", kind, customCall)
	}
	return "extra_json", checkExtra(json.RawMessage(c.Extra), callFields)
}

// customCall is the type of a call whose arguments are any text.
const customCall = "custom"

// Custom reports whether the call is of a tool that takes any text: its Extra holds the type
// custom, as OpenAI calls it.
func (c ToolCall) Custom() bool { return c.kind() == customCall }

func (c ToolCall) kind() string {
	if !strings.Contains(c.Extra, `"type"`) {
		return ""
	}
	var extra struct{ Type string }
	_ = json.Unmarshal([]byte(c.Extra), &extra) // checkExtra says what it is otherwise
	return extra.Type
}

// checkExtra returns what is wrong with further fields: they are an object, and
// none is called as one that has its own place.
func checkExtra(text json.RawMessage, fields []string) string {
	if len(text) == 0 {
		return ""
	}
	var extra map[string]json.RawMessage
	if json.Unmarshal(text, &extra) != nil || extra == nil {
		return "is not a JSON object"
	}
	for _, name := range fields {
		if _, ok := extra[name]; ok {
			return fmt.Sprintf("holds %s, which has its own field", name)
		}
	}
	return ""
}

// asked is how many tools content blocks ask for.
func asked(blocks json.RawMessage) int {
	// No array is shorter that asks for too many.
	if len(blocks) <= MaxToolCalls*len(`{"functionCall":0}`) {
		return 0
	}
	n := 0
	for _, p := range content.Parse(blocks) {
		if p.Kind == content.Call {
			n++
		}
	}
	return n
}

func validText(texts ...string) bool {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return false
		}
	}
	return true
}

func isArray(text json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) && json.Valid(text)
}
