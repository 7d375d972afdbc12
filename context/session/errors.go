package session

import (
	"errors"
	"fmt"
)

var (
	// ErrStepNotFound: the agent has no step of that number.
	ErrStepNotFound = errors.New("session: no such step")
	// ErrInvalid: a session id or a message breaks a rule; nothing was written.
	// The error is an *invalid.Error.
	ErrInvalid = errors.New("session: invalid input")
	// ErrDamaged: a stored entry can't be read.
	ErrDamaged = errors.New("session: stored entry is damaged")
	// ErrNewer: a later version wrote the session's folds in a form that this
	// one would misread. Nothing was read or written.
	ErrNewer = errors.New("session: folds were written by a later version")
	// ErrFoldsChanged: somebody else changed the session's folds since they were
	// read. Nothing was written; read them again.
	ErrFoldsChanged = errors.New("session: folds have changed")
	// ErrNothingToUndo: the session has no batch, or another one is the last.
	// Nothing was written.
	ErrNothingToUndo = errors.New("session: nothing to undo")
	// ErrSnapshotNotFound: the session was not renewed that often.
	ErrSnapshotNotFound = errors.New("session: no such snapshot")
	// ErrTaskNotFound: the agent has no task of that id.
	ErrTaskNotFound = errors.New("session: no such task")
	// ErrTaskExists: the agent has a task of that id, and it says something else.
	// Nothing was written. The error is a *TaskExistsError.
	ErrTaskExists = errors.New("session: task exists with other content")
)

// errUnknownKind: an entry of a later version.
var errUnknownKind = errors.New("session: entry of an unknown kind")

// damaged says that stored bytes can't be read, and why.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// TaskExistsError names the task that is there already. It is an ErrTaskExists.
type TaskExistsError struct {
	// ID is the task's id.
	ID string
}

func (e *TaskExistsError) Error() string {
	return fmt.Sprintf("session: task %q exists with other content", e.ID)
}

// Is makes errors.Is(err, ErrTaskExists) true.
func (e *TaskExistsError) Is(target error) bool { return target == ErrTaskExists }
