package assemble_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	formats "github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// What is remembered of the prompt before changes nothing: each prompt is the one
// of an assembler that remembers nothing, and the account of what is stable that
// of one that writes every prompt whole.
func TestResumedPrompts(t *testing.T) {
	w := newWorld(t)
	// It calls tools what OpenAIChat, which is written whole, calls them.
	w.request.Format, w.request.MaxTokens = formats.OpenAIResponses, 4000
	whole := assemble.New(w.log, w.counter, nil)
	rng := rand.New(rand.NewPCG(7, 7))
	resumed := 0
	for i := range 400 {
		w.change(rng, i)
		got := w.prompt()
		fresh := w.promptOf(assemble.New(w.log, w.counter, nil), w.request)
		openAI := w.request
		openAI.Format = assemble.OpenAIChat
		all := w.promptOf(whole, openAI)

		if diff := cmp.Diff(unmarked(fresh.Body), unmarked(got.Body)); diff != "" {
			t.Fatalf("prompt %d (-fresh +resumed):\n%s", i, diff)
		}
		if got.PrefixSHA256 != fresh.PrefixSHA256 || got.PrefixSHA256 != all.PrefixSHA256 || got.Receipt.PromptID != all.Receipt.PromptID {
			t.Fatalf("prompt %d: prefix %s, fresh %s, whole %s", i, got.PrefixSHA256, fresh.PrefixSHA256, all.PrefixSHA256)
		}
		account := func(p assemble.Prompt) string {
			return fmt.Sprint(p.Tokens, p.Parts, p.Receipt.StableTokens, p.Receipt.StableBytes, p.Receipt.SettledTokens, p.Receipt.Cost)
		}
		if account(got) != account(all) {
			t.Fatalf("prompt %d:\n got %s\nwant %s", i, account(got), account(all))
		}
		if len(got.Receipt.Folds) > 0 && got.Receipt.StableBytes > int64(len(got.Receipt.Folds[0].Text)) {
			resumed++
		}
	}
	if resumed < 100 {
		t.Errorf("only %d prompts began as the one before", resumed)
	}
}

// So is the body of a provider's format, and its cache marks.
func TestResumedBodies(t *testing.T) {
	for _, format := range []assemble.Format{formats.Anthropic, formats.Gemini, formats.OpenAIResponses, assemble.Neutral} {
		w := newWorld(t)
		w.request.Format, w.request.MaxTokens = format, 4000
		rng := rand.New(rand.NewPCG(11, 7))
		folded := 0
		for i := range 120 {
			w.change(rng, i)
			got := w.prompt()
			fresh := w.promptOf(assemble.New(w.log, w.counter, nil), w.request)
			if got, want := unmarked(got.Body), unmarked(fresh.Body); got != want {
				t.Fatalf("format %d, prompt %d: the body is\n%s\nwant\n%s", format, i, got, want)
			}
			if got.PrefixSHA256 != fresh.PrefixSHA256 || got.Receipt.PromptID != fresh.Receipt.PromptID || fmt.Sprint(got.Parts, got.Tokens) != fmt.Sprint(fresh.Parts, fresh.Tokens) {
				t.Fatalf("format %d, prompt %d: prefix %s, want %s", format, i, got.PrefixSHA256, fresh.PrefixSHA256)
			}
			if len(got.Receipt.Folds) > 0 {
				folded++
			}
			// Of the prompt before there may be one mark more, and no room for one of these.
			for _, m := range fresh.Marks {
				if !slices.ContainsFunc(got.Marks, func(own formats.Mark) bool { return own.BlockPlace == m.BlockPlace }) && len(got.Marks) < formats.MaxMarks {
					t.Fatalf("format %d, prompt %d: marks %v, without what is remembered %v", format, i, got.Marks, fresh.Marks)
				}
			}
		}
		if folded < 30 {
			t.Errorf("format %d: only %d prompts had folds", format, folded)
		}
	}
}

// unmarked is a body without cache marks, which go by what was sent before.
func unmarked(body []byte) string {
	return regexp.MustCompile(`,"cache_control":\{[^}]*\}`).ReplaceAllString(string(body), "")
}

// promptOf returns the prompt of another assembler of the same session.
func (w *world) promptOf(a *assemble.Assembler, r assemble.Request) assemble.Prompt {
	w.tb.Helper()
	p, err := a.Assemble(w.tb.Context(), r)
	if err != nil {
		w.tb.Fatal(err)
	}
	return p
}

// change makes the session or the request different from what they were: mostly
// it adds a step.
func (w *world) change(rng *rand.Rand, i int) {
	w.tb.Helper()
	switch rng.IntN(12) {
	case 0:
		w.say(text(session.User, fmt.Sprintf("wish %d: \"as it is\" →\n", i)))
	case 1:
		w.say(asks("I look.", fmt.Sprint("c", i)))
		w.say(answers(fmt.Sprint("c", i), strings.Repeat("found\n", rng.IntN(40))))
	case 2:
		w.request.Model = []string{"gpt-4o", "gpt-4", "claude-sonnet-5"}[rng.IntN(3)]
	case 3:
		w.request.System = []string{"", "careful", "be brief"}[rng.IntN(3)]
	case 4:
		if len(w.prompt().Receipt.Folds) > 3 && rng.IntN(3) == 0 {
			w.undo()
		}
	default:
		out := fmt.Sprintf("src/file%d.go:%d: error: undefined x%d\n", i, i, i) + strings.Repeat(fmt.Sprintf("line %d\n", i), rng.IntN(60))
		w.do(step.Step{ToolName: "stat", Args: []byte(`{"path":"src/file.go"}`), Inline: out, Observation: "stat → " + out[:10]})
	}
}

// A session is asked for in both formats, without tools: the prompt in Neutral
// begins as the one in OpenAIChat did, but the names of its tools are others, so
// its hash is another, whatever was asked for before.
func TestTrailOfAnotherFormat(t *testing.T) {
	w := newWorld(t)
	for n := range 10 {
		w.work(n)
	}
	w.compact()
	pinned := workStep(1000)
	pinned.Pinned = true
	w.do(pinned)
	for n := range 10 {
		w.work(100 + n)
	}
	w.compact()
	w.request.Tools = nil
	w.request.Format = assemble.OpenAIChat
	w.prompt()
	w.request.Format = assemble.Neutral
	got := w.prompt()
	fresh := w.promptOf(assemble.New(w.log, w.counter, nil), w.request)
	if got.PrefixSHA256 != fresh.PrefixSHA256 || got.Receipt.PromptID != fresh.Receipt.PromptID {
		t.Error("the same request has another hash and another id, because of what was asked for before")
	}
}
