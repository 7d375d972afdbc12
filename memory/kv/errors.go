package kv

import (
	"errors"
	"fmt"
)

// Errors of reading and writing.
var (
	// ErrConflict: a guard did not hold. Nothing was written; read again.
	ErrConflict = errors.New("kv: conflict")
	// ErrTooOld: a snapshot is older than it may become. Open another one.
	ErrTooOld = errors.New("kv: snapshot is too old")
	// ErrClosed: the engine, snapshot or writer is closed.
	ErrClosed = errors.New("kv: closed")
	// ErrLimit: a key, value, batch or queue is over its limit.
	ErrLimit = errors.New("kv: limit exceeded")
	// ErrUnguarded: a commit touches a ref it does not guard, or one twice.
	ErrUnguarded = errors.New("kv: unguarded key")
	// ErrBadScope: a scope is empty, too long, or of unknown kind.
	ErrBadScope = errors.New("kv: bad scope")
	// ErrBadKey: a key does not have the form it must have.
	ErrBadKey = errors.New("kv: bad key")
	// ErrFull: the disk has no room. Nothing was written.
	ErrFull = errors.New("kv: no space left on the data directory")
	// ErrUnknownOutcome: the engine failed while writing; the commit may or may
	// not be found after the store is opened again.
	ErrUnknownOutcome = errors.New("kv: outcome of the commit is unknown")
	// ErrUnreachable: no server of the store answers, or it has no room for another
	// connection. Nothing was written; try again.
	ErrUnreachable = errors.New("kv: the store's server can't be reached")
	// ErrFenced: others on the same store took this process for dead and go on without
	// it. Nothing was written; it may write again when it has been registered anew.
	ErrFenced = errors.New("kv: this process was taken for dead by others on the store")
	// ErrFailed: an earlier write failed in a way that leaves the store's end
	// unknown. Nothing was written, and nothing will be until the store is
	// opened again; reading goes on.
	ErrFailed = errors.New("kv: store failed earlier and takes no more commits")
)

// DamageError says which file of a store is damaged, and how. It is an ErrDamaged.
type DamageError struct {
	// File is the file's name in the data directory.
	File string
	// Problem says what is wrong with it, with the place in bytes where known.
	Problem string
	// Keyspace is the only one whose data the file holds; WholeStore if it holds
	// that of all.
	Keyspace Keyspace
	// Repairable says that the data before the damage can be recovered without a backup;
	// everything behind it is lost.
	Repairable bool
}

func (e *DamageError) Error() string { return fmt.Sprintf("%v: %s %s", ErrDamaged, e.File, e.Problem) }

// Is makes errors.Is(err, ErrDamaged) true.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// Errors of opening a data directory.
var (
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("kv: store is in use by another process")
	// ErrForeign: the directory holds something that is not a Loom Bridge store.
	ErrForeign = errors.New("kv: directory holds something else than a Loom Bridge store")
	// ErrNewer: the store was written by a later version.
	ErrNewer = errors.New("kv: store has a newer format than this version can read")
	// ErrDamaged: the store is there but not all of it can be read; a *DamageError
	// where the file is known.
	ErrDamaged = errors.New("kv: store is damaged")
	// ErrUnfinished: another store is being copied into this one, and it does not
	// hold everything yet.
	ErrUnfinished = errors.New("kv: store is an unfinished copy of another one")
	// ErrOccupied: there is a store already where a copy of another was to be made.
	ErrOccupied = errors.New("kv: there is a store already")
	// ErrReadOnly: the store was opened for reading alone. Nothing was written.
	ErrReadOnly = errors.New("kv: store is open for reading alone")
)

// ConflictError says which guard did not hold, or which watched key has changed.
// It is an ErrConflict.
type ConflictError struct {
	Guard Guard
	Found uint64
	// Key is the watched key that has changed, and Keyspace its keyspace; Guard
	// and Found are zero then. Empty when a guard did not hold.
	Key      string
	Keyspace Keyspace
}

func (e *ConflictError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("kv: conflict: key %q of %s has changed", e.Key, e.Keyspace)
	}
	return fmt.Sprintf("kv: conflict: %s is at sequence %d, expected %d", e.Guard.Ref, e.Found, e.Guard.Sequence)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// LimitError says which limit was exceeded. It is an ErrLimit.
type LimitError struct {
	What  string // key, value, batch, queue
	Size  int
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("kv: %s of %d exceeds the limit of %d", e.What, e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
