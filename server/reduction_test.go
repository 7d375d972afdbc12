package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
)

// hashed is the SHA-256 of a text in hexadecimal digits.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// object is an object as JSON.
func object(tb testing.TB, members map[string]any) string {
	tb.Helper()
	text, err := json.Marshal(members)
	must(tb, err)
	return string(text)
}

// entriesOf are n names of files.
func entriesOf(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = fmt.Sprintf("file_%d.txt", i)
	}
	return list
}

// reducedCase is a call with what has to be left of it.
type reducedCase struct {
	tool, args, output   string // JSON
	observation, minimal string
	figures              map[string]any
	// file is where the result lies, a pattern with the step's number for its #; empty:
	// it stays in the step.
	file string
	// content is the file, or a part of it if the file is JSON.
	content string
}

// What becomes of each tool's result: one line, the least arguments, figures, and,
// from its threshold on, a file with the content.
//
// A01, A07, A09, A12, A14, A15, A17, A18, D02, D04, N10
func TestReducedSteps(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	letters := func(n int) string { return strings.Repeat("x", n) }
	read := func(content string) string { return object(t, map[string]any{"content": content}) }
	shell := func(stdout, stderr string) string {
		return object(t, map[string]any{"stdout": stdout, "stderr": stderr, "exit_code": 0})
	}
	rows := func(bytes int) string { return `{"n":1,"rows":"` + letters(bytes-len(`{"n":1,"rows":""}`)) + `"}` }
	page := strings.Repeat("a sentence of a page. ", 2328) + "end" // 51,219 bytes
	hit := object(t, map[string]any{"title": letters(600), "url": "https://a.example/x"})
	for _, tt := range []reducedCase{
		{"fs:read_file", `{"path":"src/a.txt","offset":0}`, read(letters(1023)), "Read src/a.txt (1023 bytes, text)", `{"path":"src/a.txt"}`, map[string]any{"size": 1023.0}, "", ""},
		{"fs:read_file", `{"path":"a.txt"}`, read(letters(1024)), "Read a.txt (1024 bytes, text)", `{"path":"a.txt"}`, map[string]any{"type": "text", "sha256": hashed(letters(1024))}, "", ""},
		{"fs:read_file", `{"path":"a.txt"}`, read(letters(1025)), "Read a.txt (1025 bytes, text)", `{"path":"a.txt"}`, map[string]any{"size": 1025.0, "sha256": hashed(letters(1025))}, "read_#.txt", letters(1025)},
		{"fs:read_file", `{"path":"A.JSON"}`, read("hello"), "Read A.JSON (5 bytes, JSON)", `{"path":"A.JSON"}`, map[string]any{"type": "JSON"}, "", ""},
		{"fs:read_file", `{"path":"a.bin"}`, read("a\x00b"), "Read a.bin (3 bytes, binary)", `{"path":"a.bin"}`, map[string]any{"type": "binary", "sha256": hashed("a\x00b")}, "*", "a\x00b"},
		{"fs:write_file", `{"path":"out.md","content":"` + letters(2000) + `"}`, `{"bytes_written":2000}`, "Wrote out.md (2000 bytes)", `{"path":"out.md"}`, map[string]any{"bytes": 2000.0, "sha256": hashed(letters(2000))}, "", ""},
		{"fs:list_dir", `{"path":"src"}`, object(t, map[string]any{"entries": append(entriesOf(9), "docs/")}), "Listed src: 10 items (9 files, 1 dirs)", `{"path":"src"}`, map[string]any{"count": 10.0, "files": 9.0, "dirs": 1.0}, "", ""},
		{"fs:list_dir", `{"path":"src"}`, object(t, map[string]any{"entries": entriesOf(11)}), "Listed src: 11 items (11 files, 0 dirs)", `{"path":"src"}`, map[string]any{"count": 11.0}, "list_#.json", "file_10.txt"},
		{"web:search", `{"query":"go generics","count":9}`, `{"results":[` + hit + `,` + hit + `]}`, "Found 2 results for 'go generics'", `{"query":"go generics"}`, map[string]any{"count": 2.0}, "search_#.json", "https://a.example/x"},
		{"browser:navigate", `{"url":"https://a.example/x?y=1"}`, object(t, map[string]any{"status": 200, "text": page, "links": []any{"https://b.example"}}), "Visited a.example/x?y=1 (status=200, 50KB text)", `{"url":"https://a.example/x?y=1"}`, map[string]any{"status": 200.0}, "page_#.json", page},
		{"system:shell", `{"command":"git","args":["log","--oneline"]}`, shell(strings.Repeat("a commit\n", 20), ""), "git log: exit 0, 20 lines output", `{"command":"git log --oneline"}`, map[string]any{"exit_code": 0.0, "lines": 20.0}, "", ""},
		{"system:shell", `{"command":"ls -la src"}`, shell(letters(499)+"\n", ""), "ls: exit 0, 1 lines output", `{"command":"ls -la src"}`, map[string]any{"exit_code": 0.0}, "", ""},
		{"system:shell", `{"command":"make all"}`, shell(strings.Repeat("é", 400)+"\n", letters(100)), "make all: exit 0, 2 lines output", `{"command":"make all"}`, map[string]any{"stdout_bytes": 801.0, "stderr_bytes": 100.0}, "shell_#.log", strings.Repeat("é", 400) + "\n" + letters(100)},
		{"weather:get", `{"location":"Oslo","units":"metric"}`, `{"sky":"clear","wind":3}`, `weather:get → {"sky": "clear", "wind": 3}`, `{"location":"Oslo"}`, nil, "", ""},
		{"db:query", `{"sql":"` + letters(101) + `","n":12345678901234567890,"list":[1,2],"more":{"k":1}}`, quoted(t, "one\n  two "+letters(200)), "db:query → one two " + letters(192) + "...", `{"list":"[2 items]","more":"{1 keys}","n":12345678901234567890,"sql":"` + letters(100) + `..."}`, nil, "", ""},
		{"db:query", `{}`, rows(999), "db:query → " + `{"n": 1, "rows": "` + letters(182) + "...", `{}`, nil, "", ""},
		{"db:query", `{}`, rows(1000), "db:query → " + `{"n": 1, "rows": "` + letters(182) + "...", `{}`, nil, "tool_#.json", rows(1000)},
		{"db:query", `{}`, `{}`, "db:query completed", `{}`, nil, "", ""},
	} {
		c.checkReduced(tt)
	}
}

