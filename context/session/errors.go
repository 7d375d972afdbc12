package session

import (
	"errors"
	"fmt"
)

var (
	// ErrStepNotFound: the agent has no step of that number.
	ErrStepNotFound = errors.New("session: no such step")
	// ErrInvalid: a session id or a message breaks a rule; nothing was written.
	// The error is an *InvalidError.
	ErrInvalid = errors.New("session: invalid input")
	// ErrDamaged: a stored entry can't be read.
	ErrDamaged = errors.New("session: stored entry is damaged")
)

// errUnknownKind: an entry of a later version.
var errUnknownKind = errors.New("session: entry of an unknown kind")

// damaged says that stored bytes can't be read, and why.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// InvalidError says which input breaks which rule. It is an ErrInvalid.
type InvalidError struct {
	// Field is the path of the input, such as "messages[2].tool_call_id".
	Field string
	// Problem is the rule it breaks, such as "is required".
	Problem string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("session: %s %s", e.Field, e.Problem) }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
