package main

import (
	"fmt"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A file of models says what counts a model's tokens and how many there are for each one
// counted; without one, models have what is known of them, and others are estimated.
//
// K26, P31
func TestOptionsOfCounters(t *testing.T) {
	t.Parallel()
	const text = "The quick brown fox jumps over the lazy dog. 漢字 かな 한글"
	const known = 9 + 1 // the sentence in o200k_base, whose ten tokens everybody can look up
	file := MustFile(t, `
[models.guessed]
counter = "estimate"

[models.exact]
counter = "openai"
encoding = "o200k_base"
exact = true

[models.near]
counter = "anthropic"
encoding = "o200k_base"
ratio = 2.0

[models."claude-3-5-sonnet"]
ratio = 3.0

[models."gpt-4o"]
counter = "estimate"
`)
	count := func(p *process, model, text string) string {
		got, err := p.context().CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: "a", Model: model, Text: text})
		must(t, err)
		c := got
		return fmt.Sprint(c.GetTokens(), " ", c.GetCounter(), " ", strings.ToLower(strings.TrimPrefix(c.GetCertainty().String(), "TOKEN_CERTAINTY_")))
	}
	fox := text[:strings.Index(text, " 漢")]
	guessed := fmt.Sprint(known*12/10, " estimate estimated") // more than (len(fox)+3)/4
	for _, tt := range []struct {
		args []string
		want map[string]string
	}{
		{nil, map[string]string{
			"guessed": guessed, "gpt-4o": fmt.Sprint(known, " o200k_base exact"),
			"claude-3-5-sonnet": "11 anthropic estimated", "claude-opus-4-7": "15 anthropic estimated",
		}},
		{[]string{"--models", file}, map[string]string{
			"guessed": guessed, "exact": fmt.Sprint(known, " o200k_base exact"),
			"near": fmt.Sprint(2*known, " anthropic estimated"), "claude-3-5-sonnet": fmt.Sprint(3*known, " anthropic estimated"),
			"gpt-4o": fmt.Sprint((len(fox)+3)/4, " estimate estimated"),
		}},
	} {
		p := MustRun(t, t.TempDir(), tt.args...)
		for model, want := range tt.want {
			if got := count(p, model, fox); got != want {
				t.Errorf("%v, %s: %s, want %s", tt.args, model, got, want)
			}
		}
	}
	for name, bad := range map[string]string{"no counter": "[models.x]\ncounter = \"abacus\"\n", "a ratio of nothing": "[models.x]\nratio = -1.0\n"} {
		if err := runBriefly(t, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()+"/store", "--models", MustFile(t, bad)); err == nil || !strings.Contains(err.Error(), "--models") {
			t.Errorf("%s: the server starts: %v", name, err)
		}
	}
}
