package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/compress"
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
	// r has its Model and MaxTokens filled in.
	r Request
	// policy is one of session's, preset its rules under PolicyPreset.
	policy string
	preset history.Preset
	// name is what the receipt calls it.
	name    string
	literal bool
	// prompt says what the prompt is made of, table where it stands; prepared is what
	// is not history, and frame where that stands.
	prompt   settings.Prompt
	table    layout.Table
	prepared inject.Prepared
	frame    layout.Frame
	gathered gather.Gathered
	// working is what the agent is at, skillTools the tools of active skills, and text the
	// tools that are offered as text.
	working    working.Working
	figures    working.Figures
	skillTools []string
	// ownTools are the caller's own tools.
	ownTools []Tool
	// served are those that the agent can call.
	served []Served
	// before is the working state as it was read, swapped the active skills that a renewal
	// shows by name only. forced asks for one, with
	// requestID.
	before    working.Working
	swapped   []string
	forced    bool
	requestID string
	// memory is how many tokens of what is known a prompt shows where that is trimmed.
	// evicts says that a renewed window does not fit yet, evicting that more than history
	// gave way to it.
	memory          int
	trimmed, evicts bool
	evicting        bool
	// text and others are the tools as text: the server's and the caller's own, and those of
	// others.
	text, others []tokens.Tool
	// leavesTalk says that what was said leaves the window, too: nothing else is left.
	leavesTalk bool
	prices     history.Prices
	ledger     *history.Ledger
	// compressor shortens the results of presets that show them so.
	compressor *compress.Compressor
	tools      toolset
	options    history.Options
	// window is what the prompt may take where it does not fit MaxTokens, because
	// nobody gave a budget; 0 is no more.
	window int
	// turns are those to come, 0 if nobody knows.
	turns int
	// count counts a text, until the call is over.
	count func(text string) int
	// err is the first error of counting.
	err error
	// moment is what the prompt is read from.
	moment *read.Moment
	// back is what comes back of folded results.
	back inject.Injection
	// fork is what the prompt begins with where the session is a fork, or nil.
	fork *fork
	// folded is what was folded so that the log could be read on.
	folded *Batch
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
	t := &task{
		a: a, moment: now, r: r, policy: cmp.Or(c.Policy, session.PolicyLedger), turns: c.ExpectedTurns,
		literal: c.Literal != nil && *c.Literal, prices: a.prices(r.Model, c.Prices),
	}
	t.count = t.countUntil(ctx)
	t.name = t.policy
	if t.policy == session.PolicyPreset {
		t.name = c.Preset
		t.preset = a.preset(c.Preset) // the name was checked
	}
	t.settle(c.Prompt)
	if err := t.budget(cmp.Or(r.MaxTokens, c.MaxTokens)); err != nil {
		return nil, err
	}
	if err := t.open(c); err != nil {
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
	case t.preset.Budget.Prompt() > 0:
		t.r.MaxTokens = t.preset.Budget.Window() - cmp.Or(reserve, t.preset.Budget.Response)
		t.window = t.preset.Budget.Window() - reserve
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
	base := settings.Prompt{Layout: settings.Layout(t.preset.Layout), Rendering: settings.Rendering(t.preset.Rendering)}
	if below != nil {
		base = below.Over(base)
	}
	t.prompt = base
	if t.r.Settings != nil {
		t.prompt = t.r.Settings.Over(base)
	}
	t.prompt.Limits.Shared = t.preset.Budget.Fixed
	t.table = layout.Named(t.prompt.Layout)
	t.r.System = cmp.Or(t.r.System, t.prompt.System)
}

// open makes the ledger.
func (t *task) open(c session.Config) error {
	frame, err := t.a.counter.Message(t.r.Model, tokens.Message{Role: session.User.String()})
	if err != nil {
		return fmt.Errorf("assemble: count: %w", err)
	}
	t.options = history.Options{
		Prices:        t.prices,
		MessageTokens: frame.Tokens,
		ResultTokens:  cmp.Or(c.ResultTokens, t.a.limit),
		Header:        pairing.FoldHeader(t.reader()),
		NoFold:        t.policy != session.PolicyLedger,
		NoDedupe:      t.policy != session.PolicyLedger,
		Memo:          t.a.memo,
	}
	t.ledger = history.New(t.count, &t.options)
	t.compressor = compress.New(t.count, &compress.Options{ResultTokens: unbounded})
	return nil
}

// countUntil returns what counts a text until the context is done; from then on
// nothing takes time. The first error is kept.
func (t *task) countUntil(ctx context.Context) func(text string) int {
	return func(text string) int {
		if t.err != nil {
			return 0
		}
		err := ctx.Err()
		var n tokens.Count
		if err == nil {
			n, err = render.CountText(t.a.counter, t.r.Model, text)
		}
		if err != nil {
			t.err = fmt.Errorf("assemble: count history: %w", err)
		}
		return n.Tokens
	}
}

// invalidConfig is an error of the session's settings as one of this package.
func invalidConfig(err error) error {
	if e, ok := errors.AsType[*invalid.Error](err); ok {
		return invalid.Field(ErrInvalid, e.Field, "%s", e.Problem)
	}
	return err
}

// prices are those of the settings, or of the model, or the defaults.
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
