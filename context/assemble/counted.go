package assemble

import (
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

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
