package render

import (
	"context"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
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

// CountText counts a text of any length. A text too large to count at once is counted in
// pieces, which gives an estimate.
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

// Tally counts what one prompt is made of, in the model and the format of the prompt, until
// the prompt's context is done; from then on nothing takes time. It is for one goroutine.
type Tally struct {
	Counter *tokens.Counter
	Model   string
	Format  provider.Format
	// Err is the first error of Text.
	Err   error
	ended func() error
}

// NewTally returns a tally that counts until ctx is done.
func NewTally(ctx context.Context, counter *tokens.Counter, model string, format provider.Format) *Tally {
	return &Tally{Counter: counter, Model: model, Format: format, ended: ctx.Err}
}

// Text counts a text; 0 after an error.
func (t *Tally) Text(text string) int {
	if t.Err != nil {
		return 0
	}
	err := t.ended()
	var n tokens.Count
	if err == nil {
		n, err = CountText(t.Counter, t.Model, text)
	}
	if err != nil {
		t.Err = fmt.Errorf("assemble: count history: %w", err)
	}
	return n.Tokens
}

// Message counts a message.
func (t *Tally) Message(label string, m session.Message) (int, error) {
	n, err := CountMessage(t.Counter, t.Model, Counted(t.Format.Renamed(m)))
	if err != nil {
		return 0, fmt.Errorf("assemble: count %s: %w", label, err)
	}
	return n.Tokens, nil
}

// Items sets the sizes of messages.
func (t *Tally) Items(items []pairing.Item) (_ []pairing.Item, err error) {
	for i := range items {
		if items[i].Tokens, err = t.Message(items[i].Label, items[i].Message); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Tokens is a number of tokens with what counted them.
func (t *Tally) Tokens(n int) tokens.Count {
	// Counting nothing fails only where the text is too large.
	c, _ := t.Counter.Count(t.Model, "")
	c.Tokens = n
	return c
}
