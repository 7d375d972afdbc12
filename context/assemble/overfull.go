package assemble

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Errors of assembling.
var (
	// ErrOverflow: the prompt does not fit its budget.
	ErrOverflow = render.ErrOverflow
	// ErrTooLarge: the prompt has more bytes than are taken.
	ErrTooLarge = render.ErrTooLarge
	// ErrInvalid: the request is malformed.
	ErrInvalid = record.ErrInvalid
	// ErrPromptUnknown: usage was reported for a prompt that is not known.
	ErrPromptUnknown = record.ErrPromptUnknown
)

// ErrRefusedAgain: a provider refused two prompts of one turn. The error is an
// *OverflowError, too.
var ErrRefusedAgain = errors.New("assemble: the provider refused the shortened prompt, too")

// OverflowError says by how much a prompt is over its budget, and what takes most of it.
type OverflowError = render.OverflowError

// TooLargeError says what has more bytes than are taken, and what to do about it.
type TooLargeError = render.TooLargeError

// overflow says what is too big: of the history h does.
func (t *task) overflow(s *fold.Material, f fixed, h *history.OverflowError) error {
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
