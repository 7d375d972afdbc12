package observe

import (
	"strings"

	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// CallError is how a call ends that did not succeed: the client's status,
// and the cause, which only the log sees.
type CallError struct {
	// Status is what the client gets.
	Status *status.Status
	// Cause is the error itself.
	Cause error
	// Hidden: the client does not get the cause: it is a fault of the server.
	Hidden bool
}

func (e *CallError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Cause }

// GRPCStatus is what gRPC sends in place of the error.
func (e *CallError) GRPCStatus() *status.Status { return e.Status }

// ReasonName is the reason as it travels: without the enum's prefix.
func ReasonName(reason loombridgev1.ErrorReason) string {
	return strings.TrimPrefix(reason.String(), "ERROR_REASON_")
}
