package pairing

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// Item is one message of the history and what it stems from, for people.
type Item struct {
	Label   string
	Message session.Message
	// Tokens is its size where that is known, else 0.
	Tokens int
	// Pieces make up its text where sections share it.
	Pieces []layout.Piece
	Origin Origin
}

// Labels of messages that stand for many entries.
const (
	LabelFold = "folds"
	// LabelSummary is that of the summary of the oldest messages.
	LabelSummary = "summary"
	// LabelSteps is that of what a preset makes of steps.
	LabelSteps = "steps"
	// LabelHandoff is that of the handoff that a renewed history begins with.
	LabelHandoff = "handoff"
)

// Output returns what a prompt shows of the entry at a position.
type Output func(position uint64) string

// Items returns the group's messages.
func (g *Group) Items(shown Output) []Item {
	var out []Item
	for _, t := range g.Turns {
		out = t.appendTo(out, shown)
	}
	return out
}

func (t *Turn) appendTo(out []Item, shown Output) []Item {
	if t.Said != nil && len(t.Calls) == 0 {
		m := *t.Said
		if !t.Described {
			m.BlocksJSON = Undescribed(m.BlocksJSON)
		}
		if t.Output != 0 {
			m.Content += shown(t.Output)
		}
		return append(out, Item{Label: t.Label, Message: m, Origin: Origin{Said: t.Said}})
	}
	wishes := t.distinct()
	out = append(out, Item{Label: t.Label, Message: t.Message(wishes), Origin: Origin{Said: t.Said}})
	for i, c := range t.Calls {
		if c.Answered {
			continue
		}
		text := NoResult
		switch {
		case c.Result != 0:
			text = shown(c.Result)
		case c.folded != "":
			text = foldedResult + c.folded
		}
		blocks := c.Blocks
		if !t.Described {
			blocks = Undescribed(blocks)
		}
		if len(blocks) > 0 {
			text = ""
		}
		out = append(out, Item{Label: c.label, Message: session.Message{
			Role: session.Tool, Content: text, BlocksJSON: blocks, ToolCallID: wishes[i].ID, ExtraJSON: c.extra,
		}, Origin: Origin{Result: c.Result}})
	}
	return out
}

// distinct returns the calls, with new ids where several share one: a provider could not
// tell their results apart.
func (t *Turn) distinct() []session.ToolCall {
	seen, next := make(map[string]bool, len(t.Calls)), make(map[string]int)
	wishes := make([]session.ToolCall, len(t.Calls))
	for i, c := range t.Calls {
		wishes[i] = c.Wish
		for n := max(next[c.Wish.ID], 2); seen[wishes[i].ID]; n++ {
			wishes[i].ID = fmt.Sprintf("%s_%d", c.Wish.ID, n)
			next[c.Wish.ID] = n + 1
		}
		seen[wishes[i].ID] = true
	}
	return wishes
}

// Message is the assistant message of the turn.
func (t *Turn) Message(wishes []session.ToolCall) session.Message {
	if t.Said != nil {
		m := *t.Said
		if len(m.ToolCalls) > 0 {
			m.ToolCalls = wishes
		}
		return m
	}
	m := session.Message{Role: session.Assistant, ToolCalls: wishes}
	var words []string
	var known thoughts
	for _, c := range t.Calls {
		if known.add(c.thought) {
			words = append(words, c.thought)
		}
	}
	m.Content = strings.Join(words, "\n")
	return m
}

// NoResult stands in for a result that was not recorded.
const NoResult = "No result of this call was recorded."

// foldedResult stands in for one that was recorded before its call, and is
// folded. How it is read follows.
const foldedResult = "The result of this call was recorded before it, and is folded. Full text: "

// Origin is where a message of a prompt comes from.
type Origin struct {
	// Said is the message of the log that it shows, or nil; result the position of the
	// entry with the result that it shows, or 0.
	Said   *session.Message
	Result uint64
	// batch and first name the fold that it is; 0 for none.
	Batch, First uint64
	Pieces       []layout.Piece
}

// Asks reports whether the user asks for something in it.
func (it *Item) Asks() bool {
	m := &it.Message
	return m.Role == session.User && !m.Observation && it.Label != LabelFold && it.Label != LabelSummary && it.Label != LabelSteps && it.Label != LabelHandoff && !OnlyResults(m)
}
