package hand

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// Call runs a tool and records the call as a step. An error means that the call
// was refused and nothing ran: *tools.NotFoundError, *tools.ArgumentsError, *tools.LimitError,
// *invalid.Error, kv.ErrRequestReused, *throttle.LimitedError, *share.ExhaustedError, ErrNoWorkspace,
// ErrClosed, an error of the store before the tool ran, or that of ctx while the
// call had to wait. Those that are mistakes of a model are failed steps where the call has a
// CallID: see mistake. Everything that happens from then on is in the answer.
//
// If ctx ends while the tool runs, the tool is stopped, and the step is
// recorded all the same.
func (h *Hand) Call(ctx context.Context, req Request) (Answer, error) {
	if err := h.begin(); err != nil {
		return Answer{}, err
	}
	came := h.now()
	c, err := h.check(req, came, true)
	if err != nil {
		if c = h.mistaken(req, came, err); c == nil {
			defer h.running.Done()
			h.auditRefused(ctx, req, came, err)
			return Answer{}, err
		}
	}
	defer h.end(c)
	answer, err := h.answerOnce(ctx, c)
	switch {
	case err != nil:
		h.auditRefused(ctx, c.Request, came, err)
	case answer.Replayed || !answer.Recorded:
		h.auditAnswer(ctx, c, answer)
	}
	return answer, err
}

// answerOnce performs the call, once if it has a request or call id.
func (h *Hand) answerOnce(ctx context.Context, c *call) (Answer, error) {
	if c.once == "" {
		return h.perform(ctx, c)
	}
	return h.performOnce(ctx, c)
}

// end gives the call's slot free, at once or when a tool that was left alone has
// ended.
func (h *Hand) end(c *call) {
	free := func() {
		c.limited.End()
		c.slot.Leave()
		h.running.Done()
	}
	if c.late == nil {
		free()
		return
	}
	go func() {
		<-c.late
		free()
	}()
}

// performOnce is perform for a call with a request or call id: an answer that was given
// before is given again, and an outcome that got lost is answered as unknown.
func (h *Hand) performOnce(ctx context.Context, c *call) (Answer, error) {
	unlock, err := h.requests.lock(ctx, c.Scope, c.once)
	if err != nil {
		return Answer{}, err
	}
	defer unlock()
	for {
		answer, found, err := h.replay(ctx, c)
		if found || err != nil {
			return answer, err
		}
		left, err := h.leftBehind(ctx, c)
		if err != nil {
			return Answer{}, err
		}
		if left {
			answer, found, err := h.replay(ctx, c)
			if err == nil && !found && h.others == nil {
				err = fmt.Errorf("hand: the settled request %q has no answer", c.once)
			}
			if found || err != nil {
				return answer, err
			}
			continue // the server that ran it was faster, and its tool had refused
		}
		answer, err = h.perform(ctx, c)
		if !errors.Is(err, session.ErrIntentTaken) {
			return answer, err
		}
	}
}

type awayKey struct{}

// WithoutWorkspace is ctx for a call whose workspace can't be reached: its answer of before is
// given again, what a server that ended has left of it is settled, and else it fails with err.
func WithoutWorkspace(ctx context.Context, err error) context.Context {
	return context.WithValue(ctx, awayKey{}, err)
}

// away is why the workspace of a call can't be reached; nil for one that can.
func away(ctx context.Context) error {
	err, _ := ctx.Value(awayKey{}).(error)
	return err
}

// perform runs the tool, if it may run, and records the step: the next
// prompt has to see what came of the call.
func (h *Hand) perform(ctx context.Context, c *call) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, fmt.Errorf("hand: call: %w", err)
	}
	if err := away(ctx); err != nil {
		return Answer{}, err
	}
	free, err := h.bound(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	answer, err := h.bounded(ctx, c)
	free(err == nil && answer.Recorded)
	return answer, err
}

// bounded is perform for a call within the bounds of its agent.
func (h *Hand) bounded(ctx context.Context, c *call) (Answer, error) {
	if c.mistake != nil {
		return h.record(ctx, c, outcome{failure: c.mistake}), nil
	}
	if failure := c.forbidden(); failure != nil {
		return h.record(ctx, c, outcome{failure: failure}), nil
	}
	if err := h.limit(c); err != nil {
		return h.refused(ctx, c, err)
	}
	failure, err := h.approve(ctx, c)
	switch {
	case err != nil:
		return Answer{}, err
	case failure != nil:
		return h.record(ctx, c, outcome{failure: failure}), nil
	}
	if err := h.enter(ctx, c); err != nil {
		return Answer{}, err
	}
	root, err := h.Workspaces.Root(c.Scope)
	if err != nil {
		return Answer{}, err
	}
	if failure := h.confine(c, root); failure != nil {
		return h.record(ctx, c, outcome{failure: failure}), nil
	}
	if failure := h.unchanged(ctx, c, root); failure != nil {
		return h.record(ctx, c, outcome{failure: failure}), nil
	}
	if err := h.announce(ctx, c); err != nil {
		return Answer{}, err
	}
	out := h.run(ctx, c, root)
	if out.refused != nil {
		return h.refused(ctx, c, out.refused)
	}
	return h.record(ctx, c, out), nil
}

// refused ends a call of which nothing ran: by a failed step where a model reads it.
func (h *Hand) refused(ctx context.Context, c *call, err error) (Answer, error) {
	if c.CallID == "" || h.mistake(err) == nil {
		h.withdraw(ctx, c)
		return Answer{}, err
	}
	c.mistake = h.mistake(err)
	return h.record(ctx, c, outcome{failure: c.mistake}), nil
}

// intentID names a call's intent. That of a request or call id is always the same, so
// that a repeated call finds what the first one left.
func intentID(c *call) string {
	if c.once == "" {
		return rand.Text()
	}
	sum := sha256.Sum256([]byte(c.once))
	return hex.EncodeToString(sum[:])
}
