package assemble

import (
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

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
