package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

var formats = []provider.Format{provider.Neutral, provider.OpenAIChat, provider.OpenAIResponses, provider.Anthropic, provider.Gemini}

func counter(t testing.TB) *tokens.Counter {
	t.Helper()
	c, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// frame is a prompt around a history, with a goal.
func frame(goal string) layout.Frame {
	section := func(name string, phase inject.Phase, text string) inject.Injection {
		return inject.Injection{Name: name, Phase: phase, Text: text, Framed: true, Last: name == settings.Goal, Cache: inject.Stable}
	}
	all := []inject.Injection{
		section(settings.System, inject.System, "You are an agent."), section(settings.Plan, inject.Runtime, "1. Do it."),
		section(settings.Goal, inject.Runtime, goal),
	}
	prepared := &inject.Prepared{Arranged: inject.Arrange(all, inject.Options{Count: func(s string) int { return len(s) / 4 }})}
	return layout.New(layout.Named(settings.ThreePhase), prepared, goal)
}

// history is one that begins with folds, as long as it says.
func history(random *rand.Rand, n int) (items []pairing.Item) {
	for i := range n {
		it := pairing.Item{Label: fmt.Sprintf("message %d", i), Message: session.Message{Role: session.User, Content: words(random)}}
		switch {
		case i < n/2 && random.IntN(3) > 0:
			it.Label = pairing.LabelFold
		case random.IntN(2) == 0:
			it.Message.Role = session.Assistant
		}
		items = append(items, it)
	}
	return items
}

func words(random *rand.Rand) string {
	var b strings.Builder
	for range 1 + random.IntN(30) {
		b.WriteString([]string{"word ", "\"quoted\" ", "ü ", "line\n", "<tag> "}[random.IntN(5)])
	}
	return b.String()
}

var set = render.Tools{
	JSON:    []byte(`[{"function":{"name":"t","parameters":{"type":"object"}},"type":"function"}]`),
	Counted: []tokens.ToolDefinition{{Name: "t", Schema: []byte(`{"type":"object"}`)}},
	Count:   tokens.Count{Tokens: 17},
}

func rendered(t *testing.T, c *tokens.Counter, format provider.Format, items []pairing.Item, last *render.Trail) *render.Builder {
	t.Helper()
	f := frame("the goal")
	b := render.NewBuilder(c, render.Job{Format: format}, set)
	if err := b.Render(t.Context(), &f, slices.Clone(items), last); err != nil {
		t.Fatal(err)
	}
	return b
}

func finished(t *testing.T, b *render.Builder) render.Written {
	t.Helper()
	w, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTokensHaveOwners: each token of a prompt belongs to one section.
func TestTokensHaveOwners(t *testing.T) {
	t.Parallel()
	c := counter(t)
	for _, format := range formats {
		for n := range 8 {
			b := rendered(t, c, format, history(rand.New(rand.NewPCG(uint64(n), 1)), n), nil)
			w := finished(t, b)
			sum, seen := 0, map[string]bool{}
			for _, part := range w.Parts {
				if seen[part.Section] || part.Tokens < 0 {
					t.Errorf("%v: %+v", format, w.Parts)
				}
				seen[part.Section] = true
				sum += part.Tokens
			}
			if total := w.Tokens.Tokens; total-sum != tokens.ReplyTokens {
				t.Errorf("%v, %d messages: %d tokens, its sections have %d", format, n, total, sum)
			}
			for i := 1; i < len(b.Places); i++ {
				if b.Places[i].Tokens <= b.Places[i-1].Tokens || b.Places[i].Bytes <= b.Places[i-1].Bytes || b.Places[i].Sum == b.Places[i-1].Sum {
					t.Errorf("%v: a message ends at %+v, the one before at %+v", format, b.Places[i], b.Places[i-1])
				}
			}
			if len(b.Places) != len(b.Messages)+1 || len(b.Origins) != len(b.Messages) {
				t.Errorf("%v: %d ends, %d messages, %d origins", format, len(b.Places), len(b.Messages), len(b.Origins))
			}
		}
	}
}

// TestTrails: a prompt that goes on from the trail of the one before is the one without, and
// a trail of another beginning changes nothing.
func TestTrails(t *testing.T) {
	t.Parallel()
	c := counter(t)
	for _, format := range formats {
		used := false
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 2))
			items := history(random, 2+random.IntN(20))
			before := rendered(t, c, format, items[:1+random.IntN(len(items))], nil)
			next := slices.Clone(items)
			if random.IntN(3) == 0 { // something has changed
				next[random.IntN(len(next))].Message.Content = "other"
			}
			with, without := rendered(t, c, format, next, before.Trail), rendered(t, c, format, next, nil)
			used = used || before.Trail != nil && with.Trail == before.Trail
			if with.Sum() != without.Sum() || with.Total != without.Total || !slices.Equal(with.Places, without.Places) || with.Edges != without.Edges || with.Settled != without.Settled {
				t.Fatalf("%v, seed %d: the trail changes the prompt", format, seed)
			}
			a, err := json.Marshal(finished(t, with))
			b, other := json.Marshal(finished(t, without))
			if err != nil || other != nil || string(a) != string(b) {
				t.Fatalf("%v, seed %d:\n%s\n%s", format, seed, a, b)
			}
		}
		if used != (format != provider.OpenAIChat) {
			t.Errorf("%v: a trail was used: %v", format, used)
		}
	}
	folds := history(rand.New(rand.NewPCG(1, 1)), 9)
	folds[3].Label = pairing.LabelFold
	trail := rendered(t, c, provider.Anthropic, folds, nil).Trail
	if trail == nil || rendered(t, c, provider.Gemini, folds, trail).Trail == trail {
		t.Error("a trail is used for another format")
	}
	var none *render.Trail
	if _, ok := none.Size("", 0, ""); ok {
		t.Error("no trail has a size")
	}
}

