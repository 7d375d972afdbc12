package fold

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// Journal is where folds are kept. *session.Log is one, and documents the methods.
type Journal interface {
	// AppendFolds stores a batch, and MoveMark the boundary of a preset;
	// session.ErrFoldsChanged when somebody else was first.
	AppendFolds(ctx context.Context, scope kv.Scope, sessionID string, version uint64, made []history.Fold) error
	MoveMark(ctx context.Context, scope kv.Scope, sessionID string, version uint64, preset string, to history.Mark) error
	// Renew stores a renewal; session.ErrFoldsChanged as with AppendFolds.
	Renew(ctx context.Context, scope kv.Scope, sessionID string, version uint64, r *session.Renewal, requestID string) (int, error)
}

const (
	// maxReduced bounds the calls in messages whose reduced forms are remembered. One
	// takes about a kilobyte.
	maxReduced = 1 << 13
	// maxParts bounds the groups of entries of which it is known what a preset shows.
	// One takes about a kilobyte.
	maxParts = 1 << 14
)

// Stage folds histories. Its methods are safe for concurrent use.
type Stage struct {
	journal   Journal
	reference step.ReferenceStyle
	templates step.Templates
	memo      *history.Memo
	calls     *calls
	// parts are the inputs of line presets for groups, units of message presets.
	parts *cache.Cache[partKey, history.Chunk]
	units *cache.Cache[partKey, fadedUnit]
	// entered are the groups that the last prompts of the ledger had, by tenant.
	entered *cache.Fair[string, enteredKey, []entered]
}

// New returns a stage that keeps folds in journal. reference is how a result says where its
// full text lies, reducer makes of calls in messages what presets show of them, templates are
// laid over the lines of each preset.
func New(journal Journal, reference step.ReferenceStyle, reducer *step.Reducer, templates step.Templates) *Stage {
	return &Stage{
		journal: journal, reference: reference, templates: templates, memo: history.NewMemo(0),
		calls: &calls{reducer, cache.New[[sha256.Size]byte, step.Step](maxReduced)},
		parts: cache.New[partKey, history.Chunk](maxParts), units: cache.New[partKey, fadedUnit](maxParts),
		entered: cache.NewFair[string, enteredKey, []entered](maxEnteredBytes),
	}
}

// Forget drops the caches of matching scopes.
func (s *Stage) Forget(match func(kv.Scope) bool) {
	of := func(p partKey) bool { return match(p.scope) }
	s.parts.DeleteFunc(of)
	s.units.DeleteFunc(of)
	s.entered.DeleteAll(func(k enteredKey) bool { return match(k.scope) })
}

// Preset returns a preset by its name, with the lines of the stage.
func (s *Stage) Preset(name string) history.Preset {
	p, _ := history.Named(name)
	if p.Templates.Empty() {
		p.Templates = step.DesignTemplates()
	}
	p.Templates = s.templates.Over(p.Templates)
	return p
}

// Rules are what a history is folded by.
type Rules struct {
	// Policy is one of session's, Preset its rules under PolicyPreset, Name that of the
	// policy or the preset.
	Policy, Name string
	Preset       history.Preset
	// Literal takes the rules of a preset to the letter, whether they pay or not.
	Literal bool
	Prices  history.Prices
	// Turns is the expected number of further turns, 0 if unknown.
	Turns int
	// ResultTokens bounds what is shown of one result, MaxBytes the text that is never
	// folded; 0 is no bound.
	ResultTokens, MaxBytes int
	// DryRun stores nothing.
	DryRun bool
}

// Ledger reports whether the rules are the ledger's.
func (r *Rules) Ledger() bool { return r.Policy == session.PolicyLedger }

// Renews reports whether the rules renew windows.
func (r *Rules) Renews() bool {
	return r.Ledger() || r.Policy == session.PolicyPreset && r.Preset.Style == history.StyleLevels
}

// Ask is what the rest of a prompt asks of its history.
type Ask struct {
	// Goal is what the agent works towards. AsTask says that the prompt ends with it as the
	// task.
	Goal   string
	AsTask bool
	// Turn names the turn of the prompt.
	Turn string
	// MaxTokens is the budget of the whole prompt.
	MaxTokens int
	Window    Window
}

