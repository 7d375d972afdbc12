package assemble_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// world is a session in a real log, and its prompts.
type world struct {
	tb        testing.TB
	log       *session.Log
	writer    *kv.Writer
	counter   *tokens.Counter
	assembler *assemble.Assembler
	request   assemble.Request
	steps     int
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	tb.Cleanup(func() {
		if err := errors.Join(writer.Close(), engine.Close()); err != nil {
			tb.Error(err)
		}
	})
	w := &world{tb: tb, writer: writer, log: session.New(engine, writer, nil), counter: MustCounter(tb)}
	w.assembler = assemble.New(w.log, w.counter, nil)
	w.request = assemble.Request{Scope: scope, SessionID: "s", Format: assemble.OpenAIChat, MaxTokens: 32_000, Goal: "the goal", Settings: plainEnd()}
	return w
}

func (w *world) say(messages ...session.Message) {
	w.tb.Helper()
	if _, err := w.log.AppendMessages(w.tb.Context(), scope, "s", messages, ""); err != nil {
		w.tb.Fatal(err)
	}
}

// do records steps, in one commit.
func (w *world) do(steps ...step.Step) {
	w.tb.Helper()
	w.steps += len(steps)
	stage := func(ctx context.Context, tx *kv.Tx) error {
		for _, s := range steps {
			s.SessionID = "s"
			if _, _, err := w.log.StageStep(ctx, tx, scope, func(uint64) (step.Step, error) { return s, nil }); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.writer.Do(w.tb.Context(), kv.Request{Refs: []kv.Ref{w.log.Ref(scope)}, Stage: stage}); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) prompt() assemble.Prompt {
	w.tb.Helper()
	p, err := w.assembler.Assemble(w.tb.Context(), w.request)
	if err != nil {
		w.tb.Fatal(err)
	}
	return p
}

// with returns the prompt of a changed request, as a dry run.
func (w *world) with(change func(r *assemble.Request)) assemble.Prompt {
	w.tb.Helper()
	r := w.request
	r.DryRun = true
	change(&r)
	p, err := w.assembler.Assemble(w.tb.Context(), r)
	if err != nil {
		w.tb.Fatal(err)
	}
	return p
}

func (w *world) compact() assemble.Compaction {
	w.tb.Helper()
	c, err := w.assembler.Compact(w.tb.Context(), assemble.CompactRequest{Scope: scope, SessionID: "s"})
	if err != nil {
		w.tb.Fatal(err)
	}
	return c
}

func (w *world) undo() session.Undone {
	w.tb.Helper()
	u, err := w.log.Undo(w.tb.Context(), scope, "s", 0, "")
	if err != nil {
		w.tb.Fatal(err)
	}
	return u
}

// work records a step of about 1 KiB that names things.
func (w *world) work(n int) {
	w.do(workStep(n))
}

func workStep(n int) step.Step {
	args, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("grep -rn handler_%d src/pkg_%d", n, n)})
	var out strings.Builder
	for i := range 12 {
		fmt.Fprintf(&out, "src/pkg_%d/file_%d.go:%d: func Handler%d_%d(request Request) error { return errUnknown%d }\n", n, i, 10*i, n, i, n)
	}
	return step.Step{
		ToolName: "system:shell", Thought: fmt.Sprintf("I look for handler %d.", n), Args: args, MinimalArgs: args,
		Observation: "grep -rn: exit 0, 12 lines output", Inline: out.String(), Metadata: json.RawMessage(`{"exit_code":0,"lines":12}`),
	}
}

// historyBytes is the prompt up to its goal and what separates that from the history.
func historyBytes(tb testing.TB, p assemble.Prompt) string {
	tb.Helper()
	text := string(p.OpenAIChatJSON)
	at := strings.LastIndex(text, `Goal: `)
	if at < 0 {
		tb.Fatalf("no goal in %s", text)
	}
	text = strings.TrimSuffix(text[:at], "Current ")
	for _, between := range []string{`{"role":"user","content":"`, `\n\n---\n\n`, `\n\n`} {
		if before, ok := strings.CutSuffix(text, between); ok {
			return strings.TrimSuffix(before, ",")
		}
	}
	tb.Fatalf("the goal stands within a line of %s", text)
	return ""
}

