package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// samples are the files of testdata, by format.
var samples = map[string]string{
	"claude-code": "claude-code.jsonl", "codex": "codex.jsonl", "chatgpt": "chatgpt.json", "claude": "claude.json", "messages": "messages.jsonl",
	"mem0": "mem0.json", "mcp-memory": "mcp-memory.jsonl", "markdown": "notes", "letta": "letta.af", "rules": "work",
	"opencode": "opencode.db", "cursor": "state.vscdb",
}

func sample(format string) string { return filepath.Join("testdata", samples[format]) }

// read reads paths and returns what they hold, a line for each thing, as a person reads it.
func read(t testing.TB, format string, what What, paths ...string) (said []string, _ Counts, _ error) {
	t.Helper()
	f, err := Find(format)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := f.Read(paths, what, "", func(lines []string) error {
		if what != Sessions {
			l, err := record.ParseLine([]byte(lines[0]))
			if err != nil || len(lines) != 1 {
				t.Errorf("%q, %v", lines, err)
			}
			said = append(said, strings.TrimSpace(strings.Join([]string{l.Record.Text, strings.Join(l.Record.Tags, " ")}, " ")))
			return nil
		}
		said = append(said, entries(t, lines)...)
		return nil
	})
	return said, counts, err
}

// entries are the messages of a session's lines.
func entries(t testing.TB, lines []string) (said []string) {
	t.Helper()
	for _, text := range lines {
		var l struct {
			Part    string `json:"part"`
			Session string `json:"session"`
			Stored  []byte `json:"stored"`
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Part != "entry" {
			continue
		}
		at, m := entry(t, l.Stored)
		line := fmt.Sprintf("%s %s: %s", at.UTC().Format("01-02 15:04:05"), m.Role, m.Content)
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf("→ %s %s %s", c.ID, c.Name, c.Arguments)
		}
		if m.Role == session.Tool {
			line += "← " + m.ToolCallID + m.Name
		}
		said = append(said, line)
	}
	return said
}

// entry reads a stored entry.
func entry(t testing.TB, stored []byte) (at time.Time, m *session.Message) {
	t.Helper()
	for f, err := range wire.Fields(stored) {
		if err != nil {
			t.Fatal(err)
		}
		switch f.Number {
		case 2:
			at = f.Time()
		case 3:
			if m, err = session.DecodeMessage(f.Bytes); err != nil {
				t.Fatal(err)
			}
		}
	}
	return at, m
}

