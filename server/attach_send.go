package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/stream"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

type publication = stream.Publication[streamAnswer]

// publicationOf is what an agent published, for the bus, or refused.
func (a *attachment) publicationOf(ctx context.Context, ref int64, r *loombridgev1.EmitRequest) publication {
	event, err := a.eventOf(r)
	if err != nil {
		err = within("publish", err)
	} else {
		err = heard(a.events, a.agents, a.tenant, r, event)
	}
	if err != nil {
		return a.refusedPublish(ctx, ref, err)
	}
	one := publication{Ref: ref, Event: event, Options: convert.EmitOptions(r, ownsOf(ctx)), Size: len(event.Payload)}
	for key, value := range event.Headers {
		one.Size += len(key) + len(value)
	}
	return one
}

// eventOf fills in what a publish may leave out.
func (a *attachment) eventOf(r *loombridgev1.EmitRequest) (events.Event, error) {
	if r.GetAgentId() == "" {
		r.AgentId = a.agentID
	}
	if r.GetSessionId() == "" {
		r.SessionId = a.session
	}
	if err := validate.Published(r, a.agentID); err != nil {
		return events.Event{}, err
	}
	return convert.Event(r)
}

// refusal answers a message that is refused.
func (a *attachment) refusal(ctx context.Context, ref int64, err error) streamAnswer {
	return streamAnswer{reply: &loombridgev1.AttachAnswer{Ref: ref, Error: a.errorOf(ctx, err)}}
}

func (a *attachment) refusedPublish(ctx context.Context, ref int64, err error) publication {
	return publication{Ref: ref, Refused: new(a.refusal(ctx, ref, err))}
}

// Answer says the outcome of a publish, unless the agent wants failures
// only.
func (a *attachment) Answer(ctx context.Context, p *publication, result events.EmitResult) (streamAnswer, bool) {
	if result.Err != nil {
		return a.refusal(ctx, p.Ref, within("publish", result.Err)), true
	}
	taken := &result.Event
	return streamAnswer{ref: p.Ref, id: taken.ID, sequence: taken.Sequence, time: taken.Time}, p.Ref != 0
}

// SendAnswer sends one answer.
func (a *attachment) SendAnswer(_ context.Context, one streamAnswer) error {
	if one.reply == nil {
		return a.transport.SendMsg(a.framer.emitted(one))
	}
	return a.transport.Send(&loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Answer{Answer: one.reply}})
}

// SendEvent delivers an event that clients take.
func (a *attachment) SendEvent(_ context.Context, d events.Delivery) error {
	f := a.framer.event(d)
	if !a.framer.fits(d.Event) {
		return nil
	}
	return a.transport.SendMsg(f)
}

// SendCall passes a tool call on. One that no client could take fails at once.
func (a *attachment) SendCall(_ context.Context, call agents.PushedCall) error {
	m := &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_ToolCall{ToolCall: convert.AttachToolCall(call, a.framer.asText)}}
	if size := proto.Size(m); size > a.framer.limit {
		a.link.Complete(call.ID, convert.TooLarge(size, a.framer.limit))
		return nil
	}
	return a.transport.Send(m)
}
