package memory

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// Errors of saving, reading and querying.
var (
	// ErrInvalid: something breaks a rule; *invalid.Error says what. Nothing was
	// changed.
	ErrInvalid = record.ErrInvalid
	// ErrNotFound: there is no such record, or it has expired; *NotFoundError
	// says which.
	ErrNotFound = errors.New("memory: record not found")
	// ErrExists: an id or key is taken; *ExistsError says which.
	ErrExists = errors.New("memory: record exists")
	// ErrVersionConflict: the record does not have the version that the caller
	// expected; *VersionError says which it has. Nothing was changed.
	ErrVersionConflict = errors.New("memory: record has another version")
	// ErrNoEmbedder: the query needs vectors and there is no embedder.
	ErrNoEmbedder = embeddings.ErrNone
	// ErrEmbedder: the embedder failed, and the query asked for vectors only.
	ErrEmbedder = embeddings.ErrFailed
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("memory: store is closed")
)

// Errors of the stored data.
var (
	// ErrDamaged: a stored entry can't be read.
	ErrDamaged = record.ErrDamaged
	// ErrNewer: an entry was written in a format that this version can't read.
	ErrNewer = record.ErrNewer
	// ErrChanging: a scope changed each time it was compared with its index, so that
	// nothing is known of it. It is fit for another try.
	ErrChanging = errors.New("memory: scope changes while it is checked")
	// ErrOutdated: the index was made by another version or in another language. It
	// is rebuilt when its scope is used.
	ErrOutdated = errors.New("memory: the index is rebuilt at its first use")
	// ErrMismatch: the index does not say what the records say; *MismatchError says
	// where.
	ErrMismatch = errors.New("memory: index does not agree with the records")
)

// wrap adds the operation to an error, except to errors about the request, which
// say enough. Damage of an index is damage of the stored data.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	for _, own := range []error{ErrInvalid, ErrPinned, filter.ErrInvalid, ErrExists, ErrNotFound, ErrVersionConflict, ErrPositionGone, relations.ErrFull, ErrNoEmbedder, ErrEmbedder} {
		if errors.Is(err, own) {
			return err
		}
	}
	switch {
	case errors.Is(err, segment.ErrDamaged) || errors.Is(err, vector.ErrDamaged):
		return fmt.Errorf("%s: %w: %w", operation, ErrDamaged, err)
	case errors.Is(err, segment.ErrNewer) || errors.Is(err, vector.ErrNewer):
		return fmt.Errorf("%s: %w: %w", operation, ErrNewer, err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// NotFoundError names the record that is not there. It is an ErrNotFound.
type NotFoundError struct {
	// Field is where the name was given: id, key, supersedes, derived_from.
	Field string
	// Name is the id or key asked for.
	Name string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("memory: no record for %s %q", e.Field, e.Name)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// ExistsError names the id or key that is taken. It is an ErrExists.
type ExistsError struct {
	// Field is id or key.
	Field string
	// Name is the id or key.
	Name string
	// ID is the record that has it.
	ID string
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("memory: %s %q is taken by record %q", e.Field, e.Name, e.ID)
}

// Is makes errors.Is(err, ErrExists) true.
func (e *ExistsError) Is(target error) bool { return target == ErrExists }

// VersionError says that a record changed since its caller read it. It is an
// ErrVersionConflict.
type VersionError struct {
	// ID is the record.
	ID string
	// Expected is the version that the caller expected.
	Expected int64
	// Version is the one that the record has.
	Version int64
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("memory: record %q has version %d, not %d", e.ID, e.Version, e.Expected)
}

// Is makes errors.Is(err, ErrVersionConflict) true.
func (e *VersionError) Is(target error) bool { return target == ErrVersionConflict }

// BatchError says which record of a batch is at fault. It is whatever its cause
// is.
type BatchError struct {
	// Index is the record's place in the batch, from 0.
	Index int
	// Err is what is wrong with it.
	Err error
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("memory: record %d of the batch: %v", e.Index, e.Err)
}

// Unwrap returns the cause.
func (e *BatchError) Unwrap() error { return e.Err }

// MismatchError lists where index and records disagree. It is an ErrMismatch.
type MismatchError struct {
	// Differences are the first ones found, in words.
	Differences []string
	// Total is how many there are.
	Total int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("memory: index does not agree with the records in %d places, first: %s", e.Total, e.Differences[0])
}

// Is makes errors.Is(err, ErrMismatch) true.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }
