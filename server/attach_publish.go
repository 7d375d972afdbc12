package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// publish queues one event for the emitter, also one that is refused, so that
// the answers keep the order of the publishes.
func (a *attachment) publish(ctx context.Context, p *loombridgev1.AttachPublish) error {
	one := publication{ref: p.GetRef()}
	var err error
	if one.event, err = a.eventOf(p); err != nil {
		one.event, one.refused = events.Event{}, a.errorOf(ctx, within("publish.event", err))
	}
	if one.refused == nil {
		if err := heard(a.events, a.agents, a.tenant, p.GetEvent(), one.event); err != nil {
			one.refused = a.errorOf(ctx, err)
		}
	}
	one.opts = emitOptionsOf(p.GetEvent())
	one.size = len(one.event.Payload)
	for key, value := range one.event.Headers {
		one.size += len(key) + len(value)
	}
	return a.pending.publish(ctx, one)
}

// eventOf fills in what a publish may leave out.
func (a *attachment) eventOf(p *loombridgev1.AttachPublish) (events.Event, error) {
	r := p.GetEvent()
	if r == nil {
		return events.Event{}, validate.Refuse("", "is required")
	}
	if r.GetAgentId() == "" {
		r.AgentId = a.agentID
	}
	if r.GetSessionId() == "" {
		r.SessionId = a.session
	}
	if err := validate.Published(r, a.agentID); err != nil {
		return events.Event{}, err
	}
	return eventToEmit(r)
}

// emit hands what was published to the bus, in order, until no more comes.
// What was published while a commit was under way shares the next one.
func (a *attachment) emit(ctx context.Context) {
	var e emitter
	var batch []publication
	for {
		batch = a.pending.takePublishes(ctx, batch)
		if len(batch) == 0 {
			return
		}
		e.emit(ctx, a, batch)
		batch = reuse(batch)
	}
}

// keepItems is how many items a stream keeps memory for between two batches: a
// thousand streams must not keep what each needed once.
const keepItems = 128

// reuse returns the memory of a batch for the next one, if it is small.
func reuse[T any](batch []T) []T {
	if cap(batch) > keepItems {
		return nil
	}
	clear(batch)
	return batch[:0]
}

// emitter keeps the memory of one batch for the next.
type emitter struct {
	events  []events.Event
	opts    []events.EmitOptions
	answers []answer
}

func (e *emitter) emit(ctx context.Context, a *attachment, batch []publication) {
	bytes := 0
	for i := range batch {
		bytes += batch[i].size
		if batch[i].refused == nil {
			e.events, e.opts = append(e.events, batch[i].event), append(e.opts, batch[i].opts)
		}
	}
	var results []events.EmitResult
	if len(e.events) > 0 {
		results = a.events.EmitAll(ctx, a.tenant, e.events, e.opts)
	}
	for i := range batch {
		var result events.EmitResult
		if batch[i].refused == nil {
			result, results = results[0], results[1:]
		}
		e.answer(ctx, a, &batch[i], result)
	}
	a.pending.answer(e.answers, len(batch)-len(e.answers), bytes)
	e.events, e.opts, e.answers = reuse(e.events), reuse(e.opts), reuse(e.answers)
}

// answer adds what the agent is told of one publish, unless it wants to hear of
// failures only.
func (e *emitter) answer(ctx context.Context, a *attachment, one *publication, result events.EmitResult) {
	refused := one.refused
	if result.Err != nil {
		refused = a.errorOf(ctx, within("publish.event", result.Err))
	}
	switch {
	case refused != nil:
		reply := &loombridgev1.AttachAnswer{Ref: one.ref, Error: refused}
		e.answers = append(e.answers, answer{reply: reply, publish: true})
	case one.ref != 0:
		taken := result.Event
		e.answers = append(e.answers, answer{
			publish: true, ref: one.ref, id: taken.ID, sequence: taken.Sequence, time: taken.Time,
		})
	}
}