// Each prompt's history is a byte prefix of the next one's unless the receipt
// reports a fold; and a receipt that reports one is right.
//
// X03: between batches every earlier byte stays as it was sent.
func TestHistoryGrowsUntilABatch(t *testing.T) {
	w := newWorld(t)
	w.say(text(session.User, "Find all handlers."))
	before, batches := "", 0
	for n := range 150 {
		w.work(n)
		p := w.prompt()
		now := historyBytes(t, p)
		switch {
		case p.Receipt.Batch != nil:
			batches++
			checkBatch(t, p)
		case !strings.HasPrefix(now, before):
			t.Fatalf("step %d: no batch is reported, but the history begins otherwise", n)
		}
		if err := checkRules(MustChat(t, p).Messages); err != nil {
			t.Fatal(err)
		}
		checkTokens(t, w, p)
		before = now
	}
	if batches < 4 || batches > 40 {
		t.Errorf("%d batches in 150 steps", batches)
	}
}

func checkBatch(t *testing.T, p assemble.Prompt) {
	t.Helper()
	b := p.Receipt.Batch
	if b.Number == 0 || b.Reason != history.ByPrice || b.After >= b.Before || len(b.Refs) == 0 {
		t.Errorf("batch %+v", *b)
	}
	for _, ref := range b.Refs {
		if !strings.HasPrefix(ref, "step_") && !strings.HasPrefix(ref, "message_") {
			t.Errorf("nobody can read %q", ref)
		}
	}
}

// checkTokens holds the counts against those of the messages.
func checkTokens(t *testing.T, w *world, p assemble.Prompt) {
	t.Helper()
	sum := tokens.ReplyTokens
	for _, part := range p.Parts {
		sum += part.Tokens
	}
	r := p.Receipt
	if sum != p.Tokens.Tokens || !p.Tokens.Exact {
		t.Errorf("the parts have %d tokens, the prompt %+v", sum, p.Tokens)
	}
	if r.AppendOnlyTokens < sum || r.StableTokens > sum || r.SettledTokens > sum || r.Pressure != float64(sum)/float64(w.request.MaxTokens) {
		t.Errorf("%d tokens, receipt %+v", sum, r)
	}
}

// What a receipt says it would take with nothing folded is what it takes.
func TestAppendOnlyTokens(t *testing.T) {
	w := newWorld(t)
	for n := range 60 {
		if n%7 == 0 {
			w.say(text(session.User, fmt.Sprintf("And now the others, part %d.", n)))
		}
		w.work(n)
		w.do(workStep(n)) // again: deduplicated
		p := w.prompt()
		whole := w.with(func(r *assemble.Request) { r.History.Policy = session.PolicyAppendOnly; r.MaxTokens = unlimited })
		if got, want := p.Receipt.AppendOnlyTokens, whole.Tokens.Tokens; got < want-want/100 || got > want+want/100 {
			t.Fatalf("step %d: said %d, takes %d", n, got, want)
		}
	}
	if r := w.prompt().Receipt; len(r.Folds) == 0 || r.Cost >= r.AppendOnlyCost {
		t.Errorf("%d folds, cost %.0f, without %.0f", len(r.Folds), r.Cost, r.AppendOnlyCost)
	}
}

// A dry run shows the prompt that would be made, and stores nothing, however
// often.
//
// X05: the same log and request are the same bytes.
func TestDryRunsAreOneHash(t *testing.T) {
	w := newWorld(t)
	for n := range 40 {
		w.work(n)
	}
	hashes := make(map[[32]byte]bool)
	for range rounds(1000, 60) {
		p := w.with(func(*assemble.Request) {})
		if p.Receipt.Batch == nil {
			t.Fatal("nothing would be folded")
		}
		receipt, err := json.Marshal(p.Receipt)
		if err != nil {
			t.Fatal(err)
		}
		hashes[sha256.Sum256(append(p.OpenAIChatJSON, receipt...))] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d different prompts", len(hashes))
	}
	folds, err := w.log.Folds(t.Context(), scope, "s")
	if err != nil || folds.Version != 0 {
		t.Errorf("a dry run wrote: %+v, %v", folds, err)
	}
	dry, wet := w.with(func(*assemble.Request) {}), w.prompt()
	if diff := cmp.Diff(string(dry.OpenAIChatJSON), string(wet.OpenAIChatJSON)); diff != "" {
		t.Errorf("the prompt differs from the dry run's (-dry +wet):\n%s", diff)
	}
	if diff := cmp.Diff(dry.Receipt.Batch, wet.Receipt.Batch); diff != "" {
		t.Errorf("the batch differs from the dry run's (-dry +wet):\n%s", diff)
	}
}

