package assemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrNoRenewal: the policy of the session never renews its window.
var ErrNoRenewal = errors.New("assemble: the policy has no renewal")

// RenewRequest asks to begin a session's window anew.
type RenewRequest struct {
	Scope kv.Scope
	// SessionID is the session; empty is the default session.
	SessionID string
	// TurnID names the turn, as that of a Request does.
	TurnID string
	// Goal is as in a Request.
	Goal string
	// RequestID makes the call safe to repeat.
	RequestID string
}

// Renewed says what a session's last renewal left.
type Renewed struct {
	// Sprint is the number of the last renewal; 0 for a session that was never renewed.
	Sprint int
	// Batch is what this call left out of the history; nil where the turn had a renewal, or
	// another level, before.
	Batch *fold.Batch
	// Snapshot is what the agent was at.
	Snapshot working.Snapshot
}

// Renew begins a session's window anew, whatever its pressure. A turn that had a renewal,
// or another level, is left as it is. A session whose policy has no renewal is
// ErrNoRenewal; a window that would not fit even then is an *OverflowError, and changes
// nothing.
func (a *Assembler) Renew(ctx context.Context, r RenewRequest) (Renewed, error) {
	log, ok := a.log.(*session.Log)
	if !ok {
		return Renewed{}, ErrNoRenewal
	}
	out := Renewed{}
	var err error
	if out.Sprint, ok, err = log.Renewed(ctx, r.Scope, r.SessionID, r.RequestID); err == nil && !ok {
		for range maxRaces {
			if out, err = a.renew(ctx, r); !errors.Is(err, session.ErrFoldsChanged) {
				break
			}
		}
	}
	if err == nil && out.Sprint > 0 {
		out.Snapshot, err = log.Snapshot(ctx, r.Scope, r.SessionID, out.Sprint)
	}
	return out, err
}

func (a *Assembler) renew(ctx context.Context, r RenewRequest) (Renewed, error) {
	t, err := a.newTask(ctx, Request{Scope: r.Scope, SessionID: r.SessionID, TurnID: r.TurnID, Goal: r.Goal}, true)
	if err != nil {
		return Renewed{}, err
	}
	defer t.moment.Close()
	if !t.rules.Renews() {
		return Renewed{}, fmt.Errorf("%w: it is %s", ErrNoRenewal, t.rules.Name)
	}
	t.forced, t.requestID = true, r.RequestID
	if err := t.prepare(ctx); err != nil {
		return Renewed{}, err
	}
	s, err := t.folding.Read(ctx)
	if err != nil {
		return Renewed{}, err
	}
	d, err := t.drafted(ctx, s)
	if err != nil {
		return Renewed{}, err
	}
	if d.Renewal == nil {
		return Renewed{Sprint: t.moment.Sprint}, nil
	}
	if err := t.folding.Store(ctx, s, d.Draft, t.requestID); err != nil {
		return Renewed{}, err
	}
	t.report(ctx, d.Batch, nil)
	return Renewed{Sprint: d.Renewal.Snapshot.Sprint, Batch: d.Batch}, nil
}

// prepare finds and lays out what is not history, as an earlier renewal left it.
func (t *task) prepare(ctx context.Context) error {
	if t.rules.Renews() {
		state, err := window.Decode(t.moment.Folds.Marks[t.rules.Name].Window)
		if err != nil {
			return fmt.Errorf("assemble: %w", err)
		}
		t.frame.Memory = state.Memory
	}
	return t.frame.Prepare(ctx)
}
