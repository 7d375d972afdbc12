package record

import "errors"

var (
	// ErrInvalid: a field of a record or of a request breaks a rule; *invalid.Error
	// says which. It is memory.ErrInvalid.
	ErrInvalid = errors.New("memory: invalid argument")
	// ErrDamaged: a stored entry can't be read. It is memory.ErrDamaged.
	ErrDamaged = errors.New("memory: stored entry is damaged")
	// ErrNewer: an entry was written in a format that this version can't read. It is
	// memory.ErrNewer.
	ErrNewer = errors.New("memory: stored entry has a newer format")
)
