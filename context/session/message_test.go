package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func conversation() []session.Message {
	return []session.Message{
		{Role: session.System, Content: "Be brief."},
		{Role: session.User, Name: "ann", BlocksJSON: []byte(` [ {"type": "text", "text": "é"} ]`)},
		{Role: session.Assistant, Content: "Looking.", ToolCalls: []session.ToolCall{
			{ID: "c1", Name: "read_file", Arguments: `{"path": "a"}`}, {ID: "c2", Name: "list_dir", Arguments: "not json"},
		}},
		{Role: session.Tool, ToolCallID: "c1", Content: ""},
		{Role: session.Tool, ToolCallID: "c2", Content: "b", Pinned: true},
		{Role: session.User, Content: "Observation: b", Observation: true},
	}
}

// A message comes back as it came, in its place between the steps.
func TestMessagesAndStepsShareOneOrder(t *testing.T) {
	f := newMemory(t)
	msgs := conversation()
	if diff := cmp.Diff([]uint64{1, 2, 3}, f.mustAppend(t, alice, "s", msgs[:3]...)); diff != "" {
		t.Error(diff)
	}
	recorded := f.mustRecord(t, alice, step.Step{SessionID: "s", ToolName: "x"})
	if diff := cmp.Diff([]uint64{5, 6, 7}, f.mustAppend(t, alice, "s", msgs[3:]...)); diff != "" {
		t.Error(diff)
	}
	want := []session.Entry{
		{Position: 1, Time: noon, Message: &msgs[0]},
		{Position: 2, Time: noon, Message: &msgs[1]},
		{Position: 3, Time: noon, Message: &msgs[2]},
		recorded,
		{Position: 5, Time: noon, Message: &msgs[3]},
		{Position: 6, Time: noon, Message: &msgs[4]},
		{Position: 7, Time: noon, Message: &msgs[5]},
	}
	if diff := cmp.Diff(want, mustCollect(t, f.Entries(t.Context(), alice, "s"))); diff != "" {
		t.Error(diff)
	}
	for e, err := range f.Entries(t.Context(), alice, "s") {
		if err != nil || e.Position != 1 {
			t.Error("leaving the loop did not end it")
		}
		break
	}
}

func TestAppendIsSafeToRepeat(t *testing.T) {
	f := newMemory(t)
	ctx, msgs := t.Context(), conversation()
	first, err := f.AppendMessages(ctx, alice, "s", msgs, "r1")
	if err != nil {
		t.Fatal(err)
	}
	f.mustAppend(t, alice, "s", said("between"))
	again, err := f.AppendMessages(ctx, alice, "s", msgs, "r1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if got := mustCollect(t, f.Entries(ctx, alice, "s")); len(got) != len(msgs)+1 {
		t.Errorf("%d entries, want %d", len(got), len(msgs)+1)
	}
	for name, repeat := range map[string]func() error{
		"other messages": func() error { _, err := f.AppendMessages(ctx, alice, "s", msgs[:1], "r1"); return err },
		"other session":  func() error { _, err := f.AppendMessages(ctx, alice, "s2", msgs, "r1"); return err },
	} {
		if err := repeat(); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("%s: %v, want ErrRequestReused", name, err)
		}
	}
	if _, err := f.AppendMessages(ctx, bob, "s", msgs[:1], "r1"); err != nil {
		t.Errorf("another agent's request id: %v", err)
	}
	if _, err := f.AppendMessages(ctx, alice, "s", msgs, strings.Repeat("r", kv.MaxRequestIDBytes+1)); !errors.Is(err, kv.ErrLimit) {
		t.Errorf("a long request id: %v, want ErrLimit", err)
	}
}

