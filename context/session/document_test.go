package session_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
)

func TestMessageDocument(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for want, m := range map[string]*session.Message{
		`null`: nil,
		`{"content":"hi <b>","id":"message_017","position":17,"role":"user","time":"2026-01-02T03:04:05.000006Z"}`: {Role: session.User, Content: "hi <b>"},
		`{"content":"45","id":"message_017","name":"n","pinned":true,"position":17,"role":"tool","time":"2026-01-02T03:04:05.000006Z","tool_call_id":"c"}`: {
			Role: session.Tool, Content: "45", Name: "n", ToolCallID: "c", Pinned: true,
		},
		`{"blocks":[{"n":12345678901234567890,"type":"text"}],"id":"message_017","observation":true,"position":17,"role":"user","time":"2026-01-02T03:04:05.000006Z"}`: {
			Role: session.User, BlocksJSON: json.RawMessage(`[ {"type":"text", "n":12345678901234567890} ]`), Observation: true,
		},
		`{"id":"message_017","position":17,"role":"assistant","time":"2026-01-02T03:04:05.000006Z","tool_calls":[{"arguments":"{ no JSON","id":"c","name":"t"}]}`: {
			Role: session.Assistant, ToolCalls: []session.ToolCall{{ID: "c", Name: "t", Arguments: "{ no JSON"}},
		},
		`{"extra":{"reasoning_content":"hm"},"id":"message_017","position":17,"role":"developer","time":"2026-01-02T03:04:05.000006Z","tool_calls":[{"arguments":"","extra":{"index":0},"id":"c","name":"t"}]}`: {
			Role: session.Developer, ExtraJSON: json.RawMessage(`{ "reasoning_content":"hm"}`), ToolCalls: []session.ToolCall{{ID: "c", Name: "t", Extra: `{"index":0}`}},
		},
	} {
		if got := session.Document(session.Entry{Position: 17, Time: at, Message: m}); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestMessageText(t *testing.T) {
	calls := []session.ToolCall{{ID: "c1", Name: "a", Arguments: "{}"}, {ID: "c2", Name: "b"}}
	for want, m := range map[string]session.Message{
		"":                               {},
		" said \n":                       {Content: " said \n"},
		`[ 1 ]`:                          {BlocksJSON: json.RawMessage(`[ 1 ]`)},
		"[call c1] a\n{}\n[call c2] b\n": {ToolCalls: calls},
		"said\n[call c1] a\n{}":          {Content: "said", ToolCalls: calls[:1]},
		"said\n{\"a\":1}":                {Content: "said", ExtraJSON: json.RawMessage(`{"a":1}`)},
	} {
		if got := m.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEntry(t *testing.T) {
	l := newMemory(t)
	if _, err := l.AppendMessages(t.Context(), alice, "s", []session.Message{{Role: session.User, Content: "hi"}}, ""); err != nil {
		t.Fatal(err)
	}
	e, found, err := l.Entry(t.Context(), alice, "s", 1)
	if err != nil || !found || e.Position != 1 || e.Message.Content != "hi" {
		t.Errorf("got %+v, %v, %v", e, found, err)
	}
	for _, position := range []uint64{0, 2, 1<<64 - 1} {
		if e, found, err := l.Entry(t.Context(), alice, "s", position); found || err != nil {
			t.Errorf("%d: got %+v, %v", position, e, err)
		}
	}
	if _, found, err := l.Entry(t.Context(), alice, "", 1); found || err != nil {
		t.Errorf("another session: %v, %v", found, err)
	}
	if _, _, err := l.Entry(t.Context(), alice, "a\x00", 1); err == nil {
		t.Error("a bad session id is taken")
	}
}
