package assemble

import (
	"cmp"
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/frame"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// task is one call with its settings, defaults filled in.
type task struct {
	a *Assembler
	// r has its Model, MaxTokens and SessionID filled in.
	r Request
	// moment is what the prompt is read from, folding its history, frame what stands around
	// that, trail what the prompt before began with.
	moment  *read.Moment
	rules   fold.Rules
	tally   *render.Tally
	folding *fold.Folding
	frame   *frame.Framing
	trail   *render.Trail
	// forced asks for a renewal, requestID names it. talkLeaves: what was said leaves, too.
	forced, talkLeaves bool
	requestID          string
	// window is what the prompt may take where it does not fit MaxTokens, because the call
	// has no budget; 0: no more than MaxTokens.
	window int
	// plain counts prompts without what usage reports taught.
	plain bool
}

// newTask checks a request and fills in what it leaves to the session and the
// defaults.
func (a *Assembler) newTask(ctx context.Context, r Request, live bool) (_ *task, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	now, err := a.source.Open(ctx, r.Scope, r.SessionID, live)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			now.Close()
		}
	}()
	r.SessionID = now.SessionID
	c := r.History.Over(now.Config)
	if c.Policy == "" && c.Preset != "" {
		c.Policy = session.PolicyPreset
	}
	// Settings of prompts were checked where they were given: laid over one another they
	// may take more than any of them may.
	unlaid := c
	unlaid.Prompt = nil
	if err := unlaid.Check(); err != nil {
		return nil, invalidConfig(err)
	}
	r.Model = cmp.Or(r.Model, c.Model)
	t := &task{a: a, moment: now, r: r, tally: render.NewTally(ctx, a.counter, r.Model, r.Format), trail: a.Known.Trail(r.Scope, r.SessionID)}
	t.rules = fold.Rules{
		Policy: cmp.Or(c.Policy, session.PolicyLedger), Literal: c.Literal != nil && *c.Literal, Prices: a.prices(r.Model, c.Prices),
		Turns: c.ExpectedTurns, ResultTokens: cmp.Or(c.ResultTokens, a.limit), MaxBytes: r.MaxBytes, DryRun: r.DryRun,
	}
	t.rules.Name = t.rules.Policy
	if t.rules.Policy == session.PolicyPreset {
		t.rules.Name = c.Preset
		t.rules.Preset = a.folds.Preset(c.Preset) // the name was checked
	}
	prompt := t.settle(c.Prompt)
	if err := t.budget(cmp.Or(r.MaxTokens, c.MaxTokens), prompt.OutputTokens); err != nil {
		return nil, err
	}
	prompt.Limits.Prompt = t.r.MaxTokens
	t.frame = a.frames.Framing(frame.Ask{
		Moment: now, Tally: t.tally, Model: r.Model, Format: r.Format, System: t.r.System, Goal: r.Goal, TurnID: r.TurnID,
		Tools: r.Tools, WithoutTools: r.WithoutTools, DryRun: r.DryRun, Rules: t.rules, Settings: prompt, Table: layout.Named(prompt.Layout),
	})
	if t.folding, err = a.folds.Folding(now, t.rules, t.tally, t.trail); err != nil {
		return nil, err
	}
	return t, now.Load(ctx)
}

// budget says how many tokens the prompt may take. given is what the call or the session
// says, 0 for nothing: then it is what the preset leaves to a prompt, or what the window
// of the model does, or the default.
func (t *task) budget(given, reserve int) error {
	model := t.a.counter.Model(t.r.Model)
	switch {
	case given > 0:
		t.r.MaxTokens = given - reserve
	case t.rules.Preset.Budget.Prompt() > 0:
		t.r.MaxTokens = t.rules.Preset.Budget.Window() - cmp.Or(reserve, t.rules.Preset.Budget.Response)
		t.window = t.rules.Preset.Budget.Window() - reserve
	case model.Window > 0:
		t.r.MaxTokens = model.Window - cmp.Or(reserve, model.Reserve)
	default:
		t.r.MaxTokens = DefaultMaxTokens - reserve
	}
	if t.r.MaxTokens <= 0 {
		return invalid.Field(ErrInvalid, "settings.max_output_tokens", "is %d, which leaves nothing of the budget to the prompt", reserve)
	}
	return nil
}

// settle returns what the prompt is made of: as the call says, else the session or server,
// else the preset.
func (t *task) settle(below *settings.Prompt) settings.Prompt {
	base := settings.Prompt{Layout: settings.Layout(t.rules.Preset.Layout), Rendering: settings.Rendering(t.rules.Preset.Rendering)}
	if t.rules.Policy == session.PolicyPreset {
		base.Sources.UserMemories = inject.PresetMemories
		base.Limits.Sections = map[string]int{settings.UserMemory: inject.PresetMemoryTokens}
	}
	if below != nil {
		base = below.Over(base)
	}
	if t.r.Settings != nil {
		base = t.r.Settings.Over(base)
	}
	base.Limits.Shared = t.rules.Preset.Budget.Fixed
	t.r.System = cmp.Or(t.r.System, base.System)
	return base
}

// invalidConfig is an error of the session's settings as one of this package.
func invalidConfig(err error) error {
	if e, ok := errors.AsType[*invalid.Error](err); ok {
		return invalid.Field(ErrInvalid, e.Field, "%s", e.Problem)
	}
	return err
}

// prices returns the prices of the settings, of the model, or the defaults, in this order.
func (a *Assembler) prices(model string, own history.Prices) history.Prices {
	if own != (history.Prices{}) {
		return own
	}
	price := a.counter.Model(model).Price
	if price.CacheRead <= 0 {
		return history.DefaultPrices()
	}
	return history.Prices{Input: 1, CachedInput: price.CacheRead, CacheWrite: price.CacheWrite}
}
