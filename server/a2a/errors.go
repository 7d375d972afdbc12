package a2a

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// errorDomain is the domain of the protocol's own errors.
const errorDomain = "a2a-protocol.org"

// failed is an error that the protocol knows.
func failed(code codes.Code, reason, text string) error {
	bare := status.New(code, text)
	full, err := bare.WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: reason})
	if err != nil {
		return bare.Err()
	}
	return full.Err()
}

func notFound(task string) error {
	return failed(codes.NotFound, "TASK_NOT_FOUND", "there is no task "+validate.Printable(task)+", or it is not the caller's")
}

func unsupported(text string) error {
	return failed(codes.FailedPrecondition, "UNSUPPORTED_OPERATION", text)
}

func noPush() error {
	return failed(codes.FailedPrecondition, "PUSH_NOTIFICATION_NOT_SUPPORTED", "there are no push notifications; use SubscribeToTask")
}

// ofTask is an error of a task as clients know it.
func ofTask(id string, err error) error {
	switch {
	case errors.Is(err, a2a.ErrNotFound):
		return notFound(id)
	case errors.Is(err, a2a.ErrClosed):
		return unsupported("task " + validate.Printable(id) + " has ended")
	}
	return err
}
