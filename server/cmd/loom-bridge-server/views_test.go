package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// look runs a command against a server that runs, on a terminal of so many columns; empty is no
// terminal. On a machine with much else to do the server may answer late: then it asks again.
func look(tb testing.TB, p *process, columns string, args ...string) (stdout string, err error) {
	tb.Helper()
	for {
		var output, console bytes.Buffer
		env := environment{vars: map[string]string{"COLUMNS": columns}}
		err = run(tb.Context(), append(args, "--addr", p.Address), env, &output, &console)
		if err == nil || !strings.Contains(err.Error(), "no server answers") {
			return output.String(), err
		}
	}
}

// hostileText steers a terminal, turns text around, hides in it and is longer than a line.
const hostileText = "pears \x1b[2J\x1b]0;title\x07\u202eevil\u2066\r\nsecond\u200b\u00ad\x7f line " + "and more of it and more of it and more of it and more of it"

// mustFillViews makes an agent with a hostile memory, tools calls and a session of prompts one
// of which took a text out. It returns the id of the record.
func mustFillViews(t *testing.T, p *process, dir string) (id string) {
	t.Helper()
	saved, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a1", Text: hostileText, Key: "fruit", Tags: []string{"x"}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "f.txt"), []byte("hello \x1b[31mred\n"), 0o600))
	_, err = p.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a1", SessionId: "monday", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "What is by the gate? " + hostileText},
	}})
	must(t, err)
	_, err = p.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "talker", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Remember nothing."},
	}})
	must(t, err)
	for n := range 30 {
		output := strings.Repeat("some line of a file\n", 150)
		if n == 2 {
			output += "the quince stands by the gate\n" + output
		}
		text, err := json.Marshal(output)
		must(t, err)
		_, err = p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: "a1", SessionId: "monday", ToolName: "bash", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(text)},
		})
		must(t, err)
		_, err = p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: "a1", SessionId: "monday", System: "You are careful.", WithoutTools: true, MaxTokens: 9000, Format: loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT,
		})
		must(t, err)
	}
	return saved.GetId()
}

// Every view shows what is there, in the width that there is, as JSON that parses, and with
// nothing in it that steers a terminal.
func TestViews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	id := mustFillViews(t, p, dir)
	for _, test := range []struct {
		args  string
		want  []string
		field string // of the JSON
	}{
		{"memory list --agent a1", []string{"ID", id, "pears <U+001B>[2J"}, "records"},
		{"memory list --agent a1 --filter key=\"none\"", []string{"there are no records"}, ""},
		{"memory search --agent a1 pears", []string{"SCORE", id}, "hits"},
		{"memory show --agent a1 " + id, []string{"fruit", "<U+202E>evil"}, "text"},
		{"memory show --agent a1 --key fruit", []string{id}, "text"},
		{"sessions list --agent a1", []string{"monday", "open"}, "sessions"},
		{"sessions show --agent a1 monday --limit 100", []string{"step_030", "message_001", "bash", "gate? pears <U+001B>"}, "entries"},
		{"prompt list --agent a1 --session monday", []string{"NUMBER", "history"}, "prompts"},
		{"prompt show --agent a1 --session monday", []string{"SECTION", "system", "── system\nYou are careful.", "policy ledger"}, "receipt"},
		{"prompt show --agent a1 --session monday 2", []string{"What is by the gate?"}, "receipt"},
		{"prompt show --agent a1 --session monday --step step_004", []string{"quince"}, "receipt"},
		{"prompt show --agent a1 --session monday 5 --diff", []string{"differs from", "in history", "+ "}, "difference"},
		{"prompt blame --agent a1 --session monday quince", []string{"came from  step_003: result of bash", "stood in   prompts 3 to", "folded with batch", "fs:read_file reads it back", "prompt 30  does not show it"}, "losses"},
		{"prompt blame --agent a1 --session monday quince --prompt 4", []string{"prompt 4  shows it"}, "losses"},
		{"prompt blame --agent a1 --session monday careful", []string{"system", "prompt 30  shows it"}, "prompts"},
		{"prompt blame --agent a1 --session monday zebra", []string{"nothing that is kept", "nor did any prompt before"}, "prompts"},
		{"agents", []string{"AGENT", "a1", "talker"}, "scopes"},
		{"tools list --agent a1", []string{"fs:read_file", "the server"}, "tools"},
		{"tools call --agent a1 fs:read_file {\"path\":\"f.txt\"}", []string{`\u001b[31mred`}, "outputJson"},
		{"jobs --agent a1", []string{"nothing in the background"}, ""},
		{"top", []string{"up ", "store    well", "fs:read_file", "ARGUMENTS"}, "version"},
	} {
		args := strings.Split(test.args, " ")
		for _, columns := range []string{"", "60"} {
			got, err := look(t, p, columns, args...)
			if err != nil {
				t.Errorf("%s: %v", test.args, err)
			}
			for _, want := range test.want {
				if columns == "" && !strings.Contains(got, want) {
					t.Errorf("%s: no %q in\n%s", test.args, want, got)
				}
			}
			table := strings.Contains(test.args, "list") || strings.HasPrefix(test.args, "top") || strings.HasPrefix(test.args, "agents")
			for line := range strings.Lines(got) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); table && columns == "60" && n > 60 {
					t.Errorf("%s: %d columns of 60: %s", test.args, n, line)
				}
			}
			if strings.ContainsAny(got, "\x1b\x00\x07\r\u202e\u2066\u200b\u00ad\x7f") {
				t.Errorf("%s steers the terminal: %q", test.args, got)
			}
		}
		if test.field == "" {
			continue
		}
		got, err := look(t, p, "", append(args, "--json")...)
		var parsed map[string]any
		for line := range strings.Lines(got) {
			err = errors.Join(err, json.Unmarshal([]byte(line), &parsed))
		}
		if err != nil || parsed[test.field] == nil || strings.ContainsAny(got, "\x1b\u202e\u200b") {
			t.Errorf("%s --json: %v\n%.500s", test.args, err, got)
		}
	}
}