func TestRepetitionsAtTheSameTimeWriteOnce(t *testing.T) {
	f := newMemory(t)
	answers := make([][]uint64, 16)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			var err error
			if answers[i], err = f.AppendMessages(t.Context(), alice, "", conversation(), "same"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, got := range answers {
		if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5, 6}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Bad input is refused whole, with the field that is wrong.
func TestMessageRules(t *testing.T) {
	call := func(c session.ToolCall) session.Message {
		return session.Message{Role: session.Assistant, ToolCalls: []session.ToolCall{{ID: "a", Name: "b"}, c}}
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name  string
		msg   session.Message
		field string // empty: accepted
	}{
		{"no role", session.Message{Content: "a"}, "role"},
		{"unknown role", session.Message{Role: 6}, "role"},
		{"developer", session.Message{Role: session.Developer, Content: "a"}, ""},
		{"extras", session.Message{Role: session.User, ExtraJSON: []byte(` {"a": {"content": 1}} `)}, ""},
		{"extras that are a list", session.Message{Role: session.User, ExtraJSON: []byte(`[]`)}, "extra_json"},
		{"extras that are null", session.Message{Role: session.User, ExtraJSON: []byte(`null`)}, "extra_json"},
		{"extras that are no JSON", session.Message{Role: session.User, ExtraJSON: []byte(`{`)}, "extra_json"},
		{"extras in the place of a field", session.Message{Role: session.User, ExtraJSON: []byte(`{"a":1,"content":"b"}`)}, "extra_json"},
		{"too long with extras", session.Message{Role: session.User, ExtraJSON: []byte(`{"a":"` + long(session.MaxMessageBytes) + `"}`)}, "content"},
		{"extras of a call", call(session.ToolCall{ID: "a", Name: "b", Extra: `{"index":0}`}), ""},
		{"extras in the place of a call's", call(session.ToolCall{ID: "a", Name: "b", Extra: `{"type":"x"}`}), "tool_calls[1].extra_json"},
		{"nothing said", session.Message{Role: session.User}, ""},
		{"longest content", said(long(session.MaxMessageBytes)), ""},
		{"too long", said(long(session.MaxMessageBytes + 1)), "content"},
		{"too long with blocks", session.Message{Role: session.User, BlocksJSON: []byte(`["` + long(session.MaxMessageBytes) + `"]`)}, "blocks_json"},
		{"not UTF-8", said("\xff"), "content"},
		{"blocks are no array", session.Message{Role: session.User, BlocksJSON: []byte(`{}`)}, "blocks_json"},
		{"blocks are no JSON", session.Message{Role: session.User, BlocksJSON: []byte(`[`)}, "blocks_json"},
		{"blocks and content", session.Message{Role: session.User, Content: "a", BlocksJSON: []byte(`[]`)}, "blocks_json"},
		{"longest name", session.Message{Role: session.User, Name: long(session.MaxNameBytes)}, ""},
		{"long name", session.Message{Role: session.User, Name: long(session.MaxNameBytes + 1)}, "name"},
		{"tool without a call", session.Message{Role: session.Tool}, ""},
		{"image over the text", session.Message{Role: session.User, BlocksJSON: []byte(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + long(3<<20) + `"}}]`)}, ""},
		{"image in a result", session.Message{Role: session.User, BlocksJSON: []byte(`[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + long(3<<20) + `"}}]}]`)}, ""},
		{"image too long", session.Message{Role: session.User, BlocksJSON: []byte(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + long(session.MaxMediaBytes) + `"}}]`)}, "blocks_json"},
		{"call id of a user", session.Message{Role: session.User, ToolCallID: "c"}, "tool_call_id"},
		{"long call id", session.Message{Role: session.Tool, ToolCallID: long(session.MaxCallIDBytes + 1)}, "tool_call_id"},
		{"calls of a user", session.Message{Role: session.User, ToolCalls: []session.ToolCall{{ID: "a", Name: "b"}}}, "tool_calls"},
		{"pinned", session.Message{Role: session.System, Content: "a", Pinned: true}, ""},
		{"observation of a tool", session.Message{Role: session.Tool, ToolCallID: "c", Observation: true}, "observation"},
		{"observation of the system", session.Message{Role: session.System, Observation: true}, "observation"},
		{"most calls", session.Message{Role: session.Assistant, ToolCalls: many(session.MaxToolCalls)}, ""},
		{"too many calls", session.Message{Role: session.Assistant, ToolCalls: many(session.MaxToolCalls + 1)}, "tool_calls"},
		{"call without id", call(session.ToolCall{Name: "b"}), ""},
		{"custom call", call(session.ToolCall{ID: "a", Name: "b", Extra: `{"type":"custom"}`}), ""},
		{"call of another type", call(session.ToolCall{ID: "a", Name: "b", Extra: `{"type":"other"}`}), "tool_calls[1].extra_json"},
		{"call with a long id", call(session.ToolCall{ID: long(session.MaxCallIDBytes + 1), Name: "b"}), "tool_calls[1].id"},
		{"call without name", call(session.ToolCall{ID: "a"}), "tool_calls[1].name"},
		{"call with a long name", call(session.ToolCall{ID: "a", Name: long(session.MaxToolNameBytes + 1)}), "tool_calls[1].name"},
		{"arguments not UTF-8", call(session.ToolCall{ID: "a", Name: "b", Arguments: "\xff"}), "tool_calls[1].arguments_json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newMemory(t)
			_, err := f.AppendMessages(t.Context(), alice, "s", []session.Message{said("before"), tt.msg}, "r")
			if tt.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var bad *invalid.Error
			if !errors.As(err, &bad) || bad.Field != "messages[1]."+tt.field || !errors.Is(err, session.ErrInvalid) {
				t.Errorf("got %v, want messages[1].%s", err, tt.field)
			}
			if got := mustCollect(t, f.Entries(t.Context(), alice, "s")); len(got) != 0 {
				t.Errorf("%d entries were written", len(got))
			}
		})
	}
}

// many are tool calls that fill a message to its last byte.
func many(n int) []session.ToolCall {
	calls := make([]session.ToolCall, n)
	for i := range calls {
		room := session.MaxMessageBytes/max(n, session.MaxToolCalls) - session.MaxCallIDBytes - session.MaxToolNameBytes
		calls[i] = session.ToolCall{
			ID: strings.Repeat("i", session.MaxCallIDBytes), Name: strings.Repeat("n", session.MaxToolNameBytes),
			Arguments: strings.Repeat("a", max(room, 0)),
		}
		if n > session.MaxToolCalls {
			calls[i].Arguments = ""
		}
	}
	return calls
}

func TestAppendLimits(t *testing.T) {
	f := newMemory(t)
	repeated := func(n int, m session.Message) []session.Message {
		msgs := make([]session.Message, n)
		for i := range msgs {
			msgs[i] = m
		}
		return msgs
	}
	megabyte := said(strings.Repeat("x", session.MaxMessageBytes))
	tests := []struct {
		name string
		msgs []session.Message
		ok   bool
	}{
		{"none", nil, false},
		{"most", repeated(session.MaxMessages, said("m")), true},
		{"too many", repeated(session.MaxMessages+1, said("m")), false},
		{"most bytes", repeated(session.MaxAppendBytes/session.MaxMessageBytes, megabyte), true},
		{"too many bytes", append(repeated(session.MaxAppendBytes/session.MaxMessageBytes, megabyte), said("x")), false},
	}
	for _, tt := range tests {
		_, err := f.AppendMessages(t.Context(), alice, tt.name, tt.msgs, "")
		if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// An entry of a later version is passed over; a damaged one is an error.
func TestEntriesOfLaterVersionsArePassedOver(t *testing.T) {
	f := newMemory(t)
	f.mustAppend(t, alice, "s", said("one"), said("two"), said("three"))
	second := f.entryPairs(t)[1]
	later := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 99)
	f.put(t, second.Key, later)
	got := mustCollect(t, f.Entries(t.Context(), alice, "s"))
	if len(got) != 2 || got[0].Position != 1 || got[1].Position != 3 {
		t.Errorf("got %+v", got)
	}
	for _, damaged := range [][]byte{nil, {0xff}, second.Value[:len(second.Value)-1], {8, 1, 26, 0}, {8, 2, 26, 0}} {
		f.put(t, second.Key, damaged)
		got, err := collect(f.Entries(t.Context(), alice, "s"))
		if len(got) != 1 || !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%x: %d entries, %v", damaged, len(got), err)
		}
		if _, err := f.LastSteps(t.Context(), alice, "s", 1); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%x: LastSteps: %v", damaged, err)
		}
	}
}

func (f *fixture) entryPairs(tb testing.TB) []kv.Pair {
	tb.Helper()
	return mustCollect(tb, f.engine.Scan(tb.Context(), kv.Log, kv.Prefix(alice.Key('e'))))
}

func (f *fixture) put(tb testing.TB, key, value []byte) {
	tb.Helper()
	f.harmed = true
	err := f.writer.Do(tb.Context(), kv.Request{
		Blind: []kv.Ref{f.Ref(alice)},
		Stage: func(_ context.Context, tx *kv.Tx) error { tx.Put(kv.Log, key, value); return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func TestAStepThatIsNotWhereItsIndexSays(t *testing.T) {
	f := newMemory(t)
	f.mustRecord(t, alice, step.Step{ToolName: "x"})
	f.mustRecord(t, alice, step.Step{ToolName: "x"})
	pairs := f.entryPairs(t)
	f.put(t, pairs[0].Key, pairs[1].Value)
	if _, err := f.Step(t.Context(), alice, 1); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// A message asks for at most so many tools, in whatever form.
func TestToolsInBlocksAreBounded(t *testing.T) {
	f := newMemory(t)
	blocks := func(n int) []byte {
		return []byte("[7,null,{\"type\":8}" + strings.Repeat(`,{"type":"tool_use","id":"c","name":"t","input":{}}`, n) + "]")
	}
	for n, ok := range map[int]bool{session.MaxToolCalls: true, session.MaxToolCalls + 1: false} {
		_, err := f.AppendMessages(t.Context(), alice, "s", []session.Message{{Role: session.Assistant, BlocksJSON: blocks(n)}}, "")
		bad, refused := errors.AsType[*invalid.Error](err)
		if refused == ok || refused && bad.Field != "messages[0].blocks_json" {
			t.Errorf("%d tools: %v", n, err)
		}
	}
	// What is no request of a tool may hold as many.
	f.mustAppend(t, alice, "s", session.Message{Role: session.User, BlocksJSON: blocks(session.MaxToolCalls + 1)})
}
