package assemble

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// noResult stands in for a result that was not recorded.
const noResult = "No result of this call was recorded."

// foldedResult stands in for one that was recorded before its call, and is
// folded.
func foldedResult(ref string) string {
	return "The result of this call was recorded before it, and is folded. Full text: fs:read_file " + ref
}

// What a group takes. More begins another one.
const (
	// maxThoughtBytes bounds the thoughts of a turn that is made of steps alone:
	// they become one message.
	maxThoughtBytes = 256 << 10
	// maxObserved bounds what is observed after one message.
	maxObserved = session.MaxToolCalls
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

// group is what stays, moves and goes together: entries that stand next to each
// other in the log, and the messages a provider takes for them. Which group an
// entry belongs to depends on its neighbours only, so that what is folded
// changes nothing about the rest.
type group struct {
	// members are the entries, in the order of the log.
	members []member
	// turns are what a prompt shows of them, in order.
	turns []*turn
	// open: a call still waits for its result.
	open bool
	// awaited: steps at the end of the log with ids of calls that a message may
	// still ask for.
	awaited bool
}

// member is an entry of a group.
type member struct {
	entry session.Entry
	use   use
}

// use is what an entry is to its group.
type use uint8

const (
	// spoken is a message that stands for itself, or asks for calls.
	spoken use = iota
	// alone is a step that no message asked for: a call of its own.
	alone
	// answer is the result of a call: a step or a tool message.
	answer
	// observed is a message of role user that tells what a call gave.
	observed
	// stray is a tool message that no call waits for.
	stray
	// again is a second result of a call, which no prompt shows.
	again
)

// turn is one message, or an assistant message with calls and their results.
type turn struct {
	label string
	// said is the message from the log; nil when the turn is made of steps
	// alone.
	said   *session.Message
	turnID string
	calls  []call
	// thoughts are those of the calls of a turn of steps alone.
	thoughts thoughts
	// output is the position of the entry whose output is the content of said,
	// behind its Content; 0 where it says everything itself.
	output uint64
	// described keeps the descriptions of images in what a prompt shows.
	described bool
}

// call is one call of a turn.
type call struct {
	id      string // the model's id, empty for a step that has none
	wish    session.ToolCall
	thought string
	label   string
	// result is the position of the entry with the result, 0 for none, blocks its
	// content where that is blocks, and extra its further fields.
	result        uint64
	blocks, extra json.RawMessage
	// within: the call stands in the blocks of its message, and answered: so
	// does its result.
	within, answered bool
	// folded names the step with the result where that was recorded before its
	// call, and is folded.
	folded string
}

func (c *call) waits() bool { return c.result == 0 && !c.answered && c.folded == "" }

// thoughts tells distinct thoughts apart.
type thoughts struct {
	known map[string]bool
	bytes int
}

// add adds a thought, and tells whether it is new.
func (t *thoughts) add(thought string) bool {
	if thought == "" || t.known[thought] {
		return false
	}
	if t.known == nil {
		t.known = make(map[string]bool)
	}
	t.known[thought] = true
	t.bytes += len(thought)
	return true
}

// first is the position of the group's first entry.
func (g *group) first() uint64 { return g.members[0].entry.Position }

func (g *group) add(e session.Entry, u use) { g.members = append(g.members, member{e, u}) }

// steps tells whether the group is one turn of steps alone.
func (g *group) steps() bool { return g != nil && len(g.turns) == 1 && g.turns[0].said == nil }

// takes tells whether a turn of steps alone has room for one more.
func (t *turn) takes(thought string) bool {
	return len(t.calls) < session.MaxToolCalls &&
		(t.thoughts.known[thought] || t.thoughts.bytes+len(thought) <= maxThoughtBytes)
}

// asks returns the turn that asks for calls, the last of the group's, or nil.
func (g *group) asks() *turn {
	if g == nil {
		return nil
	}
	for _, t := range slices.Backward(g.turns) {
		if t.said != nil && len(t.calls) > 0 {
			return t
		}
	}
	return nil
}

// waiting returns the call that awaits a result under id, or nil.
func (t *turn) waiting(id string) *call {
	if t == nil || id == "" {
		return nil
	}
	for i := range t.calls {
		if c := &t.calls[i]; c.id == id && c.waits() {
			return c
		}
	}
	return nil
}

// has tells whether the turn has a call with an id.
func (t *turn) has(id string) bool {
	return slices.ContainsFunc(t.calls, func(c call) bool { return c.id == id })
}

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

// stepLabel names a step for people.
func stepLabel(s *step.Step) string { return fmt.Sprintf("%s (%s)", s.ID(), s.ToolName) }

// messageLabel names a message for people.
func messageLabel(e session.Entry) string {
	return fmt.Sprintf("message %d (%s)", e.Position, e.Message.Role)
}

// callOf is a step as a call of its own.
func callOf(e session.Entry) call {
	s := e.Step
	return call{
		id:      s.CallID,
		wish:    session.ToolCall{ID: "call_" + s.ID(), Name: calledName(s), Arguments: arguments(s)},
		thought: s.Thought,
		label:   stepLabel(s),
		result:  e.Position,
	}
}

// calledName is the tool's name as the model wrote it.
func calledName(s *step.Step) string {
	if s.CalledAs != "" {
		return s.CalledAs
	}
	return s.ToolName
}

// arguments are all of them where the step kept them, else the minimal ones.
func arguments(s *step.Step) string {
	for _, args := range []json.RawMessage{s.Args, s.MinimalArgs} {
		if len(args) > 0 {
			return string(args)
		}
	}
	return "{}"
}
