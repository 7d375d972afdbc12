package hand

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed: the hand was closed.
	ErrClosed = errors.New("hand: closed")
	// ErrInvalid: a field of a request breaks a rule. It comes as an
	// *InvalidError.
	ErrInvalid = errors.New("hand: invalid request")
	// ErrNoWorkspace: the caller's workspace can't be opened.
	ErrNoWorkspace = errors.New("hand: no workspace")
)

// InvalidError says which field of a request breaks which rule. It is an
// ErrInvalid.
type InvalidError struct {
	Field   string
	Problem string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("hand: %s %s", e.Field, e.Problem) }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
