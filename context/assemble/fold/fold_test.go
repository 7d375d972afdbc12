package fold_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var scope = kv.AgentScope("default", "agent-1")

// world is a session in a real log, and what folds it.
type world struct {
	*testing.T
	log     *session.Log
	writer  *kv.Writer
	source  *read.Sessions
	stage   *fold.Stage
	counter *tokens.Counter
}

func newWorld(t *testing.T, bytes int) *world {
	t.Helper()
	engine := memkv.New(&memkv.Options{SnapshotLife: time.Hour}) // it is read for as long as a test takes
	writer := kv.NewWriter(engine, nil)
	t.Cleanup(func() {
		if err := errors.Join(writer.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	counter, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, log: session.New(engine, writer, nil), writer: writer, counter: counter}
	w.source = read.New(w.log, engine, nil, bytes)
	w.stage = fold.New(w.log, step.ReferenceHint, step.NewReducer(nil), step.Templates{})
	return w
}

func (w *world) say(m session.Message) {
	w.Helper()
	if _, err := w.log.AppendMessages(w.Context(), scope, "", []session.Message{m}, ""); err != nil {
		w.Fatal(err)
	}
}

// work records a wish, and steps whose results are long.
func (w *world) work(steps int) {
	w.Helper()
	w.say(session.Message{Role: session.User, Content: "read all files"})
	for i := range steps {
		stage := func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := w.log.StageStep(ctx, tx, scope, func(uint64) (step.Step, error) {
				return step.Step{
					ToolName: "shell:exec", TurnID: fmt.Sprint("turn", i), MinimalArgs: fmt.Appendf(nil, `{"command":"cat file%d.go"}`, i), Outcome: step.Succeeded,
					Observation: fmt.Sprint("exit 0, file ", i), Inline: strings.Repeat(fmt.Sprintf("func handleRequest%d(w Writer) error\n", i), 40),
				}, nil
			})
			return err
		}
		if err := w.writer.Do(w.Context(), kv.Request{Refs: []kv.Ref{w.log.Ref(scope)}, Stage: stage}); err != nil {
			w.Fatal(err)
		}
	}
}

// folding is the history of the session as it is now.
func (w *world) folding(r fold.Rules) *fold.Folding {
	w.Helper()
	m, err := w.source.Open(w.Context(), scope, "", false)
	if err == nil {
		err = m.Load(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(m.Close)
	if r.Prices == (history.Prices{}) {
		r.Prices = history.DefaultPrices()
	}
	r.ResultTokens = 3000
	c, err := w.stage.Folding(m, r, render.NewTally(w.Context(), w.counter, "", provider.OpenAIChat), nil)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) read(c *fold.Folding) *fold.Material {
	w.Helper()
	s, err := c.Read(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// rules are the rules of all policies by their names.
func (w *world) rules() map[string]fold.Rules {
	all := map[string]fold.Rules{
		session.PolicyLedger:     {Policy: session.PolicyLedger, Name: session.PolicyLedger},
		session.PolicyAppendOnly: {Policy: session.PolicyAppendOnly, Name: session.PolicyAppendOnly},
	}
	for _, name := range []string{"design", "reduction", "task_context", "three_phase", "partitioned", "chat", "debug"} {
		all[name] = fold.Rules{Policy: session.PolicyPreset, Name: name, Preset: w.stage.Preset(name)}
	}
	return all
}

func ask(budget int) fold.Ask {
	return fold.Ask{Goal: "find handleRequest7", Turn: "t", MaxTokens: budget + 100, Window: fold.Window{Now: time.Unix(1, 0)}}
}

func sizeOf(d *fold.Draft) (n int) {
	for i := range d.Items {
		n += d.Items[i].Tokens
	}
	return n
}

// Whatever the rules, a history fits its budget or says what takes most of it, and the same
// source gives the same draft.
func TestHistoryFitsItsBudget(t *testing.T) {
	w := newWorld(t, 0)
	w.work(30)
	for name, rules := range w.rules() {
		folded := 0
		for _, budget := range []int{20_000, 9000, 4000, 1500, 600, 40, 1} {
			one, two := w.folding(rules), w.folding(rules)
			d, err := one.History(t.Context(), w.read(one), ask(budget), budget)
			again, errAgain := two.History(t.Context(), w.read(two), ask(budget), budget)
			if !reflect.DeepEqual(d, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
				t.Errorf("%s in %d: another draft from the same", name, budget)
			}
			overflow := new(history.OverflowError)
			switch {
			case errors.As(err, &overflow):
				if budget >= 20_000 || overflow.Tokens <= 0 {
					t.Errorf("%s does not fit %d: %v", name, budget, err)
				}
			case err != nil:
				t.Errorf("%s in %d: %v", name, budget, err)
			case sizeOf(d) > budget:
				t.Errorf("%s takes %d of %d tokens", name, sizeOf(d), budget)
			case d.Batch != nil:
				folded++
				if len(d.Batch.Refs) == 0 || d.Batch.Reason == 0 {
					t.Errorf("%s in %d folds %+v", name, budget, d.Batch)
				}
			}
		}
		if name != session.PolicyAppendOnly && rules.Preset.Style != history.StyleGrouped && folded == 0 {
			t.Errorf("%s never folds", name)
		}
	}
}

// What a draft folded stands in the next prompts once it is stored, and a dry run stores nothing.
func TestStore(t *testing.T) {
	w := newWorld(t, 0)
	w.work(30)
	for name, rules := range w.rules() {
		rules.DryRun = true
		dry := w.folding(rules)
		s := w.read(dry)
		d, err := dry.History(t.Context(), s, ask(4000), 4000)
		if err != nil || d.Batch == nil {
			continue // it folds nothing there
		}
		if err := dry.Store(t.Context(), s, d, ""); err != nil {
			t.Fatal(err)
		}
		if left := w.read(w.folding(rules)).State; left.Version != s.State.Version {
			t.Errorf("%s: a dry run stored version %d", name, left.Version)
		}
		rules.DryRun = false
		real := w.folding(rules)
		if err := real.Store(t.Context(), s, d, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := real.Store(t.Context(), s, d, ""); !errors.Is(err, session.ErrFoldsChanged) {
			t.Errorf("%s is stored twice: %v", name, err)
		}
		next := w.folding(rules)
		after, err := next.History(t.Context(), w.read(next), ask(4000), 4000)
		if err != nil || after.Batch != nil || sizeOf(after) != sizeOf(d) {
			t.Errorf("%s: after it was stored the next draft folds %+v, %v", name, after.Batch, err)
		}
		if _, err := w.log.Undo(t.Context(), scope, "", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// More than is read at once is folded as it is read.
func TestReadFoldsWhatIsTooMuch(t *testing.T) {
	w := newWorld(t, 8<<10)
	w.work(60)
	ledger := fold.Rules{Policy: session.PolicyLedger, Name: session.PolicyLedger}
	c := w.folding(ledger)
	s := w.read(c)
	if c.Before == nil || len(s.State.Live) == 0 || c.Before.Reason != history.ByBudget {
		t.Fatalf("folded %+v", c.Before)
	}
	if again := w.folding(ledger); len(w.read(again).State.Live) != len(s.State.Live) {
		t.Error("the folds were not stored")
	}
}

func TestCompact(t *testing.T) {
	w := newWorld(t, 0)
	w.work(20)
	c := w.folding(fold.Rules{Policy: session.PolicyLedger, Name: session.PolicyLedger})
	got, err := c.Compact(t.Context(), 0, "all files were read")
	if err != nil || got.Batch == nil || got.Batch.Reason != history.ByCaller || len(got.Folds) != 1 || got.Problem != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if !strings.Contains(got.Folds[0].Text, "all files were read") || got.Tokens <= 0 {
		t.Errorf("fold %q of %d tokens", got.Folds[0].Text, got.Tokens)
	}
	small := w.folding(fold.Rules{Policy: session.PolicyLedger, Name: session.PolicyLedger})
	if _, err := small.Compact(t.Context(), 5, ""); !errors.As(err, new(*history.OverflowError)) {
		t.Errorf("a budget of 5 tokens: %v", err)
	}
}

func TestConclude(t *testing.T) {
	w := newWorld(t, 0)
	w.work(8)
	rules := fold.Rules{Policy: session.PolicyLedger, Name: session.PolicyLedger}
	part := history.Subtask{
		ID: "task_001", Conclusion: "files 0 to 3 are clean", Name: func(refs []string) string { return strings.Join(refs, ", ") },
		Covers: func(*history.Fold) bool { return false },
		Holds:  func(e *history.Entry) bool { return 1 < e.Position && e.Position <= 5 },
	}
	got, err := w.folding(rules).Conclude(t.Context(), part)
	if err != nil || got.Problem != "" || got.Batch == nil || len(got.Batch.Refs) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	if again, err := w.folding(rules).Conclude(t.Context(), part); err != nil || again.Problem == "" {
		t.Errorf("it is folded twice: %+v, %v", again, err)
	}
}

// A window that is asked to begin anew hands over what the agent is at.
func TestRenewal(t *testing.T) {
	w := newWorld(t, 0)
	w.work(20)
	for _, name := range []string{session.PolicyLedger, "partitioned"} {
		rules := w.rules()[name]
		if !rules.Renews() {
			t.Fatalf("%s does not renew", name)
		}
		c := w.folding(rules)
		a := ask(9000)
		a.Window.Forced = true
		d, err := c.History(t.Context(), w.read(c), a, 9000)
		if err != nil || d.Renewal == nil || c.Misses || d.Renewal.Snapshot.Sprint != 1 || d.Batch.Level != window.Renewal || d.Batch.Reason != history.ByCaller {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	for _, name := range []string{session.PolicyAppendOnly, "design"} {
		if rules := w.rules()[name]; rules.Renews() {
			t.Errorf("%s renews", name)
		}
	}
}

func TestCutNewest(t *testing.T) {
	w := newWorld(t, 0)
	w.say(session.Message{Role: session.User, Content: strings.Repeat("word ", 3000)})
	for name, rules := range w.rules() {
		c := w.folding(rules)
		s := w.read(c)
		if _, err := c.History(t.Context(), s, ask(500), 500); err != nil && !errors.As(err, new(*history.OverflowError)) {
			t.Fatal(err)
		}
		if cut, err := c.CutNewest(s, 2700); !cut || err != nil {
			t.Errorf("%s: cut %v, %v", name, cut, err)
		}
		d, err := c.History(t.Context(), s, ask(500), 500)
		if err != nil || len(d.Items) != 1 || !strings.HasPrefix(d.Items[0].Message.Content, "word ") {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

func TestLines(t *testing.T) {
	w := newWorld(t, 0)
	var steps []step.Step
	for i := range 12 {
		steps = append(steps, step.Step{Number: uint64(i + 1), ToolName: "shell:exec", Outcome: step.Succeeded, Observation: fmt.Sprint("exit 0, file ", i)})
	}
	count := func(s string) int { return len(s) / 4 }
	for _, style := range []history.Style{0, history.StyleDesign, history.StyleReduction, history.StyleGrouped} {
		text := w.stage.Lines(steps, style, 2, 0, count)
		if !strings.Contains(text, "file 11") || text == w.stage.Lines(steps, style, 5, 0, count) {
			t.Errorf("style %d: %s", style, text)
		}
	}
	if long, short := w.stage.Lines(steps, history.StyleReduction, 2, 0, count), w.stage.Lines(steps, history.StyleReduction, 2, 30, count); len(short) >= len(long) {
		t.Errorf("a bound of 30 tokens: %s", short)
	}
}
