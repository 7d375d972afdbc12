package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// importForeign runs the command on a server, and returns what it said.
func (p *process) importForeign(tb testing.TB, format, agent string, args ...string) (string, error) {
	tb.Helper()
	var output, console bytes.Buffer
	err := run(tb.Context(), append([]string{"import", format, "--addr", p.Address, "--agent", agent}, args...), noEnvironment, &output, &console)
	return output.String(), err
}

// stored is all that an agent has, as its exports.
func (p *process) stored(tb testing.TB, agent string) string {
	tb.Helper()
	records, err := p.records(tb, "export", "--agent", agent)
	must(tb, err)
	var sessions, console bytes.Buffer
	must(tb, run(tb.Context(), []string{"sessions", "export", "--addr", p.Address, "--agent", agent}, noEnvironment, &sessions, &console))
	return records + sessions.String()
}

// TestImport: files of other programs are imported as their dry run says, what they hold is
// found, a second import adds nothing, and one of a damaged file changes nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for _, row := range []struct {
		format, file, said string
		query, found       string
	}{
		{"claude-code", "claude-code.jsonl", "imported 1 sessions;", "build of the pear app", "Why does the build of the pear app fail?"},
		{"codex", "codex.jsonl", "imported 1 sessions;", "orchards", "Count the orchards."},
		{"chatgpt", "chatgpt.json", "imported 1 sessions;", "Winter Nelis", "The Winter Nelis does."},
		{"claude", "claude.json", "imported 1 sessions;", "graft a quince", "When do I graft a quince?"},
		{"messages", "messages.jsonl", "imported 3 sessions;", "sloe sour", "No, a sloe is sour."},
		{"mem0", "mem0.json", "imported 2 records;", "likes pears", "Ann likes pears"},
		{"mcp-memory", "mcp-memory.jsonl", "imported 5 records;", "Welsh", "Ann: speaks Welsh"},
		{"letta", "letta.af", "imported 1 sessions;", "when is the russet ripe", "The russet is ripe in October."},
		{"opencode", "opencode.db", "imported 1 sessions;", "how high is the hedge", "How high is the hedge?\n\n[hedge.png]"},
		{"cursor", "state.vscdb", "imported 2 sessions;", "Otto hens", "Otto feeds the hens."},
		{"rules", "work", "imported 4 records;", "what to cut in winter", "Cut what crosses, in winter."},
		{"markdown", "notes", "imported 2 records;", "quince cooked", "# Quinces\n\nA quince is hard until it is cooked."},
	} {
		t.Run(row.format, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("formats", "testdata", row.file)
			flags := []string{path}
			if strings.Contains(row.said, "sessions") {
				flags = append(flags, "--remember")
			}
			dry, err := p.importForeign(t, row.format, row.format, append(flags, "--dry-run")...)
			must(t, err)
			if got := p.stored(t, row.format); got != "" {
				t.Fatalf("the dry run stored %s", got)
			}
			said, err := p.importForeign(t, row.format, row.format, flags...)
			must(t, err)
			bare, _, _ := strings.Cut(said, "; undo it with: ")
			if strings.ReplaceAll(dry, "dry run: ", "") != strings.TrimSpace(bare)+"\n" || !strings.Contains(said, row.said) {
				t.Errorf("the dry run said\n%sthe run\n%s", dry, said)
			}
			found, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: row.format, Query: row.query, Limit: 1})
			must(t, err)
			if hits := found.GetHits(); len(hits) != 1 || hits[0].GetRecord().GetText() != row.found {
				t.Errorf("%q found %v", row.query, hits)
			}
			if listed, err := look(t, p, "", "sessions", "list", "--agent", row.format); err != nil || strings.Contains(listed, "1970") {
				t.Errorf("sessions whose file says no times: %v\n%s", err, listed)
			}
			before := p.stored(t, row.format)
			again, err := p.importForeign(t, row.format, row.format, flags...)
			must(t, err)
			if strings.Contains(row.said, "sessions") && !strings.Contains(again, "imported 0 sessions;") || !strings.Contains(again, "imported 0 records;") {
				t.Errorf("the second import said %s", again)
			}
			if p.stored(t, row.format) != before {
				t.Error("the second import changed what is stored")
			}

			if row.format == "markdown" || row.format == "rules" { // whose files are any text
				return
			}
			whole := mustRead(t, path)
			cut := filepath.Join(t.TempDir(), "cut")
			must(t, os.WriteFile(cut, whole[:len(whole)-5], 0o600))
			_, err = p.importForeign(t, row.format, "cut-"+row.format, flags[0], cut)
			at := "cut, line "
			if strings.HasSuffix(row.file, "db") {
				at = "cut: formats: can't be read: page "
			}
			if err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "nothing was imported") {
				t.Errorf("a file that is cut off: %v", err)
			}
			if got := p.stored(t, "cut-"+row.format); got != "" {
				t.Errorf("an import that was refused stored %s", got)
			}
		})
	}
}

