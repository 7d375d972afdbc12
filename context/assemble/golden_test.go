package assemble_test

import (
	"bytes"
	"encoding/json"
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is assembled")

// Each file of testdata holds prose, a request, a log of one JSON value a line,
// and what becomes of them: the neutral messages, the OpenAI object, the parts.
//
// G06: messages have a role and text, tool results and content blocks besides.
// Tools go apart from the messages.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := MustArchive(t, file)
			got := archive{prose: a.prose, parts: [][2]string{
				{"request", a.part("request")}, {"log", a.part("log")},
			}}
			got.parts = append(got.parts, render(t, a)...)
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(a.String(), got.String()); diff != "" {
				t.Errorf("differs (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}

// render assembles a case in both formats.
func render(tb testing.TB, a archive) [][2]string {
	tb.Helper()
	var r struct {
		Goal, System, Model string
		Tools               []assemble.Tool
	}
	if err := json.Unmarshal([]byte(a.part("request")), &r); err != nil {
		tb.Fatal(err)
	}
	request := assemble.Request{Goal: r.Goal, System: r.System, Model: r.Model, Tools: r.Tools}
	log := MustHistory(tb, a.part("log"))
	neutral := MustAssemble(tb, log, request)
	request.Format = assemble.OpenAIChat
	openAI := MustAssemble(tb, log, request)
	if err := checkRules(MustChat(tb, openAI).Messages); err != nil {
		tb.Error(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, openAI.OpenAIChatJSON, "", " "); err != nil {
		tb.Fatal(err)
	}
	return [][2]string{
		{"neutral", neutralText(neutral)},
		{"openai", indented.String() + "\n"},
		{"parts", fmt.Sprintf("neutral %v = %d\nopenai %v = %d\n", neutral.Parts, neutral.Tokens.Tokens, openAI.Parts, openAI.Tokens.Tokens)},
	}
}

func neutralText(p assemble.Prompt) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tools %s\n", p.ToolsJSON)
	for _, m := range p.Messages {
		fmt.Fprintf(&b, "[%s]", m.Role)
		if m.Name != "" {
			fmt.Fprintf(&b, " name=%s", m.Name)
		}
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, " answers=%s", m.ToolCallID)
		}
		b.WriteString("\n")
		for _, block := range []string{m.Content, string(m.BlocksJSON)} {
			if block != "" {
				b.WriteString(block + "\n")
			}
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "call %s %s %s\n", c.ID, c.Name, c.Arguments)
		}
	}
	return b.String()
}

// MustHistory reads a log: a line is a message with a role, or a step with a
// tool.
func MustHistory(tb testing.TB, lines string) entries {
	tb.Helper()
	roles := map[string]session.Role{"system": session.System, "user": session.User, "assistant": session.Assistant, "tool": session.Tool}
	var h entries
	for line := range strings.Lines(lines) {
		var e struct {
			Role, Content, Name string
			Pinned, Observed    bool
			Blocks              json.RawMessage
			Calls               []session.ToolCall
			CallID              string

			Tool                                               string
			CalledAs, Observation, Ref, Path, Outcome, Thought string
			Error, Inline, Turn                                string
			Args, MinimalArgs, Metadata                        json.RawMessage
			Evidence                                           string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			tb.Fatalf("%v in %s", err, line)
		}
		if e.Role != "" {
			h.say(session.Message{
				Role: roles[e.Role], Content: e.Content, Name: e.Name, BlocksJSON: e.Blocks, ToolCalls: e.Calls, ToolCallID: e.CallID,
				Pinned: e.Pinned, Observation: e.Observed,
			})
			continue
		}
		outcomes := map[string]step.Outcome{"": step.Succeeded, "failed": step.Failed, "unknown": step.Unknown}
		h.do(step.Step{
			ToolName: e.Tool, CalledAs: e.CalledAs, Observation: e.Observation, OutcomeRef: e.Ref, OutcomePath: e.Path,
			Outcome: outcomes[e.Outcome], Thought: e.Thought, Error: e.Error, Inline: e.Inline, TurnID: e.Turn, CallID: e.CallID,
			Args: e.Args, MinimalArgs: e.MinimalArgs, Metadata: e.Metadata, Pinned: e.Pinned, Evidence: e.Evidence,
		})
	}
	return h
}

// archive is a txtar file: prose, then parts under lines "-- name --".
type archive struct {
	prose string
	parts [][2]string // name, text
}

func MustArchive(tb testing.TB, file string) archive {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var a archive
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- ")
		switch {
		case ok && strings.HasSuffix(line, " --\n"):
			a.parts = append(a.parts, [2]string{name, ""})
		case len(a.parts) == 0:
			a.prose += line
		default:
			a.parts[len(a.parts)-1][1] += line
		}
	}
	return a
}

func (a archive) part(name string) string {
	for _, p := range a.parts {
		if p[0] == name {
			return p[1]
		}
	}
	return ""
}

func (a archive) String() string {
	out := a.prose
	for _, p := range a.parts {
		out += "-- " + p[0] + " --\n" + p[1]
	}
	return out
}
