package compose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/readback"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// DefaultCloseTimeout is how long Close waits for tools that outlived their
// calls, before the store is closed under them.
const DefaultCloseTimeout = 100 * time.Millisecond

// Options adjusts a Domain. Nil and zero fields mean the defaults.
type Options struct {
	// StoreDir is the directory of the store, which no tool may touch. Default:
	// there is none.
	StoreDir string
	// Memory is how long-term memory works. Its Now, Logger, CountTokens and Idle
	// are set by the domain. Default that of package memory.
	Memory memory.Options
	// Models is the table of models. Default: the one that comes with package
	// tokens.
	Models *tokens.Models
	// Reduction says how the calls of tools are kept. Default that of package step.
	Reduction step.Options
	// Reference is how results say where the whole lies. Default
	// step.ReferenceHint.
	Reference step.ReferenceStyle
	// ResultTokens bounds what a prompt shows of one result. Default that of
	// package assemble.
	ResultTokens int
	// Compress says how CompressResult shortens. Default that of package compress.
	Compress compress.Options
	// DropWritten does not keep what fs:write_file wrote. Default: it is kept.
	DropWritten bool
	// MaxResultBytes bounds a result that a caller streams in. Default
	// hand.DefaultMaxResultBytes.
	MaxResultBytes int64
	// Presets are the presets of history by their names; their lines are laid under
	// those of the rules of Reduction. Default history.Named.
	Presets func(name string) (history.Preset, bool)
	// History is how the prompts of sessions are made that say nothing. Default
	// that of package assemble.
	History session.Config
	// Retention says how long events are kept. Default that of package events.
	Retention events.Retention
	// RegistrationIdle is how long an agent's registration outlives its last
	// stream. Default agents.DefaultIdleRegistration.
	RegistrationIdle time.Duration
	// Blobs says how long blobs are kept and how much an owner may have. Its Now,
	// Sessions, Backfill, Namer, Words and Logger are set by the domain. Default that of package
	// blob.
	Blobs blob.Options
	// AnsweredFor is how long the answer of a request with an id is kept; negative:
	// for ever. Default kv.DefaultAnsweredFor.
	AnsweredFor time.Duration
	// Tiers says how much the tiers of tasks hold. Its Logger is set by the domain.
	// Default that of package tiers.
	Tiers tiers.Options
	// CloseTimeout bounds Close. Default DefaultCloseTimeout.
	CloseTimeout time.Duration
	// MaxTools bounds the tools that run here at once, and MaxRelayedCalls the calls
	// that wait for agents. Defaults those of packages hand and agents.
	MaxTools, MaxRelayedCalls int
	// MaxAgentToolBytes bounds what an agent's tools say of themselves, and
	// MaxTenantToolBytes what those of all agents of a tenant do. Defaults those of
	// package agents.
	MaxAgentToolBytes, MaxTenantToolBytes int
	// MaxQueuedEventBytes bounds the volatile events that wait for readers, and
	// MaxSubscriptions the open subscriptions. Defaults those of package events.
	MaxQueuedEventBytes int64
	MaxSubscriptions    int
	// Tenants returns those that share the disk, and MaxStoreBytes what all of them may
	// store; 0 is as much as there is room for. DiskEvery is the time between two
	// measurements. Default DefaultDiskEvery.
	Tenants       func() []string
	MaxStoreBytes int64
	DiskEvery     time.Duration
	// OneTenant says that there is one tenant, for which everything is.
	OneTenant bool
	// Shares are those of the server. Default: tenants share nothing by them.
	Shares *server.Shares
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger hears of faults. Default silent.
	Logger *slog.Logger
}

// Domain is everything behind the face. Its parts are safe for concurrent use
// until Close.
type Domain struct {
	Memory    *memory.Store
	Plans     *plans.Store
	Log       *session.Log
	Tiers     *tiers.Tiers
	Blobs     *blob.Store
	Tokens    *tokens.Counter
	Assembler *assemble.Assembler
	Registry  *tools.Registry
	Hand      *hand.Hand
	Events    *events.Bus
	Agents    *agents.Directory

	history session.Config
	lines   step.Templates // of steps in the files of the history
	closers []func() error
}