// TestFormats: each file is read as what it says.
func TestFormats(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]struct {
		counts Counts
		said   []string
	}{
		"claude-code": {Counts{Sessions: 1, Messages: 4, LeftOut: 4}, []string{
			"02-03 10:00:00 user: Why does the build of the pear app fail?",
			`02-03 10:00:06 assistant: I run make.→ toolu_1 Bash {"command":"make"}`,
			"02-03 10:00:09 tool: make: no rule for stems\n[image]← toolu_1",
			"02-03 10:00:12 assistant: The rule for stems is missing.",
		}},
		"codex": {Counts{Sessions: 1, Messages: 6, LeftOut: 4}, []string{
			"03-01 08:00:02 user: Count the orchards.", `03-01 08:00:04 assistant: → call_1 shell {"command":["ls"]}`, "03-01 08:00:05 tool: north south← call_1",
			"03-01 08:00:06 assistant: → call_2 apply_patch *** Begin Patch", `03-01 08:00:07 tool: {"output":"done"}← call_2`, "03-01 08:00:08 assistant: There are two orchards.",
		}},
		"chatgpt": {Counts{Sessions: 1, Messages: 4, LeftOut: 3}, []string{
			"01-01 10:00:00 user: [image_asset_pointer]\n\nWhich pear keeps until March?", `01-01 10:00:20 assistant: →  browser search("winter pear")`,
			"01-01 10:00:30 tool: Three pages← browser", "01-01 10:00:40 assistant: The Winter Nelis does.",
		}},
		"claude": {Counts{Sessions: 1, Messages: 4, LeftOut: 1}, []string{
			"01-05 09:00:00 user: trees.txt\n\none quince tree", "01-05 09:00:00 user: When do I graft a quince?",
			"01-05 09:00:20 assistant: In March, before the buds open.", "01-05 09:01:00 user: Thank you, March it is.",
		}},
		"messages": {Counts{Sessions: 3, Messages: 12, LeftOut: 3}, []string{
			"04-01 12:00:00 user: Name a plum.", "04-01 12:00:00 assistant: Mirabelle.", "04-01 12:00:09 user: Where does it grow?", `04-01 12:00:09 assistant: → c1 look_up {"plum":"mirabelle"}`,
			"04-02 12:00:00 user: How tall is a medlar?", `04-02 12:00:00 assistant: → t9 measure {"tree":"medlar"}`, "04-02 12:00:00 tool: four metres← t9", "04-02 12:00:00 assistant: Four metres.",
			"01-01 00:00:00 user: Is a sloe sweet?", "01-01 00:00:00 assistant: No, a sloe is sour.", "01-01 00:00:00 user: And after frost?", "01-01 00:00:00 assistant: Then a little.",
		}},
		"mem0":       {Counts{Records: 2}, []string{"Ann likes pears food taste", "Ann's dog is called Quince"}},
		"mcp-memory": {Counts{Records: 5}, []string{"Ann (person)", "Ann: grows pears", "Ann: speaks Welsh", "Pear Works (company)", "Ann works at Pear Works"}},
		"letta": {Counts{Sessions: 1, Messages: 4, Records: 1, LeftOut: 4}, []string{
			"05-01 06:00:02 user: Is the russet ripe?", `05-01 06:00:03 assistant: I look at the calendar.→ call-1 calendar {"tree": "russet"}`,
			`05-01 06:00:04 tool: {"status": "OK", "message": "October"}← call-1`, "05-01 06:00:05 assistant: The russet is ripe in October.",
		}},
		"opencode": {Counts{Sessions: 1, Messages: 5, LeftOut: 4}, []string{
			"02-25 06:13:20 user: How high is the hedge?\n\n[hedge.png]", `02-25 06:13:25 assistant: I measure it.→ c1 bash {"command":"measure hedge"}`, "02-25 06:13:25 tool: two metres← c1",
			"02-25 06:13:25 assistant: The hedge is two metres high. " + strings.Repeat("It is of hornbeam. ", 40), "02-25 06:13:29 user: Cut it to one.",
		}},
		"cursor": {Counts{Sessions: 2, Messages: 5, LeftOut: 1}, []string{
			"03-05 10:00:00 user: Who feeds the hens?", `03-05 10:00:02 assistant: → t1 read_file {"path":"hens.md"}`, `03-05 10:00:02 tool: {"contents":"Otto feeds them"}← t1`,
			"03-05 10:00:00 assistant: Otto feeds the hens.", "03-05 10:00:00 user: An old form of hens?",
		}},
		"rules": {Counts{Records: 4}, []string{
			"Cut what crosses, in winter.", "# work/.cursor/rules/stems.mdc\n\nA stem has a number.", "# work/AGENTS.md\n\nRun `make fruit` before each commit.",
			"# work/south/CLAUDE.md\n\n# South field\n\nMow in May.",
		}},
		"markdown": {Counts{Records: 2}, []string{
			"# Storing pears\n\nPears keep in a cold room. See [[Quinces]]. fruit winter", "# Quinces\n\nA quince is hard until it is cooked.",
		}},
	} {
		f, err := Find(format)
		if err != nil {
			t.Fatal(err)
		}
		what := Records
		if f.Sessions {
			what = Sessions
		}
		said, counts, err := read(t, format, what, sample(format))
		if err != nil || counts != want.counts || !slices.Equal(said, want.said) {
			t.Errorf("%s: %v, %+v\n%q\nwant\n%q", format, err, counts, said, want.said)
		}
		if again, _, err := read(t, format, what, sample(format), sample(format)); err != nil || !slices.Equal(again, said) {
			t.Errorf("%s, given twice: %d, %v", format, len(again), err)
		}
		if f.Sessions { // what was said is also records
			said, counts, err := read(t, format, Records, sample(format))
			memories, _, _ := read(t, format, Memories, sample(format))
			if err != nil || len(said) == 0 || len(said) != counts.Records || len(memories) != want.counts.Records {
				t.Errorf("%s as records: %q, %+v, %v; memories %q", format, said, counts, err, memories)
			}
		}
	}
	if len(samples) != len(All) {
		t.Errorf("%d formats have %d samples", len(All), len(samples))
	}
}