// What is saved is found, and gone once it is forgotten.
func TestViewsChangeMemory(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	if got, err := look(t, p, "", "memory", "save", "--agent", "a1", "--key", "hours", "--kind", "note", "--tag", "desk", "It closes at five"); err != nil || !strings.HasPrefix(got, "saved ") {
		t.Errorf("save: %v %s", err, got)
	}
	if _, err := look(t, p, "", "memory", "save", "--agent", "a1", "--key", "hours", "It closes at six"); err == nil || !strings.Contains(err.Error(), "hours") {
		t.Errorf("a key that is taken: %v", err)
	}
	if got, err := look(t, p, "", "memory", "save", "--agent", "a1", "--key", "hours", "--replace", "It closes at six"); err != nil {
		t.Errorf("replace: %v %s", err, got)
	}
	if got, err := look(t, p, "", "memory", "show", "--agent", "a1", "--key", "hours"); err != nil || !strings.Contains(got, "at six") {
		t.Errorf("show: %v %s", err, got)
	}
	if got, err := look(t, p, "", "memory", "forget", "--agent", "a1", "--key", "hours"); err != nil || !strings.HasPrefix(got, "deleted ") {
		t.Errorf("forget: %v %s", err, got)
	}
	if got, err := look(t, p, "", "memory", "list", "--agent", "a1"); err != nil || got != "there are no records\n" {
		t.Errorf("list: %v %s", err, got)
	}
}

// A command lists as many rows as it says it does by default.
func TestViewsListTheUsualNumber(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for n := range 60 {
		_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a1", Text: fmt.Sprintf("pears of tree %d", n)})
		must(t, err)
	}
	for args, want := range map[string]int{"memory search --agent a1 pears": 10, "memory list --agent a1": 50, "memory search --agent a1 pears --limit 12": 12} {
		got, err := look(t, p, "", strings.Split(args, " ")...)
		if rows := strings.Count(got, "pears of tree"); err != nil || rows != want {
			t.Errorf("%s lists %d rows, not %d: %v", args, rows, want, err)
		}
	}
}