// Open builds a domain over engine, in which tools work in workspaces. Both
// stay the caller's.
func Open(engine kv.Engine, workspaces hand.Workspaces, opts *Options) (*Domain, error) {
	o := withDefaults(opts)
	d := &Domain{history: o.History, lines: o.Reduction.Rules.Templates().Over(step.DesignTemplates())}
	if err := d.open(engine, workspaces, o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func withDefaults(opts *Options) Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Shares == nil {
		o.Shares = &server.Shares{}
	}
	if o.Presets == nil {
		o.Presets = history.Named
	}
	if o.DiskEvery <= 0 {
		o.DiskEvery = DefaultDiskEvery
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = DefaultCloseTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (d *Domain) open(engine kv.Engine, workspaces hand.Workspaces, o Options) (err error) {
	writer := kv.NewWriter(engine, nil)
	d.onClose(writer.Close)
	answered := kv.NewAnswered(engine, writer, &kv.AnsweredOptions{For: o.AnsweredFor, Now: o.Now, Logger: o.Logger})
	d.onClose(answered.Close)

	o.Memory.Now, o.Memory.Logger, o.Memory.CountTokens, o.Memory.Idle = o.Now, o.Logger, d.count, share.Pause
	d.Memory = memory.New(engine, writer, &o.Memory)
	d.onClose(d.Memory.Close)
	d.Plans = plans.New(engine, writer, &plans.Options{Now: o.Now})

	d.Log = session.New(engine, writer, &session.Options{Now: o.Now})
	o.Tiers.Logger = o.Logger
	d.Tiers = tiers.New(d.Log, d.Memory, writer, &o.Tiers)
	log := settledLog{d.Log, o.History}
	if err := d.openBlobs(engine, writer, o, log); err != nil {
		return err
	}
	if d.Tokens, err = tokens.New(&tokens.Options{Models: o.Models}); err != nil {
		return err
	}
	reducer := d.reducer(o.Reduction)
	d.Assembler = assemble.New(log, d.Tokens, &assemble.Options{
		Reducer: reducer, Models: o.Models, Reference: o.Reference, ToolResultTokens: o.ResultTokens, Presets: o.presets(),
	})

	d.Events = events.New(engine, writer, &events.Options{
		Now: o.Now, Retention: o.Retention, Rate: o.Shares.EventBytes, Quota: o.Shares.Disk, Logger: o.Logger,
		Admit: topics.NewRules(d.Tiers).Admit, MaxQueuedBytes: o.MaxQueuedEventBytes, MaxSubscriptions: o.MaxSubscriptions, OneTenant: o.OneTenant,
	})
	d.onClose(d.Events.Close)
	d.Agents = agents.New(engine, writer, &agents.Options{
		Now: o.Now, EventTime: d.Events.Now, Logger: o.Logger, IdleRegistration: o.RegistrationIdle, OnChange: herald{d.Events}.tell,
		MaxCalls: o.MaxRelayedCalls, OneTenant: o.OneTenant, CallName: assemble.OpenAIName, Reserved: d.ownTool,
		MaxToolBytes: o.MaxAgentToolBytes, MaxTenantToolBytes: o.MaxTenantToolBytes,
	})
	d.onClose(d.Agents.Close)

	d.Registry = tools.NewRegistry(nil)
	if err := native.Register(d.Registry, &native.Options{Store: o.StoreDir, Blobs: d.reader(true), Memory: d.Tiers}); err != nil {
		return err
	}
	d.Hand = hand.New(hand.Deps{
		Registry: d.Registry, Relay: relay{d.Agents}, Absent: native.Absent(), Log: d.Log, Blobs: d.Blobs, Reducer: reducer,
		Engine: engine, Writer: writer, Workspaces: workspaces, Compressor: compress.New(d.count, &o.Compress), Pressure: d.Assembler.Pressure, Style: log.reference(o),
	}, &hand.Options{Now: o.Now, Logger: o.Logger, DropWritten: o.DropWritten, MaxResultBytes: o.MaxResultBytes, MaxRunning: o.MaxTools, OneTenant: o.OneTenant})
	d.onClose(func() error { return d.closeHand(o.CloseTimeout) })
	d.onClose(d.watchDisk(engine, o))
	return nil
}

// reducer is one that counts.
func (d *Domain) reducer(o step.Options) *step.Reducer {
	o.Count = d.count
	return step.NewReducer(&o)
}

// ownTool tells whether a name means a tool of the server, to callers or to models.
func (d *Domain) ownTool(name string) bool {
	return d.Registry.Has(name) || d.Registry.Has(assemble.OpenAIName(name))
}

// count counts a text for the model of callers that name none.
func (d *Domain) count(text string) int {
	counted, err := d.Tokens.Count("", text)
	if err != nil {
		return len(text) / bytesPerToken
	}
	return counted.Tokens
}

// bytesPerToken stands for what is too large to be counted.
const bytesPerToken = 4

// reader reads back what prompts leave out; uses is that of readback.Options.
func (d *Domain) reader(uses bool) *readback.Reader {
	return readback.New(d.Blobs, d.Log, &readback.Options{Lines: d.lines, Uses: uses})
}

// openBlobs opens the blobs, and begins to back-fill the mentions of an older store.
func (d *Domain) openBlobs(engine kv.Engine, writer *kv.Writer, o Options, log settledLog) error {
	sources := slices.Concat(session.Mentions(), memory.Mentions(), blob.Mentions())
	backfill, err := mention.NewBackfill(context.Background(), engine, writer, o.Logger, sources...)
	if err != nil {
		return err
	}
	b := o.Blobs
	b.Now, b.Sessions, b.Backfill, b.Namer, b.Logger = o.Now, d.Log, backfill, log.naming, o.Logger
	b.Words = analysis.New(&analysis.Options{Language: o.Memory.Language}).Terms
	d.Blobs = blob.New(engine, writer, &b)
	d.onClose(d.Blobs.Close)
	backfill.Start()
	d.onClose(backfill.Close)
	return nil
}

func (d *Domain) onClose(closer func() error) { d.closers = append(d.closers, closer) }

func (d *Domain) closeHand(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := d.Hand.Close(ctx); err != nil {
		return fmt.Errorf("a tool was still running at the end: %w", err)
	}
	return nil
}

// Close closes all parts, the last opened first. Closing twice is harmless.
func (d *Domain) Close() error {
	var errs []error
	for _, closer := range slices.Backward(d.closers) {
		errs = append(errs, closer())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// Services are the parts as the face takes them.
func (d *Domain) Services() server.Services {
	return server.Services{
		Memory: d.Memory, Hand: startingHand{d.Hand, d.Blobs, d.Tiers}, Tasks: d.Tiers, Tools: d.Registry,
		Log: startingLog{d.Log, d.Blobs}, Blobs: d.Blobs, Reads: d.reader(false),
		Tokens: d.Tokens, Assembler: tellingAssembler{d.Assembler, herald{d.Events}}, Events: d.Events, Agents: d.Agents, History: d.history,
	}
}

// Loom are the parts as the loom.v1 face takes them.
func (d *Domain) Loom() *loomv1.Deps {
	return &loomv1.Deps{Events: d.Events, Agents: d.Agents, Hand: d.Hand, Tools: d.Registry, Plans: d.Plans, Absent: native.Absent()}
}
