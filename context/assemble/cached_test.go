package assemble_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	formats "github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// What a provider should read from its cache stands in the prompt before of the same model
// and format, and in this one; a report of it is taken, whatever the provider counts.
func TestExpectedCacheStandsInThePromptBefore(t *testing.T) {
	for _, policy := range append([]string{"ledger"}, presets...) {
		for _, ratio := range []float64{.7, 1, 1.4} {
			t.Run(fmt.Sprintf("%s %v", policy, ratio), func(t *testing.T) {
				w := newWorld(t)
				w.request.MaxTokens = 8000
				w.request.System = strings.Repeat("You are careful. ", 300)
				if policy != "ledger" {
					w.request.History.Preset = policy
				}
				models := []string{"claude-sonnet-4", "gpt-4o"}
				before := map[assemble.Format]int{}
				hits := 0
				for n := range 12 {
					w.say(text(session.User, fmt.Sprintf("Question %d. %s", n, strings.Repeat("More of it. ", 40))))
					for turn := range 3 { // the third goes to the other provider
						f := turn / 2
						w.request.Model, w.request.Format = models[f], []assemble.Format{formats.Anthropic, assemble.OpenAIChat}[f]
						p := w.prompt()
						r, most := p.Receipt, min(p.Tokens.Tokens, before[w.request.Format])
						if r.ExpectedCached > most || r.StableTokens > most {
							t.Fatalf("%d of %d: %d expected and %d stable of %d, the one before had %d", n, turn, r.ExpectedCached, r.StableTokens, p.Tokens.Tokens, before[w.request.Format])
						}
						for _, m := range p.Marks {
							if m.Expected > r.ExpectedCached {
								t.Errorf("a mark says %d, the receipt %d", m.Expected, r.ExpectedCached)
							}
						}
						if r.ExpectedCached > 0 {
							hits++
						}
						before[w.request.Format] = p.Tokens.Tokens
						took := max(int(float64(p.Tokens.Tokens)*ratio), r.StableTokens)
						w.report(p, tokens.Usage{Prompt: took}, r.StableTokens)
					}
				}
				if hits < 24 {
					t.Errorf("%d of 36 prompts expect something to be cached", hits)
				}
			})
		}
	}
}

// A prompt that has its tools as text is kept for the same tools only.
func TestReuseWithToolsAsText(t *testing.T) {
	w := newWorld(t)
	w.assembler = assemble.New(w.log, w.counter, &assemble.Options{CacheBytes: -1})
	asText := *w.request.Settings
	asText.Rendering = settings.AsText
	w.request.Settings = &asText
	for _, name := range []string{"first", "first", "first", "first", "second"} {
		w.request.Tools = []assemble.Tool{{Name: name, Description: "It does something."}}
		if p := w.prompt(); !strings.Contains(string(p.OpenAIChatJSON), name) {
			t.Errorf("the tool %s is missing (reused: %v)", name, p.Receipt.Reused)
		}
	}
}
