package compose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/native/web"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/readback"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/answers"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// DefaultCloseTimeout is how long Close waits for tools that outlived their
// calls, before the store is closed under them.
const DefaultCloseTimeout = 100 * time.Millisecond

// Options adjusts a Domain. Nil and zero fields mean the defaults. The options of a
// part are those of its package; the domain sets their clock, logger, hooks and
// tenancy, whatever stands there.
type Options struct {
	// StoreDir is the directory of the store, which no tool may touch. Default:
	// there is none.
	StoreDir string
	// Models is the table of models. Default: the one of package tokens.
	Models *tokens.Models
	// Memory is how long-term memory works.
	Memory memory.Options
	// Reduction says how the calls of tools are kept.
	Reduction step.Options
	// Assemble says how prompts are made. The lines of Reduction's rules are laid over
	// those of its presets.
	Assemble assemble.Options
	// History is how the prompts of sessions are made that say nothing.
	History session.Config
	// CloseSessions and EndSessions are session.Options.CloseAfter and EndAfter.
	CloseSessions, EndSessions time.Duration
	// KeepShortTerm says whether short-term memory outlives the server. Default: what the
	// preset of each session says.
	KeepShortTerm *bool
	// Compress says how CompressResult makes results smaller.
	Compress compress.Options
	// Blobs says how long blobs are kept and how much an owner may have.
	Blobs blob.Options
	// Tiers says how much the tiers of tasks hold.
	Tiers tiers.Options
	// ToolLevels are the levels of some of the server's own tools by name, in place of
	// their own.
	ToolLevels map[string]int
	// KnowledgeEndpoint is the URL of a knowledge base outside, which prompts ask in
	// place of the records of the kind `knowledge`. Default: none.
	KnowledgeEndpoint string
	// Shell is how tools run programs. Default: they run none.
	Shell native.ShellOptions
	// Jobs says how many programs run in the background.
	Jobs jobs.Options
	// Web are the tools that ask others on networks. Default: there are none.
	Web *web.Options
	// MCP are the servers of the Model Context Protocol whose tools the agents of MCPTenant
	// call. Default: none.
	MCP       []mcp.Server
	MCPTenant string
	// Egress says how tools reach networks.
	Egress egress.Options
	// Hand says how tools run here.
	Hand hand.Options
	// Policies are the operator's profiles and bindings. Default: none.
	Policies *policy.Set
	// Approval says how long calls wait for the approval of a person.
	Approval approval.Options
	// Audit says how long the records of calls are kept.
	Audit audit.Options
	// Events says how long events are kept, and how many wait.
	Events events.Options
	// Agents says who may attach with what.
	Agents agents.Options
	// Disk says how tenants share it. Default: they do not.
	Disk share.Disk
	// AnsweredFor is how long the answer of a request with an id is kept; negative:
	// for ever. Default answers.DefaultFor.
	AnsweredFor time.Duration
	// CloseTimeout bounds Close. Default DefaultCloseTimeout.
	CloseTimeout time.Duration
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
	Egress    *egress.Gate
	Memory    *memory.Store
	Plans     *plans.Store
	Log       *session.Log
	Tiers     *tiers.Tiers
	Blobs     *blob.Store
	Tokens    *tokens.Counter
	Assembler *assemble.Assembler
	Registry  *tools.Registry
	Tools     *tools.Catalogue
	Hand      *hand.Hand
	Jobs      *jobs.Jobs // nil where no programs run
	Audit     *audit.Log
	Approvals *approval.Broker
	Policies  *policy.Resolver
	Events    *events.Bus
	Messages  *messages.Box
	Agents    *agents.Directory

	places  hand.Workspaces
	past    *past.Store // what prompts were made of
	now     func() time.Time
	lines   step.Templates // of steps in the files of the history
	closers []func() error
}

