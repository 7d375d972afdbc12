package hand

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// lostMessage is the failure text of a call whose outcome is not known.
const lostMessage = "Outcome unknown: the server stopped while the tool ran; it may or may not have taken effect"

// Recover makes a step with the outcome Unknown for every intent that has no step and
// belongs to no live server, and returns their number. From then on their request ids get
// that answer. Call it once, before the first Call. An intent that can't be read is logged
// and stays where it is; after an error the remaining ones are left for the next call.
func (h *Hand) Recover(ctx context.Context) (int, error) {
	if h.Audit != nil {
		if err := h.Audit.Recover(ctx); err != nil {
			return 0, fmt.Errorf("hand: recover: %w", err)
		}
	}
	return h.settleLeft(ctx)
}

// settleLeft settles the intents that were left behind.
func (h *Hand) settleLeft(ctx context.Context) (settled int, err error) {
	var left []session.Intent
	var unread error // of some tenants; the others are not kept waiting
	for intent, err := range h.Log.Intents(ctx) {
		if errors.Is(err, session.ErrDamaged) {
			h.logger.ErrorContext(ctx, "an interrupted tool call can't be read and has no step", "error", err)
			continue
		}
		if err != nil {
			unread = fmt.Errorf("hand: recover: %w", err)
			break
		}
		left = append(left, intent)
	}
	for _, intent := range left {
		ended, err := h.ended(ctx, intent)
		if err == nil && !ended {
			continue
		}
		if err == nil {
			err = h.settle(ctx, intent)
		}
		if err != nil {
			return settled, fmt.Errorf("hand: recover: %w", err)
		}
		settled++
	}
	return settled, unread
}

// leftBehind looks for an intent of the same request, which a call has written
// whose step could not be recorded, and settles it. The tool must not run again,
// nor another one under the same id. While another server runs it, it waits.
func (h *Hand) leftBehind(ctx context.Context, c *call) (bool, error) {
	intent, found, err := h.Log.Intent(ctx, c.Scope, intentID(c))
	switch {
	case err != nil:
		return false, fmt.Errorf("hand: look for the first call: %w", err)
	case !found:
		return false, nil
	case intent.Digest != c.digest:
		return false, fmt.Errorf("%w: %s", kv.ErrRequestReused, c.RequestID)
	}
	runs, err := h.elsewhere(ctx, intent)
	if err == nil && runs {
		return true, h.awaitElsewhere(ctx, c)
	}
	if err != nil {
		return false, err
	}
	return true, h.settle(ctx, intent)
}

// settle records the step of an intent whose outcome is not known.
func (h *Hand) settle(ctx context.Context, in session.Intent) error {
	ref := h.Log.Ref(in.Scope)
	req := kv.Request{Refs: []kv.Ref{ref}, Blind: h.Log.LeftIntentRefs(in.Scope)}
	auditing, err := h.beginAudit(ctx, in.Scope.Tenant, &req)
	if err != nil {
		return fmt.Errorf("settle %s of %s: %w", in.Tool, in.Scope, err)
	}
	position := uint64(0)
	req.Stage = func(ctx context.Context, tx *kv.Tx) error {
		position = 0
		if h.others != nil { // others settle, too
			left, found, err := h.Log.IntentIn(ctx, tx, in.Scope, in.ID)
			if err != nil || !found || left.Bridge != in.Bridge {
				return err
			}
		}
		h.Log.StageIntentSettled(tx, in.Scope, in.ID)
		_, answered, err := kv.LookupOnce(ctx, tx, ref, in.RequestID, in.Digest)
		reused := errors.Is(err, kv.ErrRequestReused)
		if answered || err != nil && !reused {
			return err
		}
		s, at, err := h.Log.StageStep(ctx, tx, in.Scope, func(uint64) (step.Step, error) { return h.lostStep(in), nil })
		if err != nil {
			return err
		}
		position = at
		if h.Audit != nil {
			auditing.Stage(tx, h.lostAudit(in, s.Number))
		}
		if !reused {
			kv.StageOnce(tx, ref, in.RequestID, in.Digest, encodeKept(s.Number, Answer{}), s.Time)
		}
		return nil
	}
	err = h.Writer.Do(ctx, req)
	if h.Audit != nil {
		auditing.End(err)
	}
	if err != nil {
		return fmt.Errorf("settle %s of %s: %w", in.Tool, in.Scope, err)
	}
	if position > 0 {
		h.Log.Committed(in.Scope, position)
	}
	return nil
}

func (h *Hand) lostStep(in session.Intent) step.Step {
	reduced := h.Reducer.Reduce(step.Call{Tool: in.Tool, Result: step.Result{Failed: true, ErrorText: lostMessage}})
	return step.Step{
		SessionID:   in.SessionID,
		ToolName:    in.Tool,
		CalledAs:    in.CalledAs,
		MinimalArgs: in.MinimalArgs,
		Observation: reduced.Observation,
		Outcome:     step.Unknown,
		Thought:     in.Thought,
		Error:       reduced.Error,
		ErrorCode:   string(tools.OutcomeUnknown),
		Inline:      reduced.Inline,
		Metadata:    reduced.Metadata,
		Time:        h.now().UTC(),
		TurnID:      in.TurnID,
		CallID:      in.CallID,
	}
}

// withdraw takes away the intent of a call that the tool refused. If that fails
// the intent stays, and its outcome counts as unknown later.
func (h *Hand) withdraw(ctx context.Context, c *call) {
	if c.intent == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	err := h.Writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{h.Log.IntentRef(c.Scope)},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			h.Log.StageIntentDone(tx, c.Scope, c.intent)
			return nil
		},
		Lazy: true,
	})
	if err != nil {
		h.logger.WarnContext(ctx, "intent of a refused call not taken away", "tool", c.name(), "error", err)
	}
}