// TestPrefix: what stands before the goal is the same whatever the goal and what follows are.
func TestPrefix(t *testing.T) {
	t.Parallel()
	c := counter(t)
	items := history(rand.New(rand.NewPCG(5, 5)), 9)
	items[8].Message.Role = session.Assistant
	prefix := func(goal string, items []pairing.Item) string {
		f := frame(goal)
		b := render.NewBuilder(c, render.Job{Format: provider.Anthropic}, set)
		if err := b.Render(t.Context(), &f, slices.Clone(items), nil); err != nil {
			t.Fatal(err)
		}
		return finished(t, b).Prefix
	}
	if prefix("one", items) != prefix("two", items) {
		t.Error("the goal changes what stands before it")
	}
	if prefix("one", items) == prefix("one", items[1:]) {
		t.Error("the history does not change it")
	}
}

// TestBounds: text over the bound is refused with what would help; an ended context writes
// nothing more.
func TestBounds(t *testing.T) {
	t.Parallel()
	c := counter(t)
	items := history(rand.New(rand.NewPCG(5, 5)), 9)
	text := rendered(t, c, provider.Neutral, items, nil).Text
	for limit, fits := range map[int]bool{0: true, text: true, text - 1: false, 1: false} {
		f := frame("the goal")
		b := render.NewBuilder(c, render.Job{Format: provider.Neutral, MaxBytes: limit}, set)
		err := b.Render(t.Context(), &f, slices.Clone(items), nil)
		var large *render.TooLargeError
		if (err == nil) != fits || !fits && (!errors.As(err, &large) || !errors.Is(err, render.ErrTooLarge) || large.Limit != limit) {
			t.Errorf("%d bytes of %d: %v", limit, text, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := frame("the goal")
	if err := render.NewBuilder(c, render.Job{}, set).Render(ctx, &f, items, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAnchors: a usage report finds the prompt that it is of by the beginning of its id; one of
// another model, cut or foreign finds none.
func TestAnchors(t *testing.T) {
	t.Parallel()
	b := rendered(t, counter(t), provider.Neutral, history(rand.New(rand.NewPCG(5, 5)), 9), nil)
	for i, p := range b.Places {
		if got := b.EndOf(tokens.Anchor{ID: p.Sum.String() + "-1"}); got != i {
			t.Errorf("place %d is found at %d", i, got)
		}
	}
	id := b.Places[2].Sum.String()
	for _, a := range []tokens.Anchor{
		{}, {ID: id}, {ID: id + "-1", Model: "other"}, {ID: id[1:] + "-1"}, {ID: id + "00-1"}, {ID: strings.Repeat("z", len(id)) + "-1"}, {ID: strings.Repeat("0", len(id)) + "-"},
	} {
		if got := b.EndOf(a); got != -1 {
			t.Errorf("%+v is found at %d", a, got)
		}
	}
}

// TestLongTexts: a text of any length is counted, in pieces where it is too long for one count.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	c := counter(t)
	for name, text := range map[string]string{
		"lines": strings.Repeat("a line of text\n", tokens.MaxTextBytes/10), "one line": strings.Repeat("é", tokens.MaxTextBytes),
		"no text": strings.Repeat("\x80", tokens.MaxTextBytes+5), "a line behind": strings.Repeat("x", tokens.MaxTextBytes+1) + "\n",
	} {
		n, err := render.CountText(c, "", text)
		if err != nil || n.Tokens < len(text)/100 || n.Exact {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
		m, err := render.CountMessage(c, "", tokens.Message{Role: "user", Content: text})
		if err != nil || m.Tokens <= n.Tokens {
			t.Errorf("%s: a message of %d tokens, %v", name, m.Tokens, err)
		}
	}
}

// TestTally: from the end of the context on nothing is counted, and the first error stays.
func TestTally(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tally := render.NewTally(ctx, counter(t), "", provider.Neutral)
		if n := tally.Text("some words"); n == 0 || tally.Err != nil {
			t.Errorf("%d, %v", n, tally.Err)
		}
		cancel()
		if n := tally.Text("some words"); n != 0 || !errors.Is(tally.Err, context.Canceled) {
			t.Errorf("%d, %v", n, tally.Err)
		}
	})
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	for _, e := range []*render.OverflowError{{TotalTokens: 5, MaxTokens: 3, Detail: "d"}, {Part: "goal", PartTokens: 4, TotalTokens: 5, MaxTokens: 3, Detail: "d"}} {
		text := e.Error()
		if !errors.Is(e, render.ErrOverflow) || strings.Contains(text, "largest") != (e.Part != "") || !strings.Contains(text, "5 tokens exceeds 3") || !strings.HasSuffix(text, "(d)") {
			t.Error(text)
		}
	}
}
