package blob

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotFound: no entry has that path, step id or ref.
	ErrNotFound = errors.New("blob: not found")
	// ErrCollected: the blob was there and has been collected as garbage. The
	// error is a *CollectedError, and an ErrNotFound as well.
	ErrCollected = errors.New("blob: collected")
	// ErrQuota: the owner has no room for more. The error is a *QuotaError.
	ErrQuota = errors.New("blob: quota exceeded")
	// ErrAmbiguous: a shortened ref fits several blobs. Give more digits.
	ErrAmbiguous = errors.New("blob: ref is ambiguous")
	// ErrExists: a path leads to something else already.
	ErrExists = errors.New("blob: the path is taken")
	// ErrDamaged: stored bytes do not match their hash, or are missing. The
	// error is a *DamagedError.
	ErrDamaged = errors.New("blob: damaged")
	// ErrTooLarge: a body is longer than MaxBytes.
	ErrTooLarge = errors.New("blob: body is too large")
	// ErrClosed: an upload was finished or aborted before.
	ErrClosed = errors.New("blob: upload is closed")
	// ErrInvalid: an entry, a range or a request breaks a rule. Of a request, the
	// error is an *invalid.Error.
	ErrInvalid = errors.New("blob: invalid input")
)

// CollectedError identifies the collected blob and the time. It is an ErrCollected and an
// ErrNotFound.
type CollectedError struct {
	Name string
	Time time.Time
}

func (e *CollectedError) Error() string {
	return fmt.Sprintf("blob: %.64q expired and was collected as garbage at %s; to have it again, make the call again", e.Name, e.Time.Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrCollected) and errors.Is(err, ErrNotFound) true.
func (e *CollectedError) Is(target error) bool {
	return target == ErrCollected || target == ErrNotFound
}

// MissingError says why nothing is found under a name that could lead to
// something. It is an ErrNotFound.
type MissingError struct {
	Name string
	// Reason is a sentence for the caller, such as "the agent has no such
	// step".
	Reason string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("blob: not found: %.64q: %s", e.Name, e.Reason)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *MissingError) Is(target error) bool { return target == ErrNotFound }

// WholeBlob is the Chunk of a DamagedError that concerns all of a blob.
const WholeBlob = -1

// DamagedError says what can't be read. It is an ErrDamaged.
type DamagedError struct {
	// Ref is the blob's hash in hex.
	Ref string
	// Chunk is the number of the chunk, from 0, or WholeBlob.
	Chunk int
	// Problem says what is wrong with it.
	Problem string
}

func (e *DamagedError) Error() string {
	if e.Chunk == WholeBlob {
		return fmt.Sprintf("blob: %s is damaged: %s", e.Ref, e.Problem)
	}
	return fmt.Sprintf("blob: chunk %d of %s is damaged: %s", e.Chunk, e.Ref, e.Problem)
}

// Is makes errors.Is(err, ErrDamaged) true.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }
