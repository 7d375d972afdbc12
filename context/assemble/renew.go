package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
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
	t.shrunk.Forced, t.requestID = true, r.RequestID
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

// windowState reads what an earlier renewal left to prompts in addition to the history.
func (t *task) windowState() error {
	if !t.rules.Renews() {
		return nil
	}
	state, err := window.Decode(t.moment.Folds.Marks[t.rules.Name].Window)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	t.shrunk.Memory = state.Memory
	return nil
}

// evict makes room in a fresh window whose history is as short as it can be: first skills
// are reduced to their names, then knowledge about the user and the task is dropped, least
// valuable first. False where nothing is left to evict.
func (t *task) evict(over int) (bool, error) {
	if !t.folding.Misses {
		return false, nil
	}
	t.folding.Misses, t.shrunk.Evicting = false, true
	if active := t.active(); len(active) > 0 {
		t.swapped = append(t.swapped, active...)
		t.working = t.working.With(working.Change{Deactivate: active}, t.a.clock(), 0)
		return true, t.rearranged()
	}
	shown := t.memoryTokens()
	if shown == 0 {
		return false, nil
	}
	// A section takes more than its cap counts, by what begins its message, and is cut
	// between its parts: the first cap below what is shown may change nothing.
	memory := shown
	for less := max(over, 1); ; less *= 2 {
		memory = max(memory-less, 0)
		t.shrunk.Memory = memory + 1
		if err := t.rearranged(); err != nil {
			return false, err
		}
		if memory == 0 || t.memoryTokens() < shown {
			return t.memoryTokens() < shown, nil
		}
	}
}

// rearranged lays out again what is not history.
func (t *task) rearranged() (err error) {
	reads := slices.Contains(t.skillTools, step.ToolReadFile)
	if t.skillTools = t.skillsTools(); reads && !slices.Contains(t.skillTools, step.ToolReadFile) {
		t.skillTools = append(t.skillTools, step.ToolReadFile) // references need it
	}
	t.r.Tools = t.ownTools
	t.r.Tools = t.offered()
	t.textTools()
	if t.tools, err = t.a.toolset(t.r); err != nil {
		return err
	}
	t.arrange()
	return t.tally.Err
}

// isMemory reports whether a section holds knowledge about the user and the task.
func isMemory(name string, phase inject.Phase) bool {
	return phase == inject.UserContext && name != settings.SkillTexts && name != settings.Working &&
		name != settings.Tasks && name != settings.Events && name != settings.Messages
}

// memoryTokens returns the tokens of the knowledge sections.
func (t *task) memoryTokens() int {
	n := 0
	for i := range t.prepared.Arranged.Pieces {
		if p := &t.prepared.Arranged.Pieces[i]; isMemory(p.Name, p.Phase) {
			n += p.Tokens
		}
	}
	return n
}

// trim caps the knowledge sections, the last one first, so that together they fit into
// their budget.
func (t *task) trim(all []inject.Injection) []inject.Injection {
	if t.shrunk.Memory == 0 {
		return all
	}
	left := t.shrunk.Memory - 1
	out := all[:0:0]
	for i := range all {
		in := all[i]
		if isMemory(in.Name, in.Phase) {
			if left <= 0 {
				continue
			}
			if in.MaxTokens == 0 || in.MaxTokens > left {
				in.MaxTokens = left
			}
			left -= min(in.MaxTokens, t.tally.Text(in.Text)+t.tally.Text(strings.Join(in.Parts, "\n")))
		}
		out = append(out, in)
	}
	return out
}
