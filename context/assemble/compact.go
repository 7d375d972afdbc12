package assemble

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// MaxCompactedSteps bounds the steps that a text is asked of by their numbers.
const MaxCompactedSteps = 1000

// CompactRequest asks to compact a session's history now.
type CompactRequest struct {
	// Scope is whose session it is.
	Scope kv.Scope
	// SessionID is the session; empty is the default session.
	SessionID string
	// Text asks for the steps as text in Style; nothing is folded then.
	Text bool
	// Style is the layout of the text.
	Style history.Style
	// KeepRecent is how many steps the text shows in full. Zero is
	// history.DefaultKeepRecent.
	KeepRecent int
	// Steps are the numbers of the steps that the text is of, in any order. Empty is
	// all of the session.
	Steps []uint64
	// Model is the model whose tokens count. Empty is the session's.
	Model string
	// MaxTokens is the most that the history may take; zero is no bound. With Text it
	// bounds the lines of earlier steps in history.StyleReduction.
	MaxTokens int
	// Summary is the caller's summary of the folded part. It stands at the head of the
	// fold, before its lines, and replaces none of them. Empty adds nothing; a blank one,
	// or one that takes more than history.DefaultSummaryTokens is left out.
	Summary string
	// DryRun shows what would be folded, and stores nothing.
	DryRun bool
}

// Compaction is the folded part, or the text. It belongs to the caller.
type Compaction struct {
	// Batch is the folded part; nil when that was nothing.
	Batch *fold.Batch
	// Folds stand in the history now, in order.
	Folds []history.Fold
	// SummaryProblem says why the summary was left out; empty where it was not, or
	// where there was none.
	SummaryProblem string
	// Text is the history in the style that was asked for.
	Text string
	// Tokens is the size of the history, or of the text.
	Tokens tokens.Count
}

// Compact folds everything but the newest turns of a session, whether that pays
// or not, and stores the folds; or, with Text, renders the steps and stores
// nothing. A session whose policy is not the ledger folds nothing. A history
// over MaxTokens whatever is folded is an *OverflowError, a step of Steps that the
// session has not is session.ErrStepNotFound, a malformed request an *invalid.Error;
// none of them stores anything.
func (a *Assembler) Compact(ctx context.Context, r CompactRequest) (Compaction, error) {
	if err := r.check(); err != nil {
		return Compaction{}, err
	}
	t, err := a.newTask(ctx, Request{Scope: r.Scope, SessionID: r.SessionID, Model: r.Model, DryRun: r.DryRun}, true)
	if err != nil {
		return Compaction{}, err
	}
	defer t.moment.Close()
	if r.Text {
		steps, err := t.moment.Steps(ctx, r.Steps)
		if err != nil {
			return Compaction{}, err
		}
		text := a.folds.Lines(steps, r.Style, r.KeepRecent, r.MaxTokens, t.tally.Text)
		return Compaction{Text: text, Tokens: t.tally.Tokens(t.tally.Text(text))}, t.tally.Err
	}
	for range maxRaces {
		var c fold.Compacted
		c, err = t.folding.Compact(ctx, r.MaxTokens, r.Summary)
		if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
			t.r.MaxTokens = r.MaxTokens
			return Compaction{}, t.overflow(nil, fixed{hard: r.MaxTokens}, overflow)
		}
		if !errors.Is(err, session.ErrFoldsChanged) {
			t.report(ctx, c.Batch, err)
			return Compaction{Batch: c.Batch, Folds: c.Folds, SummaryProblem: c.Problem, Tokens: t.tally.Tokens(c.Tokens)}, err
		}
		if err := t.moment.Again(ctx); err != nil {
			return Compaction{}, err
		}
	}
	return Compaction{}, err
}

func (r CompactRequest) check() error {
	switch {
	case r.MaxTokens < 0:
		return invalid.Field(ErrInvalid, "max_tokens", "must not be negative")
	case r.KeepRecent < 0:
		return invalid.Field(ErrInvalid, "keep_recent", "must not be negative")
	case r.Style > history.StyleGrouped:
		return invalid.Field(ErrInvalid, "style", "is unknown")
	case len(r.Steps) > MaxCompactedSteps:
		return invalid.Field(ErrInvalid, "step_ids", "must be at most %d", MaxCompactedSteps)
	case len(r.Steps) > 0 && !r.Text:
		return invalid.Field(ErrInvalid, "step_ids", "need style")
	}
	return nil
}

