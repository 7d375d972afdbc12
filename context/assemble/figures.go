package assemble

import (
	"context"
	"math"

	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Figures are what the dashboard of a session shows: of its last prompt, as far as that is
// known, and of its last steps.
func (a *Assembler) Figures(ctx context.Context, scope kv.Scope, sessionID string) (working.Figures, error) {
	t, err := a.newTask(ctx, Request{Scope: scope, SessionID: sessionID, DryRun: true}, true)
	if err != nil {
		return working.Figures{}, err
	}
	defer t.moment.Close()
	last := t.a.Known.Last(scope, t.r.SessionID)
	f := a.frames.Figures(ctx, t.moment)
	f.Pressure, f.Budget = last.Pressure, last.Free
	return f, nil
}

// withFigures lays the prompt out again if its dashboard's figures differ from the draft's;
// false if they are equal or it shows none.
func (t *task) withFigures(d *draft) bool {
	if !t.frame.ShowsWorking() {
		return false
	}
	now := t.frame.Figures
	now.Pressure = math.Round(100*min(t.pressure(d), 1)) / 100
	now.Budget = max(t.r.MaxTokens-d.predicted.Count.Tokens, 0)
	if now == t.frame.Figures {
		return false
	}
	t.frame.Figures = now
	t.frame.Layout()
	return true
}

// pressure is the share of its budget that a draft takes.
func (t *task) pressure(d *draft) float64 {
	return float64(d.predicted.Count.Tokens) / float64(t.r.MaxTokens)
}
