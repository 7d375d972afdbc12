package pairing

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
	// maxObserved bounds the observations after one message.
	maxObserved = session.MaxToolCalls
)

// Group is the unit of folding: adjacent entries of the log, and the messages that a
// provider gets for them. The group of an entry depends only on its neighbours, so folding
// does not change the other groups.
type Group struct {
	// Members are the entries, in the order of the log.
	Members []Member
	// Turns are what a prompt shows of them, in order.
	Turns []*Turn
	// Open: a call still waits for its result.
	Open bool
	// Awaited: steps at the end of the log with ids of calls that a message may
	// still ask for.
	Awaited bool
}

// Member is an entry of a group.
type Member struct {
	Entry session.Entry
	Use   Use
}

// Use is what an entry is to its group.
type Use uint8

const (
	// Spoken is a message that stands for itself, or asks for calls.
	Spoken Use = iota
	// Alone is a step that no message asked for: its own call.
	Alone
	// answer is the result of a call: a step or a tool message.
	answer
	// Observed is a message of role user that says what a call gave.
	Observed
	// Stray is a tool message that no call waits for.
	Stray
	// Again is a second result of a call, which no prompt shows.
	Again
)

// Turn is one message, or an assistant message with calls and their results.
type Turn struct {
	Label string
	// Said is the message from the log; nil when the turn is made of steps
	// alone.
	Said   *session.Message
	turnID string
	Calls  []Call
	// thoughts are the thoughts with the calls of a turn that consists only of steps.
	thoughts thoughts
	// Output is the position of the entry whose output is the content of Said,
	// behind its Content; 0 where it says everything itself.
	Output uint64
	// at is the position of the message whose blocks Said has, 0 for none.
	at uint64
	// Described keeps the descriptions of images in what a prompt shows.
	Described bool
}

// Call is one call of a turn.
type Call struct {
	ID      string // the model's id, empty for a step that has none
	Wish    session.ToolCall
	thought string
	label   string
	// Result is the position of the entry with the result, 0 for none, Blocks its
	// content where that is blocks, and extra its further fields.
	Result        uint64
	Blocks, extra json.RawMessage
	// within: the call stands in the blocks of its message, and Answered: so
	// does its result.
	within, Answered bool
	// folded says how the result is read where that was recorded before its call, and
	// is folded.
	folded string
}

// Waits reports whether the call has no result.
func (c *Call) Waits() bool { return c.Result == 0 && !c.Answered && c.folded == "" }

// thoughts distinguishes distinct thoughts.
type thoughts struct {
	known map[string]bool
	bytes int
}

// add adds a thought, and reports whether it is new.
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

// First is the position of the group's first entry.
func (g *Group) First() uint64 { return g.Members[0].Entry.Position }

func (g *Group) add(e session.Entry, u Use) { g.Members = append(g.Members, Member{e, u}) }

// Steps reports whether the group is one turn of steps alone.
func (g *Group) Steps() bool { return g != nil && len(g.Turns) == 1 && g.Turns[0].Said == nil }

// takes reports whether a turn of steps alone has room for one more.
func (t *Turn) takes(thought string) bool {
	return len(t.Calls) < session.MaxToolCalls &&
		(t.thoughts.known[thought] || t.thoughts.bytes+len(thought) <= maxThoughtBytes)
}

// Asks returns the turn that asks for calls, the last of the group's, or nil.
func (g *Group) Asks() *Turn {
	if g == nil {
		return nil
	}
	for _, t := range slices.Backward(g.Turns) {
		if t.Said != nil && len(t.Calls) > 0 {
			return t
		}
	}
	return nil
}

// waiting returns the call that awaits a result under id, or nil.
func (t *Turn) waiting(id string) *Call {
	if t == nil || id == "" {
		return nil
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.ID == id && c.Waits() {
			return c
		}
	}
	return nil
}

// unnamed returns the first call that awaits a result and has the name of a tool, those
// first that came without an id; where it need not have that name, the first of all. It
// is nil for none.
func (t *Turn) unnamed(name string, exactly bool) *Call {
	if t == nil {
		return nil
	}
	var first, named *Call
	for i := range t.Calls {
		c := &t.Calls[i]
		switch {
		case !c.Waits() || exactly && c.Wish.Name != name:
		case c.ID == "" && (name == "" || c.Wish.Name == name):
			return c
		case named == nil && c.Wish.Name == name:
			named = c
		case first == nil:
			first = c
		}
	}
	if exactly || named != nil {
		return named
	}
	return first
}

// waits reports whether a call of the turn has no result.
func (t *Turn) waits() bool {
	return slices.ContainsFunc(t.Calls, func(c Call) bool { return c.Waits() })
}

// has reports whether the turn has a call with an id.
func (t *Turn) has(id string) bool {
	return slices.ContainsFunc(t.Calls, func(c Call) bool { return c.ID == id })
}

// EntryAt is the entry of the group at a position.
func (g *Group) EntryAt(position uint64) session.Entry {
	for i := range g.Members {
		if g.Members[i].Entry.Position == position {
			return g.Members[i].Entry
		}
	}
	return session.Entry{}
}

// Pinned reports whether something in the group is pinned.
func (g *Group) Pinned() bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool {
		return m.Entry.Step != nil && m.Entry.Step.Pinned || m.Entry.Message != nil && m.Entry.Message.Pinned
	})
}

// Answers reports whether the model said something in the group.
func (g *Group) Answers() bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool {
		return m.Entry.Step != nil || m.Entry.Message.Role == session.Assistant
	})
}

// Begins reports whether a turn of the user begins with the group: a message that is
// not only what tools gave.
func (g *Group) Begins() bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool {
		return m.Use == Spoken && m.Entry.Message != nil && m.Entry.Message.Role == session.User
	})
}

// Instructs reports whether the group is an instruction.
func (g *Group) Instructs() bool {
	m := g.Members[0].Entry.Message
	return m != nil && (m.Role == session.System || m.Role == session.Developer)
}

// UseOf is what the entry at a position is to the group.
func (g *Group) UseOf(position uint64) Use {
	for i := range g.Members {
		if g.Members[i].Entry.Position == position {
			return g.Members[i].Use
		}
	}
	return Spoken
}

// Copied returns a copy of the group with its own turns.
func (g *Group) Copied() *Group {
	own := *g
	own.Turns = make([]*Turn, len(g.Turns))
	for i, t := range g.Turns {
		turn := *t
		turn.Calls = slices.Clone(t.Calls)
		own.Turns[i] = &turn
	}
	return &own
}

// Replace lets a copied group show other blocks of the message at a position.
func (g *Group) Replace(position uint64, was, now *session.Message) {
	for _, t := range g.Turns {
		if t.Said != nil && t.Said.Role == session.User && t.at == position {
			said := *t.Said
			said.BlocksJSON = now.BlocksJSON
			t.Said = &said
		}
		for i := range t.Calls {
			if t.Calls[i].Result == position && was.Role == session.Tool {
				t.Calls[i].Blocks = now.BlocksJSON
			}
		}
	}
}

// Lost is how many calls of a group have no result and wait for none.
func (g *Group) Lost() int {
	n := 0
	for _, t := range g.Turns {
		for i := range t.Calls {
			if !g.Open && t.Calls[i].Waits() {
				n++
			}
		}
	}
	return n
}

// Stays reports whether a group is never shown as lines: it is pinned, or somebody
// says something in it that no tool gave.
func (g *Group) Stays() bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool {
		if m.Entry.Step != nil {
			return m.Entry.Step.Pinned
		}
		said := m.Entry.Message
		return said.Pinned || m.Use == Spoken && said.Role != session.Assistant
	})
}
