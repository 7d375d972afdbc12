package assemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func TestOverflowNamesTheLargestPart(t *testing.T) {
	long := strings.Repeat("many words ", 200)
	for _, tt := range []struct {
		name    string
		history func(h *entries)
		request assemble.Request
		want    string
	}{
		{"system", nil, assemble.Request{System: long}, "system"},
		{"tools", nil, assemble.Request{Tools: []assemble.Tool{{Name: "t", Description: long}}}, "tools"},
		{"message", func(h *entries) { h.say(text(session.Assistant, long)) }, assemble.Request{System: "s"}, "message 2 (assistant)"},
		{"step", func(h *entries) { h.do(step.Step{ToolName: "fs:read_file", Inline: long, Pinned: true}) }, assemble.Request{}, "pinned"},
		{"arguments", func(h *entries) { h.do(step.Step{ToolName: "fs:x", Args: json.RawMessage(long)}) }, assemble.Request{}, "step_001 (fs:x)"},
		{"result of a call", func(h *entries) {
			h.say(asks("", "a", "b"))
			h.do(step.Step{ToolName: "fs:stat", CallID: "a"})
			h.do(step.Step{ToolName: "fs:stat", CallID: "b", Inline: long, Pinned: true})
		}, assemble.Request{}, "pinned"},
		{"largest of all", func(h *entries) {
			h.say(text(session.User, long))
			h.say(text(session.Assistant, long+long))
			h.say(text(session.User, long))
		}, assemble.Request{System: long, Goal: long}, "message 3 (assistant)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h entries
			h.say(text(session.User, "hello"))
			if tt.history != nil {
				tt.history(&h)
			}
			tt.request.Scope, tt.request.MaxTokens = scope, 100
			tt.request.History.Policy = session.PolicyAppendOnly
			_, err := assemble.New(h, MustCounter(t), nil).Assemble(t.Context(), tt.request)
			var overflow *assemble.OverflowError
			if !errors.As(err, &overflow) || overflow.Part != tt.want {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if overflow.PartTokens < 200 || overflow.PartTokens > overflow.TotalTokens || !strings.Contains(overflow.Detail, "history") {
				t.Errorf("got %+v", overflow)
			}
		})
	}
}

func TestDefaultBudget(t *testing.T) {
	var h entries
	h.say(text(session.System, strings.Repeat("word ", 130_000)))
	for _, test := range []struct {
		model  string
		output int
		want   int
	}{
		{"unheard-of", 0, assemble.DefaultMaxTokens},
		{"unheard-of", 192, assemble.DefaultMaxTokens - 192},
		{"gpt-4o", 0, 128_000 - 16_384},
		{"gpt-4o", 1000, 127_000},
	} {
		_, err := assemble.New(h, MustCounter(t), nil).Assemble(t.Context(), assemble.Request{Scope: scope, Model: test.model, Settings: &settings.Prompt{OutputTokens: test.output}})
		var overflow *assemble.OverflowError
		if !errors.As(err, &overflow) || overflow.MaxTokens != test.want {
			t.Errorf("%s, %d for the answer: got %v", test.model, test.output, err)
		}
	}
}

// endless is a log without an end.
type endless struct{ entries }

func (endless) Unfolded(context.Context, kv.Scope, string, []history.Fold) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		m := text(session.User, "0123456789")
		for yield(session.Entry{Message: &m}, nil) {
		}
	}
}

// A budget of tokens that nothing exceeds must not collect everything: reading
// ends where the bytes do.
func TestMaxBytesEndsTheReading(t *testing.T) {
	r := assemble.Request{Scope: scope, MaxTokens: unlimited, MaxBytes: 1000}
	for _, format := range []assemble.Format{assemble.Neutral, assemble.OpenAIChat} {
		r.Format = format
		if _, err := assemble.New(endless{}, MustCounter(t), nil).Assemble(t.Context(), r); !errors.Is(err, assemble.ErrTooLarge) {
			t.Errorf("format %d: got %v", format, err)
		}
	}
	var h entries
	h.say(text(session.User, strings.Repeat("x", r.MaxBytes)))
	MustAssemble(t, h, r)
}