// written writes a file of an import.
func written(t testing.TB, text string, place ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{t.TempDir()}, place...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSameNames: files that lie in folders of one name are all read, each text once.
func TestSameNames(t *testing.T) {
	t.Parallel()
	for format, name := range map[string]string{"markdown": "a.md", "rules": "SKILL.md"} {
		var paths []string
		for _, text := range []string{"One pear.", "Two quinces.", "One pear."} {
			paths = append(paths, written(t, text, "x", name))
		}
		said, counts, err := read(t, format, Records, paths...)
		if err != nil || counts.Records != 2 || !strings.HasSuffix(said[0], "One pear.") || !strings.HasSuffix(said[1], "Two quinces.") {
			t.Errorf("%s: %q, %+v, %v", format, said, counts, err)
		}
		if again, _, err := read(t, format, Records, paths[1]); err != nil || len(again) != 1 {
			t.Errorf("%s: %q, %v", format, again, err)
		}
	}
}

// TestForms: what programs write beside what people and models say, in the forms of public files.
func TestForms(t *testing.T) {
	t.Parallel()
	cc := func(more, content string) string {
		return `{"type":"user","sessionId":"s"` + more + `,"message":{"role":"user","content":"` + content + `"}}` + "\n"
	}
	said := "{\"type\":\"assistant\",\"sessionId\":\"s\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\\n\\n\"}]}}\n"
	blocks := `[{"type":"text","text":"I look."},{"type":"token_budget"},{"type":"tool_use","id":"t","name":"web","input":{}},{"type":"token_budget"},` +
		`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"March"}]},{"type":"flag"},{"type":"text","text":"In March."}]`
	for _, row := range []struct {
		format, text string
		counts       Counts
		want         []string
	}{
		{
			"claude-code", cc(`,"isCompactSummary":true`, "This session goes on") + cc("", "<command-name>/clear</command-name>") + cc("", "<local-command-stdout></local-command-stdout>") +
				said + cc("", "Prune the pear.") + cc("", "[Request interrupted by user]") +
				cc("", "Cut low.\\n<system-reminder>In\\nMay.</system-reminder>\\nAnd thin.") + cc("", "<system-reminder>x</system-reminder>"),
			Counts{Sessions: 1, Messages: 2, LeftOut: 6},
			[]string{"01-01 00:00:00 user: Prune the pear.", "01-01 00:00:00 user: Cut low.\nAnd thin."},
		},
		{
			"claude", `[{"uuid":"c","chat_messages":[{"sender":"assistant","content":` + blocks + `}]}]`,
			Counts{Sessions: 1, Messages: 3, LeftOut: 3},
			[]string{"01-01 00:00:00 assistant: I look.→ t web {}", "01-01 00:00:00 tool: March← t", "01-01 00:00:00 assistant: In March."},
		},
		{
			"mem0", `{"user":"ann","memories":[{"id":"1","content":"Ann likes pears","state":"active"},{"id":"2","content":"Ann likes figs","state":"deleted"}]}`,
			Counts{Records: 1, LeftOut: 1},
			[]string{"Ann likes pears"},
		},
	} {
		f, err := Find(row.format)
		if err != nil {
			t.Fatal(err)
		}
		what := Records
		if f.Sessions {
			what = Sessions
		}
		said, counts, err := read(t, row.format, what, written(t, row.text, "x", "file.json"))
		if err != nil || counts != row.counts || !slices.Equal(said, row.want) {
			t.Errorf("%s: %q, %+v, %v", row.format, said, counts, err)
		}
	}
}

// TestPassages: the archival memory of an agent of Letta, which its file leaves out.
func TestPassages(t *testing.T) {
	t.Parallel()
	text := `[{"id":"passage-1","text":"Ann flew to Oslo","tags":["travel"],"created_at":"2025-05-01T06:00:00+00:00"},{"text":"Ann is back","tags":null}]`
	said, counts, err := read(t, "letta", Records, written(t, text, "passages.json"))
	if want := (Counts{Records: 2}); err != nil || counts != want || !slices.Equal(said, []string{"Ann flew to Oslo travel", "Ann is back"}) {
		t.Errorf("%q, %+v, %v", said, counts, err)
	}
}

// TestGrown: a conversation that has grown gives the lines of its messages again, and more.
func TestGrown(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"claude-code", "codex", "messages"} {
		whole, err := os.ReadFile(sample(format))
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := read(t, format, Sessions, sample(format))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(whole, []byte("\n"))
		path := filepath.Join(t.TempDir(), samples[format])
		for n := range lines {
			if err := os.WriteFile(path, slices.Concat(lines[:n+1]...), 0o600); err != nil {
				t.Fatal(err)
			}
			said, _, err := read(t, format, Sessions, path)
			if err != nil || len(said) > len(all) || !slices.Equal(said, all[:len(said)]) {
				t.Errorf("%s, %d lines: %q, %v", format, n+1, said, err)
			}
		}
	}
}

