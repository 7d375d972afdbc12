package assemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A turn of steps alone takes no more calls than a message may have, and no
// more thoughts than can be counted; the steps behind begin another one.
func TestEndlessTurns(t *testing.T) {
	for _, tt := range []struct {
		name    string
		steps   int
		thought func(i int) string
	}{
		{"thoughts", 70, func(i int) string { return fmt.Sprint(i) + strings.Repeat(" thought", 8<<10-1) }},
		{"calls", 2*session.MaxToolCalls + 44, func(int) string { return "I look." }},
	} {
		w := newWorld(t)
		w.request.MaxTokens = 4_000_000
		w.request.History.Policy = session.PolicyAppendOnly
		var steps []step.Step
		for i := range tt.steps {
			steps = append(steps, step.Step{ToolName: "fs:stat", TurnID: "t", Inline: "ok", Thought: tt.thought(i)})
		}
		for some := range slices.Chunk(steps, 16) {
			w.do(some...)
		}
		messages, calls := MustChat(t, w.prompt()).Messages, 0
		if err := checkRules(messages); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for i, m := range messages {
			calls += len(m.ToolCalls)
			if len(m.ToolCalls) > session.MaxToolCalls || len(m.Content) > 300<<10 {
				t.Errorf("%s: message %d has %d calls and %d bytes", tt.name, i, len(m.ToolCalls), len(m.Content))
			}
		}
		if calls != tt.steps {
			t.Errorf("%s: %d calls of %d", tt.name, calls, tt.steps)
		}
		w.request.History, w.request.MaxTokens = session.Config{}, 32_000
		w.prompt() // folded
	}
}

// A text that is too large to count at once is counted in pieces.
func TestPresetOfALongSession(t *testing.T) {
	w := newWorld(t)
	w.request.MaxTokens = 8_000_000
	line := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 300)
	var steps []step.Step
	for i := range 340 {
		steps = append(steps, step.Step{ToolName: "system:shell", Inline: fmt.Sprintf("%d %s", i, line)})
	}
	for some := range slices.Chunk(steps, 50) {
		w.do(some...)
	}
	w.request.History.Preset = "reduction"
	on := true
	w.request.History.Literal = &on
	w.prompt()
	c, err := w.assembler.Compact(t.Context(), assemble.CompactRequest{
		Scope: scope, SessionID: "s", Text: true, Style: history.StyleReduction, KeepRecent: 500,
	})
	if err != nil || len(c.Text) < 4<<20 || c.Tokens.Tokens < len(c.Text)/6 {
		t.Errorf("%d bytes are %+v, %v", len(c.Text), c.Tokens, err)
	}
}

// A log that is more than may be held at once is folded as it is read.
func TestReadingFolds(t *testing.T) {
	const steps = 120
	w := newWorld(t)
	w.assembler = assemble.New(w.log, w.counter, &assemble.Options{ReadBytes: 24 << 10})
	w.say(text(session.User, "Find all handlers, but never touch src/pkg_3."))
	for n := range steps {
		w.work(n)
	}
	dry := w.with(func(*assemble.Request) {})
	if folds, err := w.log.Folds(t.Context(), scope, "s"); err != nil || folds.Version != 0 {
		t.Errorf("a dry run wrote: %+v, %v", folds, err)
	}
	p := w.prompt()
	if diff := cmp.Diff(string(dry.OpenAIChatJSON), string(p.OpenAIChatJSON)); diff != "" {
		t.Errorf("the prompt differs from the dry run's (-dry +wet):\n%s", diff)
	}
	if p.Receipt.Batch == nil || p.Receipt.Batch.Number < 2 || len(p.Receipt.Batch.Refs) < steps/2 {
		t.Errorf("the batch is %+v", p.Receipt.Batch)
	}
	if !strings.Contains(string(p.OpenAIChatJSON), "never touch src/pkg_3") {
		t.Error("what the user said is gone")
	}
	folded := make(map[string]bool)
	for _, f := range p.Receipt.Folds {
		for _, s := range f.Spans {
			for position := s.First; position <= s.Last; position++ {
				folded[fmt.Sprintf("call_step_%03d", position-1)] = true
			}
		}
	}
	for n := range steps {
		call := fmt.Sprintf("call_step_%03d", n+1)
		if shown := strings.Contains(string(p.OpenAIChatJSON), `"id":"`+call+`"`); shown == folded[call] {
			t.Errorf("%s is shown: %v, and folded: %v", call, shown, folded[call])
		}
	}
	if again := w.prompt(); again.Receipt.Batch != nil || string(again.OpenAIChatJSON) != string(p.OpenAIChatJSON) {
		t.Errorf("again: batch %+v", again.Receipt.Batch)
	}
}

