package record

import (
	"context"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/rehydrate"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Anchors is where reported usage is kept; *session.Log is one.
type Anchors interface {
	// SaveAnchor keeps what a provider counted.
	SaveAnchor(ctx context.Context, scope kv.Scope, sessionID string, a tokens.Anchor) error
}

// Recorder accounts for prompts. Its methods are safe for concurrent use.
type Recorder struct {
	// Known is what it remembers.
	Known *Known

	log     Anchors
	counter *tokens.Counter
	past    *past.Store
	finder  *rehydrate.Finder
	stepOf  func(ctx context.Context, scope kv.Scope, sessionID, name string) string
}

// New returns a recorder that keeps usage in log. models has the ratios that reports correct,
// nil is the table of package tokens; store keeps what prompts were made of, nil keeps
// nothing; stepOf returns the step whose stored result a name leads to, nil knows none.
func New(log Anchors, counter *tokens.Counter, models *tokens.Models, store *past.Store, finder *rehydrate.Finder, stepOf func(ctx context.Context, scope kv.Scope, sessionID, name string) string) *Recorder {
	return &Recorder{Known: newKnown(models), log: log, counter: counter, past: store, finder: finder, stepOf: stepOf}
}

// Made is a prompt as it was made.
type Made struct {
	Scope            kv.Scope
	SessionID, Model string
	Format           provider.Format
	// MaxTokens is its budget.
	MaxTokens int
	DryRun    bool
	// UserID is the person whose memory it shows, ForkedUsers those of what a fork begins with.
	UserID      string
	ForkedUsers []string
	// Time is when it is made.
	Time time.Time
	// Policy, Layout and Prices are what it goes by.
	Policy string
	Layout settings.Layout
	Prices history.Prices
	// Source is the source of its history, Draft the history, Batch the folds that were
	// made.
	Source *fold.Material
	Draft  *fold.Draft
	Batch  *fold.Batch
	// Built is the written prompt, Asked its prediction from Last.
	Built     *render.Builder
	Asked     tokens.Request
	Last      tokens.Anchor
	Predicted tokens.Prediction
	// Sections and Tools are accounts for the receipt.
	Sections []Section
	Tools    []ToolCost
	// Sprint is how often the window was renewed before, Through the place of the last
	// entry of the log.
	Sprint  int
	Through uint64
	// Rendered is called once the prompt was made.
	Rendered func()
}