func TestBadRequests(t *testing.T) {
	tool := func(names ...string) (tools []assemble.Tool) {
		for _, name := range names {
			tools = append(tools, assemble.Tool{Name: name})
		}
		return tools
	}
	for _, tt := range []struct {
		name    string
		request assemble.Request
		field   string
	}{
		{"negative budget", assemble.Request{MaxTokens: -1}, "max_tokens"},
		{"long goal", assemble.Request{Goal: strings.Repeat("x", assemble.MaxGoalBytes+1)}, "goal"},
		{"goal that is no UTF-8", assemble.Request{Goal: "\xff"}, "goal"},
		{"long system", assemble.Request{System: strings.Repeat("x", assemble.MaxSystemBytes+1)}, "system"},
		{"system that is no UTF-8", assemble.Request{System: "\xff"}, "system"},
		{"unknown format", assemble.Request{Format: 9}, "format"},
		{"tool without name", assemble.Request{Tools: tool("")}, "tools[0].name"},
		{"tool twice", assemble.Request{Tools: tool("a", "a")}, "tools[1].name"},
		{"names alike for OpenAI", assemble.Request{Tools: tool("fs:stat", "fs_stat"), Format: assemble.OpenAIChat}, "tools[1].name"},
		{"name too long for OpenAI", assemble.Request{Tools: tool(strings.Repeat("x", 65)), Format: assemble.OpenAIChat}, "tools[0].name"},
		{"name that is no UTF-8", assemble.Request{Tools: tool("\xff")}, "tools[0].name"},
		{"schema that is no object", assemble.Request{Tools: []assemble.Tool{{Name: "a", Schema: json.RawMessage("[]")}}}, "tools[0].parameters_schema_json"},
		{"schema that is no JSON", assemble.Request{Tools: []assemble.Tool{{Name: "a", Schema: json.RawMessage("{} {}")}}}, "tools[0].parameters_schema_json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.Scope = scope
			_, err := assemble.New(entries{}, MustCounter(t), nil).Assemble(t.Context(), tt.request)
			var bad *invalid.Error
			if !errors.Is(err, assemble.ErrInvalid) || !errors.As(err, &bad) || bad.Field != tt.field {
				t.Errorf("got %v, want an *invalid.Error of %s", err, tt.field)
			}
		})
	}
	MustAssemble(t, entries{}, assemble.Request{Tools: tool("fs:stat", "fs_stat", strings.Repeat("x", 65))})
}

