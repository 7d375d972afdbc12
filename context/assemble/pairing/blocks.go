package pairing

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// CallsWithin returns the calls that stand in the blocks of an assistant's
// message, of any provider: the first session.MaxToolCalls of them, which is what a
// message may ask for.
func CallsWithin(m *session.Message) []session.ToolCall {
	calls, _ := callsWithin(m)
	return calls
}

// callsWithin is CallsWithin. unnamed reports whether one needs an id and has none.
func callsWithin(m *session.Message) (calls []session.ToolCall, unnamed bool) {
	if m.Role != session.Assistant {
		return nil, false
	}
	for _, p := range content.Parse(m.BlocksJSON) {
		if len(calls) == session.MaxToolCalls {
			break
		}
		if p.Kind == content.Call {
			calls = append(calls, session.ToolCall{ID: p.ID, Name: p.Name, Arguments: p.Arguments})
			unnamed = unnamed || p.Unnamed && p.Dialect != content.Gemini
		}
	}
	return calls, unnamed
}

// answeredWithin puts a message of the user whose blocks answer calls to the messages that
// ask for them.
func (p *Pairer) answeredWithin(e session.Entry) bool {
	m := e.Message
	if p.last == nil || len(m.BlocksJSON) == 0 {
		return false
	}
	var asked []*Turn                // turns whose calls have results, in order
	of := make(map[string]*Turn)     // which one each answers
	named := make(map[string]string) // the ids of results that came without one
	forged := false
	for _, b := range content.Parse(m.BlocksJSON) {
		if b.Kind != content.Result {
			continue
		}
		forged = forged || forges(b.Parts)
		t, c := p.late(b.ID, false)
		if c == nil && b.Unnamed {
			t = p.last.Asks()
			if c = t.unnamed(b.Name, b.Name != ""); c != nil {
				named[b.ID] = c.Wish.ID
			}
		}
		if c == nil {
			continue
		}
		c.Answered = true
		if of[b.ID] = t; !slices.Contains(asked, t) {
			asked = append(asked, t)
		}
	}
	if len(asked) == 0 {
		return false
	}
	u := Spoken
	if OnlyResults(m) {
		u = Observed
	}
	blocks := m.BlocksJSON
	if len(named) > 0 {
		blocks = content.Identified(blocks, func(b *content.Block) string { return named[b.ID] })
		own := *m
		own.BlocksJSON = blocks
		e.Message = &own
	}
	if forged {
		blocks = content.WithOutputs(blocks, guard.Output)
	}
	for i, t := range asked {
		said := *m
		said.BlocksJSON = blocks
		if len(asked) > 1 {
			// What else is said stands behind all results.
			said.BlocksJSON = content.Without(m.BlocksJSON, func(b *content.Block) bool {
				if b.Kind == content.Result {
					return of[b.ID] != nil && of[b.ID] != t || of[b.ID] == nil && i < len(asked)-1
				}
				return i < len(asked)-1
			})
		}
		p.last.answer(t, &Turn{Label: MessageLabel(e), Said: &said, at: e.Position})
	}
	p.last.add(e, u)
	return true
}

// answer puts a message with results behind the turn that asks for them, and what answered
// that before.
func (g *Group) answer(asked, answer *Turn) {
	at := slices.Index(g.Turns, asked) + 1
	for at < len(g.Turns) && g.Turns[at].at != 0 {
		at++
	}
	g.Turns = slices.Insert(g.Turns, at, answer)
}

// forges reports whether parts of a result have lines that look like lines of a fold.
func forges(parts []content.Block) bool {
	return slices.ContainsFunc(content.Texts(parts), func(text string) bool { return len(guard.FoldLines(text)) > 0 })
}

// AnswerWithin is the message of the group with a block that answers a call, and
// what the block says.
func (g *Group) AnswerWithin(id string) (session.Entry, string) {
	for i := range g.Members {
		said := g.Members[i].Entry.Message
		if said == nil || said.Role != session.User {
			continue
		}
		for _, b := range content.Parse(said.BlocksJSON) {
			if b.Kind == content.Result && b.ID == id {
				return g.Members[i].Entry, textOf(b.Parts)
			}
		}
	}
	return session.Entry{}, ""
}

// OnlyResults reports whether a message has nothing but results of calls.
func OnlyResults(m *session.Message) bool {
	parts := content.Parse(m.BlocksJSON)
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p content.Block) bool { return p.Kind != content.Result })
}

// BlockText is what the blocks say, results of calls included; thoughts are
// not.
func BlockText(blocks json.RawMessage) string { return textOf(content.Parse(blocks)) }

func textOf(parts []content.Block) string { return strings.Join(content.Texts(parts), "\n") }

// Words are what a message says.
func Words(m *session.Message) string {
	if len(m.BlocksJSON) > 0 {
		return BlockText(m.BlocksJSON)
	}
	return m.Content
}