// Window is what a renewal of the window needs to know of the rest of the prompt.
type Window struct {
	// Forced asks for a renewal; Evicting also asks for one, in which more than history is
	// dropped.
	Forced, Evicting bool
	// Memory is the number of tokens of knowledge that a prompt shows, plus one, if
	// knowledge is trimmed; else 0.
	Memory int
	// TalkLeaves says that what was said leaves the window, too: nothing else is left.
	TalkLeaves bool
	// Working is the working state as it was read, Swapped the active skills that are shown
	// by name only, Figures the dashboard's figures.
	Working working.Working
	Swapped []string
	Figures working.Figures
	Now     time.Time
}

// Folding is the history of one prompt. It is for one goroutine.
type Folding struct {
	Rules
	*render.Tally

	// Before is the batch folded to make room for reading further.
	Before *Batch
	// Misses says that the last renewed window does not fit: more than history must be
	// dropped.
	Misses bool

	stage      *Stage
	moment     *read.Moment
	ask        Ask
	options    history.Options
	ledger     *history.Ledger
	compressor *compress.Compressor
	compactor  *history.Compactor
	last       *render.Trail
	reader     string
}

// Folding is the history of a moment by some rules. last is what the session's last prompt
// began with; nil where that is not known.
func (s *Stage) Folding(m *read.Moment, r Rules, tally *render.Tally, last *render.Trail) (*Folding, error) {
	frame, err := tally.Counter.Message(tally.Model, tokens.Message{Role: session.User.String()})
	if err != nil {
		return nil, fmt.Errorf("assemble: count: %w", err)
	}
	c := &Folding{Rules: r, Tally: tally, stage: s, moment: m, last: last}
	c.reader, _ = tally.Format.ToolName(step.ToolReadFile)
	c.options = history.Options{
		Prices:        r.Prices,
		MessageTokens: frame.Tokens,
		ResultTokens:  r.ResultTokens,
		Header:        pairing.FoldHeader(c.reader),
		NoFold:        !r.Ledger(),
		NoDedupe:      !r.Ledger(),
		Memo:          s.memo,
	}
	c.ledger = history.New(tally.Text, &c.options)
	c.compressor = compress.New(tally.Text, &compress.Options{ResultTokens: unbounded})
	if r.Policy == session.PolicyPreset {
		c.compactor = history.NewCompactor(tally.Text, r.Preset).ReadBy(c.reader)
	}
	return c, nil
}

// MessageTokens returns the overhead of a message of the user, in tokens.
func (c *Folding) MessageTokens() int { return c.options.MessageTokens }

// Draft is a history that fits what it was asked to.
type Draft struct {
	Items []pairing.Item
	// Folds are its folds; Made are the ones not stored yet, and Batch gives the reason.
	Folds, Made []history.Fold
	Batch       *Batch
	// Mark is where the preset's boundary stands, Moved that it has to be stored.
	Mark  history.Mark
	Moved bool
	// Renewal is that of a window that begins anew; nil for none.
	Renewal *session.Renewal
	// Saved is what it has less than with nothing folded.
	Saved int
	// share is what it shows at most of each of the newest results, in tokens.
	share int
}

// Store stores the new folds before a prompt shows them. requestID is a renewal's.
func (c *Folding) Store(ctx context.Context, s *Material, d *Draft, requestID string) error {
	var err error
	switch at := c.moment; {
	case c.DryRun:
	case d.Renewal != nil: // together with the folds
		_, err = c.stage.journal.Renew(ctx, at.Scope, at.SessionID, s.State.Version, d.Renewal, requestID)
	case len(d.Made) > 0:
		err = c.stage.journal.AppendFolds(ctx, at.Scope, at.SessionID, s.State.Version, d.Made)
	case d.Moved:
		err = c.stage.journal.MoveMark(ctx, at.Scope, at.SessionID, s.State.Version, c.Name, d.Mark)
	}
	if err != nil {
		return fmt.Errorf("assemble: store folds: %w", err)
	}
	return nil
}
