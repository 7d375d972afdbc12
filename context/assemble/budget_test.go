package assemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A prompt stays within its budget with every step, whatever the model; what
// the user said stays.
func TestBudgetForcesFolds(t *testing.T) {
	for _, model := range []string{"gpt-4o", "claude-sonnet-4", "nobody's"} {
		t.Run(model, func(t *testing.T) {
			w := newWorld(t)
			w.request.Model, w.request.MaxTokens = model, 3000
			w.say(text(session.User, "Find all handlers, but never touch vendor/."))
			forced := 0
			for n := range 60 {
				w.work(n)
				p := w.prompt()
				if p.Tokens.Tokens+p.Receipt.ReserveTokens > w.request.MaxTokens {
					t.Fatalf("step %d: %d tokens and a reserve of %d", n, p.Tokens.Tokens, p.Receipt.ReserveTokens)
				}
				if b := p.Receipt.Batch; b != nil && b.Reason == history.ByBudget {
					forced++
				}
				if !strings.Contains(string(p.OpenAIChatJSON), "never touch vendor/") {
					t.Fatal("what the user said is gone")
				}
			}
			if forced == 0 {
				t.Error("the budget forced nothing: the test tests little")
			}
		})
	}
}

// What can't be folded and does not fit is refused, once and by name, and
// nothing is stored.
func TestOverflowAfterFolding(t *testing.T) {
	long := strings.Repeat("many words ", 300)
	for _, tt := range []struct {
		name    string
		request assemble.Request
		say     []session.Message
		want    string
	}{
		{"system", assemble.Request{System: long}, nil, "system"},
		{"tools", assemble.Request{Tools: []assemble.Tool{{Name: "t", Description: long}}}, nil, "tools"},
		{"instruction", assemble.Request{}, []session.Message{text(session.System, long)}, "message 1 (system)"},
		{"pinned", assemble.Request{}, []session.Message{
			{Role: session.Assistant, Content: long, Pinned: true}, {Role: session.Assistant, Content: long, Pinned: true},
		}, "pinned"},
		{"many", assemble.Request{}, instructed(100), "messages"},
		{"open call", assemble.Request{}, []session.Message{{
			Role: session.Assistant, ToolCalls: []session.ToolCall{{ID: "a", Name: "fs:write_file", Arguments: long}},
		}}, "message 1 (assistant)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if len(tt.say) > 0 {
				w.say(tt.say...)
			}
			if tt.name != "open call" {
				for n := range 6 {
					w.work(n)
				}
			}
			tt.request.Scope, tt.request.SessionID, tt.request.MaxTokens = scope, "s", 500
			_, err := w.assembler.Assemble(t.Context(), tt.request)
			var overflow *assemble.OverflowError
			if !errors.As(err, &overflow) || overflow.Part != tt.want {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if overflow.PartTokens < 400 || overflow.TotalTokens <= overflow.MaxTokens {
				t.Errorf("got %+v", overflow)
			}
			folds, err := w.log.Folds(t.Context(), scope, "s")
			if err != nil || folds.Version != 0 {
				t.Errorf("a refused prompt wrote: %+v, %v", folds, err)
			}
		})
	}
}

func manySaid(n int) []session.Message {
	out := make([]session.Message, n)
	for i := range out {
		out[i] = text(session.User, "Yes, please go on, and thank you.")
	}
	return out
}

// instructed is manySaid by the system, which never leaves a prompt.
func instructed(n int) []session.Message {
	out := manySaid(n)
	for i := range out {
		out[i].Role = session.System
	}
	return out
}

// Pinned entries, and their calls with them, stay as they are.
func TestPinnedStays(t *testing.T) {
	w := newWorld(t)
	pinned := workStep(1000)
	pinned.Pinned = true
	w.say(session.Message{Role: session.Assistant, Content: "The rule: never push.", Pinned: true})
	w.do(pinned)
	w.say(asks("", "a", "b"))
	w.do(step.Step{ToolName: "fs:stat", CallID: "a", Inline: "of a " + strings.Repeat("word ", 300)})
	w.do(step.Step{ToolName: "fs:stat", CallID: "b", Inline: "of b", Pinned: true})
	for n := range 30 {
		w.work(n)
	}
	for range 3 {
		w.compact()
	}
	p := w.prompt()
	w.request.Format = assemble.Neutral
	shown := ""
	for _, m := range w.prompt().Messages {
		shown += m.Content + "\n"
	}
	for _, want := range []string{"The rule: never push.", pinned.Inline, "of a word word", "of b"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%.40q is gone", want)
		}
	}
	if len(p.Receipt.Folds) == 0 {
		t.Error("nothing was folded: the test tests little")
	}
}