// checkReduced records a call, and reads its step and what lies outside of it.
func (c caller) checkReduced(tt reducedCase) {
	c.tb.Helper()
	step := c.step(c.report(tt.tool, tt.args, tt.output).GetStep().GetId())
	if step.GetObservation() != tt.observation || step.GetMinimalArgsJson() != tt.minimal || !step.GetSuccess() {
		c.tb.Errorf("%s %.60s: %q, %s, success %v", tt.tool, tt.args, step.GetObservation(), step.GetMinimalArgsJson(), step.GetSuccess())
	}
	for name, want := range tt.figures {
		if got := step.GetMetadata().AsMap()[name]; got != want {
			c.tb.Errorf("%s: %s is %v, want %v", tt.observation, name, got, want)
		}
	}
	if tt.file == "" && step.GetOutcomePath() == "" || tt.file == "*" {
		return
	}
	want := "workspace/outputs/" + strings.Replace(tt.file, "#", strings.TrimPrefix(step.GetId(), "step_"), 1)
	if fits, err := path.Match(want, step.GetOutcomePath()); !fits || err != nil {
		c.tb.Errorf("%s: the result lies at %q, want %q", tt.observation, step.GetOutcomePath(), want)
		return
	}
	content := c.read(step.GetOutcomePath())
	if isJSON := strings.HasSuffix(tt.file, ".json"); isJSON && !strings.Contains(content, tt.content) || !isJSON && content != tt.content {
		c.tb.Errorf("%s: %s holds %.60q", tt.observation, step.GetOutcomePath(), content)
	}
}
