package formats

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/formats/sqlite"
)

// maxRows bounds the rows of a database whose places are held.
const maxRows = 20_000_000

// database reads the file as one of SQLite.
func (f *file) database(read func(db *sqlite.DB) error) error {
	f.at = noLine
	db, err := sqlite.Open(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer func() { _ = db.Close() }() // it was only read
	err = read(db)
	if err == nil {
		err = db.Unchanged()
	}
	if _, ok := errors.AsType[*sqlite.FormatError](err); ok || errors.Is(err, sqlite.ErrChanged) {
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}

// row is a row of a database with some of its columns.
type row struct {
	id     int64
	fields []string
}

// rows are the rows of a table of which keep says so, with some columns.
func rows(table *sqlite.Table, columns ...string) (all []row, err error) {
	for r, err := range table.Rows() {
		if err != nil {
			return nil, err
		}
		if len(all) == maxRows {
			return nil, fmt.Errorf("%w: a table has more than %d rows", ErrFormat, maxRows)
		}
		one := row{id: r.ID, fields: make([]string, len(columns))}
		for i, column := range columns {
			if one.fields[i], err = r.Text(column); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// column reads a column of a row, which is JSON.
func column(table *sqlite.Table, id int64, name string, into any) error {
	r, _, err := table.Row(id)
	if err != nil {
		return err
	}
	text, err := r.Text(name)
	if err != nil || text == "" {
		return err
	}
	return decode(json.RawMessage(text), into)
}

// openCodeInfo says what a session or a message of OpenCode is.
type openCodeInfo struct {
	ID     string `json:"id"`
	Parent string `json:"parentID"` // of a session
	Title  string `json:"title"`
	Role   string `json:"role"` // of a message
	Time   struct {
		Created json.RawMessage `json:"created"`
	} `json:"time"`
}

// openCodePart is a part of a message.
type openCodePart struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"` // said by the program in the person's name
	Ignored   bool   `json:"ignored"`
	File      string `json:"filename"`
	CallID    string `json:"callID"`
	Tool      string `json:"tool"`
	State     struct {
		Status string          `json:"status"`
		Input  json.RawMessage `json:"input"`
		Output string          `json:"output"`
		Error  string          `json:"error"`
	} `json:"state"`
}

// readOpenCode reads the database of OpenCode, or sessions as its command export writes them.
func readOpenCode(f *file, out *output) error {
	in := bufio.NewReader(f.from)
	if mark, _ := in.Peek(len(sqlite.Magic)); string(mark) == sqlite.Magic {
		return f.database(out.openCode)
	}
	f.from = in
	return f.values(func(value json.RawMessage) error {
		var l struct {
			Info     openCodeInfo `json:"info"`
			Messages []struct {
				Info  openCodeInfo   `json:"info"`
				Parts []openCodePart `json:"parts"`
			} `json:"messages"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		if l.Info.ID == "" || l.Messages == nil {
			return fmt.Errorf("%w: it has no info and messages, so it is no session of OpenCode", ErrFormat)
		}
		c := &conversation{id: l.Info.ID, title: l.Info.Title}
		for _, m := range l.Messages {
			if err := c.openCode(m.Info, m.Parts); err != nil {
				return err
			}
		}
		return out.session(c)
	})
}

// openCode gives out the sessions of a database, without those of helpers.
func (o *output) openCode(db *sqlite.DB) error {
	sessions, messages, parts := db.Table("session"), db.Table("message"), db.Table("part")
	if sessions == nil || messages == nil || parts == nil {
		return fmt.Errorf("%w: it has no tables session, message and part, so it is none of OpenCode", ErrFormat)
	}
	all, err := rows(sessions, "id", "parent_id", "title")
	if err != nil {
		return err
	}
	messagesOf, err := grouped(messages, "session_id", "time_created", "id")
	if err != nil {
		return err
	}
	partsOf, err := grouped(parts, "message_id", "id", "id")
	if err != nil {
		return err
	}
	for _, s := range all {
		c := &conversation{id: s.fields[0], title: s.fields[2]}
		if s.fields[1] != "" {
			o.counts.LeftOut++
			continue
		}
		for _, m := range messagesOf[c.id] {
			var info openCodeInfo
			if err := column(messages, m.id, "data", &info); err != nil {
				return err
			}
			info.Time.Created = json.RawMessage(m.fields[1])
			said := make([]openCodePart, len(partsOf[m.fields[2]]))
			for i, p := range partsOf[m.fields[2]] {
				if err := column(parts, p.id, "data", &said[i]); err != nil {
					return err
				}
			}
			if err := c.openCode(info, said); err != nil {
				return fmt.Errorf("message %q: %w", m.fields[2], err)
			}
		}
		if err := o.session(c); err != nil {
			return err
		}
	}
	return nil
}

// grouped are the rows of a table by a column, in the order of two others, which are the second
// and the third field.
func grouped(table *sqlite.Table, by, first, second string) (map[string][]row, error) {
	all, err := rows(table, by, first, second)
	groups := make(map[string][]row)
	for _, r := range all {
		groups[r.fields[0]] = append(groups[r.fields[0]], r)
	}
	for _, group := range groups {
		slices.SortFunc(group, func(a, b row) int {
			return cmp.Or(cmp.Compare(len(a.fields[1]), len(b.fields[1])), cmp.Compare(a.fields[1], b.fields[1]), cmp.Compare(a.fields[2], b.fields[2]))
		})
	}
	return groups, err
}

// openCode adds a message of OpenCode: texts and calls as messages of the model, each call with
// its result.
func (c *conversation) openCode(info openCodeInfo, parts []openCodePart) error {
	m, at := session.Message{Role: session.User}, when(info.Time.Created)
	switch info.Role {
	case "user":
	case "assistant":
		m.Role = session.Assistant
	default:
		return fmt.Errorf("%w: a message of role %q", ErrFormat, info.Role)
	}
	var texts []string
	for _, p := range parts {
		switch {
		case p.Synthetic || p.Ignored || p.Type == "reasoning" || p.Type == "subtask":
			c.leftOut++
		case p.Type == "text" && p.Text != "":
			texts = append(texts, p.Text)
		case p.Type == "file":
			c.leftOut++
			texts = append(texts, fmt.Sprintf(noted, cut(cmp.Or(p.File, p.Type), session.MaxNameBytes)))
		case p.Type == "tool" && m.Role == session.Assistant:
			asked := session.Message{
				Role: m.Role, Content: strings.Join(texts, "\n\n"), ToolCalls: []session.ToolCall{{ID: p.CallID, Name: p.Tool, Arguments: plain(p.State.Input)}},
			}
			result := session.Message{Role: session.Tool, ToolCallID: p.CallID, Content: cmp.Or(p.State.Output, p.State.Error)}
			if err := cmp.Or(c.add(asked, at), c.add(result, at)); err != nil {
				return err
			}
			texts = nil
		}
	}
	m.Content = strings.Join(texts, "\n\n")
	return c.add(m, at)
}

// bubble is a message of Cursor: a text, or a call of a tool with its result.
type bubble struct {
	ID   string          `json:"bubbleId"`
	Type int             `json:"type"`
	Text string          `json:"text"`
	Time json.RawMessage `json:"createdAt"`
	Tool *struct {
		ID     string          `json:"toolCallId"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"rawArgs"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	} `json:"toolFormerData"`
}

// UnmarshalJSON reads a message, or the id of one.
func (b *bubble) UnmarshalJSON(given []byte) error {
	type plain bubble
	if json.Unmarshal(given, &b.ID) == nil {
		return nil
	}
	return json.Unmarshal(given, (*plain)(b))
}

// readCursor reads a database of Cursor. That of all work has a row for each conversation, which
// names its messages, and one for each of these; those of folders have none.
func readCursor(f *file, out *output) error {
	return f.database(func(db *sqlite.DB) error {
		table := db.Table("cursorDiskKV")
		if table == nil && db.Table("ItemTable") == nil {
			return fmt.Errorf("%w: it has no table cursorDiskKV, so it is none of Cursor", ErrFormat)
		}
		if table == nil {
			return nil
		}
		all, err := rows(table, "key")
		if err != nil {
			return err
		}
		bubbles := make(map[string]int64)
		composers := make(map[string]int64)
		for _, r := range all {
			if id, ok := strings.CutPrefix(r.fields[0], "bubbleId:"); ok {
				bubbles[id] = r.id
			} else if id, ok := strings.CutPrefix(r.fields[0], "composerData:"); ok {
				composers[id] = r.id
			}
		}
		for _, id := range slices.Sorted(maps.Keys(composers)) {
			if err := out.cursor(table, id, composers[id], bubbles); err != nil {
				return fmt.Errorf("conversation %q: %w", id, err)
			}
		}
		return nil
	})
}

// cursor gives out a conversation.
func (o *output) cursor(table *sqlite.Table, id string, at int64, bubbles map[string]int64) error {
	var l struct {
		Name    string          `json:"name"`
		Time    json.RawMessage `json:"createdAt"`
		Headers []bubble        `json:"fullConversationHeadersOnly"`
		Old     []bubble        `json:"conversation"`
	}
	if err := column(table, at, "value", &l); err != nil {
		return err
	}
	c := &conversation{id: id, title: l.Name}
	for _, b := range append(l.Old, l.Headers...) {
		if place, ok := bubbles[id+":"+b.ID]; ok {
			if err := column(table, place, "value", &b); err != nil {
				return err
			}
		}
		if err := c.bubble(b, first(when(b.Time), when(l.Time))); err != nil {
			return err
		}
	}
	return o.session(c)
}

// bubble adds a message of Cursor.
func (c *conversation) bubble(b bubble, at *time.Time) error {
	switch {
	case b.Type == 1:
		return c.add(session.Message{Role: session.User, Content: b.Text}, at)
	case b.Type != 2:
		return fmt.Errorf("%w: a message of type %d", ErrFormat, b.Type)
	case b.Tool == nil || b.Tool.Name == "":
		if b.Text == "" { // a thought, or a mark
			c.leftOut++
		}
		return c.add(session.Message{Role: session.Assistant, Content: b.Text}, at)
	}
	asked := session.Message{
		Role: session.Assistant, Content: b.Text, ToolCalls: []session.ToolCall{{ID: b.Tool.ID, Name: b.Tool.Name, Arguments: cmp.Or(plain(b.Tool.Args), plain(b.Tool.Params))}},
	}
	return cmp.Or(c.add(asked, at), c.add(session.Message{Role: session.Tool, ToolCallID: b.Tool.ID, Content: plain(b.Tool.Result)}, at))
}
