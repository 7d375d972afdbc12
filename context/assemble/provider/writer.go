package provider

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Writer writes the messages of a prompt one by one, as OpenAI's Chat has them.
// Neutral ones keep blocks as they came but for white space; in OpenAIChat, blocks of
// other providers become what Chat has for them.
type Writer struct {
	format  Format
	written int
	// images of results, and what else the user said beside results, wait for the end of
	// all results: Chat takes images only in messages of the user, and those only behind
	// the results of all calls.
	images []content.Block
	beside []session.Message
	// waiting is how many calls of an id the model asked for last that have no result yet;
	// nil where an earlier message is not known.
	waiting map[string]int
}

// NewWriter returns a writer of Neutral or OpenAIChat.
func NewWriter(f Format) *Writer { return &Writer{format: f, waiting: make(map[string]int)} }

// Written is how many messages were written.
func (w *Writer) Written() int { return w.written }

// Resume is called in place of Add for messages that somebody else wrote.
func (w *Writer) Resume(messages int) {
	w.written += messages
	w.waiting = nil
}

// Add writes a message, which may become several, with a comma before all but the
// first of the prompt. It uses the field names of the format.
func (w *Writer) Add(out *bytes.Buffer, m session.Message) error {
	if w.format == OpenAIChat {
		return w.chat(out, m)
	}
	return w.message(out, m)
}

// Close writes what waits for the end.
func (w *Writer) Close(out *bytes.Buffer) { _ = w.flush(out) } // what was made here can be written

// message writes one message.
func (w *Writer) message(out *bytes.Buffer, m session.Message) error {
	if w.written > 0 {
		out.WriteByte(',')
	}
	w.written++
	return encode(out, m)
}

// encode writes a message. Blocks are written as they came but for white space.
func encode(out *bytes.Buffer, m session.Message) error {
	out.WriteString(`{"role":`)
	quote(out, m.Role.String())
	out.WriteString(`,"content":`)
	switch {
	case len(m.BlocksJSON) > 0:
		if err := json.Compact(out, m.BlocksJSON); err != nil {
			return fmt.Errorf("encode message: %w", err)
		}
	case m.Content == "" && len(m.ToolCalls) > 0:
		out.WriteString("null")
	default:
		quote(out, m.Content)
	}
	if m.Name != "" {
		out.WriteString(`,"name":`)
		quote(out, m.Name)
	}
	if err := encodeCalls(out, m.ToolCalls); err != nil {
		return err
	}
	if m.ToolCallID != "" {
		out.WriteString(`,"tool_call_id":`)
		quote(out, m.ToolCallID)
	}
	if err := encodeExtra(out, m.ExtraJSON); err != nil {
		return err
	}
	out.WriteByte('}')
	return nil
}

// encodeExtra appends the provider's extra fields to an object.
func encodeExtra(out *bytes.Buffer, extra json.RawMessage) error {
	extra = bytes.TrimSpace(extra)
	if len(extra) == 0 {
		return nil
	}
	fields := bytes.TrimSpace(extra[1 : len(extra)-1])
	if len(fields) == 0 {
		return nil
	}
	// Compact takes whole values only.
	begin := out.Len()
	if err := json.Compact(out, extra); err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	out.Bytes()[begin] = ','
	out.Truncate(out.Len() - len("}"))
	return nil
}

// The fields of a call before the name of its tool, and before what that is given.
var (
	functionShape = [2]string{`,"type":"function","function":{"name":`, `,"arguments":`}
	customShape   = [2]string{`,"type":"custom","custom":{"name":`, `,"input":`}
)

// withoutType are the further fields of a call but for its type.
func withoutType(c session.ToolCall) json.RawMessage {
	if !c.Custom() {
		return json.RawMessage(c.Extra)
	}
	var extra map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Extra), &extra) != nil {
		return nil
	}
	delete(extra, "type")
	return text.CanonicalJSON(extra)
}

func encodeCalls(out *bytes.Buffer, calls []session.ToolCall) error {
	before := `,"tool_calls":[{"id":`
	for _, c := range calls {
		out.WriteString(before)
		quote(out, c.ID)
		shape := functionShape
		if c.Custom() {
			shape = customShape
		}
		out.WriteString(shape[0])
		quote(out, c.Name)
		out.WriteString(shape[1])
		quote(out, c.Arguments)
		out.WriteByte('}')
		if err := encodeExtra(out, withoutType(c)); err != nil {
			return err
		}
		out.WriteByte('}')
		before = `,{"id":`
	}
	if len(calls) > 0 {
		out.WriteByte(']')
	}
	return nil
}