// What is not there, or asked for wrongly, is an error that says what to do.
func TestViewsOfNothing(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for args, want := range map[string]string{
		"memory list":                                "--agent says whose it is",
		"memory show --agent a1":                     "name one record",
		"memory show --agent a1 x --key y":           "name one record",
		"memory show --agent a1 nope":                `no record for id "nope"`,
		"memory forget --agent a1 nope":              "nope",
		"memory list --agent a1 --limit 99999":       "is more than 10000",
		"memory list --agent a1 --limit 0":           "is less than 1",
		"memory search --agent a1 x --limit 101":     "is more than 100",
		"memory list --agent a1 --filter nonsense":   "filter at byte 0",
		"sessions show --agent a1 nope":              `has said and done nothing in session "nope"; sessions list`,
		"prompt show --agent a1 --session nope":      `has sent no prompt in session "nope"; sessions list`,
		"prompt blame --agent a1 word":               `has sent no prompt in session "default"`,
		"tools call --agent a1 fs:nope":              "fs:nope",
		"tools call --agent a1 fs:read_file {":       "JSON",
		`tools call --agent a1 fs:stat {"path":"x"}`: "not found",
		"events tail --agent a1 a..b":                "empty word",
		"top --every 1ms":                            "is less than 200ms",
		"memory search --agent a1":                   "memory search QUERY",
		"prompt":                                     "",
	} {
		got, err := look(t, p, "", strings.Split(args, " ")...)
		if want == "" {
			if err != nil || !strings.Contains(got, "blame") {
				t.Errorf("%s: %v %s", args, err, got)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\n%s", args, err, got)
		}
	}
	nowhere := "unix:" + filepath.Join(t.TempDir(), "none.sock")
	if err := run(t.Context(), []string{"memory", "list", "--agent", "a1", "--addr", nowhere}, noEnvironment, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "no server answers at "+nowhere) {
		t.Errorf("without a server: %v", err)
	}
}

// toldLines are what a command has written by now.
type toldLines struct {
	mu   sync.Mutex
	text string
	has  map[string]chan struct{}
}

func (l *toldLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	for want, seen := range l.has {
		if strings.Contains(l.text, want) {
			close(seen)
			delete(l.has, want)
		}
	}
	return len(p), nil
}

// Events are shown from before and as they come, until the command is interrupted.
func TestEventsTail(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	emit := func(payload string) {
		_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a1", Topic: "market.btc", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload}})
		must(t, err)
	}
	emit(`"before \u001b[2J"`)
	first, second := make(chan struct{}), make(chan struct{})
	out := &toldLines{has: map[string]chan struct{}{"before": first, "behind": second}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"events", "tail", "--agent", "a1", "market.*", "--since", "1h", "--addr", p.Address}, noEnvironment, out, io.Discard)
	}()
	<-first
	emit(`{"n":"behind"}`)
	<-second
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.text, `market.btc  1  a1  "before \u001b[2J"`) || !strings.Contains(out.text, `market.btc  2  a1  {"n":"behind"}`) {
		t.Errorf("got %q", out.text)
	}
}

// A program in the background is listed while it runs and when it has ended.
func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	w := &shellWorld{t, MustRun(t, t.TempDir()), ""}
	if s := w.status().GetSandbox(); s.GetTier() == "" {
		lacks(t, "any tier", s.GetProblems())
	}
	c := caller{w, "a", "s1"}
	begun := c.job("system:shell", serving("1"))
	listed := func(more ...string) string {
		got, err := look(t, w.process, "", append([]string{"jobs", "--agent", "a", "--session", "s1"}, more...)...)
		must(t, err)
		return got
	}
	if got := listed(); !strings.Contains(got, begun.ID+"  running") || !strings.Contains(got, "python3") {
		t.Errorf("while it runs:\n%s", got)
	}
	c.job("job:stop", object{"job_id": begun.ID})
	if got := listed(); !strings.Contains(got, begun.ID+"  stopped") {
		t.Errorf("when it was stopped:\n%s", got)
	}
	if got := listed("--json"); !strings.Contains(got, `"state":"stopped"`) {
		t.Errorf("as JSON: %s", got)
	}
}