// ConcludeRequest says that a task of a session is done.
type ConcludeRequest struct {
	// Scope is whose session it is.
	Scope kv.Scope
	// Task is the task, as the log has it.
	Task session.Task
	// Conclusion is what came of it.
	Conclusion string
	// Steps are the numbers of its steps, in any order. Empty is what was said and done
	// since it was taken up, without what belongs to other tasks of the same action: from
	// where one was taken up that has no result yet, and what the folds of those stand for
	// that have one.
	Steps []uint64
	// Settle gives the task its result, once the request was checked and before anything
	// is folded. Its error ends the call. Nil does nothing.
	Settle func(ctx context.Context) error
}

// Concluded says the outcome of a task's steps.
type Concluded struct {
	// Batch is the fold that stands for them; nil where none does.
	Batch *fold.Batch
	// Problem says why none does; empty where one does.
	Problem string
}

// Conclude folds the steps of a task that is done into its conclusion: one line that names
// them. A session whose policy is not the ledger folds nothing, and neither does a task
// that has no steps left, or whose conclusion is not shorter. A step of Steps that the
// session has not is session.ErrStepNotFound.
func (a *Assembler) Conclude(ctx context.Context, r ConcludeRequest) (Concluded, error) {
	log, ok := a.log.(*session.Log)
	if !ok {
		return Concluded{Problem: "the log has no tasks"}, nil
	}
	if len(r.Steps) > MaxCompactedSteps {
		return Concluded{}, invalid.Field(ErrInvalid, "step_ids", "must be at most %d", MaxCompactedSteps)
	}
	for _, number := range r.Steps {
		e, err := log.Step(ctx, r.Scope, number)
		if err == nil && e.Step.SessionID != sessionOf(r.Task.SessionID) {
			err = session.ErrStepNotFound
		}
		if err != nil {
			return Concluded{}, fmt.Errorf("assemble: read %s: %w", step.ID(number), err)
		}
	}
	own, err := a.subtask(ctx, log, r)
	if err == nil && r.Settle != nil {
		err = r.Settle(ctx)
	}
	if err != nil {
		return Concluded{}, err
	}
	t, err := a.newTask(ctx, Request{Scope: r.Scope, SessionID: r.Task.SessionID}, true)
	if err != nil {
		return Concluded{}, err
	}
	defer t.moment.Close()
	if t.rules.Policy != session.PolicyLedger {
		return Concluded{Problem: "the policy " + t.rules.Name + " folds no sub-tasks"}, nil
	}
	for range maxRaces {
		var c fold.Compacted
		if c, err = t.folding.Conclude(ctx, own); !errors.Is(err, session.ErrFoldsChanged) {
			t.report(ctx, c.Batch, err)
			return Concluded{Batch: c.Batch, Problem: c.Problem}, err
		}
		if err := t.moment.Again(ctx); err != nil {
			return Concluded{}, err
		}
	}
	return Concluded{}, err
}

// subtask says which entries are a part of a task.
func (a *Assembler) subtask(ctx context.Context, log *session.Log, r ConcludeRequest) (history.Subtask, error) {
	own := history.Subtask{
		ID: r.Task.ID, Conclusion: r.Conclusion,
		Name:   func(refs []string) string { return strings.Join(session.RefRuns(refs), ", ") },
		Covers: func(*history.Fold) bool { return false },
	}
	if len(r.Steps) > 0 {
		named := make(map[string]bool, len(r.Steps))
		for _, number := range r.Steps {
			named[step.ID(number)] = true
		}
		own.Holds = func(e *history.Entry) bool {
			return e.Kind == history.Unseen || e.Kind == history.Turn && len(e.Calls) > 0 || named[e.FullRef]
		}
		return own, nil
	}
	from, to := r.Task.After, uint64(math.MaxUint64)
	parts, others := map[string]bool{r.Task.ID: true}, []string{}
	for number := r.Task.Number; ; {
		later, err := log.TasksAfter(ctx, r.Scope, r.Task.SessionID, number, 0)
		if err != nil {
			return own, fmt.Errorf("assemble: read tasks: %w", err)
		}
		for i := range later {
			next := &later[i]
			number = next.Number
			switch {
			case parts[next.ParentTaskID]:
				parts[next.ID] = true
			case next.Action != r.Task.Action:
			case next.Result == "":
				to = min(to, next.After)
			default:
				others = append(others, next.ID)
			}
		}
		if len(later) < session.MaxTasks {
			break
		}
	}
	own.Holds = func(e *history.Entry) bool { return from < e.Position && e.Position <= to }
	own.Covers = func(f *history.Fold) bool {
		return from < f.Spans[0].First && f.Spans[len(f.Spans)-1].Last <= to && !slices.ContainsFunc(others, f.IsSubtask)
	}
	return own, nil
}
