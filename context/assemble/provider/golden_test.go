package provider_test

import (
	"bytes"
	"encoding/json"
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is encoded")

// Each file of testdata holds prose, messages of one JSON value a line, and what they
// are in each format. A line {"mark": what} sets a cache mark behind the message
// before.
//
// E06, M05
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(data), "-- openai_chat --\n")
			_, lines, _ := strings.Cut(head, "-- messages --\n")
			messages, marks := mustMessages(t, lines)
			got := head
			for f := provider.OpenAIChat; f <= provider.Gemini; f++ {
				body := mustEncode(t, f, messages, marks)
				got += "-- " + f.String() + " --\n" + indented(t, body.JSON)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), got); diff != "" {
				t.Errorf("differs (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}

func mustEncode(tb testing.TB, f provider.Format, messages []session.Message, marks []provider.Mark) provider.Body {
	tb.Helper()
	body, err := provider.Encode(f, provider.Content{Messages: messages, Tools: mustTools(tb, f), Marks: marks})
	if err != nil {
		tb.Fatalf("%s: %v", f, err)
	}
	if err := strict(f, body.JSON); err != nil {
		tb.Errorf("%s: %v\n%s", f, err, indented(tb, body.JSON))
	}
	return body
}

func mustTools(tb testing.TB, f provider.Format) []byte {
	tb.Helper()
	name, taken := f.ToolName("fs:read_file")
	if !taken {
		tb.Fatalf("%s takes no fs:read_file", f)
	}
	return provider.Tools(f, []provider.Tool{{Name: name, Description: "Reads a file.", Schema: map[string]any{
		"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []any{"path"},
	}}})
}

func indented(tb testing.TB, text []byte) string {
	tb.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", " "); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	return out.String() + "\n"
}

func mustMessages(tb testing.TB, lines string) (messages []session.Message, marks []provider.Mark) {
	tb.Helper()
	roles := map[string]session.Role{
		"system": session.System, "developer": session.Developer, "user": session.User, "assistant": session.Assistant, "tool": session.Tool,
	}
	for line := range strings.Lines(lines) {
		var e struct {
			Role, Content, Name, Answers, Mark string
			Blocks, Extra                      json.RawMessage
			Calls                              []session.ToolCall
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			tb.Fatalf("%v in %s", err, line)
		}
		if e.Mark != "" {
			at := provider.BlockPlace{Message: len(messages) - 1, Block: 1000}
			marks = append(marks, provider.Mark{What: e.Mark, BlockPlace: at})
			continue
		}
		messages = append(messages, session.Message{
			Role: roles[e.Role], Content: e.Content, Name: e.Name, BlocksJSON: e.Blocks, ToolCalls: e.Calls, ToolCallID: e.Answers, ExtraJSON: e.Extra,
		})
	}
	return messages, marks
}
