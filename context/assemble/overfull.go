package assemble

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Errors of assembling.
var (
	// ErrOverflow: the prompt does not fit its budget.
	ErrOverflow = errors.New("assemble: prompt exceeds its budget")
	// ErrTooLarge: the prompt has more bytes than are taken.
	ErrTooLarge = render.ErrTooLarge
	// ErrInvalid: the request is malformed.
	ErrInvalid = errors.New("assemble: invalid request")
	// ErrPromptUnknown: usage was reported for a prompt that is not known.
	ErrPromptUnknown = errors.New("assemble: unknown prompt")
)

// ErrRefusedAgain: a provider refused two prompts of one turn. The error is an
// *OverflowError, too.
var ErrRefusedAgain = errors.New("assemble: the provider refused the shortened prompt, too")

// OverflowError says by how much a prompt is over its budget, and what takes
// most of it. It is an ErrOverflow.
type OverflowError struct {
	// Part is what takes most: "system", "tools", "goal", "pinned", "steps" for
	// what a preset makes of them, a single piece of the history such as
	// "step_014 (fs:read_file)" or "message 7 (user)", or "messages" where it is
	// many that are never folded. It is "usage" where the prompt would fit as it
	// is counted here, but not as the provider counts by its usage reports.
	// Empty where nothing is in the prompt but what every prompt takes.
	Part string
	// PartTokens is its size.
	PartTokens int
	// TotalTokens is what the whole prompt would take after all that could be
	// folded was, MaxTokens its budget.
	TotalTokens, MaxTokens int
	// Detail lists the sizes of all parts, for people.
	Detail string
}

func (e *OverflowError) Error() string {
	largest := ""
	if e.Part != "" {
		largest = fmt.Sprintf("largest is %s with %d ", e.Part, e.PartTokens)
	}
	return fmt.Sprintf("assemble: prompt of %d tokens exceeds %d: %s(%s)", e.TotalTokens, e.MaxTokens, largest, e.Detail)
}

// TooLargeError says what has more bytes than are taken, and what to do about it.
type TooLargeError = render.TooLargeError

// overflow says what is too big: of the history h does.
func (t *task) overflow(s *fold.Source, f fixed, h *history.OverflowError) error {
	e := &OverflowError{MaxTokens: t.r.MaxTokens}
	largest := func(part string, tokens int) {
		if tokens > e.PartTokens {
			e.Part, e.PartTokens = part, tokens
		}
	}
	for _, section := range f.order {
		if section != settings.History {
			largest(section, f.parts[section])
			e.Detail += fmt.Sprintf("%s %d, ", section, f.parts[section])
		}
	}
	largest("pinned", h.Pinned)
	largest(h.Largest, h.LargestTokens)
	e.Detail += fmt.Sprintf("history %d: never folded %d, pinned %d, folds %d, not foldable yet %d", h.Tokens, h.Fixed, h.Pinned, h.Folds, h.Open)
	if h.Fixed > 2*e.PartTokens {
		e.Part, e.PartTokens = "messages", h.Fixed
	}
	// The budget is in the model's own tokens.
	local := f.tokens() + h.Tokens - t.joined(s)
	e.TotalTokens = max(int(float64(local)*float64(t.r.MaxTokens)/float64(max(f.hard, 1))), t.r.MaxTokens+1)
	if local <= t.r.MaxTokens && f.hard < t.r.MaxTokens {
		e.Part, e.PartTokens = "usage", e.TotalTokens-local
		e.Detail += fmt.Sprintf(", together %d as they are counted here", local)
	}
	return e
}

// Is makes errors.Is(err, ErrOverflow) true.
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }
