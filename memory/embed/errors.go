package embed

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Errors of embedding.
var (
	// ErrOptions: a client can't be made of these options.
	ErrOptions = errors.New("embed: invalid options")
	// ErrStatus: the server refused; *StatusError says how.
	ErrStatus = errors.New("embed: server refused")
	// ErrAnswer: the server answered something that is no embedding of the texts.
	ErrAnswer = errors.New("embed: unusable answer")
	// ErrUnreachable: the server could not be reached or did not answer in time.
	ErrUnreachable = errors.New("embed: server does not answer")
	// ErrOpen: the server kept failing and is not asked for a while.
	ErrOpen = errors.New("embed: server kept failing, not asking it now")
)

// StatusError is what the server answered when it refused. It is an ErrStatus.
type StatusError struct {
	// Code is the HTTP status.
	Code int
	// Message is what the server said, cut short; from outside, not to be trusted.
	Message string
	// RetryAfter is how long the server asked to wait; zero if it did not say.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("embed: server refused with status %d: %q", e.Code, e.Message)
}

// Is makes errors.Is(err, ErrStatus) true.
func (e *StatusError) Is(target error) bool { return target == ErrStatus }

// temporary reports whether the same request may succeed later.
func (e *StatusError) temporary() bool {
	return e.Code == http.StatusTooManyRequests || e.Code == http.StatusRequestTimeout || e.Code >= http.StatusInternalServerError
}

// Rejected reports whether the server refused the texts themselves, such as one
// that is too long, so that it is of no use to send them again.
func Rejected(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func checkCount(got, want int) error {
	if got != want {
		return fmt.Errorf("%w: %d vectors for %d texts", ErrAnswer, got, want)
	}
	return nil
}