// A single turn that is more than may be held at once is read all the same.
func TestReadingALongTurn(t *testing.T) {
	w := newWorld(t)
	w.assembler = assemble.New(w.log, w.counter, &assemble.Options{ReadBytes: 1 << 10})
	w.say(asks("I look.", "a", "b", "c"))
	for _, id := range []string{"a", "b", "c"} {
		w.say(answers(id, strings.Repeat("some of what it gave\n", 100)))
	}
	if err := checkRules(MustChat(t, w.prompt()).Messages); err != nil {
		t.Error(err)
	}
	w.compact()
}

// blocking is a log that stops behind its first entry.
type blocking struct {
	entries
	reached chan struct{}
	goOn    chan struct{}
}

func (l blocking) Unfolded(ctx context.Context, s kv.Scope, id string, folds []history.Fold) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range l.entries.Unfolded(ctx, s, id, folds) {
			if !yield(e, err) {
				return
			}
			l.reached <- struct{}{}
			<-l.goOn
		}
	}
}

// Only so many prompts may hold much text at once. The others wait, but no
// longer than their callers do.
func TestMuchTextWaits(t *testing.T) {
	const places = 8
	l := blocking{reached: make(chan struct{}), goOn: make(chan struct{})}
	l.say(text(session.User, strings.Repeat("word ", 1<<18)))
	a := assemble.New(l, MustCounter(t), nil)
	r := assemble.Request{Scope: scope, MaxTokens: unlimited}
	done := make(chan error)
	run := func(ctx context.Context) {
		_, err := a.Assemble(ctx, r)
		done <- err
	}
	for range places {
		go run(t.Context())
	}
	for range places {
		<-l.reached
	}
	ctx, cancel := context.WithCancel(t.Context())
	go run(ctx)
	select {
	case <-l.reached:
		t.Error("one more did not wait")
		l.goOn <- struct{}{}
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(l.goOn)
	for range places {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Blocks within blocks are read only so deep, whatever they cost to write.
func TestNestedBlocks(t *testing.T) {
	const depth = 1000
	nested := strings.Repeat(`[{"type":"tool_result","content":`, depth) + `"` + strings.Repeat("x", 300_000) + `"` + strings.Repeat(`}]`, depth)
	w := newWorld(t)
	w.request.MaxTokens = 2_000_000
	w.say(session.Message{Role: session.User, BlocksJSON: json.RawMessage(nested)})
	if took := w.allocates(); took > 100 {
		t.Errorf("one message of %d bytes takes %d MiB", len(nested), took)
	}
}

// allocates returns how much memory a prompt takes, in MiB.
func (w *world) allocates() uint64 {
	w.tb.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.prompt()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20
}

// Calls within blocks, as many as messages may ask for.
func TestManyCallsWithinBlocks(t *testing.T) {
	const messages, calls = 80, session.MaxToolCalls
	w := newWorld(t)
	w.request.MaxTokens = 2_000_000
	for range messages {
		w.say(
			session.Message{Role: session.Assistant, BlocksJSON: blocksOf(`{"type":"tool_use","id":"a","name":"x","input":{}}`, calls)},
			session.Message{Role: session.User, BlocksJSON: blocksOf(`{"type":"tool_result","tool_use_id":"a","content":""}`, calls)},
		)
	}
	w.say(text(session.User, "go on"))
	newWorld(t).prompt() // what is loaded once does not count
	if took := w.allocates(); took > 160 {
		t.Errorf("%d calls take %d MiB", messages*calls, took)
	}
}

func blocksOf(block string, n int) json.RawMessage {
	return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(block+",", n), ",") + "]")
}

// ending is a log at whose end the caller's time is over.
type ending struct {
	entries
	end func()
}

func (l ending) Unfolded(ctx context.Context, s kv.Scope, id string, folds []history.Fold) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		defer l.end()
		l.entries.Unfolded(ctx, s, id, folds)(yield)
	}
}

// Work ends when the caller's time does, not only while the log is read.
func TestDeadline(t *testing.T) {
	for _, policy := range []string{session.PolicyLedger, session.PolicyAppendOnly} {
		ctx, cancel := context.WithCancel(t.Context())
		l := ending{end: cancel}
		l.do(workStep(1))
		r := assemble.Request{Scope: scope, History: session.Config{Policy: policy}}
		if _, err := assemble.New(l, MustCounter(t), nil).Assemble(ctx, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", policy, err)
		}
	}
}

// wordy is an output that folds well.
func wordy(i int) string {
	var b strings.Builder
	for k := range 40 {
		fmt.Fprintf(&b, "%d some words of output number %d\n", k*7919+i*131, k)
	}
	return b.String()
}

