package assemble

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// renamed returns the message with the names of the format.
func renamed(m session.Message, format Format) session.Message {
	if format != OpenAIChat {
		return m
	}
	m.Name = openAIName(m.Name)
	calls := make([]session.ToolCall, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		c.Name = openAIName(c.Name)
		calls[i] = c
	}
	m.ToolCalls = calls
	return m
}

// encode writes a message in the shape of OpenAI Chat. Blocks are written as they
// came but for white space.
func encode(out *bytes.Buffer, m session.Message) error {
	out.WriteString(`{"role":`)
	quote(out, m.Role.String())
	out.WriteString(`,"content":`)
	switch {
	case len(m.BlocksJSON) > 0:
		if err := json.Compact(out, m.BlocksJSON); err != nil {
			return fmt.Errorf("assemble: encode message: %w", err)
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

// encodeExtra writes the provider's further fields behind those of an object.
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
		return fmt.Errorf("assemble: encode message: %w", err)
	}
	out.Bytes()[begin] = ','
	out.Truncate(out.Len() - len("}"))
	return nil
}

func encodeCalls(out *bytes.Buffer, calls []session.ToolCall) error {
	before := `,"tool_calls":[{"id":`
	for _, c := range calls {
		out.WriteString(before)
		quote(out, c.ID)
		out.WriteString(`,"type":"function","function":{"name":`)
		quote(out, c.Name)
		out.WriteString(`,"arguments":`)
		quote(out, c.Arguments)
		out.WriteByte('}')
		if err := encodeExtra(out, json.RawMessage(c.Extra)); err != nil {
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

// CountMessages counts messages as a request to the model holds them. Those that
// Log.AppendMessages would refuse are an *invalid.Error.
func (a *Assembler) CountMessages(model string, messages []session.Message) (tokens.Count, error) {
	if err := session.CheckMessages(messages); err != nil {
		return tokens.Count{}, err
	}
	all := make([]tokens.Message, len(messages))
	for i, m := range messages {
		all[i] = counted(m)
	}
	return a.counter.Messages(model, all)
}

// counted is what a token counter sees of a message.
func counted(m session.Message) tokens.Message {
	c := tokens.Message{
		Role:    m.Role.String(),
		Content: m.Content,
		Blocks:  m.BlocksJSON,
		Name:    m.Name,
		CallID:  m.ToolCallID,
		Extra:   m.ExtraJSON,
	}
	for _, call := range m.ToolCalls {
		c.Calls = append(c.Calls, tokens.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Extra: call.Extra})
	}
	return c
}
