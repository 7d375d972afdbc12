package filter

import (
	"errors"
	"fmt"
)

// ErrInvalid: a filter does not parse, names an unknown field or uses what is not
// served; *Error says what.
var ErrInvalid = errors.New("memory: invalid filter")

// Error says what is wrong with a filter. It is an ErrInvalid.
type Error struct {
	// Filter is the expression as it came.
	Filter string
	// Offset is where in it the problem lies, in bytes.
	Offset int
	// Problem says what is wrong and what would be served.
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("memory: filter at byte %d: %s", e.Offset, e.Problem)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Error) Is(target error) bool { return target == ErrInvalid }
