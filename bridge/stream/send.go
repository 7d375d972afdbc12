package stream

import (
	"context"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
)

// send sends answers, tool calls and events, until everything that is owed to an agent
// that leaves was sent, or else with the reason why no more can be sent. Answers and
// calls pass events that wait.
func (s *Stream[A]) send(ctx context.Context) error {
	var answers []agentAnswer[A]
	for left := -1; ; {
		if left < 0 && isClosed(s.published) {
			left = s.Limits.LastRounds + 1
		}
		answers = s.pending.takeAnswers(answers)
		busy := len(answers) > 0
		if err := s.sendAnswers(ctx, answers); err != nil {
			return err
		}
		answers = reuse(answers)
		if left >= 0 {
			if left--; left == 0 {
				return nil
			}
		}
		sent, err := s.sendOne(ctx)
		switch {
		case err != nil:
			return err
		case busy || sent:
			continue
		case left >= 0:
			return nil
		}
		if err := s.await(ctx); err != nil {
			return err
		}
	}
}

func (s *Stream[A]) sendAnswers(ctx context.Context, answers []agentAnswer[A]) error {
	for i := range answers {
		if err := s.face.SendAnswer(ctx, answers[i].message); err != nil {
			return err
		}
	}
	if len(answers) > 0 {
		s.pending.sent(answers)
	}
	return nil
}

// sendOne sends what is at hand of each other kind, at most one, and reports whether
// there was any.
func (s *Stream[A]) sendOne(ctx context.Context) (busy bool, err error) {
	select {
	case call, open := <-s.calls():
		if err := s.sendCall(ctx, call, open); err != nil {
			return false, err
		}
		busy = true
	default:
	}
	select {
	case e := <-s.Link.Direct():
		if err := s.sendDirect(ctx, e); err != nil {
			return false, err
		}
		busy = true
	default:
	}
	idle := s.Progress.now()
	d, ok, err := s.next(ctx)
	switch {
	case err != nil:
		return false, err
	case ok && !s.Progress.wants(&d):
		return true, nil
	case ok:
		if err := s.face.SendEvent(ctx, d); err != nil {
			return false, err
		}
		s.Progress.note(&d)
		return true, nil
	case s.held == nil:
		s.Progress.caughtUp(idle)
	}
	return busy, nil
}

// calls yields what the agent is to answer; nothing once it has closed its side.
func (s *Stream[A]) calls() <-chan agents.PushedCall {
	if isClosed(s.left) {
		return nil
	}
	return s.Link.Calls()
}

// next takes the next delivery. The first of a replay is held until the stream has
// settled, and all that comes behind it.
func (s *Stream[A]) next(ctx context.Context) (d events.Delivery, ok bool, err error) {
	if s.held == nil {
		d, ok, err = s.Subscription.Take(ctx)
		if err != nil || !ok || !s.Progress.holds(&d) {
			return d, ok, err
		}
		first := d // a copy, so that only the first of a replay is allocated
		s.held = &first
	}
	if !s.settled() {
		return events.Delivery{}, false, nil
	}
	d = *s.held
	s.held = nil
	return d, true, nil
}

// settled reports whether a replay need not be held any more: its time is up, a newer
// stream has it, or the agent leaves.
func (s *Stream[A]) settled() bool {
	select {
	case <-s.Progress.replay.settled:
	case <-s.Link.GapTaken():
	case <-s.left:
	default:
		return false
	}
	s.Progress.replay.settled = nil
	return true
}

// await returns when there may be something to send.
func (s *Stream[A]) await(ctx context.Context) error {
	ready := s.Subscription.Ready()
	var settled <-chan time.Time
	var taken <-chan struct{}
	if s.held != nil {
		ready, settled, taken = nil, s.Progress.replay.settled, s.Link.GapTaken()
	}
	select {
	case <-s.pending.mail:
	case <-ready:
	case <-settled:
		s.Progress.replay.settle()
	case <-taken:
	case call, open := <-s.calls():
		return s.sendCall(ctx, call, open)
	case e := <-s.Link.Direct():
		return s.sendDirect(ctx, e)
	case <-s.published:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// sendDirect delivers what is meant for this agent alone, as if it was subscribed to
// its topic.
func (s *Stream[A]) sendDirect(ctx context.Context, e events.Event) error {
	return s.face.SendEvent(ctx, events.Delivery{Event: e, Pattern: pattern.Legacy(e.Topic)})
}

// sendCall passes a tool call on, unless its caller has given up.
func (s *Stream[A]) sendCall(ctx context.Context, call agents.PushedCall, open bool) error {
	switch {
	case !open && isClosed(s.left):
		return nil
	case !open:
		return ErrRemoved
	case !s.Link.Waiting(call.ID):
		return nil
	}
	return s.face.SendCall(ctx, call)
}
