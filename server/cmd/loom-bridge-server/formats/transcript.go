package formats

import (
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// readClaudeCode reads a transcript of Claude Code: a line for each message, and others. Where a
// person went back and asked anew, it takes what Claude Code itself goes on with: the branch of
// the last message.
func readClaudeCode(f *file, out *output) error {
	t := &transcript{holding: newHolding(), places: make(map[string]int), last: make(map[*conversation]int), attaches: make(map[*conversation]bool)}
	err := f.values(t.line)
	if err == nil {
		t.leaveOut()
	}
	return t.end(out, err)
}

// transcript are the lines of Claude Code, most of which name the one that they follow.
type transcript struct {
	*holding
	turns    []turn
	places   map[string]int // of the turns, by the ids of session and line
	last     map[*conversation]int
	attaches map[*conversation]bool // it has what was said while the model worked as attachments
}

// turn is a line of a session.
type turn struct {
	of       *conversation // nil where it is no message
	from, to int           // what it added to its conversation
	after    int           // the turn that it follows; -1: none
	asks     bool          // a person speaks
	queued   bool          // she spoke while the model worked; versions with attachments say it twice
	branch   branch
}

// branch says how a turn belongs to the last message of its conversation.
type branch int

const (
	apart  branch = iota // nothing leads from the one to the other
	onPath               // the last message comes from it
	beside               // such as the result of one of several calls
	left                 // it comes from a question that the person took back
)

// transcriptLine is what stands in a line.
type transcriptLine struct {
	Type       string          `json:"type"`
	Session    string          `json:"sessionId"`
	ID         string          `json:"uuid"`
	Parent     string          `json:"parentUuid"`
	Logical    string          `json:"logicalParentUuid"` // where the history was made shorter
	Time       json.RawMessage `json:"timestamp"`
	Meta       bool            `json:"isMeta"`
	Sidechain  bool            `json:"isSidechain"`
	Compact    bool            `json:"isCompactSummary"`
	Message    json.RawMessage `json:"message"`
	Operation  string          `json:"operation"`
	Content    json.RawMessage `json:"content"`
	Attachment json.RawMessage `json:"attachment"`
}

// said is the message of a line; nil: it has none.
func (l *transcriptLine) said() json.RawMessage {
	var prompt json.RawMessage
	switch l.Type {
	case "user", "assistant":
		return l.Message
	case "attachment":
		var given struct {
			Type   string          `json:"type"`
			Mode   string          `json:"commandMode"`
			Prompt json.RawMessage `json:"prompt"`
		}
		if json.Unmarshal(l.Attachment, &given) == nil && given.Type == "queued_command" && (given.Mode == "" || given.Mode == "prompt") {
			prompt = given.Prompt
		}
	case "queue-operation":
		if l.Operation == "remove" { // the model gets it; others are said later, or never
			prompt = l.Content
		}
	}
	if len(prompt) == 0 {
		return nil
	}
	message, _ := json.Marshal(map[string]any{"role": "user", "content": prompt}) //nolint:errchkjson // as it was decoded
	return message
}

// line reads a line.
func (t *transcript) line(value json.RawMessage) error {
	var l transcriptLine
	if err := decode(value, &l); err != nil {
		return err
	}
	speaks, said := l.Type == "user" || l.Type == "assistant", l.said()
	switch {
	case l.Type == "":
		return fmt.Errorf("%w: it does not say its type, so it is no line of Claude Code", ErrFormat)
	case l.Session == "" && speaks:
		return fmt.Errorf("%w: it does not say its sessionId", ErrFormat)
	case l.Session == "" || l.ID == "" && said == nil && !speaks:
		return nil
	}
	place := l.Session + "/" + l.ID
	if _, twice := t.places[place]; twice && l.ID != "" {
		return nil
	}
	now := turn{after: -1, queued: l.Type == "queue-operation"}
	for _, id := range []string{l.Logical, l.Parent} {
		if at, ok := t.places[l.Session+"/"+id]; ok && id != "" {
			now.after = at
		}
	}
	if said != nil || speaks {
		c, err := t.of(l.Session)
		if err != nil {
			return err
		}
		if l.Meta || l.Sidechain || l.Compact {
			c.leftOut++
		} else if err := t.say(&now, c, said, &l); err != nil {
			return err
		}
		if speaks && !l.Sidechain {
			t.last[c] = len(t.turns)
		}
	}
	t.places[place] = len(t.turns)
	t.turns = append(t.turns, now)
	return t.grow(len(place) + 128) // about what a turn takes here
}

// say adds what is said in a turn.
func (t *transcript) say(now *turn, c *conversation, said json.RawMessage, l *transcriptLine) error {
	now.of, now.from = c, len(c.msgs)
	if now.queued {
		now.after = len(t.turns) - 1 // such lines have no ids
	} else if l.Type == "attachment" {
		t.attaches[c] = true
	}
	if err := c.item(said, when(l.Time), t.holding); err != nil {
		return err
	}
	now.to, now.asks = len(c.msgs), l.Type == "user"
	for _, m := range c.msgs[now.from:] {
		now.asks = now.asks && m.Role != session.Tool
	}
	return nil
}

// leaveOut takes out what a person asked and took back with what came from it, and what stands twice.
func (t *transcript) leaveOut() {
	for _, at := range t.last {
		for ; at >= 0 && t.turns[at].branch == apart; at = t.turns[at].after {
			t.turns[at].branch = onPath
		}
	}
	kept := make(map[*conversation]int)
	for i := range t.turns {
		now := &t.turns[i]
		if now.after >= 0 && now.branch != onPath {
			now.branch = t.turns[now.after].branch
			if now.branch == onPath || now.branch == beside {
				now.branch = beside
				if now.asks {
					now.branch = left
				}
			}
		}
		c := now.of
		if c == nil {
			continue
		}
		if now.branch == left || now.queued && t.attaches[c] {
			c.leftOut += now.to - now.from
			continue
		}
		copy(c.times[kept[c]:], c.times[now.from:now.to])
		kept[c] += copy(c.msgs[kept[c]:], c.msgs[now.from:now.to])
	}
	for c, n := range kept {
		c.msgs, c.times = c.msgs[:n], c.times[:n]
	}
}
