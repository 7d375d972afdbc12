package assemble

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/frame"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/assemble/reuse"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits and defaults of a request.
const (
	// DefaultMaxTokens is the budget of a request without one, for a model whose window is
	// unknown.
	DefaultMaxTokens = 8192
	// DefaultToolResultTokens bounds what a prompt shows of one result. What is
	// over it can be read by the reference that stands in its place.
	DefaultToolResultTokens = 3000
	// MaxGoalBytes bounds a goal.
	MaxGoalBytes = 256 << 10
	// MaxSystemBytes bounds a system prompt.
	MaxSystemBytes = 1 << 20
)

// Log is where the assembler reads a session, and keeps its folds.
// *session.Log is one, and documents the methods.
type Log interface {
	read.Log
	fold.Journal
	record.Anchors
}

var _ Log = (*session.Log)(nil)

// Options adjusts an Assembler. Nil and zero fields mean the defaults.
type Options struct {
	// ToolResultTokens bounds what a prompt shows of one step's result. Default
	// DefaultToolResultTokens.
	ToolResultTokens int
	// Reference is how a result says where its full text lies. Default
	// step.ReferenceHint.
	Reference step.ReferenceStyle
	// Reducer makes of calls in messages what presets show of them. Default that of
	// package step.
	Reducer *step.Reducer
	// Models is the table that the counter has, whose ratios usage reports
	// correct. Default is the one that comes with package tokens.
	Models *tokens.Models
	// Templates of lines override the ones of each preset. Default none.
	Templates step.Templates
	// OnBatch is called for each batch of folds after it is stored, by the call that
	// folded. It must not block. Default: no notification.
	OnBatch func(ctx context.Context, scope kv.Scope, sessionID string, b fold.Batch)
	// Engine is the engine that the log reads from. A prompt is read from one snapshot of
	// it. Default: no snapshot; each part is read on its own.
	Engine read.Snapshots
	// Foresee adds what the gatherer and the functions here read of the Engine. Default:
	// that is not known.
	Foresee func(along *kv.Reads, scope kv.Scope, sessionID string)
	// Gatherer finds the parts of prompts other than the history; it needs the Engine.
	// Default: prompts have only the history.
	Gatherer *gather.Gatherer
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Served returns the tools that an agent can call, as far as the format
	// can name them. Default: none.
	Served func(ctx context.Context, scope kv.Scope, f Format) ([]Served, error)
	// Past keeps what prompts were made of. Default: nothing does, and no prompt can be
	// made again.
	Past *past.Store
	// CacheBytes bounds the prompts that are kept for calls that would make the same ones
	// again; negative: reuse.DefaultMaxBytes. Default none is kept.
	CacheBytes int
	// StepOf returns the step of a session whose stored result a name leads to: a path, or
	// a hash; empty for none. It is asked of what new calls name. Default: none is known.
	StepOf func(ctx context.Context, scope kv.Scope, sessionID, name string) (stepID string)
	// Forked is what the prompts of a session begin with that is a fork, as ForkPoint made
	// it; nil for any other. Default: none is one.
	Forked func(ctx context.Context, scope kv.Scope, sessionID string) ([]byte, error)
	// Depth is how many parents an agent has above it. Default: none.
	Depth func(ctx context.Context, scope kv.Scope) int
	// ReadBytes is how much text of entries a prompt reads at once if it can fold
	// that before it reads on. Default read.DefaultBytes.
	ReadBytes int
}

// Assembler builds prompts. The same log and the same request give the same
// bytes; what it remembers of prompts it made goes into receipts, and into how
// many tokens the next one is said to have. All methods are safe for concurrent
// use.
type Assembler struct {
	*record.Recorder

	log       Log
	counter   *tokens.Counter
	limit     int
	reference step.ReferenceStyle
	source    *read.Sessions
	folds     *fold.Stage
	frames    *frame.Stage
	onBatch   func(ctx context.Context, scope kv.Scope, sessionID string, b fold.Batch)
	kept      *reuse.Cache[Prompt]
	now       func() time.Time
}

