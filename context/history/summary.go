package history

import (
	"context"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
)

const (
	// DefaultSummaryTokens bounds a summary.
	DefaultSummaryTokens = 500
	// DefaultSummaryTimeout is how long a summarizer may take.
	DefaultSummaryTimeout = 10 * time.Second
)

// Summarizer writes a summary of older steps, with a model or otherwise. It
// runs on a goroutine of its own, so that one that ignores its context holds
// up nobody.
type Summarizer func(ctx context.Context, steps []step.Step) (string, error)

// Summarized is Older with a summary in place of the lines, if there is a
// good one: not empty, of at most DefaultSummaryTokens, in time, and shorter
// than the steps in full. A summarizer that fails replaces nothing; ok tells
// whether its text was taken.
func (c *Compactor) Summarized(ctx context.Context, steps []step.Step, summarize Summarizer) (section string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, DefaultSummaryTimeout)
	defer cancel()
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := summarize(ctx, steps)
		done <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
	case got := <-done:
		text := "Earlier steps:\n" + strings.TrimSpace(got.text)
		if got.err == nil && strings.TrimSpace(got.text) != "" && c.fits(text, steps) {
			return text, true
		}
	}
	return c.Older(steps), false
}

func (c *Compactor) fits(text string, steps []step.Step) bool {
	n := c.count(text)
	return n <= DefaultSummaryTokens && n < c.tokens(steps)
}
