package assemble

import (
	"cmp"
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// task is one call with its settings, defaults filled in.
type task struct {
	a *Assembler
	// r has its Model, MaxTokens and SessionID filled in.
	r Request
	// moment is what the prompt is read from, folding its history, trail what the prompt
	// before began with.
	moment  *read.Moment
	rules   fold.Rules
	tally   *render.Tally
	folding *fold.Folding
	trail   *render.Trail
	// prompt says what the prompt is made of, table where it stands; prepared is what
	// is not history, and frame where that stands.
	prompt   settings.Prompt
	table    layout.Table
	prepared inject.Prepared
	frame    layout.Frame
	gathered gather.Gathered
	// working is what the agent is at, skillTools the tools of active skills.
	working    working.Working
	figures    working.Figures
	skillTools []string
	// ownTools are the caller's own tools.
	ownTools []Tool
	// served are the served tools that the agent can call.
	served []Served
	// text and others are the tools as text: the server's and the caller's, and other
	// agents'.
	text, others []tokens.ToolDefinition
	tools        toolset
	// shrunk is what gave way in a renewed window, swapped the active skills that it shows
	// by name only. requestID is that of a renewal that is asked for.
	shrunk    fold.Window
	swapped   []string
	requestID string
	// window is what the prompt may take where it does not fit MaxTokens, because the call
	// has no budget; 0: no more than MaxTokens.
	window int
	// back is what comes back of folded results.
	back inject.Injection
	// fork is what the prompt begins with where the session is a fork, or nil.
	fork *record.Fork
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
	t.settle(c.Prompt)
	if err := t.budget(cmp.Or(r.MaxTokens, c.MaxTokens)); err != nil {
		return nil, err
	}
	t.prompt.Limits.Prompt = t.r.MaxTokens
	if t.folding, err = a.folds.Folding(now, t.rules, t.tally, t.trail); err != nil {
		return nil, err
	}
	return t, now.Load(ctx)
}

// budget says how many tokens the prompt may take. given is what the call or the session
// says, 0 for nothing: then it is what the preset leaves to a prompt, or what the window
// of the model does, or the default.
func (t *task) budget(given int) error {
	reserve := t.prompt.OutputTokens
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

// settle says what the prompt is made of: as the call says, else the session or server,
// else the preset.
func (t *task) settle(below *settings.Prompt) {
	base := settings.Prompt{Layout: settings.Layout(t.rules.Preset.Layout), Rendering: settings.Rendering(t.rules.Preset.Rendering)}
	if t.rules.Policy == session.PolicyPreset {
		base.Sources.UserMemories = inject.PresetMemories
		base.Limits.Sections = map[string]int{settings.UserMemory: inject.PresetMemoryTokens}
	}
	if below != nil {
		base = below.Over(base)
	}
	t.prompt = base
	if t.r.Settings != nil {
		t.prompt = t.r.Settings.Over(base)
	}
	t.prompt.Limits.Shared = t.rules.Preset.Budget.Fixed
	t.table = layout.Named(t.prompt.Layout)
	t.r.System = cmp.Or(t.r.System, t.prompt.System)
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