// New returns an assembler that reads log and counts with counter. Give many
// assemblers one counter: it remembers what it counted.
func New(log Log, counter *tokens.Counter, opts *Options) *Assembler {
	o := *cmp.Or(opts, &Options{})
	if o.Reducer == nil {
		o.Reducer = step.NewReducer(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Assembler{
		log: log, counter: counter, now: o.Now, limit: cmp.Or(max(o.ToolResultTokens, 0), DefaultToolResultTokens), reference: o.Reference,
		source: read.New(log, o.Engine, o.Foresee, o.ReadBytes), folds: fold.New(log, o.Reference, o.Reducer, o.Templates),
		onBatch: o.OnBatch, frames: frame.New(frame.Sources{
			Counter: counter, Gatherer: o.Gatherer, Finder: rehydrate.NewFinder(), Clock: o.Now,
			Served: o.Served, Forked: o.Forked, Depth: o.Depth,
		}),
	}
	a.Recorder = record.New(log, counter, o.Models, o.Past, a.frames.Finder, o.StepOf)
	if o.CacheBytes != 0 {
		a.kept = reuse.New[Prompt](max(o.CacheBytes, 0))
	}
	return a
}

// maxRaces is how often a prompt is made again because the session's folds
// changed under it. Each time somebody else got something done.
const maxRaces = 8

// Assemble builds the prompt of a session. What it folds is stored before it
// returns; a dry run stores nothing, and so does a call that fails. A prompt over
// the budget whatever is folded is an *OverflowError, one over MaxBytes
// ErrTooLarge, a malformed request an *invalid.Error, and session.ErrFoldsChanged
// that others kept folding the same session.
func (a *Assembler) Assemble(ctx context.Context, r Request) (Prompt, error) {
	var folded *fold.Batch
	live := false
	for races := 0; ; {
		p, t, err := a.attempt(ctx, r, live, folded)
		switch {
		case errors.Is(err, session.ErrFoldsChanged) && races < maxRaces:
			races++
		case errors.Is(err, kv.ErrTooOld) && !live:
			live = true
		default:
			if t != nil {
				t.report(ctx, p.Receipt.Batch, err)
			}
			return p, err
		}
		if t != nil {
			folded = t.folding.Before
		}
	}
}

// attempt makes a prompt from one moment. folded is what attempts before it folded.
func (a *Assembler) attempt(ctx context.Context, r Request, live bool, folded *fold.Batch) (Prompt, *task, error) {
	t, err := a.newTask(ctx, r, live)
	if err != nil {
		return Prompt{}, nil, err
	}
	defer t.moment.Close()
	t.folding.Before = folded
	if err := t.prepare(kv.Within(ctx, t.moment.View)); err != nil {
		return Prompt{}, t, err
	}
	p, err := t.assemble(ctx)
	return p, t, err
}

// assemble makes the prompt, or takes the one that an earlier call made of the same.
func (t *task) assemble(ctx context.Context) (Prompt, error) {
	if t.a.kept == nil {
		return t.made(ctx)
	}
	key, err := t.key()
	if err != nil {
		return Prompt{}, err
	}
	if p, ok := t.a.kept.Get(key); ok {
		if p.Receipt.Reused = true; !t.r.DryRun {
			t.frame.Gathered.Rendered()
		}
		return p, nil
	}
	p, err := t.made(ctx)
	if err == nil && p.Receipt.Batch == nil { // what folded is not what the next call does
		t.a.kept.Put(key, p, p.Size())
	}
	return p, err
}

// key stands for all that the prompt is made of.
func (t *task) key() (reuse.Key, error) {
	request := t.r
	request.Settings, request.History.Prompt = &t.frame.Settings, nil
	request.Goal, request.Tools = t.frame.Goal, nil
	last := t.a.Known.Last(t.r.Scope, t.r.SessionID).Of(record.CacheKind{Model: t.r.Model, Format: t.r.Format})
	return reuse.KeyOf(request, t.frame.OfferedKey[:], t.rules.Policy, t.rules.Name, t.rules.Literal, t.rules.Preset, t.rules.Prices, t.rules.Turns, t.window, t.rules.ResultTokens, t.frame.Working,
		t.frame.Gathered, t.frame.Back, t.moment.End.Through, t.moment.End.At.UnixNano(), t.moment.Folds.Version, t.moment.Folds.Batch, t.frame.Set.JSON, t.moment.Anchor, t.probe(t.moment.Anchor), last.Basis())
}

// made makes the prompt.
func (t *task) made(ctx context.Context) (Prompt, error) {
	s, err := t.folding.Read(ctx)
	if err != nil {
		return Prompt{}, err
	}
	d, err := t.drafted(ctx, s)
	for i := 0; err == nil && i < maxFigures && t.withFigures(d); i++ {
		d, err = t.drafted(ctx, s)
	}
	if err != nil {
		return Prompt{}, err
	}
	if err := t.folding.Store(ctx, s, d.Draft, t.requestID); err != nil {
		return Prompt{}, err
	}
	return t.a.Finish(ctx, t.record(s, d))
}

// maxFigures is how often a prompt is laid out again because its own size stands in it:
// the second time only the digits differ.
const maxFigures = 3

// drafted makes a draft within the budget, or within the window if the call has no budget.
func (t *task) drafted(ctx context.Context, s *fold.Material) (*draft, error) {
	fixed, err := t.fixed(ctx)
	if err != nil {
		return nil, err
	}
	d, err := t.fit(ctx, s, fixed)
	for {
		overflow, ok := errors.AsType[*OverflowError](err)
		if !ok {
			break
		}
		if !t.folding.Misses {
			break
		}
		t.folding.Misses = false
		evicted, failed := t.frame.Evict(overflow.TotalTokens - overflow.MaxTokens)
		if failed != nil {
			return nil, failed
		}
		if !evicted {
			break
		}
		if fixed, err = t.fixed(ctx); err != nil {
			return nil, err
		}
		d, err = t.fit(ctx, s, fixed)
	}
	if errors.Is(err, ErrOverflow) && t.window > t.r.MaxTokens {
		// Better a response with less room than none.
		t.r.MaxTokens = t.window
		fixed.hard, fixed.soft = t.limits(fixed.anchor)
		d, err = t.fit(ctx, s, fixed)
	}
	return t.lastResort(ctx, s, fixed, d, err)
}

// report calls OnBatch for the batch of a successful call; nil means no batch.
func (t *task) report(ctx context.Context, b *fold.Batch, err error) {
	if err == nil && b != nil && !t.r.DryRun && t.a.onBatch != nil {
		t.a.onBatch(ctx, t.r.Scope, t.r.SessionID, *b)
	}
}

// sessionOf is the session that an id names.
func sessionOf(id string) string { return cmp.Or(id, session.DefaultSession) }

// record is the prompt for the account of it.
func (t *task) record(s *fold.Material, d *draft) *record.Made {
	return &record.Made{
		Scope: t.r.Scope, SessionID: t.r.SessionID, Model: t.r.Model, Format: t.r.Format, MaxTokens: t.r.MaxTokens, DryRun: t.r.DryRun,
		UserID: t.frame.Settings.UserID, ForkedUsers: t.frame.ForkedUsers(), Policy: t.rules.Name, Layout: t.frame.Table.Name, Prices: t.rules.Prices,
		Source: s, Draft: d.Draft, Batch: t.folding.Before.Plus(d.Batch), Built: d.b, Asked: d.asked, Last: d.last, Predicted: d.predicted,
		Sections: t.frame.Sections(d.b), Tools: t.frame.Set.Costs, Sprint: t.moment.Sprint, Through: t.moment.End.Through,
		Rendered: t.frame.Gathered.Rendered, Time: t.a.now(),
	}
}

// Forget drops what the assembler remembers of the prompts of scopes that somebody has
// erased, or whose prompts showed what was.
func (a *Assembler) Forget(match func(kv.Scope) bool) {
	a.Recorder.Forget(match)
	a.source.Forget(match)
	a.folds.Forget(match)
	a.frames.Forget(match)
}