// Open builds a domain over engine, in which tools work in workspaces. Both
// stay the caller's.
func Open(engine kv.Engine, workspaces hand.Workspaces, opts *Options) (*Domain, error) {
	o := withDefaults(opts)
	d := &Domain{now: o.Now, places: workspaces, lines: o.Assemble.Templates.Over(step.DesignTemplates())}
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
	if o.Policies == nil {
		o.Policies = policy.NewSet(nil)
	}
	if o.Shares == nil {
		o.Shares = &server.Shares{}
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
	o.Memory.Now, o.Memory.Logger, o.Memory.Idle = o.Now, o.Logger, share.Pause
	o.Blobs.Now, o.Blobs.Logger = o.Now, o.Logger
	o.Blobs.Words = analysis.New(&analysis.Options{Language: o.Memory.Language}).Terms
	o.Tiers.Logger = o.Logger
	o.Assemble.Models, o.Assemble.Templates = o.Models, o.Reduction.Rules.Templates()
	o.Events.Now, o.Events.Logger, o.Events.OneTenant = o.Now, o.Logger, o.OneTenant
	o.Events.Rate, o.Events.Quota = o.Shares.EventBytes, o.Shares.Disk
	o.Agents.Now, o.Agents.Logger, o.Agents.OneTenant = o.Now, o.Logger, o.OneTenant
	o.Hand.Now, o.Hand.Logger, o.Hand.OneTenant = o.Now, o.Logger, o.OneTenant
	o.Audit.Now, o.Audit.Logger, o.Approval.Now = o.Now, o.Logger, o.Now
	o.Egress.Now, o.Egress.Logger = o.Now, o.Logger
	o.Disk.Logger = o.Logger
	return o
}

// open opens what stores, then what makes prompts, then what acts.
func (d *Domain) open(engine kv.Engine, workspaces hand.Workspaces, o Options) error {
	writer := kv.NewWriter(engine, nil)
	d.onClose(writer.Close)
	sweeper := answers.NewSweeper(engine, writer, &answers.Options{For: o.AnsweredFor, Now: o.Now, Logger: o.Logger})
	d.onClose(sweeper.Close)
	d.openStores(engine, writer, o)
	reducer, err := d.openPrompts(engine, workspaces, o)
	if err != nil {
		return err
	}
	d.Registry = tools.NewRegistry(&tools.Options{Levels: o.ToolLevels})
	d.Tools = tools.NewCatalogue(d.Registry, &tools.CatalogueOptions{Form: assemble.OpenAIChat.ToolName, Absent: native.Absent(o.Shell.Refused)})
	d.openAgents(engine, writer, o)
	d.openJobs(&o)
	d.Audit = audit.New(engine, writer, &o.Audit)
	d.onClose(d.Audit.Close)
	o.Egress.Audit = d.Audit.Write
	d.Egress = egress.New(&o.Egress)
	d.onClose(d.Egress.Close)
	o.Shell.Gate = d.Egress
	if err := native.Register(d.Registry, &native.Options{Store: o.StoreDir, Blobs: d.reader(true), Memory: d.Tiers, Shell: o.Shell}); err != nil {
		return err
	}
	if o.Web != nil {
		o.Web.Gate = d.Egress
		if err := web.Register(d.Registry, *o.Web); err != nil {
			return err
		}
	}
	if err := d.Registry.CheckLevels(); err != nil {
		return fmt.Errorf("the level of a tool: %w", err)
	}
	d.Approvals = approval.New(engine, writer, &o.Approval)
	d.Policies = policy.NewResolver(o.Policies, &policy.ResolverOptions{Parent: d.parent, Logger: o.Logger})
	o.Hand.OnTask = d.Tiers.Added
	d.Hand = hand.New(hand.Deps{
		Tools: d.Tools, Log: d.Log, Blobs: d.Blobs, Reducer: reducer,
		Engine: engine, Writer: writer, Workspaces: workspaces, Audit: d.Audit, Policies: d.Policies, Approvals: d.Approvals, Compressor: compress.New(d.Tokens.Size, &o.Compress),
		Pressure: d.Assembler.Pressure, Style: d.Assembler.Reference,
	}, &o.Hand)
	d.onClose(func() error { return d.closeHand(o.CloseTimeout) })
	d.openMCP(workspaces, o)
	o.Disk.Engine, o.Disk.BlobBytes = engine, func(ctx context.Context, scope kv.Scope) (int64, error) {
		used, err := d.Blobs.Usage(ctx, scope)
		return used.Bytes, err
	}
	d.onClose(o.Shares.Disk.Watch(o.Disk))
	return d.forget(o)
}

// openJobs opens the jobs in the background, where programs run.
func (d *Domain) openJobs(o *Options) {
	if o.Shell.Runner == nil {
		return
	}
	o.Jobs.Closed, o.Jobs.OneTenant, o.Jobs.Now, o.Jobs.Logger = d.Log.IsClosed, o.OneTenant, o.Now, o.Logger
	d.Jobs = jobs.New(o.Shell.Runner, &o.Jobs)
	d.onClose(d.Jobs.Close)
	o.Shell.Jobs = d.Jobs
}

// forget ends the short-term memory that does not outlive a server.
func (d *Domain) forget(o Options) error {
	forgetting := tiers.Forgetting{Tiers: d.Tiers, Blobs: d.Blobs, All: d.Assembler.Forgetful(o.History), Forgets: d.Assembler.Forgets}
	switch {
	case o.KeepShortTerm != nil && *o.KeepShortTerm:
		return nil
	case o.KeepShortTerm != nil:
		forgetting.All, forgetting.Forgets = true, func(context.Context, kv.Scope, string) (bool, error) { return true, nil }
	}
	gone, err := forgetting.Run(context.Background())
	if err != nil {
		return fmt.Errorf("short-term memory: %w", err)
	}
	if gone != (tiers.Forgotten{}) {
		o.Logger.Info("short-term memory ended with the last server", "results", gone.Results, "tasks", gone.Tasks)
	}
	return nil
}

// openStores opens memory, the log and the blobs.
func (d *Domain) openStores(engine kv.Engine, writer *kv.Writer, o Options) {
	o.Memory.CountTokens = func(text string) int { return d.Tokens.Size(text) }
	d.Memory = memory.New(engine, writer, &o.Memory)
	d.onClose(d.Memory.Close)
	d.Plans = plans.New(engine, writer, &plans.Options{Now: o.Now})
	d.Log = session.New(engine, writer, &session.Options{
		Now: o.Now, Defaults: o.History, CloseAfter: o.CloseSessions, EndAfter: o.EndSessions,
		OnBegin: func(scope kv.Scope) { d.Blobs.Nudge(scope) },
		OnEnd:   func(scope kv.Scope, session string) { d.Jobs.EndSession(scope, session) },
		Settle:  func(ctx context.Context, scope kv.Scope) { d.past.Settle(ctx, scope) },
	})
	d.past = past.New(engine, writer, d.Log)
	d.onClose(d.past.Close)
	d.Messages = messages.New(engine, writer, &messages.Options{Quota: o.Shares.Disk, Now: o.Now})
	d.Tiers = tiers.New(d.Log, d.Memory, writer, &o.Tiers)
	d.openBlobs(engine, writer, o)
}

// openBlobs opens the blobs, and begins to back-fill the mentions of an older store.
func (d *Domain) openBlobs(engine kv.Engine, writer *kv.Writer, o Options) {
	sources := slices.Concat(session.Mentions(), memory.Mentions(), blob.Mentions())
	backfill := mention.NewBackfill(context.Background(), engine, writer, o.Logger, sources...)
	o.Blobs.Sessions, o.Blobs.Closed, o.Blobs.Backfill, o.Blobs.Namer = d.Log, d.Log.IsClosed, backfill, d.naming
	d.Blobs = blob.New(engine, writer, &o.Blobs)
	d.onClose(d.Blobs.Close)
	backfill.Start()
	d.onClose(backfill.Close)
}

// openPrompts opens what counts and makes prompts.
func (d *Domain) openPrompts(engine kv.Engine, workspaces hand.Workspaces, o Options) (_ *step.Reducer, err error) {
	if d.Tokens, err = tokens.New(&tokens.Options{Models: o.Models}); err != nil {
		return nil, err
	}
	o.Reduction.Count = d.Tokens.Size
	o.Assemble.Reducer = step.NewReducer(&o.Reduction)
	o.Assemble.OnBatch = func(ctx context.Context, scope kv.Scope, sessionID string, b assemble.Batch) {
		topics.Notices{Bus: d.Events}.Folded(ctx, scope, sessionID, b)
	}
	o.Assemble.Served, o.Assemble.Engine, o.Assemble.Now = d.served, engine, o.Now
	o.Assemble.StepOf = func(ctx context.Context, scope kv.Scope, sessionID, name string) string {
		return d.Blobs.StepOf(ctx, scope, sessionID, name)
	}
	sources, err := d.openSources(workspaces, o)
	if err != nil {
		return nil, err
	}
	o.Assemble.Gatherer = gather.New(sources, &gather.Options{Logger: o.Logger})
	d.onClose(o.Assemble.Gatherer.Close)
	o.Assemble.Compress, o.Assemble.Past = o.Compress, d.past
	o.Assemble.Summarizer = summarizer{func() *tools.Catalogue { return d.Tools }}
	d.Assembler = assemble.New(d.Log, d.Tokens, &o.Assemble)
	return o.Assemble.Reducer, nil
}

// openSources opens where prompts find what stands beside their history.
func (d *Domain) openSources(workspaces hand.Workspaces, o Options) ([]gather.Source, error) {
	s := recall.Options{
		Store: d.Memory, Tiers: d.Tiers, Messages: d.Messages, Terms: o.Blobs.Words, Workspaces: workspaces, StoreDir: o.StoreDir, Logger: o.Logger,
		Parent: func(scope kv.Scope) string { return d.parent(scope.Tenant, scope.Owner) },
	}
	if o.KnowledgeEndpoint != "" {
		base, err := recall.NewEndpoint(o.KnowledgeEndpoint)
		if err != nil {
			return nil, err
		}
		s.Base = base
	}
	sources, err := recall.New(s)
	if err != nil {
		return nil, err
	}
	d.onClose(sources.Close)
	return sources.All(), nil
}

// parent is the agent above another one; empty for none.
func (d *Domain) parent(tenant, agent string) string {
	found, _ := d.Agents.Get(tenant, agent)
	return found.Parent
}

// served are the tools that prompts may offer.
func (d *Domain) served(tenant string, f assemble.Format) []assemble.Served {
	offers := d.Tools.Offered(tenant, f.ToolName)
	out := make([]assemble.Served, len(offers))
	for i, o := range offers {
		out[i] = assemble.Served{
			Tool:  assemble.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema},
			Level: o.Level, AgentID: o.AgentID,
		}
	}
	return out
}

