package render

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// Counted is what a token counter sees of a message.
func Counted(m session.Message) tokens.Message {
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

// CountText counts a text of any length: one that is too large to count at once
// in pieces, which makes an estimate of it.
func CountText(counter *tokens.Counter, model, text string) (tokens.Count, error) {
	if len(text) <= tokens.MaxTextBytes {
		return counter.Count(model, text)
	}
	total, err := counter.Count(model, "")
	for err == nil && text != "" {
		at := pieceEnd(text)
		var n tokens.Count
		n, err = counter.Count(model, text[:at])
		total, text = total.Plus(n), text[at:]
	}
	total.Exact = false
	return total, err
}

// pieceEnd is where the first piece of a text ends: behind a line, or at least a
// character.
func pieceEnd(s string) int {
	if len(s) <= tokens.MaxTextBytes {
		return len(s)
	}
	if at := strings.LastIndexByte(s[:tokens.MaxTextBytes], '\n'); at >= 0 {
		return at + 1
	}
	return len(text.Head(s, tokens.MaxTextBytes))
}

// CountMessage counts a message whose content may have any length.
func CountMessage(counter *tokens.Counter, model string, m tokens.Message) (tokens.Count, error) {
	if len(m.Content) <= tokens.MaxTextBytes {
		return counter.Message(model, m)
	}
	content, err := CountText(counter, model, m.Content)
	if err != nil {
		return tokens.Count{}, err
	}
	m.Content = ""
	frame, err := counter.Message(model, m)
	return frame.Plus(content), err
}