// TestOpenCodeExport: a session is the same from an export as from the database.
func TestOpenCodeExport(t *testing.T) {
	t.Parallel()
	want, _, err := read(t, "opencode", Sessions, sample("opencode"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := read(t, "opencode", Sessions, filepath.Join("testdata", "opencode.json")); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCut: a file that is cut anywhere but between two lines is refused, with a line of it.
func TestCut(t *testing.T) {
	t.Parallel()
	for format, name := range samples {
		if format == "markdown" || format == "rules" {
			continue // any text is a note
		}
		whole, err := os.ReadFile(sample(format))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		for n := 0; n < len(bytes.TrimSpace(whole)); n += max(7, len(whole)/200) {
			if strings.HasSuffix(name, "l") && n > 0 && (whole[n] == '\n' || whole[n-1] == '\n') {
				continue
			}
			if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := read(t, format, Records, path)
			at, ok := errors.AsType[*FileError](err)
			least := 1
			if strings.HasSuffix(name, "db") {
				least = 0
			}
			if !ok || !errors.Is(err, ErrFormat) || at.Path != path || at.Line < least || at.Line > bytes.Count(whole[:n], []byte("\n"))+1 {
				t.Fatalf("%s cut at %d: %v", format, n, err)
			}
		}
	}
}

// TestRefused: what is no file of its format is refused, with the line.
func TestRefused(t *testing.T) {
	t.Parallel()
	const node = `{"parent":%q,"message":{"author":{"role":"user"},"content":{"parts":["x"]}},"children":[]}`
	for _, row := range []struct {
		format, text string
		line         int
		want         string
	}{
		{"claude-code", "{\"type\":\"summary\"}\n\n{\"a\":1}\n", 3, "no line of Claude Code"},
		{"claude-code", "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}", 1, "sessionId"},
		{"claude-code", "{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"role\":\"root\",\"content\":\"x\"}}", 1, `role "root"`},
		{"claude-code", "{\"type\":\"user\",\"sessionId\":7}", 1, "cannot unmarshal"},
		{"codex", "{\"type\":\"session_meta\",\"payload\":{\"id\":\"a\"}}\n{}", 2, "no line of Codex"},
		{"codex", "not JSON", 1, "invalid character"},
		{"chatgpt", "[\n{\"uuid\":\"x\"}]", 2, "no conversation of ChatGPT"},
		{"chatgpt", `[{"id":"x","current_node":"a","mapping":{"a":` + fmt.Sprintf(node, "b") + `,"b":` + fmt.Sprintf(node, "a") + `}}]`, 1, "circle"},
		{"chatgpt", `[{"id":"x","current_node":"a","mapping":{"a":` + fmt.Sprintf(node, "gone") + `}}]`, 1, `no "gone"`},
		{"claude", `[{"conversation_id":"x","mapping":{}}]`, 1, "no conversation of Claude"},
		{"claude", `[{"uuid":"x","chat_messages":[{"sender":"root"}]}]`, 1, `sender "root"`},
		{"claude", `[]` + "\n[]", 2, "more stands behind"},
		{"messages", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"prompt\":\"b\"}", 2, "no messages"},
		{"mem0", `[{"memory":"a"},` + "\n" + `{"note":"b"}]`, 2, "no memory"},
		{"mem0", `[{"memory":"a","metadata":{"x":"` + strings.Repeat("y", record.MaxMetadataBytes) + `"}}]`, 1, "metadata"},
		{"mcp-memory", "{\"type\":\"entity\",\"name\":\"a\",\"observations\":[]}\n{\"type\":\"relation\",\"from\":\"a\"}", 2, "no entity"},
		{"mem0", strings.Repeat("[", 20_000), 1, "depth"},
		{"letta", `{"agents":[]}`, 1, "no agents"},
		{"letta", `{"agents":[{"name":"a","messages":[{"role":"root","content":"x"}]}]}`, 1, `role "root"`},
		{"letta", `{"agents":[{"name":"a","messages":[7]}]}`, 1, "cannot unmarshal"},
		{"rules", "a\x00", 1, "UTF-8"},
		{"opencode", "{\"info\":{\"id\":\"x\"}}", 1, "no session of OpenCode"},
		{"opencode", `{"info":{"id":"x"},"messages":[{"info":{"role":"root"}}]}`, 1, `role "root"`},
		{"opencode", "SQLite format 3\x00", 0, "no file of SQLite"},
		{"cursor", "{}", 0, "no file of SQLite"},
		{"markdown", "---\ntitle: x\n", 1, "does not end"},
		{"markdown", "a\nb\xff\n", 2, "UTF-8"},
		{"markdown", "a\x00", 1, "UTF-8"},
	} {
		path := filepath.Join(t.TempDir(), "file.md")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := read(t, row.format, Sessions, path)
		at, ok := errors.AsType[*FileError](err)
		if !ok || at.Line != row.line || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %.60q: %v; want line %d, %q", row.format, row.text, err, row.line, row.want)
		}
	}
	if _, err := Find("word"); err == nil {
		t.Error("there is a format word")
	}
	for _, format := range []string{"mem0", "markdown"} {
		if _, _, err := read(t, format, Records, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// TestHostile: what no program writes is refused by every format but those that take any text,
// with its line, and half a pair of surrogates becomes a character.
func TestHostile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "SKILL.md")
	for _, f := range All {
		texts := map[string]string{
			"NUL": "\x00\x00", "half a character": "{\"a\": \"\xc3\"}\n\xff", "deep": strings.Repeat(`{"messages":[`, 20_000), "number": "7", "text": `"x"`, "list of lists": "[[[]]]",
			"wrong types": `{"type": [], "sessionId": {}, "uuid": 7, "mapping": "x", "messages": {"a": 1}, "agents": 7, "memory": [], "info": []}`,
		}
		for what, text := range texts {
			if f.names == "*.md" || f.hidden {
				if what != "NUL" && what != "half a character" {
					continue
				}
			}
			if err := os.WriteFile(path, []byte("\n\n"+text), 0o600); err != nil {
				t.Fatal(err)
			}
			said, _, err := read(t, f.Name, Records, path)
			at, ok := errors.AsType[*FileError](err)
			if !ok || len(said) > 0 || at.Line == 0 && f.Name != "cursor" || at.Line > 4 {
				t.Errorf("%s: %s: %q, %v", f.Name, what, said, err)
			}
		}
	}
	for format, text := range map[string]string{
		"messages": `{"messages":[{"role":"user","content":"a\ud800b"}]}`, "mem0": `{"memory":"a\udc00b"}`, "mcp-memory": `{"type":"entity","name":"a\ud800b"}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, _, err := read(t, format, Records, path); err != nil || len(said) != 1 || said[0] != "a\ufffdb" {
			t.Errorf("%s: %q, %v", format, said, err)
		}
	}
}

// TestLinks: a folder may be a link itself, and links in it lead nowhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"secret.md", "notes/a.md", "notes/.hidden/b.md", "notes/node_modules/c.md", "notes/._d.md"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"notes/link.md": "../secret.md", "notes/loop": ".", "notes/up": "..", "notes/gone.md": "none", "vault": "notes", "empty/x.md": "../secret.md"}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	for _, name := range []string{"notes", "vault"} {
		if said, _, err := read(t, "markdown", Memories, filepath.Join(dir, name)); err != nil || len(said) != 1 || said[0] != "# a\n\nnotes/a.md" {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
	if _, _, err := read(t, "markdown", Memories, filepath.Join(dir, "empty")); err == nil || !strings.Contains(err.Error(), "no files *.md") {
		t.Error(err)
	}
}

// TestLong: texts are cut to what a message and a record may have, and a long note is several
// records.
func TestLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := strings.Repeat("ü", session.MaxMessageBytes)
	calls := make([]string, session.MaxToolCalls+3)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"id":%q,"function":{"name":"","arguments":"{}"}}`, strings.Repeat("i", 200)+fmt.Sprint(i))
	}
	text := `{"session_id":"` + strings.Repeat("s", 300) + `","messages":[{"role":"user","content":"` + long + `"},{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]}]}`
	path := filepath.Join(dir, "long.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said, counts, err := read(t, "messages", Sessions, path)
	if err != nil || counts != (Counts{Sessions: 1, Messages: 3, Cut: 1}) || len(said) != 3 {
		t.Errorf("%d, %+v, %v", len(said), counts, err)
	}
	if _, counts, err = read(t, "messages", Records, path); err != nil || counts.Cut != 2 || counts.Records != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	note := filepath.Join(dir, "note.md")
	if err := os.WriteFile(note, []byte(strings.Repeat("A paragraph of the note.\n\n", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	said, _, err = read(t, "markdown", Records, note)
	if err != nil || len(said) != 4 || strings.Count(strings.Join(said, ""), "A paragraph of the note.") != 10_000 {
		t.Errorf("%d records, %v", len(said), err)
	}
}

// TestNoteOfRecord: a record's note has a name on any system, and is read as the record, also
// as an editor writes it anew.
func TestNoteOfRecord(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	dir := t.TempDir()
	for _, r := range []record.Record{
		{ID: "a", Kind: "note", Text: "# A: title\nx"},
		{ID: "b", Kind: "note", Text: "# A: title\nx"},
		{ID: "../c", Kind: "../..", Text: "/etc/passwd"},
		{ID: "d", Kind: "\\", Text: "\n---\nloom_id: z\n---\n"},
		{ID: "e", Kind: strings.Repeat("k", 60), Text: strings.Repeat("ü", 500)},
		{ID: "f", Kind: ".", Text: "a\r\nb\r\n"},
	} {
		r.Version, r.Tier, r.Origin, r.CreateTime = 1, record.LongTerm, record.OriginUser, time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		r.Tags = []string{"a, b", "c"}
		name, text, err := WriteNote(r)
		if err != nil || names[name] || !filepath.IsLocal(name) || strings.Count(name, "/") != 1 || strings.ContainsAny(name, "\\: ") || len(name) > 200 {
			t.Errorf("%q, %v", name, err)
		}
		names[name] = true
		path := filepath.Join(dir, "note.md")
		for _, written := range []string{string(text), strings.Replace(string(text), `["a, b","c"]`, "\n  - \"a, b\"\n  - c", 1)} {
			if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
				t.Fatal(err)
			}
			var got record.Line
			f, _ := Find("markdown")
			_, err := f.Read([]string{path}, Memories, "", func(lines []string) (err error) {
				got, err = record.ParseLine([]byte(lines[0]))
				return err
			})
			g := got.Record
			if err != nil || g.Text != r.Text || g.ID != r.ID || g.Kind != r.Kind || !g.CreateTime.Equal(r.CreateTime) || g.Origin != r.Origin || !slices.Equal(g.Tags, r.Tags) {
				t.Errorf("%v, %+v\nof %s", err, g, written)
			}
		}
	}
	for _, front := range []string{"importance: high", "metadata: {", "created: soon", "kind: note\ntags: [7]\nimportance: 7"} {
		path := filepath.Join(dir, "bad.md")
		if err := os.WriteFile(path, []byte("---\nloom_id: a\n"+front+"\n---\n\nx\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := read(t, "markdown", Memories, path)
		if at, ok := errors.AsType[*FileError](err); !ok || at.Line != 1 {
			t.Errorf("%q: %v", front, err)
		}
	}
}

// FuzzRead: no bytes end the program, and whatever is read gives lines that can be imported.
func FuzzRead(f *testing.F) {
	for i, format := range All {
		path := sample(format.Name)
		switch format.Name {
		case "markdown":
			path = filepath.Join(path, "pears.md")
		case "rules":
			path = filepath.Join(path, ".claude/skills/prune/SKILL.md")
		}
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, text)
	}
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		path := filepath.Join(t.TempDir(), "SKILL.md") // which names no other format
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		name := All[uint(i)%uint(len(All))].Name
		for _, what := range []What{Sessions, Records} {
			if _, _, err := read(t, name, what, path); err != nil {
				if _, ok := errors.AsType[*FileError](err); !ok {
					t.Error(err)
				}
			}
		}
	})
}

// With a person, memories of others are left out, and those that name nobody are hers.
func TestMemoriesOfOnePerson(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memories.json")
	if err := os.WriteFile(path, []byte(`[{"memory":"a","user_id":"ann"},{"memory":"b","user_id":"bob"},{"memory":"c"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Find("mem0")
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]Counts{"": {Records: 3}, "ann": {Records: 2, LeftOut: 1}, "eve": {Records: 1, LeftOut: 2}} {
		if got, err := f.Read([]string{path}, Memories, user, func([]string) error { return nil }); err != nil || got != want {
			t.Errorf("of %q: %+v, %v, want %+v", user, got, err, want)
		}
	}
}