// TestImportGoesOn: a conversation that has grown is continued, and one that goes on here stays.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "s.jsonl")
	text := mustRead(t, filepath.Join("formats", "testdata", "claude-code.jsonl"))
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, row := range []struct {
		lines int
		said  string
	}{{3, "imported 1 sessions;"}, {len(lines), "imported 1 sessions;"}, {len(lines), "imported 0 sessions; 1 were there, 0"}, {3, "imported 0 sessions; 0 were there, 1"}} {
		must(t, os.WriteFile(path, bytes.Join(lines[:row.lines], nil), 0o600))
		if said, err := p.importForeign(t, "claude-code", "a", path); err != nil || !strings.Contains(said, row.said) {
			t.Errorf("%d lines: %q, %v; want %q", row.lines, said, err, row.said)
		}
	}
	_, err := p.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: "cc-1", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "And stems?"},
	}})
	must(t, err)
	must(t, os.WriteFile(path, text, 0o600))
	if said, err := p.importForeign(t, "claude-code", "a", path); err != nil || !strings.Contains(said, "imported 0 sessions; 0 were there, 1 were there as something else") {
		t.Errorf("%q, %v", said, err)
	}
	got, err := p.context().ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: "a", SessionId: "cc-1"})
	must(t, err)
	if n := len(got.GetEntries()); n != 5 || got.GetEntries()[1].GetMessage().GetToolCalls()[0].GetName() != "Bash" || got.GetEntries()[0].GetCreateTime().AsTime().Month() != 2 {
		t.Errorf("%d entries: %v", n, got)
	}
	for _, args := range [][]string{{path, "--user", "ann"}, {}, {filepath.Join(t.TempDir(), "none")}} {
		if _, err := p.importForeign(t, "claude-code", "a", args...); err == nil {
			t.Errorf("%q is imported", args)
		}
	}
}

// TestExportForms: a memory that was exported as notes or as a graph, and imported from them,
// has the same texts, times, tags and metadata, or the same graph.
func TestExportForms(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for _, format := range []struct{ name, file string }{{"markdown", "notes"}, {"mem0", "mem0.json"}, {"mcp-memory", "mcp-memory.jsonl"}, {"rules", "work"}} {
		_, err := p.importForeign(t, format.name, "a", filepath.Join("formats", "testdata", format.file))
		must(t, err)
	}
	odd := filepath.Join(t.TempDir(), "odd.jsonl")
	must(t, os.WriteFile(odd, []byte(`{"text": "\r\n---\nline\r\n\n", "tags": ["a, b", "\"c\"", "#d"], "kind": "../../up", "key": "odd: key"}
{"text": "NUL \u0000 and \u2028 and 3", "importance": 0.25, "pinned": true, "metadata": {"n": 1.50, "deep": {"a": [1, null]}}}
`), 0o600))
	_, err := p.records(t, "import", "--agent", "a", odd)
	must(t, err)

	notes := filepath.Join(t.TempDir(), "notes")
	said, err := p.records(t, "export", "--agent", "a", "--as", "markdown", "--out", notes)
	must(t, err)
	if !strings.HasPrefix(said, "exported 15 records to ") {
		t.Error(said)
	}
	_, err = p.importForeign(t, "markdown", "b", notes)
	must(t, err)
	if a, b := p.held(t, "a"), p.held(t, "b"); !maps.Equal(a, b) || len(a) != 15 {
		t.Errorf("a has\n%q\nb\n%q", a, b)
	}
	if said, err := p.importForeign(t, "markdown", "b", notes); err != nil || !strings.Contains(said, "imported 0 records; 15 were there, 0 ") {
		t.Errorf("%s, %v", said, err)
	}
	if _, err := p.records(t, "export", "--agent", "a", "--as", "markdown", "--out", notes); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a folder that is there: %v", err)
	}
	for _, args := range [][]string{{"--as", "markdown"}, {"--as", "word"}} {
		if _, err := p.records(t, append([]string{"export", "--agent", "a"}, args...)...); err == nil || !strings.Contains(err.Error(), "--as") {
			t.Errorf("%q: %v", args, err)
		}
	}

	given := filepath.Join("formats", "testdata", "mcp-memory.jsonl")
	_, err = p.importForeign(t, "mcp-memory", "c", given)
	must(t, err)
	graph := filepath.Join(t.TempDir(), "memory.json")
	_, err = p.records(t, "export", "--agent", "c", "--as", "mcp-memory", "--out", graph)
	must(t, err)
	if got, want := mustRead(t, graph), mustRead(t, given); !bytes.Equal(got, want) {
		t.Errorf("the graph is\n%s\nnot\n%s", got, want)
	}
	whole, err := p.records(t, "export", "--agent", "a", "--as", "mcp-memory") // with records of other kinds
	must(t, err)
	must(t, os.WriteFile(graph, []byte(whole), 0o600))
	said, err = p.importForeign(t, "mcp-memory", "d", graph)
	if err != nil || !strings.Contains(whole, "Ann's dog is called Quince") || strings.Contains(said, "imported 0 ") {
		t.Errorf("%s, %v, %s", said, err, whole)
	}
}

// held are the records of an agent by their ids: what an export in any form holds of them.
func (p *process) held(tb testing.TB, agent string) map[string]string {
	tb.Helper()
	lines, err := p.records(tb, "export", "--agent", agent)
	must(tb, err)
	all := map[string]string{}
	for line := range strings.Lines(lines) {
		l, err := record.ParseLine([]byte(strings.TrimSpace(line)))
		must(tb, err)
		r := l.Record
		all[r.ID] = fmt.Sprintf("%q %q %s %s %q %s %s %v %t", r.Text, r.Tags, r.CreateTime, r.EventTime, r.Kind, r.Metadata, r.Key, r.Importance, r.Pinned)
	}
	return all
}
