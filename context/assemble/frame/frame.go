// Package frame makes what stands in a prompt around its history: sections and tools.
//
//   - A [Stage] is what the frames of all prompts are made with.
//   - A [Framing] is the frame of one prompt: [Framing.Prepare] finds its parts and lays
//     them out, Arrange does it again where something changed, and Evict makes room where
//     a fresh window is too small. Sections accounts for it.
//   - A [Toolset] is the tools of a prompt in their final form; [Served] are what the server
//     and attached agents run, [Tool] those of a caller.
//
// Package gather finds what stands elsewhere, package inject orders and cuts it, and package
// layout says where it stands.
//
// Caveats: a Framing is for one goroutine. What it prepared is of the moment of its Ask.
package frame

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// Sources are where frames have their parts from.
type Sources struct {
	// Counter counts. Required.
	Counter *tokens.Counter
	// Gatherer finds the parts other than the history; nil: there are none.
	Gatherer *gather.Gatherer
	// Finder finds the lines of folded results that a prompt takes up. Required.
	Finder *rehydrate.Finder
	// Clock is the time. Required.
	Clock func() time.Time
	// Served, Forked and Depth are as in the options of package assemble; nil: none.
	Served func(ctx context.Context, scope kv.Scope, f provider.Format) ([]Served, error)
	Forked func(ctx context.Context, scope kv.Scope, sessionID string) ([]byte, error)
	Depth  func(ctx context.Context, scope kv.Scope) int
}

// Stage makes frames. It is safe for concurrent use.
type Stage struct {
	Sources

	sets  *cache.Cache[[sha256.Size]byte, Toolset]
	keyed atomic.Pointer[keyedTools] // last
}

// New returns a stage.
func New(s Sources) *Stage {
	return &Stage{Sources: s, sets: cache.New[[sha256.Size]byte, Toolset](maxToolsets)}
}

// Forget drops what is remembered of scopes.
func (s *Stage) Forget(match func(kv.Scope) bool) {
	if s.Gatherer != nil {
		s.Gatherer.Forget(match)
	}
}

// Figures are the figures of a dashboard that don't depend on the prompt.
func (s *Stage) Figures(ctx context.Context, now *read.Moment) working.Figures {
	f := working.Figures{Errors: now.End.Errors()}
	if s.Depth != nil {
		f.Depth = s.Depth(ctx, now.Scope)
	}
	return f
}

// Ask says whose frame it is, and what is asked for.
type Ask struct {
	// Moment is what the prompt is read from, Tally counts for its model and format.
	Moment *read.Moment
	Tally  *render.Tally
	// Model, Format, System, TurnID, Tools, WithoutTools and DryRun are as in a request. Goal is
	// the request's, or the agent's.
	Model, System, Goal, TurnID string
	Format                      provider.Format
	Tools                       []Tool
	WithoutTools, DryRun        bool
	// Rules say how the history is folded.
	Rules fold.Rules
	// Settings say what the prompt is made of, Table where it stands.
	Settings settings.Prompt
	Table    layout.Table
}

// Framing is what a prompt has in addition to its history.
type Framing struct {
	Ask

	// Frame is what it all makes.
	Frame layout.Frame
	// Gathered is what was found elsewhere, Back what comes back of folded results, Working
	// what the agent is at, and Figures what its dashboard shows.
	Gathered gather.Gathered
	Back     inject.Injection
	Working  working.Working
	Figures  working.Figures
	// Offered are the tools that the prompt offers, with the key that distinguishes them, Set
	// the ones that it has as a parameter.
	Offered    []Tool
	OfferedKey [sha256.Size]byte
	Set        Toolset
	// Memory, Evicting and Swapped are as in a fold.Window.
	Memory   int
	Evicting bool
	Swapped  []string

	stage    *Stage
	prepared inject.Prepared
	// skillTools are the tools of active skills, served those that the agent can call.
	skillTools []string
	served     []Served
	// text and others are the tools as text: the server's and the caller's, and other
	// agents'.
	text, others []tokens.ToolDefinition
	// fork is what the prompt begins with where the session is a fork, or nil.
	fork *record.Fork
}

