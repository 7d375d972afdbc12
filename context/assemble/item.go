package assemble

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// item is one message of the history and what it stems from, for people.
type item struct {
	label   string
	message session.Message
	// tokens is its size where that is known, else 0.
	tokens int
	// pieces make up its text where sections share it.
	pieces []layout.Piece
	origin origin
}

// labelFold is the label of folds.
const labelFold = "folds"

// output returns what a prompt shows of the entry at a position.
type output func(position uint64) string

// items returns the group's messages.
func (g *group) items(shown output) []item {
	var out []item
	for _, t := range g.turns {
		out = t.appendTo(out, shown)
	}
	return out
}

func (t *turn) appendTo(out []item, shown output) []item {
	if t.said != nil && len(t.calls) == 0 {
		m := *t.said
		if !t.described {
			m.BlocksJSON = undescribed(m.BlocksJSON)
		}
		if t.output != 0 {
			m.Content += shown(t.output)
		}
		return append(out, item{label: t.label, message: m, origin: origin{said: t.said}})
	}
	wishes := t.distinct()
	out = append(out, item{label: t.label, message: t.message(wishes), origin: origin{said: t.said}})
	for i, c := range t.calls {
		if c.answered {
			continue
		}
		text := noResult
		switch {
		case c.result != 0:
			text = shown(c.result)
		case c.folded != "":
			text = foldedResult(c.folded)
		}
		blocks := c.blocks
		if !t.described {
			blocks = undescribed(blocks)
		}
		if len(blocks) > 0 {
			text = ""
		}
		out = append(out, item{label: c.label, message: session.Message{
			Role: session.Tool, Content: text, BlocksJSON: blocks, ToolCallID: wishes[i].ID, ExtraJSON: c.extra,
		}, origin: origin{result: c.result}})
	}
	return out
}

// distinct returns the calls, with ids of their own for those that share one:
// a provider could not tell their results apart.
func (t *turn) distinct() []session.ToolCall {
	seen, next := make(map[string]bool, len(t.calls)), make(map[string]int)
	wishes := make([]session.ToolCall, len(t.calls))
	for i, c := range t.calls {
		wishes[i] = c.wish
		for n := max(next[c.wish.ID], 2); seen[wishes[i].ID]; n++ {
			wishes[i].ID = fmt.Sprintf("%s_%d", c.wish.ID, n)
			next[c.wish.ID] = n + 1
		}
		seen[wishes[i].ID] = true
	}
	return wishes
}

// message is the assistant message of the turn.
func (t *turn) message(wishes []session.ToolCall) session.Message {
	if t.said != nil {
		m := *t.said
		if len(m.ToolCalls) > 0 {
			m.ToolCalls = wishes
		}
		return m
	}
	m := session.Message{Role: session.Assistant, ToolCalls: wishes}
	var words []string
	var known thoughts
	for _, c := range t.calls {
		if known.add(c.thought) {
			words = append(words, c.thought)
		}
	}
	m.Content = strings.Join(words, "\n")
	return m
}

// noResult stands in for a result that was not recorded.
const noResult = "No result of this call was recorded."

// foldedResult stands in for one that was recorded before its call, and is
// folded.
func foldedResult(ref string) string {
	return "The result of this call was recorded before it, and is folded. Full text: fs:read_file " + ref
}

// origin is where a message of a prompt comes from.
type origin struct {
	// said is the message of the log that it shows, or nil; result the position of the
	// entry with the result that it shows, or 0.
	said   *session.Message
	result uint64
	// batch and first name the fold that it is; 0 for none.
	batch, first uint64
	pieces       []layout.Piece
}