// Observations of agents without native calls fold with the words before them,
// though their role is user; unfolded they are as they were said.
func TestObservationsFold(t *testing.T) {
	w := newWorld(t)
	w.say(text(session.User, "Fix it."))
	for range 6 {
		w.say(text(session.Assistant, "I look.\n```\nls src/app\n```"),
			session.Message{Role: session.User, Observation: true, Content: "src/app/main.py\nsrc/app/views.py\n" + strings.Repeat("nothing of interest here ", 30)})
	}
	before := w.prompt()
	if got := string(before.OpenAIChatJSON); !strings.Contains(got, `{"role":"user","content":"src/app/main.py\n`) {
		t.Errorf("got %s", got)
	}
	w.compact()
	p := w.prompt()
	if len(p.Receipt.Folds) != 1 || p.Receipt.Folds[0].Spans[0].First != 2 || p.Receipt.Folds[0].Refs[0] != "message_002" {
		t.Errorf("got %+v", p.Receipt.Folds)
	}
	if got := string(p.OpenAIChatJSON); !strings.Contains(got, "m3 ls src/app → src/app/main.py src/app/views.py") || !strings.Contains(got, "Fix it.") {
		t.Errorf("got %s", got)
	}
}

// A message with blocks of a provider, such as signed thoughts, is there as it
// came, or folded whole with the results of its calls.
func TestBlocksAreWholeOrFolded(t *testing.T) {
	w := newWorld(t)
	w.request.Format = assemble.Neutral
	thinking := json.RawMessage(`[{"type":"thinking","thinking":"hm","signature":"c2lnbmVk"},{"type":"tool_use","id":"tu_1","name":"bash","input":{"command":"ls src/app"}}]`)
	result := json.RawMessage(`[{"type":"tool_result","tool_use_id":"tu_1","content":"src/app/main.py ` + strings.Repeat("nothing of interest ", 60) + `"}]`)
	for range 5 {
		w.say(session.Message{Role: session.Assistant, BlocksJSON: thinking}, session.Message{Role: session.User, BlocksJSON: result})
	}
	count := func() (thoughts, results int) {
		for _, m := range w.prompt().Messages {
			switch {
			case m.Role == session.Assistant && string(m.BlocksJSON) == string(thinking):
				thoughts++
			case m.Role == session.User && string(m.BlocksJSON) == string(result):
				results++
			case m.Role == session.Tool || len(m.BlocksJSON) > 0:
				t.Errorf("unexpected %+v", m)
			}
		}
		return thoughts, results
	}
	if thoughts, results := count(); thoughts != 5 || results != 5 {
		t.Errorf("unfolded: %d calls, %d results", thoughts, results)
	}
	w.compact()
	if thoughts, results := count(); thoughts != 2 || results != 2 {
		t.Errorf("folded: %d calls, %d results", thoughts, results)
	}
	if got := w.prompt().Messages[0].Content; !strings.Contains(got, `m2 bash {"command":"ls src/app"} → src/app/main.py`) {
		t.Errorf("the fold is %q", got)
	}
	// A call whose result has not come is never folded.
	w.say(session.Message{Role: session.Assistant, BlocksJSON: json.RawMessage(strings.ReplaceAll(string(thinking), "tu_1", "tu_2"))})
	w.compact()
	if !strings.Contains(string(w.prompt().Messages[len(w.prompt().Messages)-3].BlocksJSON), "tu_2") {
		t.Errorf("got %+v", w.prompt().Messages)
	}
}

var errDisk = errors.New("disk is full")

// failing is a log that stores no folds.
type failing struct {
	*session.Log
	err   error
	times int // how often it fails
}

func (l *failing) AppendFolds(ctx context.Context, s kv.Scope, id string, version uint64, made []history.Fold) error {
	if l.times--; l.times >= 0 {
		return l.err
	}
	return l.Log.AppendFolds(ctx, s, id, version, made)
}

func (l *failing) MoveMark(ctx context.Context, s kv.Scope, id string, version uint64, preset string, to history.Mark) error {
	if l.times--; l.times >= 0 {
		return l.err
	}
	return l.Log.MoveMark(ctx, s, id, version, preset, to)
}

// What could not be stored is not shown; what somebody else folded meanwhile is
// read again.
func TestStoringFolds(t *testing.T) {
	w := newWorld(t)
	for _, preset := range []string{"", "reduction"} {
		for n := range 40 {
			w.work(n) // after an undo, waiting begins anew
		}
		r := w.request
		r.History.Preset = preset
		for _, tt := range []struct {
			err   error
			times int
			want  error
		}{
			{errDisk, 1, errDisk},
			{session.ErrFoldsChanged, 1 << 20, session.ErrFoldsChanged},
			{session.ErrFoldsChanged, 2, nil},
		} {
			a := assemble.New(&failing{w.log, tt.err, tt.times}, w.counter, nil)
			p, err := a.Assemble(t.Context(), r)
			if !errors.Is(err, tt.want) || (err == nil) != (p.Receipt.Batch != nil) {
				t.Errorf("%q: %v: got %v, batch %v", preset, tt.err, err, p.Receipt.Batch)
			}
		}
		if _, err := w.log.Undo(t.Context(), scope, "s", 0, ""); err != nil {
			t.Errorf("%q: nothing was stored at last: %v", preset, err)
		}
	}
}
