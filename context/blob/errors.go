package blob

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: no entry has that path, step id or ref.
	ErrNotFound = errors.New("blob: not found")
	// ErrAmbiguous: a shortened ref fits several blobs. Give more digits.
	ErrAmbiguous = errors.New("blob: ref is ambiguous")
	// ErrDamaged: stored bytes do not match their hash, or are missing. The
	// error is a *DamagedError.
	ErrDamaged = errors.New("blob: damaged")
	// ErrTooLarge: a body is longer than MaxBytes.
	ErrTooLarge = errors.New("blob: body is too large")
	// ErrClosed: an upload was finished or aborted before.
	ErrClosed = errors.New("blob: upload is closed")
	// ErrInvalid: an entry or a range breaks a rule.
	ErrInvalid = errors.New("blob: invalid input")
)

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
