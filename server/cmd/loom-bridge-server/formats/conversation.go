package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// unknown is the time of messages whose file says none: the same each time.
var unknown = time.Unix(0, 0).UTC()

// noted is what stands for the bytes of an image, a sound or a file.
const noted = "[%s]"

// conversation is a session that is read.
type conversation struct {
	id, title string
	msgs      []session.Message
	times     []time.Time
	bytes     int
	leftOut   int
	cut       int
}

// add adds a message, of no known time where at is nil. One that says nothing is left out.
func (c *conversation) add(m session.Message, at *time.Time) error {
	if strings.TrimSpace(m.Content) == "" && len(m.ToolCalls) == 0 && m.Role != session.Tool {
		return nil
	}
	if len(c.msgs) >= maxMessages {
		return fmt.Errorf("%w: the conversation has more than %d messages", ErrFormat, maxMessages)
	}
	if len(m.ToolCalls) > session.MaxToolCalls { // the others come behind it
		rest := m
		rest.Content, rest.ToolCalls = "", m.ToolCalls[session.MaxToolCalls:]
		m.ToolCalls = m.ToolCalls[:session.MaxToolCalls]
		if err := c.add(m, at); err != nil {
			return err
		}
		return c.add(rest, at)
	}
	c.fit(&m)
	c.bytes += len(m.Content)
	for _, call := range m.ToolCalls {
		c.bytes += len(call.Arguments)
	}
	if c.bytes > session.MaxPartsBytes {
		return fmt.Errorf("%w: the conversation has more than %d bytes", ErrFormat, session.MaxPartsBytes)
	}
	if at == nil {
		at = &unknown
	}
	c.msgs, c.times = append(c.msgs, m), append(c.times, *at)
	return nil
}

// fit cuts texts to the lengths that a message may have.
func (c *conversation) fit(m *session.Message) {
	const room = session.MaxMessageBytes - 256<<10 // what names and ids of calls take at most
	m.Name, m.ToolCallID = cut(m.Name, session.MaxNameBytes), short(m.ToolCallID, session.MaxCallIDBytes)
	text := func(s *string, most int) {
		if len(*s) > most {
			*s = cut(*s, most)
			c.cut++
		}
	}
	each := room / (len(m.ToolCalls) + 1)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	left := room
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		call.ID, call.Name = short(call.ID, session.MaxCallIDBytes), cut(call.Name, session.MaxToolNameBytes)
		if call.Name == "" {
			call.Name = "tool"
		}
		text(&call.Arguments, each)
		left -= len(call.Arguments)
	}
	text(&m.Content, left)
}

