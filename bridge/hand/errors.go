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
	// ErrElsewhere: another server on the same store runs the same request, and did not end
	// it in time. Nothing was done here; the same call again gets its answer.
	ErrElsewhere = errors.New("hand: the request runs at another server")
	// ErrNoWorkspace: the caller's workspace can't be opened.
	ErrNoWorkspace = errors.New("hand: no workspace")
)
