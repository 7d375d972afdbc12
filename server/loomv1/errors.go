package loomv1

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Texts that stand for internal errors of the server. The log has the error itself.
const (
	publicFault    = "internal server fault; the server's log has the cause"
	publicFull     = "the server's data directory has no room"
	publicStopping = "the server is stopping"
)

// publicText is the text of a domain error that a client may see.
func publicText(err error) string {
	switch {
	case errors.Is(err, kv.ErrFull):
		return publicFull
	case errors.Is(err, kv.ErrClosed):
		return publicStopping
	}
	return publicFault
}

// plain is the text of an error of the directory or the bus that a client may see: what
// is wrong with the request, with the name of the field, which clients look for. Other
// errors are logged, and replaced by a general text.
func (d Deps) plain(ctx context.Context, operation string, err error) string {
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		return bad.Field + " " + clip(bad.Problem)
	}
	if reserved, ok := errors.AsType[*topics.ReservedError](err); ok {
		return "topic " + reserved.Topic + " is the server's own"
	}
	if full, ok := errors.AsType[*share.LimitError](err); ok {
		return fmt.Sprintf("the limit of %d %s is reached", full.Limit, full.What)
	}
	if errors.Is(err, agents.ErrClosed) || errors.Is(err, events.ErrClosed) || errors.Is(err, kv.ErrClosed) {
		return publicStopping
	}
	d.Options.Logger.ErrorContext(ctx, "loom.v1 call failed", "operation", operation, "error", err)
	return publicText(err)
}

// fault logs an error of the server and returns the status of the call that it ends.
// operation completes the text "Failed to …". If the context of the call has ended, the
// status says that instead.
func (d Deps) fault(ctx context.Context, operation string, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, kv.ErrClosed):
		return status.Error(codes.Unavailable, publicStopping)
	}
	d.Options.Logger.ErrorContext(ctx, "loom.v1 call failed", "operation", operation, "error", err)
	return status.Errorf(codes.Internal, "Failed to %s: %s", operation, publicText(err))
}

// sized returns a response, or RESOURCE_EXHAUSTED when it is too large to send.
func sized[M proto.Message](d Deps, response M) (M, error) {
	if size, limit := proto.Size(response), d.Options.MaxSendBytes; size > limit {
		var none M
		return none, status.Errorf(codes.ResourceExhausted, "response of %d bytes exceeds the limit of %d", size, limit)
	}
	return response, nil
}
