package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// send sends answers, tool calls and events until emitted is closed, which
// means that no answer is still to come, or ctx ends. Answers and calls pass
// events that wait.
func (a *attachment) send(ctx context.Context, emitted <-chan struct{}) error {
	var answers []answer
	for {
		ended := isClosed(emitted)
		answers = a.pending.takeAnswers(answers)
		if err := a.sendAnswers(answers); err != nil {
			return err
		}
		answers = reuse(answers)
		if ended {
			return nil
		}
		busy, err := a.sendOne(ctx)
		switch {
		case err != nil:
			return err
		case busy:
			continue
		}
		if err := a.wait(ctx, emitted); err != nil {
			return err
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *attachment) sendAnswers(answers []answer) error {
	for i := range answers {
		if err := a.sendAnswer(answers[i]); err != nil {
			return err
		}
	}
	if len(answers) > 0 {
		a.pending.sent(answers)
	}
	return nil
}

func (a *attachment) sendAnswer(one answer) error {
	if one.reply == nil {
		return a.stream.SendMsg(a.framer.emitted(one))
	}
	return a.stream.Send(&loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Answer{Answer: one.reply}})
}

// sendOne sends what is at hand of each kind, at most one, and tells whether
// there was any.
func (a *attachment) sendOne(ctx context.Context) (busy bool, err error) {
	select {
	case call, ok := <-a.link.Calls():
		if err := a.sendCall(call, ok); err != nil {
			return false, err
		}
		busy = true
	default:
	}
	select {
	case e := <-a.link.Direct():
		if err := a.sendEvent(events.Delivery{Event: e}); err != nil {
			return false, err
		}
		busy = true
	default:
	}
	d, ok, err := a.subscription.Take(ctx)
	if !ok || err != nil {
		return busy, err
	}
	return true, a.sendEvent(d)
}

// wait returns when there may be something to send.
func (a *attachment) wait(ctx context.Context, emitted <-chan struct{}) error {
	select {
	case <-a.pending.mail:
	case <-a.subscription.Ready():
	case call, ok := <-a.link.Calls():
		return a.sendCall(call, ok)
	case e := <-a.link.Direct():
		return a.sendEvent(events.Delivery{Event: e})
	case <-emitted:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (a *attachment) sendEvent(d events.Delivery) error {
	f := a.framer.attachEvent(d)
	if !a.framer.fits(d.Event) {
		return nil
	}
	return a.stream.SendMsg(f)
}

// sendCall passes a tool call on, unless its caller has given up. One that no
// client could take fails at once.
func (a *attachment) sendCall(call agents.PushedCall, open bool) error {
	if !open {
		return fmt.Errorf("%w: the agent was taken out of the directory; attach again", ErrShuttingDown)
	}
	if !a.link.Waiting(call.ID) {
		return nil
	}
	m := &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_ToolCall{ToolCall: convert.AttachToolCall(call, a.framer.form)}}
	if size := proto.Size(m); size > a.framer.limit {
		a.link.Complete(call.ID, convert.TooLarge(size, a.framer.limit))
		return nil
	}
	return a.stream.Send(m)
}
