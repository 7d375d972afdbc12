package assemble

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// turn names the turn of the prompt: as the caller does, or by the end of the log.
func (t *task) turn() string { return turnOf(t.r.TurnID, t.moment.End.Through) }

func turnOf(id string, through uint64) string {
	if id != "" {
		return "id:" + id
	}
	return "at:" + strconv.FormatUint(through, 10)
}

// ReportOverflow notes that a provider refused the last prompt of a turn as too long. With
// a preset of levels the turn's next prompt is made by window.Reactive; under another
// policy the history is folded at once as far as it may be. A second report in one turn is
// ErrRefusedAgain and an *OverflowError, and changes nothing.
func (a *Assembler) ReportOverflow(ctx context.Context, scope kv.Scope, sessionID, turnID string) (window.Level, error) {
	for range maxRaces {
		level, err := a.reportOverflow(ctx, scope, sessionID, turnID)
		if !errors.Is(err, session.ErrFoldsChanged) {
			return level, err
		}
	}
	return window.None, session.ErrFoldsChanged
}

func (a *Assembler) reportOverflow(ctx context.Context, scope kv.Scope, sessionID, turnID string) (window.Level, error) {
	t, err := a.newTask(ctx, Request{Scope: scope, SessionID: sessionID, TurnID: turnID}, true)
	if err != nil {
		return window.None, err
	}
	defer t.moment.Close()
	mark := t.moment.Folds.Marks[t.rules.Name]
	state, err := window.Decode(mark.Window)
	if err != nil {
		return window.None, fmt.Errorf("assemble: %w", err)
	}
	turn := t.turn()
	if state.Overflow == turn || state.Turn == turn && state.Level == window.Reactive {
		account := a.Known.Last(scope, t.r.SessionID).Account
		return window.None, fmt.Errorf("%w: %w", ErrRefusedAgain, &account)
	}
	level := window.Reactive
	state.Overflow = turn
	if t.rules.Preset.Style != history.StyleLevels {
		// There is nothing to make shorter by levels: the note alone is kept.
		level, state.Overflow, state.Turn, state.Level = window.None, "", turn, window.Reactive
	}
	mark.Window = state.Encode()
	if err := t.a.log.MoveMark(ctx, scope, sessionID, t.moment.Folds.Version, t.rules.Name, mark); err != nil {
		return window.None, fmt.Errorf("assemble: note the overflow: %w", err)
	}
	if level == window.None {
		_, err = a.Compact(ctx, CompactRequest{Scope: scope, SessionID: sessionID})
	}
	return level, err
}
