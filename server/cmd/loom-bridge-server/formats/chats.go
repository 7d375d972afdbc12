package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// node is a message in the tree of a conversation of ChatGPT, whose branches are what was asked
// or answered again.
type node struct {
	Parent  string `json:"parent"`
	Message *struct {
		Author struct {
			Role string `json:"role"`
			Name string `json:"name"`
		} `json:"author"`
		Time    json.RawMessage `json:"create_time"`
		Content struct {
			Type   string            `json:"content_type"`
			Parts  []json.RawMessage `json:"parts"`
			Text   string            `json:"text"`
			Result string            `json:"result"`
		} `json:"content"`
		To       string `json:"recipient"`
		Metadata struct {
			Hidden bool `json:"is_visually_hidden_from_conversation"`
		} `json:"metadata"`
	} `json:"message"`
	Children []string `json:"children"`
}

// readChatGPT reads the list of conversations of a data export. Of each it takes the branch that
// was shown last.
func readChatGPT(f *file, out *output) error {
	return f.values(func(value json.RawMessage) error {
		var l struct {
			ID      string          `json:"conversation_id"`
			OldID   string          `json:"id"`
			Title   string          `json:"title"`
			Mapping map[string]node `json:"mapping"`
			Last    string          `json:"current_node"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		c := &conversation{id: cmp.Or(l.ID, l.OldID), title: l.Title}
		if c.id == "" || l.Mapping == nil {
			return fmt.Errorf("%w: it has no conversation_id and mapping, so it is no conversation of ChatGPT", ErrFormat)
		}
		branch, err := branchOf(l.Mapping, l.Last)
		if err != nil {
			return err
		}
		c.leftOut = len(l.Mapping)
		for _, n := range branch {
			c.leftOut--
			if err := c.node(n); err != nil {
				return err
			}
		}
		return out.session(c)
	})
}

// branchOf are the nodes from the root to the last one.
func branchOf(tree map[string]node, last string) (branch []node, err error) {
	if last == "" { // then what stands last under each
		for id, n := range tree {
			if n.Parent == "" {
				last = max(last, id)
			}
		}
		for range tree {
			if under := tree[last].Children; len(under) > 0 {
				last = under[len(under)-1]
			}
		}
	}
	for id := last; id != ""; id = tree[id].Parent {
		n, ok := tree[id]
		if !ok {
			return nil, fmt.Errorf("%w: mapping has no %q", ErrFormat, id)
		}
		if branch = append(branch, n); len(branch) > len(tree) {
			return nil, fmt.Errorf("%w: mapping goes in a circle", ErrFormat)
		}
	}
	slices.Reverse(branch)
	return branch, nil
}

// node adds what a node of ChatGPT says.
func (c *conversation) node(n node) error {
	m := n.Message
	if m == nil {
		return nil
	}
	text, at := c.parts(n), when(m.Time)
	switch {
	case m.Metadata.Hidden, m.Author.Role == "system", m.Content.Type == "thoughts", m.Content.Type == "reasoning_recap":
		c.leftOut++
		return nil
	case m.Author.Role == "user":
		return c.add(session.Message{Role: session.User, Content: text}, at)
	case m.Author.Role == "tool":
		return c.add(session.Message{Role: session.Tool, Name: m.Author.Name, Content: text}, at)
	case m.Author.Role == "assistant" && m.To != "" && m.To != "all": // a tool is asked
		return c.add(session.Message{Role: session.Assistant, ToolCalls: []session.ToolCall{{Name: m.To, Arguments: text}}}, at)
	case m.Author.Role == "assistant":
		return c.add(session.Message{Role: session.Assistant, Content: text}, at)
	}
	return fmt.Errorf("%w: a message of role %q", ErrFormat, m.Author.Role)
}

// parts is the text of a node.
func (c *conversation) parts(n node) string {
	texts := []string{}
	for _, part := range n.Message.Content.Parts {
		var text string
		var other struct {
			Type string `json:"content_type"`
			Text string `json:"text"`
		}
		switch {
		case json.Unmarshal(part, &text) == nil:
		case json.Unmarshal(part, &other) == nil && other.Text != "":
			text = other.Text
		default:
			text = fmt.Sprintf(noted, cut(cmp.Or(other.Type, "file"), session.MaxNameBytes))
			c.leftOut++
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, text := range []string{n.Message.Content.Text, n.Message.Content.Result} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// readClaude reads the list of conversations of Claude's data export.
func readClaude(f *file, out *output) error {
	return f.values(func(value json.RawMessage) error {
		var l struct {
			ID       string `json:"uuid"`
			Title    string `json:"name"`
			Messages []struct {
				Sender  string          `json:"sender"`
				Text    string          `json:"text"`
				Content json.RawMessage `json:"content"`
				Time    json.RawMessage `json:"created_at"`
				Files   []struct {
					Name string `json:"file_name"`
					Text string `json:"extracted_content"`
				} `json:"attachments"`
			} `json:"chat_messages"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		if l.ID == "" || l.Messages == nil {
			return fmt.Errorf("%w: it has no uuid and chat_messages, so it is no conversation of Claude", ErrFormat)
		}
		c := &conversation{id: l.ID, title: l.Title}
		for _, m := range l.Messages {
			said := session.Message{Role: session.User}
			switch m.Sender {
			case "human", "user":
			case "assistant":
				said.Role = session.Assistant
			default:
				return fmt.Errorf("%w: a message of sender %q", ErrFormat, m.Sender)
			}
			at := when(m.Time)
			for _, file := range m.Files {
				if err := c.add(session.Message{Role: session.User, Content: strings.TrimSpace(file.Name + "\n\n" + file.Text)}, at); err != nil {
					return err
				}
			}
			content := m.Content
			if all, err := blocksOf(content); err == nil && len(all) == 0 && m.Text != "" {
				content, _ = json.Marshal(m.Text) //nolint:errchkjson // a string
			}
			if err := c.blocks(said, content, at); err != nil {
				return err
			}
		}
		return out.session(c)
	})
}

// call is a line of a log of calls: the messages that were sent, and what came back.
type call struct {
	Messages []json.RawMessage `json:"messages"`
	Input    json.RawMessage   `json:"input"`
	Request  *call             `json:"request"`
	Body     *call             `json:"body"`
	Response *call             `json:"response"`
	// What came back, of Chat, Responses and Messages.
	Choices []struct {
		Message json.RawMessage `json:"message"`
	} `json:"choices"`
	Output  json.RawMessage `json:"output"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	Session      string          `json:"session_id"`
	Conversation string          `json:"conversation_id"`
	Thread       string          `json:"thread_id"`
	Title        string          `json:"title"`
	Time         json.RawMessage `json:"timestamp"`
	Created      json.RawMessage `json:"created_at"`
}

// all are the messages of a call in order.
func (l *call) all() (all []json.RawMessage, err error) {
	if l == nil {
		return nil, nil
	}
	for _, inner := range []*call{l.Request, l.Body} {
		more, err := inner.all()
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	all = append(all, l.Messages...)
	var text string
	switch {
	case len(l.Input) == 0:
	case json.Unmarshal(l.Input, &text) == nil:
		said, _ := json.Marshal(map[string]string{"role": "user", "content": text}) //nolint:errchkjson // strings
		all = append(all, said)
	default:
		var items []json.RawMessage
		if err := decode(l.Input, &items); err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	if len(l.Choices) > 0 && len(l.Choices[0].Message) > 0 {
		all = append(all, l.Choices[0].Message)
	}
	var items []json.RawMessage
	if json.Unmarshal(l.Output, &items) == nil {
		all = append(all, items...)
	}
	if len(l.Messages) == 0 && l.Role == "assistant" && len(l.Content) > 0 {
		said, _ := json.Marshal(map[string]any{"role": l.Role, "content": l.Content}) //nolint:errchkjson // as it was decoded
		all = append(all, said)
	}
	more, err := l.Response.all()
	return append(all, more...), err
}

// readMessages reads a log of calls. A call that sends what the one before sent, and more, goes
// on with its conversation; others of the same session_id come behind it.
func readMessages(f *file, out *output) error {
	held := newHolding()
	var before *conversation // of the line before, without an id
	err := f.values(func(value json.RawMessage) error {
		var l call
		if err := decode(value, &l); err != nil {
			return err
		}
		all, err := l.all()
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("%w: it has no messages", ErrFormat)
		}
		c := &conversation{title: l.Title}
		at := first(when(l.Time), when(l.Created))
		for _, m := range all {
			if err := c.take(m, at); err != nil {
				return err
			}
		}
		if err := held.grow(c.bytes); err != nil {
			return err
		}
		id := cmp.Or(l.Session, l.Conversation, l.Thread)
		old := before
		if id != "" {
			if old, err = held.of(id); err != nil {
				return err
			}
		}
		switch {
		case old != nil && old.begins(c):
			old.goOn(c, len(old.msgs))
		case old != nil && id != "":
			old.goOn(c, 0)
		default:
			held.all = append(held.all, c)
			old = c
		}
		if id == "" {
			before = old
		}
		return nil
	})
	for _, c := range held.all {
		if c.id == "" {
			c.id = named(out.source, c.print(c.msgs)...)
		}
	}
	return held.end(out, err)
}

// begins reports whether another conversation begins with what is said in this one.
func (c *conversation) begins(other *conversation) bool {
	return len(c.msgs) <= len(other.msgs) && slices.Equal(c.print(c.msgs), c.print(other.msgs[:len(c.msgs)]))
}

// goOn adds what another conversation has behind its first messages.
func (c *conversation) goOn(other *conversation, from int) {
	c.msgs, c.times = append(c.msgs, other.msgs[from:]...), append(c.times, other.times[from:]...)
	c.leftOut, c.cut, c.bytes = c.leftOut+other.leftOut, c.cut+other.cut, c.bytes+other.bytes
}

// print is what some messages say, as texts that are compared.
func (*conversation) print(msgs []session.Message) (texts []string) {
	for _, m := range msgs {
		texts = append(texts, string(session.EncodeMessage(&m)))
	}
	return texts
}
