package store

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
)

// ErrDamaged: a stored event can't be read.
var ErrDamaged = errors.New("events: stored topic is damaged")

// damaged says that stored bytes can't be read, and why.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// DamagedError names the event that can't be read. It is an ErrDamaged.
type DamagedError struct {
	// Sequence is the event's number in its topic.
	Sequence uint64
	// Err is what is wrong with it.
	Err error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%v, event %d", e.Err, e.Sequence) }

// Unwrap is what is wrong with it.
func (e *DamagedError) Unwrap() error { return e.Err }

// SizeError says that an event is too large as a whole. It is an ErrInvalid.
type SizeError struct {
	// Size is that of the event, Limit what it may be, both in bytes.
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("events: event of %d bytes exceeds the limit of %d", e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *SizeError) Is(target error) bool { return target == pattern.ErrInvalid }
