package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// lettaBlock is a part of the memory that stands in each prompt of an agent of Letta.
type lettaBlock struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Value string `json:"value"`
	About string `json:"description"`
}

// lettaAgent is an agent with its messages. Earlier versions keep the blocks in it.
type lettaAgent struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Type     string            `json:"agent_type"`
	Messages []json.RawMessage `json:"messages"`
	BlockIDs []string          `json:"block_ids"`
	Core     []lettaBlock      `json:"core_memory"`
}

// readLetta reads an agent file: each agent is a conversation, and each block of its memory a
// note. Ids in a file are numbers, so an agent is known by its name and its first message. Of its
// archival memory, which such files leave out, it reads the list of passages that the server gives.
func readLetta(f *file, out *output) error {
	return f.values(func(value json.RawMessage) error {
		var l struct {
			lettaAgent
			Agents []lettaAgent    `json:"agents"`
			Blocks []lettaBlock    `json:"blocks"`
			Text   string          `json:"text"`
			Tags   []string        `json:"tags"`
			Time   json.RawMessage `json:"created_at"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		if l.Text != "" {
			return out.record(line{
				ID: named(out.source, "passage", cmp.Or(l.ID, l.Text)), Text: l.Text, Tags: tags(l.Tags), CreateTime: when(l.Time),
				Metadata: map[string]any{"source": out.source},
			})
		}
		if l.Type != "" {
			l.Agents = append(l.Agents, l.lettaAgent)
		}
		if len(l.Agents) == 0 {
			return fmt.Errorf("%w: it has no agents and no text, so it is no agent file or passage of Letta", ErrFormat)
		}
		for _, a := range l.Agents {
			if err := out.letta(a); err != nil {
				return err
			}
			for _, b := range l.Blocks {
				if slices.Contains(a.BlockIDs, b.ID) {
					a.Core = append(a.Core, b)
				}
			}
			for _, b := range a.Core {
				if err := out.block(a, b); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// block gives out a block of memory. Empty ones are nothing.
func (o *output) block(a lettaAgent, b lettaBlock) error {
	if strings.TrimSpace(b.Value) == "" {
		return nil
	}
	return o.record(line{
		ID: named(o.source, "block", cmp.Or(a.Name, a.ID), b.Label), Text: "# " + b.Label + "\n\n" + strings.TrimSpace(b.Value), Kind: "note",
		Metadata: map[string]any{"source": o.source, "agent": a.Name, "label": b.Label, "description": b.About},
	})
}

// letta gives out the conversation of an agent.
func (o *output) letta(a lettaAgent) error {
	c := &conversation{title: a.Name}
	told := make(map[string]bool) // calls by which the agent said something
	for i, given := range a.Messages {
		var m struct {
			Role    string          `json:"role"`
			Time    json.RawMessage `json:"created_at"`
			CallID  string          `json:"tool_call_id"`
			Returns []struct {
				CallID string          `json:"tool_call_id"`
				Result json.RawMessage `json:"func_response"`
			} `json:"tool_returns"`
		}
		if err := decode(given, &m); err != nil {
			return err
		}
		at := when(m.Time)
		if i == 0 {
			c.id = cmp.Or(a.Name, a.ID) + "-" + cmp.Or(at, &unknown).Format(time.RFC3339)
		}
		if m.Role == "approval" || m.Role == "summary" || told[m.CallID] {
			c.leftOut++
			continue
		}
		if m.Role == "tool" && m.CallID == "" && len(m.Returns) > 0 { // several calls at once
			for _, r := range m.Returns {
				if err := c.add(session.Message{Role: session.Tool, ToolCallID: r.CallID, Content: plain(r.Result)}, at); err != nil {
					return err
				}
			}
			continue
		}
		before := len(c.msgs)
		if err := c.take(given, at); err != nil {
			return err
		}
		c.unpack(before, told)
	}
	return o.session(c)
}

// unpack takes what was said out of the forms in which Letta puts it to its models: an object
// with a message of the user, or of the program itself, and a call of a tool that answers.
func (c *conversation) unpack(from int, told map[string]bool) {
	kept := c.msgs[:from]
	for i, m := range c.msgs[from:] {
		var packed struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}
		if m.Role == session.User && json.Unmarshal([]byte(m.Content), &packed) == nil && packed.Type != "" {
			m.Content = packed.Message
			if packed.Type != "user_message" {
				c.leftOut++
				continue
			}
		}
		m.ToolCalls = slices.DeleteFunc(m.ToolCalls, func(call session.ToolCall) bool {
			var said struct {
				Message string `json:"message"`
			}
			if call.Name != "send_message" || json.Unmarshal([]byte(call.Arguments), &said) != nil || said.Message == "" {
				return false
			}
			m.Content = said.Message // what stood there were thoughts
			told[call.ID] = call.ID != ""
			return true
		})
		c.times[len(kept)] = c.times[from+i]
		kept = append(kept, m)
	}
	c.msgs, c.times = kept, c.times[:len(kept)]
}
