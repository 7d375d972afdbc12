package plans

import (
	"errors"
	"fmt"
)

// Errors of appending and reading. Errors of the engine and the writer are wrapped; an
// invalid tenant gives kv.ErrBadScope.
var (
	// ErrTooLarge: an entry or an answer is over its limit; *SizeError says
	// which. Nothing was changed.
	ErrTooLarge = errors.New("plans: too large")
	// ErrDamaged: a stored entry can't be read.
	ErrDamaged = errors.New("plans: stored entry is damaged")
)

// SizeError says what is over its limit. It is an ErrTooLarge.
type SizeError struct {
	// What is "plan", "execution", "line" or "answer".
	What string
	// Size is its size in bytes; that of an answer as far as it was read.
	Size int
	// Limit is the most that is taken, in bytes.
	Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("plans: %s of %d bytes exceeds the limit of %d", e.What, e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *SizeError) Is(target error) bool { return target == ErrTooLarge }

// wrap adds the operation, except to a *SizeError, which says enough.
func wrap(operation string, err error) error {
	if err == nil || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("plans: %s: %w", operation, err)
}

func damaged(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrDamaged, what, err) }