// late is a session whose steps are recorded before the message that asks for
// them.
func late(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.say(text(session.User, "work"))
	for i := range 5 {
		w.do(step.Step{ToolName: "x:y", CallID: fmt.Sprint("c", i), Inline: wordy(i)})
	}
	return w
}

// Steps whose message may still come are not folded before it does.
func TestAwaitedStepsStay(t *testing.T) {
	w := late(t)
	if c := w.compact(); c.Batch != nil {
		t.Errorf("folded %+v", c.Batch)
	}
	w.say(asks("in parallel", "c0", "c1", "c2", "c3", "c4"))
	prompt := string(w.prompt().OpenAIChatJSON)
	for i := range 5 {
		if !strings.Contains(prompt, fmt.Sprintf(`%d some words of output number 1\n`, 7919+i*131)) {
			t.Errorf("the result of call %d is gone", i)
		}
	}
	w.say(text(session.User, "a"), text(session.Assistant, "b"), text(session.User, "c"), text(session.Assistant, "d"))
	if w.compact().Batch == nil {
		t.Error("now they may fold")
	}
}

// Where the budget folds them all the same, their calls say so.
func TestAwaitedStepsThatFolded(t *testing.T) {
	w := late(t)
	w.request.MaxTokens = 200 // not even a part of each fits
	if w.prompt().Receipt.Batch == nil {
		t.Fatal("nothing was folded: the test tests nothing")
	}
	w.say(asks("in parallel", "c0", "c1", "c2", "c3", "c4", "c5"), answers("c0", "the second answer"))
	w.request.MaxTokens = 8000
	p := w.prompt()
	messages := MustChat(t, p).Messages
	if err := checkRules(messages); err != nil {
		t.Fatal(err)
	}
	prompt := string(p.OpenAIChatJSON)
	for n := range 5 {
		if want := fmt.Sprintf("fs_read_file step_%03d", n+1); !strings.Contains(prompt, want+`"`) && !strings.Contains(prompt, fmt.Sprintf("%d some words of output number 1", 7919+n*131)) {
			t.Errorf("call %d does not name %s:\n%s", n, want, prompt)
		}
	}
	if n := strings.Count(prompt, "No result of this call was recorded."); n != 1 {
		t.Errorf("%d calls are said to have no result, want the last only", n)
	}
	if strings.Contains(prompt, "the second answer") {
		t.Error("a second result is shown")
	}
}

// Steps before the message belong to it only if no other message asked for them.
func TestFoldedAnswersAreNotTakenAgain(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.say(asks("look", "call_0"))
		w.do(step.Step{ToolName: "x:y", CallID: "call_0", Inline: wordy(i)})
	}
	w.request.MaxTokens = 700
	w.prompt()
	w.say(asks("once more", "call_0"))
	if prompt := string(w.prompt().OpenAIChatJSON); strings.Contains(prompt, "recorded before it") {
		t.Errorf("the result of another turn is taken:\n%s", prompt)
	}
}

// A pinned message is shown even if it answers a call that has its result.
func TestPinnedSecondAnswer(t *testing.T) {
	pinned := answers("a", "PINNED")
	pinned.Pinned = true
	for _, more := range [][]session.Message{{}, {text(session.User, "go on")}} {
		w := newWorld(t)
		w.say(asks("look", "a", "b"), answers("a", "first"), pinned, answers("b", "other"))
		w.say(append(more, text(session.Assistant, "done"))...)
		p := w.prompt()
		if err := checkRules(MustChat(t, p).Messages); err != nil {
			t.Error(err)
		}
		if n := strings.Count(string(p.OpenAIChatJSON), "PINNED"); n != 1 {
			t.Errorf("a pinned message is shown %d times", n)
		}
	}
	w := newWorld(t)
	w.do(step.Step{ToolName: "x:y", CallID: "a", Inline: "ok"})
	w.say(pinned)
	if !strings.Contains(string(w.prompt().OpenAIChatJSON), "PINNED") {
		t.Error("a pinned message is not shown behind a step")
	}
}

// Costs can be written in any format, whatever the prices are.
func TestCostsAreNumbers(t *testing.T) {
	w := newWorld(t)
	for n := range 40 {
		w.work(n)
	}
	for _, prices := range []history.Prices{
		{Input: math.SmallestNonzeroFloat64, CachedInput: 0, CacheWrite: 1e6},
		{Input: math.SmallestNonzeroFloat64, CachedInput: math.SmallestNonzeroFloat64, CacheWrite: math.SmallestNonzeroFloat64},
	} {
		r := w.with(func(r *assemble.Request) { r.History.Prices = prices }).Receipt
		for _, cost := range []float64{r.Cost, r.AppendOnlyCost} {
			if math.IsInf(cost, 0) || math.IsNaN(cost) {
				t.Errorf("with %+v: %+v", prices, r)
			}
		}
	}
}