func TestBrokenLog(t *testing.T) {
	var h entries
	h.say(text(session.User, "hello"))
	a := assemble.New(brokenLog{h}, MustCounter(t), nil)
	if _, err := a.Assemble(t.Context(), assemble.Request{Scope: scope}); !errors.Is(err, errLog) {
		t.Errorf("got %v, want the log's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := assemble.New(h, MustCounter(t), nil).Assemble(ctx, assemble.Request{Scope: scope}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// A result is cut at the limit and not before; what is left is head and tail,
// and between them how to get the rest.
//
// I19
func TestResultsAreCapped(t *testing.T) {
	counter := MustCounter(t)
	words := func(n int) string { return strings.TrimPrefix(strings.Repeat(" word", n), " ") }
	const limit = assemble.DefaultToolResultTokens
	for _, tt := range []struct {
		name    string
		size    int // tokens
		outcome step.Outcome
		path    string
		cut     bool
	}{
		{"below", limit - 1, step.Succeeded, "", false},
		{"at", limit, step.Succeeded, "", false},
		{"above", limit + 1, step.Succeeded, "", true},
		{"far above", 4 * limit, step.Succeeded, "", true},
		{"failure", 2 * limit, step.Failed, "", true},
		{"with a reference", 2 * limit, step.Succeeded, "workspace/outputs/tool_001.txt", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h entries
			s := step.Step{ToolName: "t", Inline: words(tt.size), Outcome: tt.outcome, OutcomePath: tt.path}
			h.do(s)
			p := MustAssembleWith(t, counter, h, assemble.Request{})
			got := p.Messages[1].Content
			if !tt.cut {
				if got != s.Inline {
					t.Errorf("changed to %.100q", got)
				}
				return
			}
			n, err := counter.Count("", got)
			if err != nil || n.Tokens > limit || n.Tokens < limit-20 {
				t.Errorf("has %d tokens, %v, limit %d", n.Tokens, err, limit)
			}
			checkCut(t, s, got, tt.path)
		})
	}
}

// checkCut checks the shares of head and tail and the line between them.
func checkCut(t *testing.T, s step.Step, got, path string) {
	t.Helper()
	head, rest, ok := strings.Cut(got, "\n[...")
	mark, tail, ok2 := strings.Cut(rest, "]\n")
	if !ok || !ok2 || !strings.HasPrefix(s.Inline, head) || !strings.HasSuffix(s.Inline, tail) {
		t.Fatalf("is not head, mark and tail: %.100q", got)
	}
	if path == "" {
		path = "step_001"
	}
	if want := fmt.Sprintf("%d chars omitted. Full data: %s", len(s.Inline)-len(head)-len(tail), path); mark != want {
		t.Errorf("mark %q, want %q", mark, want)
	}
	share := float64(len(head)) / float64(len(head)+len(tail))
	want := 2. / 3
	if !s.Success() {
		want = 1. / 3
	}
	if share < want-.01 || share > want+.01 {
		t.Errorf("the head's share is %.2f, want %.2f", share, want)
	}
}

// Whatever the text and the limit, a result keeps its limit.
func TestCapHoldsForAnyText(t *testing.T) {
	counter := MustCounter(t)
	w := newWriter(t)
	for _, limit := range []int{1, 10, 30, 100, 500} {
		for range 20 {
			var h entries
			body := ""
			for range w.IntN(200) {
				body += w.words() + string(rune(w.IntN(0x3000)))
			}
			h.do(step.Step{ToolName: "t", Inline: body, Outcome: step.Outcome(w.IntN(2))})
			a := assemble.New(h, counter, &assemble.Options{ToolResultTokens: limit})
			p, err := a.Assemble(t.Context(), assemble.Request{Scope: scope, MaxTokens: unlimited})
			if err != nil {
				t.Fatal(err)
			}
			got := p.Messages[1].Content
			n, err := counter.Count("", got)
			// The line that leads to the full text always stays.
			if err != nil || n.Tokens > max(limit, 20) {
				t.Errorf("limit %d: has %d tokens, %v: %q", limit, n.Tokens, err, got)
			}
		}
	}
}

// The real log is a log.
func TestSessionLog(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	writer := kv.NewWriter(engine, nil)
	defer func() { _ = writer.Close() }()
	log := session.New(engine, writer, nil)
	if _, err := log.AppendMessages(t.Context(), scope, "s", []session.Message{text(session.User, "hello"), asks("", "a")}, ""); err != nil {
		t.Fatal(err)
	}
	stage := func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := log.StageStep(ctx, tx, scope, func(uint64) (step.Step, error) {
			return step.Step{SessionID: "s", ToolName: "fs:stat", CallID: "a", Observation: "seen"}, nil
		})
		return err
	}
	if err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{log.Ref(scope)}, Stage: stage}); err != nil {
		t.Fatal(err)
	}
	p := MustAssemble(t, log, assemble.Request{SessionID: "s", Goal: "g"})
	var roles []string
	for _, m := range p.Messages {
		roles = append(roles, m.Role.String())
	}
	if got := strings.Join(roles, " "); got != "user assistant tool user" {
		t.Errorf("got %s", got)
	}
	if other := MustAssemble(t, log, assemble.Request{SessionID: "other"}); len(other.Messages) != 0 {
		t.Errorf("another session shows %d messages", len(other.Messages))
	}
}
