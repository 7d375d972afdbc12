package assemble_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// unlimited is a budget that no test reaches.
const unlimited = 1 << 30

var scope = kv.AgentScope("default", "agent-1")

// entries is a log in memory that keeps no folds.
type entries []session.Entry

func (entries) Config(context.Context, kv.Scope, string) (session.Config, error) {
	return session.Config{}, nil
}

func (entries) Folds(context.Context, kv.Scope, string) (session.Folds, error) {
	return session.Folds{}, nil
}

func (h entries) Range(ctx context.Context, s kv.Scope, id string, first, last uint64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range h.Unfolded(ctx, s, id, nil) {
			if first <= e.Position && e.Position <= last && !yield(e, err) {
				return
			}
		}
	}
}

// plainEnd are settings under which a prompt ends with its goal alone.
func plainEnd() *settings.Prompt {
	return &settings.Prompt{Variation: settings.Variation{Disabled: new(true)}, Sources: settings.Sources{Exclude: []string{settings.Errors}}}
}

func (h entries) Before(ctx context.Context, s kv.Scope, id string, _ uint64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		var all []session.Entry
		for e, err := range h.Unfolded(ctx, s, id, nil) {
			if err != nil {
				yield(session.Entry{}, err)
				return
			}
			all = append(all, e)
		}
		for _, e := range slices.Backward(all) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (entries) Working(context.Context, kv.Scope, string) (working.Working, error) {
	return working.Working{}, nil
}

func (entries) AppendFolds(context.Context, kv.Scope, string, uint64, []history.Fold) error {
	return nil
}

func (entries) MoveMark(context.Context, kv.Scope, string, uint64, string, history.Mark) error {
	return nil
}

func (entries) Anchor(context.Context, kv.Scope, string) (tokens.Anchor, error) {
	return tokens.Anchor{}, nil
}

func (entries) Step(context.Context, kv.Scope, uint64) (session.Entry, error) {
	return session.Entry{}, session.ErrStepNotFound
}

func (entries) Sprint(context.Context, kv.Scope, string) (int, error) { return 0, nil }

func (entries) Renew(context.Context, kv.Scope, string, uint64, *session.Renewal, string) (int, error) {
	return 0, nil
}

func (entries) SaveAnchor(context.Context, kv.Scope, string, tokens.Anchor) error { return nil }

func (h entries) Unfolded(context.Context, kv.Scope, string, []history.Fold) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for i, e := range h {
			e.Position = uint64(i + 1)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// say appends a message to the history.
func (h *entries) say(m session.Message) { *h = append(*h, session.Entry{Message: &m}) }

// do appends a step and numbers it.
func (h *entries) do(s step.Step) {
	for _, e := range *h {
		if e.Step != nil {
			s.Number = e.Step.Number
		}
	}
	s.Number++
	*h = append(*h, session.Entry{Step: &s})
}

func text(role session.Role, content string) session.Message {
	return session.Message{Role: role, Content: content}
}

// asks is an assistant message with calls.
func asks(content string, ids ...string) session.Message {
	m := text(session.Assistant, content)
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, session.ToolCall{ID: id, Name: "fs_stat", Arguments: `{"path":"` + id + `"}`})
	}
	return m
}

func answers(id, content string) session.Message {
	return session.Message{Role: session.Tool, ToolCallID: id, Content: content}
}

func MustCounter(tb testing.TB) *tokens.Counter {
	tb.Helper()
	c, err := tokens.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func MustAssemble(tb testing.TB, log assemble.Log, r assemble.Request) assemble.Prompt {
	tb.Helper()
	return MustAssembleWith(tb, MustCounter(tb), log, r)
}

// MustAssembleWith uses a counter that remembers, without a budget unless the
// request has one, and folds nothing unless it asks for that.
func MustAssembleWith(tb testing.TB, c *tokens.Counter, log assemble.Log, r assemble.Request) assemble.Prompt {
	tb.Helper()
	r.Scope = scope
	if r.MaxTokens == 0 {
		r.MaxTokens = unlimited
	}
	if r.History == (session.Config{}) {
		r.History.Policy = session.PolicyAppendOnly
	}
	p, err := assemble.New(log, c, nil).Assemble(tb.Context(), r)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// chat is the shape of OpenAIChatJSON.
type chat struct {
	Tools    []json.RawMessage `json:"tools"`
	Messages []chatMessage     `json:"messages"`
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

func MustChat(tb testing.TB, p assemble.Prompt) chat {
	tb.Helper()
	var c chat
	decoder := json.NewDecoder(bytes.NewReader(p.OpenAIChatJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		tb.Fatalf("%v in %s", err, p.OpenAIChatJSON)
	}
	return c
}

// checkRules returns an error unless OpenAI would take the messages: each call
// has one result, right behind it and in order, and nothing else is a result.
func checkRules(messages []chatMessage) error {
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		switch {
		case m.Role == "tool":
			return fmt.Errorf("message %d is a result without a call", i)
		case m.Role != "assistant" && len(m.ToolCalls) > 0:
			return fmt.Errorf("message %d of %s has calls", i, m.Role)
		case string(m.Content) == "null" && len(m.ToolCalls) == 0:
			return fmt.Errorf("message %d is empty", i)
		}
		seen := make(map[string]bool)
		for _, c := range m.ToolCalls {
			if c.ID == "" || seen[c.ID] || c.Type != "function" || !nameForm.MatchString(c.Function.Name) {
				return fmt.Errorf("message %d has a bad call %+v", i, c)
			}
			seen[c.ID] = true
			i++
			if i == len(messages) || messages[i].Role != "tool" || messages[i].ToolCallID != c.ID {
				return fmt.Errorf("call %s has no result behind it", c.ID)
			}
		}
	}
	return nil
}

// nameForm is what OpenAI takes as the name of a tool.
var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// beforeGoal is the part of a chat prompt that must only ever grow.
func beforeGoal(tb testing.TB, p assemble.Prompt) []byte {
	tb.Helper()
	prefix, ok := bytes.CutSuffix(p.OpenAIChatJSON, []byte("]}"))
	if !ok {
		tb.Fatalf("unexpected end of %s", p.OpenAIChatJSON)
	}
	return prefix
}

// rounds is how often a test does the same: less where the race detector makes
// everything take ten times as long.
func rounds(all, few int) int {
	info, ok := debug.ReadBuildInfo()
	if testing.Short() || ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return few
	}
	return all
}

var errLog = errors.New("log is broken")

// brokenLog fails behind its first entry.
type brokenLog struct{ entries }

func (l brokenLog) Unfolded(ctx context.Context, s kv.Scope, id string, folds []history.Fold) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range l.entries.Unfolded(ctx, s, id, folds) {
			if !yield(e, err) {
				return
			}
		}
		yield(session.Entry{}, errLog)
	}
}
