package render

import (
	"errors"
	"fmt"
)

// ErrOverflow: the prompt does not fit its budget.
var ErrOverflow = errors.New("assemble: prompt exceeds its budget")

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

// Is makes errors.Is(err, ErrOverflow) true.
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }
