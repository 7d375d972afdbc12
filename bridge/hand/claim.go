package hand

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// elsewhereFirst and elsewhereMost are the times between two looks at what another
	// server makes of the same request: twice as much each time.
	elsewhereFirst = 10 * time.Millisecond
	elsewhereMost  = 250 * time.Millisecond
	// settleEvery is the interval of checks for calls left by ended servers. The end of a
	// server triggers a check too, but its last writes may become visible a moment later.
	settleEvery = 5 * time.Second
)

// announce writes the intent of a tool that changes something. On a store that several
// servers share it claims the request: session.ErrIntentTaken means that another one runs it,
// or has run it.
func (h *Hand) announce(ctx context.Context, c *call) error {
	if !c.tool.Descriptor().Mutates {
		return nil
	}
	c.intent = intentID(c)
	if h.others != nil {
		if c.bridge = h.others.Holder(); c.bridge == "" {
			return fmt.Errorf("hand: announce %s: %w", c.name(), kv.ErrFenced)
		}
	}
	in := session.Intent{
		ID:          c.intent,
		SessionID:   c.SessionID,
		Tool:        c.name(),
		CalledAs:    c.Name,
		MinimalArgs: h.Reducer.MinimalArgs(c.name(), c.kept),
		Thought:     c.Thought,
		TurnID:      c.TurnID,
		CallID:      c.CallID,
		RequestID:   c.once,
		Digest:      c.digest,
		Time:        h.now(),
		Bridge:      c.bridge,
	}
	write := h.Log.WriteIntent
	if h.others != nil && c.once != "" {
		write = h.Log.ClaimIntent
	}
	if err := write(ctx, c.Scope, in); err != nil {
		c.intent = ""
		return fmt.Errorf("hand: announce %s: %w", c.name(), err)
	}
	return nil
}

// ended reports whether the server that an intent names is no more. On a store of one process
// none but this one ever was.
func (h *Hand) ended(ctx context.Context, in session.Intent) (bool, error) {
	if h.others == nil {
		return true, nil
	}
	return h.others.Ended(ctx, in.Bridge)
}

// elsewhere reports whether another server that lives runs what an intent says.
func (h *Hand) elsewhere(ctx context.Context, in session.Intent) (bool, error) {
	if h.others == nil || in.Bridge == h.others.Holder() {
		return false, nil
	}
	ended, err := h.ended(ctx, in)
	return err == nil && !ended, err
}

// awaitElsewhere waits until another server has ended the request that it runs, or has ended
// itself. Who waits holds no place among the running calls. After the call's own timeout it
// is ErrElsewhere.
func (h *Hand) awaitElsewhere(ctx context.Context, c *call) error {
	resume := share.Pause(ctx)
	defer resume()
	over := time.NewTimer(c.timeout)
	defer over.Stop()
	for pause := elsewhereFirst; ; pause = min(2*pause, elsewhereMost) {
		in, found, err := h.Log.Intent(ctx, c.Scope, intentID(c))
		if err != nil {
			return err
		}
		if runs, err := h.elsewhere(ctx, in); err != nil || !found || !runs {
			return err
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-over.C:
			next.Stop()
			return fmt.Errorf("%w: %s", ErrElsewhere, c.name())
		case <-ctx.Done():
			next.Stop()
			return fmt.Errorf("hand: wait for the same request: %w", ctx.Err())
		}
	}
}

// lostIntent reports whether others have settled the intent of a call, because they took this
// server for dead while it ran: its step is there already.
func (h *Hand) lostIntent(ctx context.Context, tx *kv.Tx, c *call) (bool, error) {
	if h.others == nil || c.intent == "" {
		return false, nil
	}
	in, found, err := h.Log.IntentIn(ctx, tx, c.Scope, c.intent)
	return !found || in.Bridge != c.bridge, err
}

// StartSettling settles, from now on until Close, what other servers leave that end without
// a word. On a store of one process there is nothing to do.
func (h *Hand) StartSettling() {
	if h.others == nil || h.begin() != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stopSettling = stop
	go func() {
		defer h.running.Done()
		h.settling(ctx)
	}()
}

func (h *Hand) settling(ctx context.Context) {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		changed := h.others.Changed()
		settled, err := h.settleLeft(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, kv.ErrUnreachable) && !errors.Is(err, kv.ErrFenced):
			h.logger.WarnContext(ctx, "tool calls of a server that ended are not settled yet", "error", err)
		case settled > 0:
			h.logger.WarnContext(ctx, "tool calls of a server that ended were settled; their outcome is unknown", "steps", settled)
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