// openAgents opens the bus and the directory of agents.
func (d *Domain) openAgents(engine kv.Engine, writer *kv.Writer, o Options) {
	o.Events.Admit = topics.NewRules(d.Tiers, d.Messages).Admit
	d.Events = events.New(engine, writer, &o.Events)
	d.onClose(d.Events.Close)
	o.Agents.EventTime, o.Agents.OnChange = d.Events.Now, topics.Notices{Bus: d.Events}.Status
	o.Agents.Catalogue = d.Tools
	d.Agents = agents.New(engine, writer, &o.Agents)
	d.onClose(d.Agents.Close)
}

// naming is how the blobs of a session are called.
func (d *Domain) naming(ctx context.Context, scope kv.Scope, sessionID string) (blob.Naming, error) {
	if numbers, err := d.Assembler.NumbersKinds(ctx, scope, sessionID); !numbers || err != nil {
		return 0, err
	}
	return blob.NamingKindSeq, nil
}

// reader reads back what prompts leave out; uses is that of readback.Options.
func (d *Domain) reader(uses bool) *readback.Reader {
	return readback.New(d.Blobs, d.Log, &readback.Options{Lines: d.lines, Uses: uses})
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
		Memory: d.Memory, Hand: d.Hand, Audit: d.Audit, Approvals: d.Approvals, Profiles: profiles{d.Policies, d.places}, Tasks: d.Tiers, Tools: d.Tools, Jobs: d.Jobs, Log: d.Log, Conversations: conversation.New(d.Log),
		Lessons: &recall.Drafts{Log: d.Log, Store: d.Memory, Now: d.now},
		Blobs:   d.Blobs, Reads: d.reader(false),
		Tokens: d.Tokens, Assembler: d.Assembler, Events: d.Events, Agents: d.Agents,
		Messages: d.Messages, Sender: topics.Sender{Box: d.Messages, Bus: d.Events},
	}
}

// Loom are the parts as the loom.v1 face takes them.
func (d *Domain) Loom() *loomv1.Deps {
	return &loomv1.Deps{Events: d.Events, Agents: d.Agents, Hand: d.Hand, Tools: d.Tools, Plans: d.Plans}
}
