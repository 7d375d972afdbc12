// Package invalid is the one shape of an input that breaks a rule: which field,
// and which rule. Every package that checks input returns it, above its own
// sentinel, so that the face converts all of them into field violations in one place.
package invalid

import (
	"fmt"
	"strings"
)

// Error says which field breaks which rule. errors.Is finds the sentinel of the
// package that refused it.
type Error struct {
	// Sentinel is the package's own, such as memory.ErrInvalid. Its text begins with
	// the package's name and a colon.
	Sentinel error
	// Field is the field's path as the API writes it, such as `messages[2].role`.
	Field string
	// Problem completes the sentence "{field} …", such as "is empty".
	Problem string
}

// Field returns an *Error of that field; format and args make its Problem.
func Field(sentinel error, field, format string, args ...any) error {
	return &Error{sentinel, field, fmt.Sprintf(format, args...)}
}

// Error is "{package}: {field} {problem}".
func (e *Error) Error() string {
	name, _, _ := strings.Cut(e.Sentinel.Error(), ":")
	return name + ": " + e.Field + " " + e.Problem
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Sentinel }
