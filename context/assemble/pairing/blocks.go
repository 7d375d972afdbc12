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
	if m.Role != session.Assistant {
		return nil
	}
	var calls []session.ToolCall
	for _, p := range content.Parse(m.BlocksJSON) {
		if len(calls) == session.MaxToolCalls {
			break
		}
		if p.Kind == content.Call && p.ID != "" {
			calls = append(calls, session.ToolCall{ID: p.ID, Name: p.Name, Arguments: p.Arguments})
		}
	}
	return calls
}

// answeredWithin puts a message of the user whose blocks answer calls of the
// message before to it.
func (p *Pairer) answeredWithin(e session.Entry) bool {
	m, t := e.Message, p.last.Asks()
	if t == nil || len(m.BlocksJSON) == 0 {
		return false
	}
	found, forged := false, false
	for _, b := range content.Parse(m.BlocksJSON) {
		if b.Kind != content.Result {
			continue
		}
		forged = forged || forges(b.Parts)
		if c := t.waiting(b.ID); c != nil && c.within {
			c.Answered, found = true, true
		}
	}
	if !found {
		return false
	}
	u := Spoken
	if OnlyResults(m) {
		u = Observed
	}
	said := m
	if forged {
		own := *m
		own.BlocksJSON = content.WithOutputs(m.BlocksJSON, guard.Output)
		said = &own
	}
	p.last.Turns = append(p.last.Turns, &Turn{Label: MessageLabel(e), Said: said})
	p.last.add(e, u)
	return true
}

// forges tells whether parts of a result have lines that look like those of a fold.
func forges(parts []content.Part) bool {
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

// OnlyResults tells whether a message has nothing but results of calls.
func OnlyResults(m *session.Message) bool {
	parts := content.Parse(m.BlocksJSON)
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p content.Part) bool { return p.Kind != content.Result })
}

// BlockText is what the blocks say, results of calls included; thoughts are
// not.
func BlockText(blocks json.RawMessage) string { return textOf(content.Parse(blocks)) }

func textOf(parts []content.Part) string { return strings.Join(content.Texts(parts), "\n") }
