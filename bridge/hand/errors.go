package hand

import (
	"errors"
)

var (
	// ErrClosed: the hand was closed.
	ErrClosed = errors.New("hand: closed")
	// ErrInvalid: a field of a request breaks a rule. It comes as an
	// *invalid.Error.
	ErrInvalid = errors.New("hand: invalid request")
	// ErrNoWorkspace: the caller's workspace can't be opened.
	ErrNoWorkspace = errors.New("hand: no workspace")
)