// Without its last batch a session's prompt has the bytes it had before.
func TestUndoGivesThePreviousPrompt(t *testing.T) {
	w := newWorld(t)
	for n := range 30 {
		w.work(n)
		before := w.prompt()
		if n%3 != 2 {
			continue
		}
		if c := w.compact(); c.Batch == nil {
			continue
		}
		folded := w.with(func(*assemble.Request) {})
		if string(folded.OpenAIChatJSON) == string(before.OpenAIChatJSON) {
			t.Error("a batch changed nothing")
		}
		w.undo()
		after := w.prompt()
		if diff := cmp.Diff(string(before.OpenAIChatJSON), string(after.OpenAIChatJSON)); diff != "" {
			t.Fatalf("step %d: undone, the prompt is another (-before +after):\n%s", n, diff)
		}
		w.compact()
	}
}

// Compacting again and again changes no byte.
func TestManyCompactionsAreOne(t *testing.T) {
	w := newWorld(t)
	w.say(text(session.User, "Find all handlers, but never touch src/pkg_3."))
	for n := range 20 {
		w.work(n)
	}
	first := w.compact()
	want := string(w.prompt().OpenAIChatJSON)
	for range 50 {
		if c := w.compact(); c.Batch != nil {
			t.Fatalf("there was nothing to fold, but %+v", *c.Batch)
		}
	}
	if diff := cmp.Diff(want, string(w.prompt().OpenAIChatJSON)); diff != "" {
		t.Errorf("fifty compactions are not one:\n%s", diff)
	}
	if first.Batch == nil || first.Batch.Reason != history.ByCaller || len(first.Folds) != 1 {
		t.Errorf("the first batch is %+v of %d folds", first.Batch, len(first.Folds))
	}
	if !strings.Contains(want, "never touch src/pkg_3") {
		t.Error("what the user said is gone")
	}
}

// marked gives every entry of a random log a text of its own.
func marked(e session.Entry, position int) session.Entry {
	mark := fmt.Sprintf("#%d#", position)
	if e.Message != nil {
		e.Message.Content = mark + strings.Join(strings.Fields(e.Message.Content), " ")
		return e
	}
	// On one line, so that nothing is deduplicated.
	e.Step.Thought, e.Step.Error = mark, strings.Join(strings.Fields(e.Step.Error), " ")
	e.Step.Observation, e.Step.Inline = strings.Join(strings.Fields(e.Step.Observation), " "), strings.Join(strings.Fields(e.Step.Inline), " ")
	e.Step.Inline += strings.Repeat(" "+mark+" file_"+fmt.Sprint(position)+".go", 20)
	return e
}

// marks returns the positions that a message shows.
func marks(m chatMessage) []string {
	var found []string
	texts := []string{string(m.Content)}
	for _, text := range texts {
		for part := range strings.SplitSeq(text, "#") {
			if part != "" && strings.Trim(part, "0123456789") == "" && !slices.Contains(found, part) {
				found = append(found, part)
			}
		}
	}
	return found
}

