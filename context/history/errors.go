package history

import (
	"errors"
	"fmt"
)

// Errors of compaction and of stored folds.
var (
	// ErrOverflow: a history does not fit its budget, whatever is folded.
	ErrOverflow = errors.New("history: over budget")
	// ErrDamaged: stored bytes are no fold.
	ErrDamaged = errors.New("history: stored fold is damaged")
)

// OverflowError names what is too big. It is an ErrOverflow.
type OverflowError struct {
	// Part is "fixed" (system and user messages together), "pinned", "folds",
	// "open turn" (what may not be folded yet), or the label of a single entry
	// that takes more than half of the budget.
	Part string
	// PartTokens is its size.
	PartTokens int
	// Tokens is the size of the history after the last attempt, Budget what it
	// may take.
	Tokens, Budget int
	// Largest is the label of the largest entry that may not be folded, or not
	// yet, and LargestTokens its size.
	Largest       string
	LargestTokens int
	// Fixed, Pinned, Folds and Open are the sizes of the parts.
	Fixed, Pinned, Folds, Open int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("history: %d tokens are over the budget of %d: %s takes %d (fixed %d, pinned %d, folds %d, open turn %d)",
		e.Tokens, e.Budget, e.Part, e.PartTokens, e.Fixed, e.Pinned, e.Folds, e.Open)
}

// Is makes errors.Is(err, ErrOverflow) true.
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }
