package assemble_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// No usage report makes a session's prompts be refused that would fit, neither
// now nor after a restart.
func TestUsageNeverWedges(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   func(counted int) tokens.Usage
	}{
		{"thoughts in the answer", func(n int) tokens.Usage { return tokens.Usage{Prompt: n, Completion: 9000} }},
		{"another prompt's", func(int) tokens.Usage { return tokens.Usage{Prompt: 2_000_000_000} }},
		{"a longer prompt's", func(n int) tokens.Usage { return tokens.Usage{Prompt: 4*n + 1000} }},
		{"everything too large", func(int) tokens.Usage { return tokens.Usage{Prompt: 1<<31 - 1, Completion: 1<<31 - 1} }},
	} {
		w := newWorld(t)
		w.request.MaxTokens = assemble.DefaultMaxTokens
		w.say(manySaid(250)...)
		p := w.prompt()
		if p.Tokens.Tokens < assemble.DefaultMaxTokens/4 {
			t.Fatalf("%d tokens are too few to test much", p.Tokens.Tokens)
		}
		w.report(p, tt.of(p.Tokens.Tokens), 0)
		w.say(text(session.Assistant, "Hi."), text(session.User, "go on"))
		for _, when := range []string{"now", "after a restart"} {
			p, err := w.assembler.Assemble(t.Context(), w.request)
			if err != nil || p.Tokens.Tokens > w.request.MaxTokens {
				t.Errorf("%s: %s: %d tokens, %v", tt.name, when, p.Tokens.Tokens, err)
			}
			w.assembler = assemble.New(w.log, w.counter, nil)
		}
	}
}

// An anchor that was stored before it would have been refused is not believed.
func TestStoredAnchors(t *testing.T) {
	w := newWorld(t)
	w.say(text(session.User, "hello"))
	p := w.prompt()
	for _, a := range []tokens.Anchor{
		{Local: 10, Real: 2_000_000_000}, {Local: 1_000_000, Real: 1}, {Real: 1 << 30}, {Local: 10, Real: 20, Answer: 1 << 40},
	} {
		a.Model, a.ID = w.request.Model, p.Receipt.PromptID
		if err := w.log.SaveAnchor(t.Context(), scope, "s", a); err != nil {
			t.Fatal(err)
		}
		if got := w.prompt().Tokens.Tokens; got > 100 {
			t.Errorf("%+v: %d tokens", a, got)
		}
	}
}

// An answer counts as what it is recorded as, not with what the model thought.
func TestThoughtsDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.say(text(session.User, "hello"))
	p := w.prompt()
	w.report(p, tokens.Usage{Prompt: p.Tokens.Tokens, Completion: 5000}, 0)
	w.say(text(session.Assistant, "Hi there."))
	if got := w.prompt().Tokens; !got.Anchored || got.Tokens > p.Tokens.Tokens+30 {
		t.Errorf("a prompt of %d and a short answer are %+v", p.Tokens.Tokens, got)
	}
}

// A second report for a prompt corrects the first, but not what another prompt
// anchors.
func TestSecondReport(t *testing.T) {
	w := newWorld(t)
	w.say(manySaid(60)...)
	p := w.prompt()
	n := p.Tokens.Tokens
	for _, counted := range []int{2 * n, n + 10, 2_000_000_000, n + 10} {
		w.report(p, tokens.Usage{Prompt: counted}, 0)
	}
	if got := w.prompt().Tokens; !got.Anchored || got.Tokens != n+10 {
		t.Errorf("got %+v, want %d", got, n+10)
	}
	w.say(text(session.User, "go on"))
	next := w.prompt()
	w.report(next, tokens.Usage{Prompt: n + 50}, 0)
	w.report(p, tokens.Usage{Prompt: 3 * n}, 0)
	if got := w.prompt().Tokens.Tokens; got != n+50 {
		t.Errorf("after a late correction: %d, want %d", got, n+50)
	}
}

// An overflow says so when the prompt would fit as it is counted here.
func TestOverflowNamesUsage(t *testing.T) {
	w := newWorld(t)
	w.say(instructed(60)...)
	for range 30 {
		w.say(text(session.User, "go on"))
		p := w.prompt()
		local := tokens.ReplyTokens
		for _, part := range p.Parts {
			local += part.Tokens
		}
		w.report(p, tokens.Usage{Prompt: 2 * local}, 0)
		w.request.MaxTokens = local * 3 / 2
		if p := w.with(func(r *assemble.Request) { r.MaxTokens = unlimited }); p.Tokens.Tokens < local {
			t.Fatalf("%+v", p.Tokens)
		}
		w.request.MaxTokens = 3 * local
	}
	w.request.MaxTokens /= 2
	_, err := w.assembler.Assemble(t.Context(), w.request)
	e, ok := errors.AsType[*assemble.OverflowError](err)
	if !ok || e.Part != "usage" || e.TotalTokens <= e.MaxTokens || e.PartTokens <= 0 {
		t.Errorf("got %v", err)
	}
}
