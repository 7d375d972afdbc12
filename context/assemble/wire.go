package assemble

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// wireMessage is a message in the shape of OpenAI Chat.
type wireMessage struct {
	Role string `json:"role"`
	// Content is text, an array of blocks, or null.
	Content    any        `json:"content"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

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

// encode writes a message. Blocks are written as they came but for white
// space.
func encode(out *bytes.Buffer, m session.Message) error {
	wire := wireMessage{Role: m.Role.String(), Content: m.Content, Name: m.Name, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		wire.ToolCalls = append(wire.ToolCalls, wireCall{c.ID, "function", wireFunction{c.Name, c.Arguments}})
	}
	switch {
	case len(m.BlocksJSON) > 0:
		wire.Content = m.BlocksJSON
	case m.Content == "" && len(m.ToolCalls) > 0:
		wire.Content = nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(wire); err != nil {
		return fmt.Errorf("assemble: encode message: %w", err)
	}
	out.Truncate(out.Len() - len("\n"))
	return nil
}

// counted is what a token counter sees of a message.
func counted(m session.Message) tokens.Message {
	c := tokens.Message{
		Role:    m.Role.String(),
		Content: m.Content,
		Blocks:  m.BlocksJSON,
		Name:    m.Name,
		CallID:  m.ToolCallID,
	}
	for _, call := range m.ToolCalls {
		c.Calls = append(c.Calls, tokens.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
	return c
}
