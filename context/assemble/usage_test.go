package assemble_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// report says what a provider counted of a prompt.
func (w *world) report(p assemble.Prompt, u tokens.Usage, cached int) assemble.UsageLearned {
	w.tb.Helper()
	learned, err := w.assembler.ReportUsage(w.tb.Context(), assemble.UsageReport{
		Scope: scope, SessionID: "s", PromptID: p.Receipt.PromptID, Usage: u, Cached: cached,
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return learned
}

// provider is one that counts more than is counted here, and answers.
type provider struct {
	*world
	ratio float64
	says  int // messages so far
}

// send sends a prompt, reports what it took, and records the answer.
func (p *provider) send(prompt assemble.Prompt) (took int) {
	p.tb.Helper()
	local := tokens.ReplyTokens
	for _, part := range prompt.Parts {
		local += part.Tokens
	}
	took = int(float64(local) * p.ratio)
	p.says++
	answer := text(session.Assistant, fmt.Sprintf("That is answer %d, and here is some more of it.", p.says))
	n, err := p.counter.Message(p.request.Model, tokens.Message{Role: "assistant", Content: answer.Content})
	if err != nil {
		p.tb.Fatal(err)
	}
	p.report(prompt, tokens.Usage{Prompt: took, Completion: int(float64(n.Tokens) * p.ratio)}, 0)
	p.say(answer, text(session.User, fmt.Sprintf("Go on with number %d, please.", p.says)))
	return took
}

// Where usage is reported, the next prompt is what the provider counted and
// what came since, and says so; a restart forgets nothing of that.
func TestAnchoredPrompts(t *testing.T) {
	w := newWorld(t)
	w.request.Model = "claude-sonnet-4"
	p := &provider{world: w, ratio: 1.3}
	w.say(text(session.User, "Hello."))
	const restart = 5 // behind this prompt
	for n := range 10 {
		w.work(n)
		prompt := w.prompt()
		if got, want := prompt.Tokens.Anchored, n > 0 && prompt.Receipt.Batch == nil; got != want {
			t.Errorf("prompt %d is anchored: %v, want %v", n, got, want)
		}
		said, reserve := prompt.Tokens.Tokens, prompt.Receipt.ReserveTokens
		took := p.send(prompt)
		off := float64(took-said) / float64(took)
		// At first nobody knows what the model makes of what is added.
		if n > 2 && (off > .04 || off < -.04) {
			t.Errorf("prompt %d: said %d, took %d", n, said, took)
		}
		if n > 2 && n <= restart && took > said+reserve {
			t.Errorf("prompt %d: said %d with a reserve of %d, took %d", n, said, reserve, took)
		}
		if n == restart {
			w.assembler = assemble.New(w.log, w.counter, nil)
		}
	}
}

// A fold retires the anchor.
func TestFoldRetiresTheAnchor(t *testing.T) {
	w := newWorld(t)
	p := &provider{world: w, ratio: 1.1}
	for n := range 8 {
		w.work(n)
	}
	p.send(w.prompt())
	if !w.prompt().Tokens.Anchored {
		t.Error("the prompt only grew, but is not anchored")
	}
	w.compact()
	if got := w.prompt().Tokens; got.Anchored {
		t.Errorf("after a fold: %+v", got)
	}
	w.undo()
	if !w.prompt().Tokens.Anchored {
		t.Error("undone, the prompt is the one that was reported")
	}
	if w.with(func(r *assemble.Request) { r.System = "another" }).Tokens.Anchored {
		t.Error("another system prompt is not the one that was reported")
	}
}

// What one agent reports changes nothing for another.
func TestRatiosAreTheAgentsOwn(t *testing.T) {
	w := newWorld(t)
	p := &provider{world: w, ratio: 3}
	other := w.request
	other.Scope, other.SessionID = kv.AgentScope("default", "other"), "s"
	if _, err := w.log.AppendMessages(t.Context(), other.Scope, "s", []session.Message{text(session.User, "hello")}, ""); err != nil {
		t.Fatal(err)
	}
	before, err := w.assembler.Assemble(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		w.work(n)
		p.send(w.prompt())
	}
	after, err := w.assembler.Assemble(t.Context(), other)
	if err != nil || after.Tokens != before.Tokens {
		t.Errorf("the other agent's prompt was %+v and is %+v, %v", before.Tokens, after.Tokens, err)
	}
}

func TestReportUsage(t *testing.T) {
	w := newWorld(t)
	w.work(1)
	first := w.prompt()
	w.work(2)
	second := w.prompt()
	u := tokens.Usage{Prompt: 2 * second.Tokens.Tokens, Completion: 10}
	got := w.report(second, u, 50)
	want := assemble.UsageLearned{Counted: second.Tokens.Tokens, Ratio: 2, Missed: 2*second.Receipt.StableTokens - 50}
	if got != want || second.Receipt.StableTokens == 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	w.report(first, tokens.Usage{Prompt: 100}, 0) // an older one may still come
	for _, tt := range []struct {
		name string
		r    assemble.UsageReport
		want error
	}{
		{"unknown", assemble.UsageReport{PromptID: "none", Usage: u}, assemble.ErrPromptUnknown},
		{"of a dry run", assemble.UsageReport{PromptID: w.with(func(r *assemble.Request) { r.Goal = "x" }).Receipt.PromptID, Usage: u}, assemble.ErrPromptUnknown},
		{"no id", assemble.UsageReport{Usage: u}, assemble.ErrInvalid},
		{"no tokens", assemble.UsageReport{PromptID: first.Receipt.PromptID}, assemble.ErrInvalid},
		{"negative answer", assemble.UsageReport{PromptID: first.Receipt.PromptID, Usage: tokens.Usage{Prompt: 1, Completion: -1}}, assemble.ErrInvalid},
		{"negative cache", assemble.UsageReport{PromptID: first.Receipt.PromptID, Usage: u, Cached: -1}, assemble.ErrInvalid},
	} {
		tt.r.Scope, tt.r.SessionID = scope, "s"
		if _, err := w.assembler.ReportUsage(t.Context(), tt.r); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	restarted := assemble.New(w.log, w.counter, nil)
	if _, err := restarted.ReportUsage(t.Context(), assemble.UsageReport{Scope: scope, SessionID: "s", PromptID: first.Receipt.PromptID, Usage: u}); !errors.Is(err, assemble.ErrPromptUnknown) {
		t.Errorf("after a restart: %v", err)
	}
}

// The receipt's stable part is what both prompts begin with.
func TestStablePart(t *testing.T) {
	w := newWorld(t)
	w.request.System, w.request.Tools = "system", someTools()
	w.say(text(session.User, "hello"))
	if r := w.prompt().Receipt; r.StableTokens != 0 || r.StableBytes != 0 {
		t.Errorf("the first prompt: %+v", r)
	}
	one := w.prompt()
	if r := one.Receipt; r.StableTokens != one.Tokens.Tokens-tokens.ReplyTokens || r.StableBytes != int64(len(one.OpenAIChatJSON)-2) {
		t.Errorf("the same prompt again: %+v of %d tokens, %d bytes", r, one.Tokens.Tokens, len(one.OpenAIChatJSON))
	}
	w.work(1)
	two := w.prompt()
	if r := two.Receipt; r.StableTokens != one.Receipt.SettledTokens || r.Cost >= float64(two.Tokens.Tokens) {
		t.Errorf("one step more: %+v, before %+v", r, one.Receipt)
	}
	if got, want := one.OpenAIChatJSON[:two.Receipt.StableBytes], two.OpenAIChatJSON[:two.Receipt.StableBytes]; string(got) != string(want) {
		t.Error("the stable bytes differ")
	}
	w.request.Tools = nil
	if r := w.prompt().Receipt; r.StableTokens != 0 || r.AppendOnlyCost < float64(r.SettledTokens) {
		t.Errorf("other tools: %+v", r)
	}
}
