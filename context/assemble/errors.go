package assemble

import (
	"errors"
	"fmt"
)

// Errors of assembling.
var (
	// ErrOverflow: the prompt does not fit its budget.
	ErrOverflow = errors.New("assemble: prompt exceeds its budget")
	// ErrTooLarge: the prompt has more bytes than are taken.
	ErrTooLarge = errors.New("assemble: prompt too large")
	// ErrInvalid: the request is malformed.
	ErrInvalid = errors.New("assemble: invalid request")
)

// OverflowError says by how much a prompt is over its budget, and what takes
// most of it. It is an ErrOverflow.
type OverflowError struct {
	// Part is the largest part: "system", "tools", "goal", or a single piece of
	// the history such as "step_014 (fs:read_file)" or "message 7 (user)".
	Part string
	// PartTokens is its size.
	PartTokens int
	// TotalTokens is what the whole prompt would take, MaxTokens its budget.
	TotalTokens, MaxTokens int
	// Detail lists the sizes of all parts, for people.
	Detail string
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("assemble: prompt of %d tokens exceeds %d: largest is %s with %d (%s)",
		e.TotalTokens, e.MaxTokens, e.Part, e.PartTokens, e.Detail)
}

// Is makes errors.Is(err, ErrOverflow) true.
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }

// InvalidError says what is wrong with which field of a request. It is an
// ErrInvalid.
type InvalidError struct {
	// Field is the field's name as the API writes it.
	Field string
	// Reason completes the sentence "{field} …".
	Reason string
}

func (e *InvalidError) Error() string { return "assemble: " + e.Field + " " + e.Reason }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
