package loomv1

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// Error codes of refused messages of a stream.
const (
	codeInvalidArgument   = "INVALID_ARGUMENT"
	codeResourceExhausted = "RESOURCE_EXHAUSTED"
	codeUnavailable       = "UNAVAILABLE"
	codeAlreadyExists     = "ALREADY_EXISTS"
	// codeFailedPrecondition: the agent may not do so now.
	codeFailedPrecondition = "FAILED_PRECONDITION"
	codeInternal           = "INTERNAL"
)

// refusal says why an event was not published.
type refusal struct{ code, message string }

// maxRefusalBytes bounds the text about a refused event: its topic may be as long as a
// message.
const maxRefusalBytes = 1 << 10

// prepared is a published event ready for the bus, or why it is refused.
func (d Deps) prepared(topic string, e *loomv1pb.Event) (events.Event, *refusal) {
	if e == nil {
		return events.Event{}, &refusal{codeInvalidArgument, "event is required"}
	}
	ready := eventOf(topic, e, d.Options.Now())
	// A pattern that matches the topic is at most as long as the topic and a star.
	if size, limit := proto.Size(deliveryOf(topic+"*", ready, "")), d.Options.MaxSendBytes; size > limit {
		return events.Event{}, tooLarge(size, limit)
	}
	return ready, nil
}

// notTaken says why the bus refused an event.
func (d Deps) notTaken(ctx context.Context, topic string, err error) *refusal {
	large, isLarge := errors.AsType[*store.SizeError](err)
	switch {
	case isLarge: // the limit is a little below that of a message
		return tooLarge(large.Size, large.Limit)
	case errors.Is(err, events.ErrInvalid), errors.Is(err, topics.ErrReserved):
		return &refusal{codeInvalidArgument, d.plain(ctx, "publish event", err)}
	case errors.Is(err, events.ErrClosed), errors.Is(err, kv.ErrClosed):
		return &refusal{codeUnavailable, publicStopping}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &refusal{codeUnavailable, "the call ended before the event was taken"}
	}
	if refused := ofFamily(err); refused != nil {
		return refused
	}
	d.Options.Logger.ErrorContext(ctx, "loom.v1 publish failed", "topic", clip(topic), "error", err)
	return &refusal{codeInternal, publicText(err)}
}

// tenantOf is the tenant of a call by which an agent does something; an error for one that
// has ended.
func (d Deps) tenantOf(ctx context.Context, agent string) (string, error) {
	tenant, err := d.Tenant(ctx)
	if err != nil {
		return "", err
	}
	err = d.Acts(ctx, kv.AgentScope(tenant, agent))
	switch {
	case errors.Is(err, children.ErrEnded):
		return "", status.Error(codes.FailedPrecondition, clip(err.Error()))
	case err != nil:
		return "", d.fault(ctx, "find the agent", err)
	}
	return tenant, nil
}

// ofFamily says why no child was made, no result or message taken; nil for any other
// error.
func ofFamily(err error) *refusal {
	for _, row := range []struct {
		is   error
		code string
	}{
		{messages.ErrInvalid, codeInvalidArgument},
		{messages.ErrExists, codeAlreadyExists},
		{messages.ErrFull, codeResourceExhausted},
		{children.ErrInvalid, codeInvalidArgument},
		{children.ErrExists, codeAlreadyExists},
		{children.ErrDepth, codeFailedPrecondition},
		{children.ErrTooMany, codeResourceExhausted},
		{tools.ErrAgentLimit, codeResourceExhausted},
		{children.ErrNotChild, codeNotFound},
		{children.ErrEnded, codeFailedPrecondition},
	} {
		if errors.Is(err, row.is) {
			return &refusal{row.code, clip(err.Error())}
		}
	}
	return nil
}

func tooLarge(size, limit int) *refusal {
	return &refusal{codeResourceExhausted, "event " + TooLarge(size, limit)}
}

// clip makes text of any length fit for a message.
func clip(s string) string { return text.Valid(text.Head(s, maxRefusalBytes)) }
