package assemble

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// maxBlockDepth bounds how deep blocks within blocks are read, as deep as package
// tokens does: each level reads what is left once more.
const maxBlockDepth = 8

// block is what is looked at of a provider's content block.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// blocksOf returns the blocks that can be read.
func blocksOf(content json.RawMessage) []block {
	var raw []json.RawMessage
	if len(content) == 0 || json.Unmarshal(content, &raw) != nil {
		return nil
	}
	blocks := make([]block, 0, len(raw))
	for _, text := range raw {
		var b block
		if json.Unmarshal(text, &b) == nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// callsWithin returns the calls that stand in the blocks of an assistant's
// message: the first session.MaxToolCalls of them, which is what a message may
// ask for.
func callsWithin(m *session.Message) []session.ToolCall {
	if m.Role != session.Assistant {
		return nil
	}
	var calls []session.ToolCall
	for _, b := range blocksOf(m.BlocksJSON) {
		if len(calls) == session.MaxToolCalls {
			break
		}
		if b.Type == "tool_use" && b.ID != "" {
			calls = append(calls, session.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		}
	}
	return calls
}

// answeredWithin puts a message of the user whose blocks answer calls of the
// message before to it.
func (p *pairer) answeredWithin(e session.Entry) bool {
	m, t := e.Message, p.last.asks()
	if t == nil || len(m.BlocksJSON) == 0 {
		return false
	}
	found := false
	for _, b := range blocksOf(m.BlocksJSON) {
		if b.Type != "tool_result" {
			continue
		}
		if c := t.waiting(b.ToolUseID); c != nil && c.within {
			c.answered, found = true, true
		}
	}
	if !found {
		return false
	}
	u := spoken
	if onlyResults(m) {
		u = observed
	}
	p.last.turns = append(p.last.turns, &turn{label: messageLabel(e), said: m})
	p.last.add(e, u)
	return true
}

// answerWithin is the message of the group with a block that answers a call, and
// what the block says.
func (g *group) answerWithin(id string) (session.Entry, string) {
	for i := range g.members {
		said := g.members[i].entry.Message
		if said == nil || said.Role != session.User {
			continue
		}
		for _, b := range blocksOf(said.BlocksJSON) {
			if b.Type == "tool_result" && b.ToolUseID == id {
				return g.members[i].entry, resultText(b.Content, 0)
			}
		}
	}
	return session.Entry{}, ""
}

// onlyResults tells whether a message has nothing but results of calls.
func onlyResults(m *session.Message) bool {
	blocks := blocksOf(m.BlocksJSON)
	return len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b block) bool { return b.Type != "tool_result" })
}

// blockText is what the blocks say, results of calls included; thoughts are
// not.
func blockText(content json.RawMessage) string { return textWithin(content, 0) }

// textWithin is blockText at a depth. Deeper than anybody nests blocks, their
// JSON is the text.
func textWithin(content json.RawMessage, depth int) string {
	if depth > maxBlockDepth {
		return string(content)
	}
	var parts []string
	for _, b := range blocksOf(content) {
		text := b.Text
		if b.Type == "tool_result" {
			text = resultText(b.Content, depth)
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// resultText is what the result of a call says.
func resultText(content json.RawMessage, depth int) string {
	var text string
	if json.Unmarshal(content, &text) != nil {
		text = textWithin(content, depth+1)
	}
	return text
}
