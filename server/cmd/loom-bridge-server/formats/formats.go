// Package formats reads what other programs keep of conversations and memories: the transcripts
// of coding agents, exports of chats, logs of model calls, memories and notes. What it finds are
// the lines that the commands `sessions import` and `records import` take.
//
// A file is read in one go and never kept whole, except that of a single conversation. Equal
// files give equal lines, and a file that has grown gives the same lines and more, so that a
// second import finds what is there. Instructions of the other program (the roles system and
// developer), what its model thought, and bytes of images are left out, and counted.
//
// Files are hostile: a [FileError] names the line that can't be read, and everything that grows
// with a file has a limit.
package formats

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/transfer"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// MaxValueBytes bounds one value of a file: a line, or a conversation of an export.
	MaxValueBytes = 256 << 20
	// MaxItems bounds the sessions and the records of one import.
	MaxItems = 1_000_000
	// maxHeldBytes bounds the conversations of one file that are held until its end.
	maxHeldBytes = 256 << 20
	// maxMessages bounds the messages of one conversation.
	maxMessages = 200_000
)

// ErrFormat: a file is not of its format, or is damaged.
var ErrFormat = errors.New("formats: can't be read")

// FileError says where a file is at fault.
type FileError struct {
	Path string
	// Line counts from 1. What stands there may begin on it and end later. In a database it is 0,
	// and Err names the page, the conversation or the message.
	Line int
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s, line %d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns the error itself.
func (e *FileError) Unwrap() error { return e.Err }

// Format is a kind of file.
type Format struct {
	// Name is what the command calls it, About what it is, in one line.
	Name, About string
	// Sessions says that its files hold conversations, Memories that they hold memories.
	Sessions, Memories bool
	// names are the patterns of the files of a folder, and hidden says that they lie in hidden
	// folders, too. A file that is given itself may have any name.
	names  string
	hidden bool
	read   func(f *file, out *output) error
}

// All are the formats, in the order in which help shows them.
var All = []Format{
	{Name: "claude-code", About: "sessions of Claude Code: ~/.claude/projects, or files of it", Sessions: true, names: "*.jsonl", read: readClaudeCode},
	{Name: "codex", About: "rollouts of Codex: ~/.codex/sessions, or files of it", Sessions: true, names: "*.jsonl", read: readCodex},
	{Name: "cursor", About: "conversations of Cursor: its folder User, or state.vscdb of globalStorage there", Sessions: true, names: "state.vscdb", read: readCursor},
	{
		Name: "opencode", About: "sessions of OpenCode: ~/.local/share/opencode, opencode.db, or what `opencode export` writes",
		Sessions: true, names: "opencode*.db", read: readOpenCode,
	},
	{Name: "chatgpt", About: "conversations.json of ChatGPT's data export", Sessions: true, names: "conversations*.json", read: readChatGPT},
	{Name: "claude", About: "conversations.json of Claude's data export", Sessions: true, names: "conversations*.json", read: readClaude},
	{Name: "letta", About: "agent files (.af) of Letta: messages and memory blocks; or a list of passages", Sessions: true, Memories: true, names: "*.af", read: readLetta},
	{
		Name: "messages", About: "calls or conversations with a list `messages`, of OpenAI's or Anthropic's form, as JSON or JSON Lines",
		Sessions: true, names: "*.json *.jsonl", read: readMessages,
	},
	{Name: "mem0", About: "memories as mem0's get_all or export gives them", Memories: true, names: "*.json", read: readMem0},
	{Name: graphSource, About: "memory.json of MCP's memory server: a graph of entities, as JSON Lines", Memories: true, names: "memory*.json memory*.jsonl", read: readGraph},
	{Name: "markdown", About: "notes with or without front matter: a folder such as Obsidian's, or files", Memories: true, names: "*.md", read: readNote},
	{
		Name: "rules", About: "AGENTS.md, CLAUDE.md and rules of Cursor as notes, SKILL.md as skills: a folder of work, or files",
		Memories: true, names: "AGENTS.md CLAUDE.md SKILL.md *.mdc", hidden: true, read: readRules,
	},
}

// Find returns the format of a name.
func Find(name string) (Format, error) {
	names := make([]string, len(All))
	for i, f := range All {
		if names[i] = f.Name; f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("there is no format %q; there are %s", name, strings.Join(names, ", "))
}

// Counts are what was found.
type Counts struct {
	Sessions, Messages, Records int
	// LeftOut are parts that are no conversation: instructions, thoughts, images, branches of
	// helpers; memories of another person than is wanted, and deleted ones. Cut are texts that were cut to the length that a message or a record may have.
	LeftOut, Cut int
}

// What says what to read of files.
type What int

const (
	// Sessions are conversations, each with its lines.
	Sessions What = iota
	// Memories are records.
	Memories
	// Records are memories, and what was said in conversations.
	Records
)

// Read reads files and calls do with the lines of each session or record, in order. With a user,
// memories that name another person are left out. Errors of do
// end it. Errors of a file are a *FileError; those of a path that can't be opened are as the
// system gives them.
func (f Format) Read(paths []string, what What, user string, do func(lines []string) error) (Counts, error) {
	out := &output{what: what, user: user, do: do, seen: make(map[string]bool), notes: make(map[string][sha256.Size]byte), source: f.Name}
	for _, path := range paths {
		files, err := f.filesOf(path)
		if err != nil {
			return out.counts, err
		}
		for _, one := range files {
			if err := one.read(f, out); err != nil {
				return out.counts, err
			}
		}
	}
	return out.counts, nil
}

// output takes what files hold.
type output struct {
	what   What
	user   string // whose memories are wanted; empty: everybody's
	source string
	do     func(lines []string) error
	seen   map[string]bool              // ids of sessions and records
	notes  map[string][sha256.Size]byte // what the texts of notes are, by their ids
	counts Counts
}

// new reports whether an id has not come before in this import.
func (o *output) new(id string) (bool, error) {
	if o.seen[id] {
		return false, nil
	}
	if len(o.seen) >= MaxItems {
		return false, fmt.Errorf("%w: there are more than %d sessions or records in one import", ErrFormat, MaxItems)
	}
	o.seen[id] = true
	return true, nil
}

// session gives out a conversation, and counts it. One without messages is nothing.
func (o *output) session(c *conversation) error {
	o.counts.LeftOut, o.counts.Cut = o.counts.LeftOut+c.leftOut, o.counts.Cut+c.cut
	if len(c.msgs) == 0 {
		return nil
	}
	id := short(c.id, session.MaxSessionIDBytes)
	first, err := o.new(id)
	if err != nil || !first {
		return err
	}
	o.counts.Sessions, o.counts.Messages = o.counts.Sessions+1, o.counts.Messages+len(c.msgs)
	switch o.what {
	case Sessions:
	case Memories:
		return nil
	case Records:
		for i, m := range c.msgs {
			if err := o.said(c, id, i, m); err != nil {
				return err
			}
		}
		return nil
	}
	lines, err := transfer.Lines(id, c.msgs, c.times)
	if err != nil {
		return err
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = string(line)
	}
	return o.give(texts)
}

// said gives out what a person or a model said as a record.
func (o *output) said(c *conversation, id string, place int, m session.Message) error {
	if m.Role != session.User && m.Role != session.Assistant || strings.TrimSpace(m.Content) == "" {
		return nil
	}
	r := line{
		ID: named(o.source, id, fmt.Sprint(place), m.Content), Text: m.Content, Kind: "message", SessionID: id, Author: m.Role.String(), Origin: "agent",
		Metadata: map[string]any{"source": o.source},
	}
	if m.Role == session.User {
		r.Origin = "user"
	}
	if c.title != "" {
		r.Metadata["title"] = c.title
	}
	if at := c.times[place]; !at.Equal(unknown) {
		r.EventTime, r.CreateTime = &at, &at
	}
	return o.record(r)
}

// line is a record as `records import` takes it; what is not said has its default there.
type line struct {
	ID         string         `json:"id"`
	Text       string         `json:"text"`
	Kind       string         `json:"kind,omitempty"`
	SessionID  string         `json:"session_id,omitempty"`
	Author     string         `json:"author,omitempty"`
	Origin     string         `json:"origin,omitempty"`
	EventTime  *time.Time     `json:"event_time,omitempty"`
	CreateTime *time.Time     `json:"create_time,omitempty"`
	ExpireTime *time.Time     `json:"expire_time,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Tags       []string       `json:"tags,omitempty"`
	Relations  []relation     `json:"relations,omitempty"`
}

type relation struct {
	Name string    `json:"name"`
	To   string    `json:"to"`
	Time time.Time `json:"time"`
}

// record gives out a record.
func (o *output) record(r line) error {
	if whole := r.Text; len(whole) > record.MaxTextBytes {
		r.Text = cut(whole, record.MaxTextBytes)
		o.counts.Cut++
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return o.line(text)
}

// line gives out a record as its line, which is checked as the server will.
func (o *output) line(text []byte) error {
	l, err := record.ParseLine(text)
	if err != nil {
		return err
	}
	if first, err := o.new(l.Record.ID); err != nil || !first {
		return err
	}
	o.counts.Records++
	if o.what == Sessions {
		return nil
	}
	return o.give([]string{string(text)})
}

func (o *output) give(lines []string) error {
	if err := o.do(lines); err != nil {
		return &takeError{err}
	}
	return nil
}

// named is the id of a record of a source that has the parts, always the same.
func named(source string, parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return source + "-" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// short is an id of at most so many bytes, and without zero bytes.
func short(id string, most int) string {
	if len(id) <= most && !strings.ContainsRune(id, 0) {
		return id
	}
	return named("id", id)
}

// cut is the beginning of a text, without half a character.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// when reads a time as files say it: a text, or seconds or milliseconds since 1970. Others, and years that no
// store takes, are nil.
func when(given json.RawMessage) *time.Time {
	var at time.Time
	var text string
	var seconds float64
	switch {
	case len(given) == 0:
		return nil
	case json.Unmarshal(given, &text) == nil:
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
			if parsed, err := time.Parse(layout, text); err == nil {
				at = parsed
				break
			}
		}
	case json.Unmarshal(given, &seconds) == nil && seconds > 0 && seconds < 1e14:
		if seconds >= 1e11 { // then they are milliseconds
			seconds /= 1e3
		}
		at = time.UnixMicro(int64(seconds * 1e6))
	}
	at = at.UTC().Truncate(time.Microsecond)
	if at.Year() <= 1 || at.Year() > 9999 {
		return nil
	}
	return &at
}

// first is the first of some times that is known.
func first(times ...*time.Time) *time.Time { return cmp.Or(times...) }