// Whatever the log and wherever it is cut, what is not folded stands in the
// prompt as it would without folds, in the same order, and what is folded does
// not: no entry is lost, and no call or result is without the other.
func TestRandomCuts(t *testing.T) {
	batches := 0
	few := rounds(12, 2)
	for seed := range uint64(few) {
		w := newWorld(t)
		g := &writer{Rand: rand.New(rand.NewPCG(seed, 2))}
		for n := 0; n < 120; {
			g.block()
			for ; n < len(g.entries); n++ {
				e := marked(g.entries[n], n+1)
				if e.Message != nil {
					w.say(*e.Message)
				} else {
					w.do(*e.Step)
				}
			}
			batches += w.cut(g)
			p := w.prompt()
			if err := checkRules(MustChat(t, p).Messages); err != nil {
				t.Fatalf("seed %d, %d entries: %v", seed, n, err)
			}
			if err := w.checkFolded(p); err != nil {
				t.Fatalf("seed %d, %d entries: %v", seed, n, err)
			}
		}
	}
	if batches < 4*few {
		t.Errorf("only %d batches: the test tests little", batches)
	}
}

// cut folds or takes a fold back, or leaves things as they are.
func (w *world) cut(g *writer) (batches int) {
	w.tb.Helper()
	switch g.IntN(5) {
	case 0, 1:
		if w.compact().Batch != nil {
			return 1
		}
	case 2:
		if _, err := w.log.Undo(w.tb.Context(), scope, "s", 0, ""); err != nil && !errors.Is(err, session.ErrNothingToUndo) {
			w.tb.Fatal(err)
		}
	}
	return 0
}

// checkFolded holds a prompt against the one without folds.
func (w *world) checkFolded(p assemble.Prompt) error {
	whole := w.with(func(r *assemble.Request) { r.History.Policy = session.PolicyAppendOnly; r.MaxTokens = unlimited })
	folded := make(map[string]int)
	for i, f := range p.Receipt.Folds {
		for _, s := range f.Spans {
			for position := s.First; position <= s.Last; position++ {
				folded[fmt.Sprint(position)] = i + 1
			}
		}
	}
	var want []chatMessage
	in := 0
	for _, m := range MustChat(w.tb, whole).Messages {
		if found := marks(m); len(found) > 0 {
			in = folded[found[0]]
			for _, position := range found {
				if folded[position] != in {
					return fmt.Errorf("%s and %s stand in one message, but not in one fold", found[0], position)
				}
			}
		} else if m.Role != "tool" && m.Role != "assistant" {
			in = 0 // the goal
		}
		if in == 0 {
			want = append(want, m)
		}
	}
	got := slices.DeleteFunc(MustChat(w.tb, p).Messages, func(m chatMessage) bool {
		text := string(m.Content)
		return strings.HasPrefix(text, `"[Earlier steps, folded`) || strings.HasPrefix(text, `"[Folded as above]`)
	})
	if reflect.DeepEqual(want, got) { // much faster than cmp
		return nil
	}
	return fmt.Errorf("what is not folded differs (-whole +folded):\n%s", cmp.Diff(want, got))
}

// Any entries in any order are a prompt that a provider takes, folded or not.
func TestChaos(t *testing.T) {
	for seed := range uint64(rounds(20, 5)) {
		w, r := newWorld(t), rand.New(rand.NewPCG(seed, 3))
		id := func() string { return fmt.Sprint("call_", r.IntN(6)) }
		for range 80 {
			switch r.IntN(6) {
			case 0:
				w.say(text(session.User, "go on"))
			case 1:
				w.say(text(session.Assistant, "I think so"), session.Message{Role: session.User, Content: "OBSERVATION\n1\n2\n3", Observation: true})
			case 2:
				w.say(asks("", id(), id()))
			case 3:
				w.say(answers(id(), "it is there"))
			case 4:
				w.do(step.Step{ToolName: "fs:stat", CallID: id(), TurnID: fmt.Sprint(r.IntN(2)), Inline: strings.Repeat("word ", r.IntN(200))})
			case 5:
				w.compact()
			}
			w.request.MaxTokens = 300 + r.IntN(4000)
			p, err := w.assembler.Assemble(t.Context(), w.request)
			if errors.Is(err, assemble.ErrOverflow) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := checkRules(MustChat(t, p).Messages); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if p.Tokens.Tokens > w.request.MaxTokens {
				t.Fatalf("seed %d: %d tokens, over %d", seed, p.Tokens.Tokens, w.request.MaxTokens)
			}
		}
	}
}

// styles are the layouts of CompactHistory.
var styles = map[string]history.Style{"design": history.StyleDesign, "reduction": history.StyleReduction, "grouped": history.StyleGrouped}
