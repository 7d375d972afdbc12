package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// inFull and asLines count the steps of a prompt.
func inFull(text string) int  { return strings.Count(text, "Action: {") }
func asLines(text string) int { return strings.Count(text, "• ") }

// A literal preset shows five steps in full; from the sixth on the last three are,
// and with each step one more becomes a line. What a prompt in batches did before
// changes nothing in that.
//
// B09, B11, X04
func TestLiteralPresetsMoveWithEachStep(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, preset := range []string{"design", "reduction"} {
		c := as(t, s, preset)
		batches := 0
		for n := 1; n <= 12; n++ {
			c.report("fs:stat", fmt.Sprintf(`{"path":"file_%d"}`, n), `"ok"`)
			lines := 0
			if n > 5 {
				lines = n - 3
			}
			text := shownIn(c.prompt(literally(preset)))
			if inFull(text) != n-lines || asLines(text) != lines || lines > 0 && !strings.Contains(text, fmt.Sprintf("\n\nStep %d:\n", n)) {
				t.Errorf("%s, %d steps: %d in full, %d lines, want %d:\n%s", preset, n, inFull(text), asLines(text), lines, text)
			}
			if c.prompt(&loombridgev1.HistorySettings{Preset: preset}).GetReceipt().GetBatch() != nil {
				batches++
			}
		}
		if batches > 3 {
			t.Errorf("%s: %d batches of 12 steps where boundaries move in batches", preset, batches)
		}
	}
}

// However few steps there are, all but the last three become lines when all of them
// in full take more than 2,000 tokens, with what was thought.
//
// B10
func TestLiteralPresetsByTokens(t *testing.T) {
	s := servertest.Start(t, nil)
	// text is a prompt of four steps, the first and the last of them with so many
	// words of thought.
	text := func(preset string, first, last int) (c caller, text string) {
		c = as(t, s, fmt.Sprintf("%s-%d-%d", preset, first, last))
		for _, n := range []int{first, 1, 1, last} {
			c.record(&loombridgev1.RecordStepRequest{ToolName: "fs:stat", Success: true, Thought: words(n)})
		}
		return c, shownIn(c.prompt(literally(preset)))
	}
	for _, preset := range []string{"design", "reduction"} {
		c, probe := text(preset, 500, 500)
		rest := 2000
		for step := range strings.SplitSeq(probe, "\n\n") {
			rest -= c.tokens(step)
		}
		for more, lines := range map[int]int{-1: 0, 0: 0, 1: 1} {
			if _, got := text(preset, 500, 500+rest+more); asLines(got) != lines || inFull(got) != 4-lines {
				t.Errorf("%s, %d tokens in full: %d lines, want %d", preset, 2000+more, asLines(got), lines)
			}
			if _, got := text(preset, 500+rest+more, 500); asLines(got) != lines {
				t.Errorf("%s, %d tokens in full, most of the first: %d lines, want %d", preset, 2000+more, asLines(got), lines)
			}
		}
	}
}