// Framing begins a frame.
func (s *Stage) Framing(a Ask) *Framing { return &Framing{Ask: a, stage: s} }

// Prepare finds and lays out everything that is not history.
func (f *Framing) Prepare(ctx context.Context) error {
	f.Working = f.Moment.Working
	f.Goal = cmp.Or(f.Goal, f.Working.Goal)
	if err := f.gather(ctx); err != nil {
		return err
	}
	if err := f.takeUp(ctx); err != nil {
		return err
	}
	f.skillTools = skillsTools(f.Settings.Skills, f.active())
	var err error
	if f.served, err = f.stage.servedTo(ctx, &f.Ask); err != nil {
		return err
	}
	if err := f.offer(); err != nil {
		return err
	}
	if err := f.leaveParent(ctx); err != nil {
		return err
	}
	f.Figures = f.stage.Figures(ctx, f.Moment)
	f.Layout()
	return f.Tally.Err
}

// gather finds what stands elsewhere.
func (f *Framing) gather(ctx context.Context) (err error) {
	if f.stage.Gatherer == nil {
		return nil
	}
	end := &f.Moment.End
	f.Gathered, err = f.stage.Gatherer.Gather(ctx, &gather.Ask{
		Scope: f.Moment.Scope, SessionID: f.Moment.SessionID, Goal: f.Goal, Newest: end.Newest, Before: end.Before, Answer: end.Answer, Layout: f.Table.Name,
		Settings: f.Settings, View: f.Moment.View, Now: f.stage.Clock(), Count: f.Tally.Text, DryRun: f.DryRun, KeepOnWrite: f.Rules.Preset.KeepOnWrite,
	})
	for _, s := range f.Gathered.Skills {
		if !slices.ContainsFunc(f.Settings.Skills, func(own settings.Skill) bool { return own.Name == s.Name }) {
			f.Settings.Skills = append(slices.Clip(f.Settings.Skills), s)
		}
	}
	return err
}

// takeUp finds the lines of folded results that the prompt takes up.
func (f *Framing) takeUp(ctx context.Context) error {
	if f.Rules.Policy != session.PolicyLedger || f.Settings.Excludes(settings.Rehydrated) {
		return nil
	}
	lines, err := f.Moment.TakenUp(ctx, f.stage.Finder, f.Goal)
	f.Back = rehydrate.Section(lines, f.Settings.Cap(settings.Rehydrated), f.Tally.Text)
	return err
}

// leaveParent takes over what a fork's prompts begin with, and its parent's tools.
func (f *Framing) leaveParent(ctx context.Context) error {
	if f.stage.Forked == nil {
		return nil
	}
	stored, err := f.stage.Forked(ctx, f.Moment.Scope, f.Moment.SessionID)
	if err != nil || stored == nil {
		return err
	}
	if f.fork, err = record.DecodeFork(stored); err != nil {
		return err
	}
	if f.fork.Format == f.Format && !f.WithoutTools {
		f.Set, err = f.stage.forkToolset(f.fork, f.Model)
	}
	return err
}

// ForkedUsers are the persons whose memory the prompts of a fork show from their beginning on.
func (f *Framing) ForkedUsers() []string {
	if f.fork == nil {
		return nil
	}
	return f.fork.Users
}

// Layout lays out what was found.
func (f *Framing) Layout() {
	plan := f.Working.Plan
	if f.Table.Name == settings.Partitioned { // the working state shows it
		plan = nil
	}
	f.prepared = inject.Prepare(inject.Inputs{
		Injections: f.injections(), Goal: f.Goal, Plan: plan, Failures: f.Moment.End.Failures(),
		Session: f.Moment.SessionID, Turn: cmp.Or(f.TurnID, f.Moment.End.Turn()), Settings: f.Settings,
		Runtime: f.Table.Goal == layout.GoalBlock, Count: f.Tally.Text, Beside: f.Set.Count.Tokens,
	})
	f.Frame = layout.New(f.Table, &f.prepared, f.Goal)
	if f.fork != nil {
		f.Frame.Fork(f.fork.Messages)
	}
}
