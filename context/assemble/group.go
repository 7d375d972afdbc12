package assemble

import (
	"encoding/json"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// What a group takes. More begins another one.
const (
	// maxThoughtBytes bounds the thoughts of a turn that is made of steps alone:
	// they become one message.
	maxThoughtBytes = 256 << 10
	// maxObserved bounds what is observed after one message.
	maxObserved = session.MaxToolCalls
)

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

// entryAt is the entry of the group at a position.
func (g *group) entryAt(position uint64) session.Entry {
	for i := range g.members {
		if g.members[i].entry.Position == position {
			return g.members[i].entry
		}
	}
	return session.Entry{}
}

// pinned tells whether something in the group is pinned.
func (g *group) pinned() bool {
	return slices.ContainsFunc(g.members, func(m member) bool {
		return m.entry.Step != nil && m.entry.Step.Pinned || m.entry.Message != nil && m.entry.Message.Pinned
	})
}

// answers tells whether the model said something in the group.
func (g *group) answers() bool {
	return slices.ContainsFunc(g.members, func(m member) bool {
		return m.entry.Step != nil || m.entry.Message.Role == session.Assistant
	})
}

// begins tells whether a turn of the user begins with the group: a message that is
// not only what tools gave.
func (g *group) begins() bool {
	return slices.ContainsFunc(g.members, func(m member) bool {
		return m.use == spoken && m.entry.Message != nil && m.entry.Message.Role == session.User
	})
}

// instructs tells whether the group is an instruction.
func (g *group) instructs() bool {
	m := g.members[0].entry.Message
	return m != nil && (m.Role == session.System || m.Role == session.Developer)
}

// use is what the entry at a position is to the group.
func (g *group) use(position uint64) use {
	for i := range g.members {
		if g.members[i].entry.Position == position {
			return g.members[i].use
		}
	}
	return spoken
}

// copied is the group with turns of its own.
func (g *group) copied() *group {
	own := *g
	own.turns = make([]*turn, len(g.turns))
	for i, t := range g.turns {
		turn := *t
		turn.calls = slices.Clone(t.calls)
		own.turns[i] = &turn
	}
	return &own
}

// lost is how many calls of a group have no result and wait for none.
func (g *group) lost() int {
	n := 0
	for _, t := range g.turns {
		for i := range t.calls {
			if !g.open && t.calls[i].waits() {
				n++
			}
		}
	}
	return n
}

// stays tells whether a group is never shown as lines: it is pinned, or somebody
// says something in it that no tool gave.
func (g *group) stays() bool {
	return slices.ContainsFunc(g.members, func(m member) bool {
		if m.entry.Step != nil {
			return m.entry.Step.Pinned
		}
		said := m.entry.Message
		return said.Pinned || m.use == spoken && said.Role != session.Assistant
	})
}