// message is a message, or an item, as the providers' interfaces have them.
type message struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Name    string          `json:"name"`
	Content json.RawMessage `json:"content"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
	// Of items.
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
}

// block is a part of a message's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// take adds a message of OpenAI's Chat or Responses, or of Anthropic's Messages.
func (c *conversation) take(given json.RawMessage, at *time.Time) error {
	var m message
	if err := decode(given, &m); err != nil {
		return err
	}
	switch {
	case m.Type == "function_call" || m.Type == "custom_tool_call" || m.Type == "local_shell_call":
		arguments := m.Arguments
		for _, other := range []json.RawMessage{m.Input, m.Action} {
			if len(arguments) == 0 {
				arguments = other
			}
		}
		name := m.Name
		if name == "" {
			name = strings.TrimSuffix(m.Type, "_call")
		}
		return c.add(session.Message{Role: session.Assistant, ToolCalls: []session.ToolCall{{ID: m.CallID, Name: name, Arguments: plain(arguments)}}}, at)
	case strings.HasSuffix(m.Type, "_call_output"):
		return c.add(session.Message{Role: session.Tool, ToolCallID: m.CallID, Content: c.text(m.Output)}, at)
	case m.Type != "" && m.Type != "message":
		c.leftOut++
		return nil
	}
	switch m.Role {
	case "user", "human":
		return c.blocks(session.Message{Role: session.User, Name: m.Name}, m.Content, at)
	case "assistant", "model":
		said := session.Message{Role: session.Assistant, Name: m.Name}
		for _, call := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, session.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: plain(call.Function.Arguments)})
		}
		return c.blocks(said, m.Content, at)
	case "tool", "function":
		return c.add(session.Message{Role: session.Tool, ToolCallID: m.ToolCallID, Name: m.Name, Content: c.text(m.Content)}, at)
	case "system", "developer":
		c.leftOut++
		return nil
	}
	return fmt.Errorf("%w: a message of role %q", ErrFormat, m.Role)
}

// blocks adds what the content of a message is, in order: its text with the calls it asks for, and
// results of tools, each of its own, with which the message goes on.
func (c *conversation) blocks(m session.Message, content json.RawMessage, at *time.Time) error {
	all, err := blocksOf(content)
	if err != nil {
		return err
	}
	var texts []string
	for _, b := range all {
		switch b.Type {
		case "tool_use", "server_tool_use", "mcp_tool_use":
			if m.Role == session.Assistant {
				m.ToolCalls = append(m.ToolCalls, session.ToolCall{ID: b.ID, Name: b.Name, Arguments: plain(b.Input)})
			}
		case "tool_result":
			m.Content = strings.Join(texts, "\n\n")
			if err := c.add(m, at); err != nil {
				return err
			}
			texts, m.ToolCalls = nil, nil
			if err := c.add(session.Message{Role: session.Tool, ToolCallID: b.ToolUseID, Name: b.Name, Content: c.text(b.Content)}, at); err != nil {
				return err
			}
		default:
			texts = c.said(texts, b)
		}
	}
	m.Content = strings.Join(texts, "\n\n")
	return c.add(m, at)
}

// said adds the text of a block, or what stands for it.
func (c *conversation) said(texts []string, b block) []string {
	switch b.Type {
	case "", "text", "input_text", "output_text", "refusal":
		if b.Text == "" {
			return texts
		}
		return append(texts, b.Text)
	case "thinking", "redacted_thinking", "reasoning", "token_budget", "flag":
		c.leftOut++
		return texts
	}
	c.leftOut++
	return append(texts, fmt.Sprintf(noted, cut(b.Type, session.MaxNameBytes)))
}

// text is what a tool gave: a text, the texts of blocks, or JSON as it is.
func (c *conversation) text(content json.RawMessage) string {
	if len(content) > 0 && content[0] != '[' {
		return plain(content)
	}
	all, err := blocksOf(content)
	if err != nil { // a list of something else
		return string(content)
	}
	var texts []string
	for _, b := range all {
		texts = c.said(texts, b)
	}
	return strings.Join(texts, "\n")
}

// blocksOf are the blocks of a content, which may be a text, and may be missing.
func blocksOf(content json.RawMessage) (all []block, err error) {
	var text string
	switch {
	case len(content) == 0 || string(content) == "null":
		return nil, nil
	case json.Unmarshal(content, &text) == nil:
		return []block{{Text: text}}, nil
	}
	return all, decode(content, &all)
}

// plain is a JSON string as its text, and other JSON without spaces between its parts.
func plain(given json.RawMessage) string {
	var text string
	if len(given) == 0 || string(given) == "null" || json.Unmarshal(given, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if err := json.Compact(&b, given); err != nil {
		return string(given)
	}
	return b.String()
}

// holding are the conversations of a file that are complete only at its end, in order.
type holding struct {
	all   []*conversation
	by    map[string]*conversation
	bytes int
}

func newHolding() *holding { return &holding{by: make(map[string]*conversation)} }

// of is the conversation of an id.
func (h *holding) of(id string) (*conversation, error) {
	if c := h.by[id]; c != nil {
		return c, nil
	}
	if len(h.all) >= MaxItems {
		return nil, fmt.Errorf("%w: the file has more than %d conversations", ErrFormat, MaxItems)
	}
	c := &conversation{id: id}
	h.all, h.by[id] = append(h.all, c), c
	return c, nil
}

// take adds a message to one of the conversations.
func (h *holding) take(c *conversation, given json.RawMessage, at *time.Time) error {
	before := c.bytes
	if err := c.take(given, at); err != nil {
		return err
	}
	return h.grow(c.bytes - before)
}

// grow counts bytes that are held.
func (h *holding) grow(bytes int) error {
	if h.bytes += bytes; h.bytes > maxHeldBytes {
		return fmt.Errorf("%w: the conversations of the file have more than %d bytes", ErrFormat, maxHeldBytes)
	}
	return nil
}

// end gives out the conversations, unless the file could not be read.
func (h *holding) end(out *output, err error) error {
	for _, c := range h.all {
		if err == nil {
			err = out.session(c)
		}
	}
	return err
}
