package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/peers"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/protect"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/readback"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/transfer"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/answers"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// Domain is everything behind the face. Its parts are safe for concurrent use
// until Close.
type Domain struct {
	Egress    *egress.Gate
	Memory    *memory.Store
	Grants    *grants.Store
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
	A2A       *a2a.Tasks
	Retention *retention.Sweeper
	Erasures  *live.Worker
	Agents    *agents.Directory
	Family    *children.Store
	Children  *children.Spawner
	MCP       *mcp.Clients
	Places    *places.Places // nil where all calls run here

	folders *children.Workspaces
	places  hand.Workspaces
	peers   *peers.Peers // the other bridges on the store; nil where there are none
	past    *past.Store  // what prompts were made of
	sources *recall.Sources
	mover   *transfer.Mover
	now     func() time.Time
	lines   step.Templates // of steps in the files of the history
	closers []func() error
}

// Open builds a domain over engine, in which tools work in workspaces. Both
// stay the caller's.
func Open(engine kv.Engine, workspaces hand.Workspaces, opts *Options) (*Domain, error) {
	o := withDefaults(opts)
	knowSecrets(o)
	d := &Domain{now: o.Now, lines: o.Assemble.Templates.Over(step.DesignTemplates()), Family: children.NewStore(engine, o.Now)}
	d.folders = children.NewWorkspaces(workspaces, d.Family, &children.WorkspaceOptions{Own: o.OwnWorkspaces})
	d.onClose(d.folders.Close)
	d.places = d.folders
	if err := d.open(engine, d.folders, o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open opens what stores, then what makes prompts, then what acts.
func (d *Domain) open(engine kv.Engine, workspaces hand.Workspaces, o Options) error {
	writer := kv.NewWriter(engine, &kv.WriterOptions{Gate: o.Shares.Disk})
	d.onClose(writer.Close)
	sweeper := answers.NewSweeper(engine, writer, &answers.Options{Now: o.Now, Logger: o.Logger})
	d.onClose(sweeper.Close)
	d.openStores(engine, writer, o)
	reducer, err := d.openPrompts(engine, o)
	if err != nil {
		return err
	}
	d.Registry = tools.NewRegistry(&tools.Options{Levels: o.ToolLevels})
	d.Tools = tools.NewCatalogue(d.Registry, &tools.CatalogueOptions{Form: assemble.OpenAIChat.ToolName, Absent: native.Absent(o.Shell.Refused)})
	d.openAgents(engine, writer, o)
	d.openPlaces(engine, writer, o)
	others := lease.Of(engine)
	if others != nil {
		o.Audit.Others, o.Children.Holder, o.Children.Ended, o.Children.Changed = others.Others, others.Holder, others.Ended, others.Changed
	}
	d.Audit = audit.New(engine, writer, &o.Audit)
	d.onClose(d.Audit.Close)
	if err := d.openJobs(&o); err != nil {
		return err
	}
	o.Egress.Audit = d.Audit.Write
	d.Egress = egress.New(&o.Egress)
	d.onClose(d.Egress.Close)
	o.Shell.Gate = d.Egress
	if err := d.openTools(o); err != nil {
		return err
	}
	d.Approvals = approval.New(engine, writer, &o.Approval)
	d.Policies = policy.NewResolver(o.Policies, &policy.ResolverOptions{Parent: d.policyParent, Bound: d.bound, Logger: o.Logger})
	o.Hand.OnTask, o.Hand.OnProgress = d.Tiers.Added, topics.Notices{Bus: d.Events}.Progress
	d.Hand = hand.New(hand.Deps{
		Tools: d.Tools, Log: d.Log, Blobs: d.Blobs, Reducer: reducer,
		Engine: engine, Writer: writer, Workspaces: workspaces, Audit: d.Audit, Policies: d.Policies, Approvals: d.Approvals, Compressor: compress.New(d.Tokens.Size, &o.Compress),
		Pressure: d.Assembler.Pressure, Style: d.Assembler.Reference, Observed: d.Assembler.Observation, Bounds: d.Family.Bounds, ForeseeBounds: d.Family.Foresee, Count: d.Tokens.Size,
	}, &o.Hand)
	d.onClose(func() error { return d.closeHand(o.CloseTimeout) })
	d.openChildren(writer, &o.Children)
	if err := d.openMCP(engine, writer, workspaces, o); err != nil {
		return err
	}
	o.Disk.Engine, o.Disk.BlobBytes = engine, func(ctx context.Context, scope kv.Scope) (int64, error) {
		used, err := d.Blobs.Usage(ctx, scope)
		return used.Bytes, err
	}
	d.onClose(o.Shares.Disk.Watch(o.Disk))
	// While another server has the store, its sessions go on.
	if others == nil || !others.Others() {
		if err := d.forget(o); err != nil {
			return err
		}
	}
	if err := d.Grants.Start(context.Background()); err != nil {
		return err
	}
	if err := d.Children.Start(context.Background()); err != nil {
		return err
	}
	d.Retention = retention.New(retention.Parts{
		Engine: engine, Writer: writer, Memory: d.Memory, Log: d.Log, Blobs: d.Blobs, Tiers: d.Tiers, Busy: d.busy, Gone: d.past.Forget,
	}, &o.Retention)
	d.onClose(d.Retention.Close)
	if err := d.openErasures(engine, writer, o); err != nil {
		return err
	}
	return d.join()
}

// openErasures opens what erases subjects, and goes on with what had begun.
func (d *Domain) openErasures(engine kv.Engine, writer *kv.Writer, o Options) (err error) {
	parts := live.Parts{
		Engine: engine, Writer: writer, Gate: new(live.Gate), Memory: d.Memory, Log: d.Log, Prompts: d.Assembler, Past: d.past,
		Events: d.Events, Messages: d.Messages, Audit: d.Audit, Agents: d.Agents, Children: d.Children, Jobs: d.Jobs, Others: nil,
	}
	if r := lease.Of(engine); r != nil {
		parts.Others = func(ctx context.Context) (bool, error) {
			err := r.Refresh(ctx)
			return r.Others(), err
		}
	}
	o.Erasure.Now, o.Erasure.Logger = o.Now, o.Logger
	if d.Erasures, err = live.Open(parts, &o.Erasure); err == nil {
		d.onClose(d.Erasures.Close)
	}
	return err
}

// join connects the opened parts with the other bridges.
func (d *Domain) join() error {
	if d.peers == nil {
		return nil
	}
	d.onClose(d.peers.Close)
	return d.peers.Open(peers.Parts{Events: d.Events, Agents: d.Agents, Places: d.Places, Returned: d.Children.Returned})
}

// openJobs opens the jobs in the background, where programs run. No program changes what is
// protected.
func (d *Domain) openJobs(o *Options) error {
	if o.Shell.Runner == nil {
		return nil
	}
	if o.StoreDir != "" { // where servers before kept copies of what they would have put back
		if err := os.RemoveAll(filepath.Join(o.StoreDir, "protect")); err != nil {
			return err
		}
	}
	o.Shell.Runner = protect.New(o.Shell.Runner, &protect.Options{Always: []string{policy.File}, Audit: d.Audit.Write, Now: o.Now, Logger: o.Logger})
	o.Jobs.Closed, o.Jobs.OneTenant, o.Jobs.Now, o.Jobs.Logger, o.Jobs.Audit = d.Log.IsClosed, o.OneTenant, o.Now, o.Logger, d.Audit.Write
	d.Jobs = jobs.New(o.Shell.Runner, &o.Jobs)
	d.onClose(d.Jobs.Close)
	o.Shell.Jobs = d.Jobs
	return nil
}

// forget ends the short-term memory that does not outlive a server.
func (d *Domain) forget(o Options) error {
	forgetting := tiers.Forgetting{Tiers: d.Tiers, Blobs: d.Blobs, All: d.Assembler.Forgetful(o.History), Forgets: d.Assembler.Forgets}
	gone, err := forgetting.Run(context.Background())
	switch {
	case errors.Is(err, kv.ErrDamaged): // the rest is served, and health says what is not
		o.Logger.Error("short-term memory of the last server stays, because it can't be read", "error", err)
	case err != nil:
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
	o.Memory.Instructing = instruct.Kinds()
	d.Memory = memory.New(engine, writer, &o.Memory)
	d.onClose(d.Memory.Close)
	d.Grants = grants.New(engine, writer, &grants.Options{Now: o.Now, Logger: o.Logger, Clear: d.Memory.Clear, Parent: d.Family.Parent, HolderOf: o.HolderOf})
	d.onClose(d.Grants.Close)
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
	d.mover = transfer.New(transfer.Options{Log: d.Log, Blobs: d.Blobs, Engine: engine, Writer: writer, Secret: o.Hand.Redact.Finds})
	backfill.Start()
	d.onClose(backfill.Close)
}

// openPrompts opens what counts and makes prompts.
func (d *Domain) openPrompts(engine kv.Engine, o Options) (_ *step.Reducer, err error) {
	if d.Tokens, err = tokens.New(&tokens.Options{Models: o.Models}); err != nil {
		return nil, err
	}
	o.Reduction.Count = d.Tokens.Size
	o.Assemble.Reducer = step.NewReducer(&o.Reduction)
	o.Assemble.OnBatch = func(ctx context.Context, scope kv.Scope, sessionID string, b fold.Batch) {
		topics.Notices{Bus: d.Events}.Folded(ctx, scope, sessionID, b)
	}
	o.Assemble.Served, o.Assemble.Engine, o.Assemble.Now, o.Assemble.Forked = d.served, engine, o.Now, d.Family.Fork
	o.Assemble.StepOf = func(ctx context.Context, scope kv.Scope, sessionID, name string) string {
		return d.Blobs.StepOf(ctx, scope, sessionID, name)
	}
	o.Assemble.Depth = func(ctx context.Context, scope kv.Scope) int {
		child, _ := d.Family.Get(ctx, scope) // an unreadable one is shown without a parent
		return child.Depth
	}
	sources, err := d.openSources(o)
	if err != nil {
		return nil, err
	}
	o.Assemble.Foresee = func(along *kv.Reads, scope kv.Scope, sessionID string) {
		d.Family.Foresee(along, scope)
		sources.Foresee(along, scope, sessionID)
	}
	o.Assemble.Gatherer = gather.New(sources.All(), &gather.Options{Logger: o.Logger, Refused: recall.Refusal(d.Grants)})
	d.onClose(o.Assemble.Gatherer.Close)
	o.Assemble.Past = d.past
	d.Assembler = assemble.New(d.Log, d.Tokens, &o.Assemble)
	return o.Assemble.Reducer, nil
}

// openSources opens the sources of prompts other than the history.
func (d *Domain) openSources(o Options) (*recall.Sources, error) {
	s := recall.Options{
		Store: d.Memory, Tiers: d.Tiers, Messages: d.Messages, Terms: o.Blobs.Words, Workspaces: d.folders, StoreDir: o.StoreDir, Logger: o.Logger,
		Parent: d.parent,
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
	d.sources = sources
	d.onClose(sources.Close)
	return sources, nil
}

// bound is the profile that an agent was bounded to when it was spawned; empty for none. A
// child that can't be read may only read.
func (d *Domain) bound(tenant, agent string) string {
	child, err := d.Family.Get(context.Background(), kv.AgentScope(tenant, agent))
	if err != nil && !errors.Is(err, children.ErrNotChild) {
		return policy.ReadOnly
	}
	return child.Profile
}

// policyParent is parent for callers outside a call.
func (d *Domain) policyParent(tenant, agent string) string {
	return d.parent(context.Background(), kv.AgentScope(tenant, agent))
}

// parent is the agent above another one; empty for none.
func (d *Domain) parent(ctx context.Context, agent kv.Scope) string {
	child, err := d.Family.Get(ctx, agent)
	if err == nil {
		return child.Parent
	}
	found, _ := d.Agents.Get(agent.Tenant, agent.Owner)
	return found.Parent
}

// served are the tools that the prompts of an agent may offer.
func (d *Domain) served(ctx context.Context, scope kv.Scope, f assemble.Format) ([]assemble.Served, error) {
	child, err := d.Family.Get(ctx, scope)
	if err != nil && !errors.Is(err, children.ErrNotChild) {
		return nil, err
	}
	given := children.Given(child.Tools)
	offered := d.Tools.Offered(scope.Tenant, f.ToolName)
	out := make([]assemble.Served, 0, len(offered))
	for _, o := range offered {
		if given.Has(o.Name) && d.works(o.Name, &child) {
			if o.Foreign() {
				o.Description = text.Seen(o.Description)
			}
			out = append(out, assemble.Served{
				Tool:  assemble.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema},
				Level: o.Level, AgentID: o.AgentID, Foreign: o.Foreign(), ByName: o.ByName,
			})
		}
	}
	return out, nil
}

// works reports whether a tool can do anything for an agent: for a child, or for an agent
// without a parent, whose ID is empty.
func (d *Domain) works(tool string, c *children.Child) bool {
	switch tool {
	case children.ToolSpawn:
		return d.Children.MayHaveChildren(c)
	case children.ToolResult:
		return c.ID != ""
	}
	return true
}

// openAgents opens the bus and the directory of agents.
func (d *Domain) openAgents(engine kv.Engine, writer *kv.Writer, o Options) {
	if o.Mesh != nil {
		d.peers = peers.New(o.Mesh, &peers.Options{Logger: o.Logger})
		d.onClose(d.peers.Close) // when what follows fails, it was not opened
		o.Events.Elsewhere, o.Agents.Elsewhere = d.peers, d.peers
	}
	d.A2A = a2a.New(engine)
	o.Events.Admit = topics.NewRules(d.Tiers, d.Messages, spawner{d}, d.A2A).Admit
	d.Events = events.New(engine, writer, &o.Events)
	d.onClose(d.Events.Close)
	o.Agents.EventTime = func() time.Time {
		now, _ := d.Events.Now(context.Background()) // which does not end
		return now
	}
	o.Agents.OnChange = d.changed
	o.Agents.Catalogue = d.Tools
	if r := lease.Of(engine); r != nil {
		o.Agents.Holder = r.Holder
	}
	d.Agents = agents.New(engine, writer, &o.Agents)
	d.onClose(d.Agents.Close)
}

// openPlaces opens what knows where workspaces are.
func (d *Domain) openPlaces(engine kv.Engine, writer *kv.Writer, o Options) {
	p := places.Options{PerAgent: o.OwnWorkspaces, Now: o.Now}
	if d.peers != nil {
		p.Elsewhere = d.peers
	}
	d.Places = places.New(engine, writer, registry.Of(engine), &p)
	if files := d.sources.AgentsFiles(); files != nil && d.Places != nil {
		files.Join(places.Remote(d.Places, "agents.md", false, files.Here))
	}
}

// naming reports whether the blobs of a session are counted by kind.
func (d *Domain) naming(ctx context.Context, scope kv.Scope, sessionID string) (byKind bool, err error) {
	return d.Assembler.NumbersKinds(ctx, scope, sessionID)
}

// busy reports whether something runs for a session: a program, or a child of it.
func (d *Domain) busy(ctx context.Context, scope kv.Scope, sessionID string) (bool, error) {
	if d.Jobs != nil {
		for _, job := range d.Jobs.List(jobs.JobOwner{Scope: scope, Session: sessionID}) {
			if job.Ended.IsZero() {
				return true, nil
			}
		}
	}
	all, err := d.Family.List(ctx, scope)
	return slices.ContainsFunc(all, func(c children.Child) bool { return c.ParentSession == sessionID && c.Result == nil }), err
}

// reader reads back what prompts leave out; uses is that of readback.Options.
func (d *Domain) reader(uses bool) *readback.Reader {
	return readback.New(d.Blobs, d.Log, &readback.Options{Lines: d.lines, Uses: uses, Granted: d.Family.Granted})
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
		Memory: d.Memory, Grants: d.Grants, Hand: d.Hand, Audit: d.Audit, Approvals: d.Approvals, Profiles: profiles{d.Policies, d.places}, Tasks: d.Tiers, Tools: d.Tools, ToolServers: d.MCP, Log: d.Log, Conversations: conversation.New(d.Log), Mover: d.mover,
		Lessons: &recall.Drafts{Log: d.Log, Store: d.Memory, Now: d.now},
		Blobs:   d.Blobs, Reads: d.reader(false),
		Tokens: d.Tokens, Assembler: d.Assembler, Events: d.Events, Agents: d.Agents,
		Children: d.Children, Retention: d.Retention, Erasures: d.Erasures,
		A2A: d.A2A, Messages: d.Messages, Sender: topics.Sender{Box: d.Messages, Bus: d.Events},
	}
}

// Loom are the parts as the loom.v1 face takes them.
func (d *Domain) Loom() *loomv1.Deps {
	return &loomv1.Deps{Events: d.Events, Agents: d.Agents, Hand: d.Hand, Tools: d.Tools, Plans: d.Plans, Spawned: d.Family.Is, Acts: d.Family.Acts}
}
