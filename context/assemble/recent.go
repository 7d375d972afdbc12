package assemble

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxLooked entries at the end of a session's log are looked at for the newest message
	// of the user and for failures.
	maxLooked = 512
	// maxAskedBytes of the newest message are kept: as much as a search can use.
	maxAskedBytes = 8 << 10
)

// recent is what the end of a session's log says. It is never changed.
type recent struct {
	// through is the place of the last entry.
	through uint64
	// newest is the beginning of the newest message of the user, asked its place; empty and
	// 0 for none among those that were looked at.
	newest string
	asked  uint64
	// failed are the last calls that failed, oldest first.
	failed []failure
	// lately says of the last steps whether each failed, oldest first.
	lately []bool
}

// failure is a call that failed, and its place.
type failure struct {
	inject.Failure
	position uint64
}

// failures are the last calls that failed, oldest first.
func (r *recent) failures() []inject.Failure {
	out := make([]inject.Failure, len(r.failed))
	for i := range r.failed {
		out[i] = r.failed[i].Failure
	}
	return out
}

// errors is how many of the last steps failed.
func (r *recent) errors() int {
	n := 0
	for _, failed := range r.lately {
		if failed {
			n++
		}
	}
	return n
}

// turn names the turn of the model: the place of the message that it answers.
func (r *recent) turn() string { return strconv.FormatUint(r.asked, 10) }

// recent reads the end of the session's log, as far as no earlier prompt did.
func (t *task) recent(ctx context.Context) (*recent, error) {
	id := sessionOf(t.r.SessionID)
	before := t.a.known.recent(t.r.Scope, id)
	var found []session.Entry
	for e, err := range t.moment.log.Before(ctx, t.r.Scope, id, 0) {
		if err != nil {
			return nil, fmt.Errorf("assemble: read the end of the log: %w", err)
		}
		if e.Position <= before.through || len(found) > 0 && e.Position+maxLooked <= found[0].Position {
			break
		}
		found = append(found, e)
	}
	if len(found) == 0 {
		return &before, nil
	}
	after := before
	after.failed, after.lately = slices.Clone(before.failed), slices.Clone(before.lately)
	after.through = found[0].Position
	for _, e := range slices.Backward(found) {
		if e.Step != nil {
			after.addStep(e.Step, e.Position)
		}
	}
	after.ask(found)
	after.forget()
	t.a.known.keepRecent(t.r.Scope, id, after)
	return &after, nil
}

// ask notes the newest message of the user, of entries from the newest on.
func (r *recent) ask(found []session.Entry) {
	for _, e := range found {
		if m := e.Message; m != nil && m.Role == session.User && !m.Observation && !pairing.OnlyResults(m) {
			said := spokenText(m)
			r.newest, r.asked = text.Head(cmp.Or(inject.Strip(said), said), maxAskedBytes), e.Position
			return
		}
	}
}

// forget lets go of what is too far back, so that a server that has just started knows as
// much as one that made the prompts before.
func (r *recent) forget() {
	old := func(position uint64) bool { return position+maxLooked <= r.through }
	r.failed = slices.DeleteFunc(r.failed, func(f failure) bool { return old(f.position) })
	if old(r.asked) {
		r.newest, r.asked = "", 0
	}
}

// addStep notes a failure, or what a call that did not fail says of an earlier failure.
func (r *recent) addStep(s *step.Step, position uint64) {
	r.lately = append(r.lately, s.Outcome == step.Failed)
	r.lately = r.lately[max(len(r.lately)-inject.ErrorWindow, 0):]
	switch s.Outcome {
	case step.Succeeded:
		r.recovered(s)
	case step.Failed:
		said := inject.Failure{Tool: s.ToolName, Message: cmp.Or(s.Error, s.Observation)}
		r.failed = append(r.failed, failure{said, position})
		r.failed = r.failed[max(len(r.failed)-inject.ErrorWindow, 0):]
	}
}

// recovered says of the last failure of a tool by which call the tool worked again.
func (r *recent) recovered(s *step.Step) {
	for i := len(r.failed) - 1; i >= 0; i-- {
		f := &r.failed[i]
		if f.Tool != s.ToolName {
			continue
		}
		if f.Recovery == "" && len(s.MinimalArgs) > 0 {
			f.Recovery = "worked with " + string(s.MinimalArgs)
		}
		return
	}
}

// Figures are what the dashboard of a session shows: of its last prompt, as far as that is
// known, and of its last steps.
func (a *Assembler) Figures(ctx context.Context, scope kv.Scope, sessionID string) (working.Figures, error) {
	t, err := a.newTask(ctx, Request{Scope: scope, SessionID: sessionID, DryRun: true}, true)
	if err != nil {
		return working.Figures{}, err
	}
	defer t.leave()
	recent, err := t.recent(ctx)
	if err != nil {
		return working.Figures{}, err
	}
	last := a.known.last(scope, sessionOf(sessionID))
	return working.Figures{Pressure: last.pressure, Budget: last.free, Errors: recent.errors(), Depth: a.depthOf(ctx, scope)}, nil
}

// depthOf is how many parents an agent has above it; 0 where nobody knows.
func (a *Assembler) depthOf(ctx context.Context, scope kv.Scope) int {
	if a.depth == nil {
		return 0
	}
	return a.depth(ctx, scope)
}

// withFigures lays the prompt out again if its dashboard shows other figures than those of
// a draft; false where it shows them already, or none.
func (t *task) withFigures(d *draft) bool {
	if !t.showsWorking() {
		return false
	}
	now := t.figures
	now.Pressure = math.Round(100*min(t.pressure(d), 1)) / 100
	now.Budget = max(t.r.MaxTokens-d.predicted.Count.Tokens, 0)
	if now == t.figures {
		return false
	}
	t.figures = now
	t.arrange(t.end)
	return true
}

// pressure is the share of its budget that a draft takes.
func (t *task) pressure(d *draft) float64 {
	return float64(d.predicted.Count.Tokens) / float64(t.r.MaxTokens)
}
