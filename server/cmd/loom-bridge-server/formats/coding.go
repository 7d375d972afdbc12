package formats

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// readClaudeCode reads a transcript of Claude Code: a line for each message, and others.
func readClaudeCode(f *file, out *output) error {
	held := newHolding()
	err := f.values(func(value json.RawMessage) error {
		var l struct {
			Type      string          `json:"type"`
			Session   string          `json:"sessionId"`
			Time      json.RawMessage `json:"timestamp"`
			Meta      bool            `json:"isMeta"`
			Sidechain bool            `json:"isSidechain"`
			Message   json.RawMessage `json:"message"`
			Title     string          `json:"summary"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		switch {
		case l.Type == "":
			return fmt.Errorf("%w: it does not say its type, so it is no line of Claude Code", ErrFormat)
		case l.Type != "user" && l.Type != "assistant":
			return nil
		case l.Session == "":
			return fmt.Errorf("%w: it does not say its sessionId", ErrFormat)
		}
		c, err := held.of(l.Session)
		if err != nil {
			return err
		}
		if l.Meta || l.Sidechain {
			c.leftOut++
			return nil
		}
		return held.take(c, l.Message, when(l.Time))
	})
	return held.end(out, err)
}

// readCodex reads a rollout of Codex: a line for each item of its model's interface, and others.
func readCodex(f *file, out *output) error {
	held := newHolding()
	name := f.name[strings.LastIndexByte(f.name, '/')+1:]
	c, err := held.of(strings.TrimSuffix(name, ".jsonl"))
	if err != nil {
		return err
	}
	known := false
	return held.end(out, f.values(func(value json.RawMessage) error {
		var l struct {
			Type    string          `json:"type"`
			Time    json.RawMessage `json:"timestamp"`
			Payload json.RawMessage `json:"payload"`
			ID      string          `json:"id"`
			Record  string          `json:"record_type"`
			Rest    json.RawMessage `json:"instructions"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		switch l.Type {
		case "session_meta":
			var meta struct {
				ID string `json:"id"`
			}
			if err := decode(l.Payload, &meta); err != nil {
				return err
			}
			if !known && meta.ID != "" { // that of a session which goes on is followed by those before
				c.id, known = meta.ID, true
			}
			return nil
		case "response_item":
			return c.item(l.Payload, when(l.Time), held)
		case "": // the first line of earlier versions, and a mark of state
			if l.Record == "" && l.ID == "" {
				return fmt.Errorf("%w: it does not say its type, so it is no line of Codex", ErrFormat)
			}
			if !known && l.ID != "" {
				c.id, known = l.ID, true
			}
			return nil
		case "event_msg", "turn_context", "compacted":
			return nil
		}
		return c.item(value, when(l.Time), held) // earlier versions have bare items
	}))
}

// item adds an item of a rollout, without what Codex itself puts into the person's mouth.
func (c *conversation) item(given json.RawMessage, at *time.Time, held *holding) error {
	before := len(c.msgs)
	if err := held.take(c, given, at); err != nil || len(c.msgs) == before {
		return err
	}
	last := c.msgs[before]
	for _, own := range []string{"<environment_context>", "<user_instructions>", "# AGENTS.md instructions for ", "<skill>", "<turn_aborted>"} {
		if last.Role == session.User && strings.HasPrefix(strings.TrimSpace(last.Content), own) {
			c.msgs, c.times = c.msgs[:before], c.times[:before]
			c.leftOut++
			break
		}
	}
	return nil
}
