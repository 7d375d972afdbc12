package compose

import (
	"log/slog"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/native/web"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/server"
)

// DefaultCloseTimeout is how long Close waits for tools that outlived their
// calls, before the store is closed under them.
const DefaultCloseTimeout = 100 * time.Millisecond

// Options adjusts a Domain. Nil and zero fields mean the defaults. The options of a part
// are its package's; the domain sets their clock, logger, hooks and tenancy, whatever
// stands there.
type Options struct {
	// StoreDir is the directory of the store, which no tool may touch. Default:
	// there is none.
	StoreDir string
	// Models is the table of models. Default: the one of package tokens.
	Models *tokens.Models
	// Memory is how long-term memory works.
	Memory memory.Options
	// Erasure holds the other contents of erasure certificates, such as names of backups.
	Erasure live.Options
	// Reduction says how the calls of tools are kept.
	Reduction step.Options
	// Assemble says how prompts are made. The lines of Reduction's rules replace the lines of
	// its presets.
	Assemble assemble.Options
	// History is how the prompts of sessions are made that say nothing.
	History session.Config
	// CloseSessions and EndSessions are session.Options.CloseAfter and EndAfter.
	CloseSessions, EndSessions time.Duration
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
	// Path is where programs of MCP servers are looked for that the sandbox has not: a list
	// such as PATH.
	Path string
	// Egress says how tools reach networks.
	Egress egress.Options
	// Secrets are the known secrets; secrets in the configuration of tools are added. Default:
	// only those.
	Secrets *secret.Set
	// Hand says how tools run here.
	Hand hand.Options
	// Policies are the operator's profiles and bindings. Default: none.
	Policies *policy.Set
	// Approval says how long calls wait for the approval of a person.
	Approval approval.Options
	// Audit says how long the records of calls are kept.
	Audit audit.Options
	// Retention says how long records and sessions are kept. Default: for ever.
	Retention retention.Options
	// Events says how long events are kept, and how many wait.
	Events events.Options
	// Agents says who may attach with what.
	Agents agents.Options
	// Children says what the children of agents may do.
	Children children.Options
	// OwnWorkspaces gives every agent its own folder in the workspace. Default: only
	// children have one.
	OwnWorkspaces bool
	// Disk says how tenants share it. Default: they do not.
	Disk share.Disk
	// CloseTimeout bounds Close. Default DefaultCloseTimeout.
	CloseTimeout time.Duration
	// HolderOf says who holds an agent, to whose share of what several share it counts.
	// Default: each is its own.
	HolderOf func(tenant, agent string) string
	// OneTenant says that there is one tenant, for which everything is.
	OneTenant bool
	// Shares are the server's. Default: no sharing between tenants.
	Shares *server.Shares
	// Mesh reaches the other bridges on the store; it is not open, and the domain opens and
	// closes it. Default: there are none.
	Mesh *mesh.Mesh
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs faults. Default silent.
	Logger *slog.Logger
}

func withDefaults(opts *Options) Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Policies == nil {
		o.Policies = policy.NewSet()
	}
	if o.Shares == nil {
		o.Shares = &server.Shares{}
	}
	if o.Secrets == nil {
		o.Secrets = new(secret.Set)
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
	o.Memory.Now, o.Memory.Logger, o.Memory.Idle, o.Memory.HolderOf = o.Now, o.Logger, share.Pause, o.HolderOf
	o.Blobs.Now, o.Blobs.Logger = o.Now, o.Logger
	o.Blobs.Words = analysis.New(&analysis.Options{Language: o.Memory.Language}).Terms
	o.Tiers.Logger = o.Logger
	o.Assemble.Models, o.Assemble.Templates = o.Models, o.Reduction.Rules.Templates()
	o.Events.Now, o.Events.Logger, o.Events.OneTenant = o.Now, o.Logger, o.OneTenant
	o.Events.Rate, o.Events.Quota = o.Shares.EventBytes, o.Shares.Disk
	o.Agents.Now, o.Agents.Logger, o.Agents.OneTenant = o.Now, o.Logger, o.OneTenant
	o.Hand.Now, o.Hand.Logger, o.Hand.OneTenant = o.Now, o.Logger, o.OneTenant
	o.Audit.Now, o.Audit.Logger, o.Approval.Now = o.Now, o.Logger, o.Now
	o.Retention.Now, o.Retention.Logger = o.Now, o.Logger
	o.Children.Now, o.Children.Logger = o.Now, o.Logger
	o.Egress.Now, o.Egress.Logger = o.Now, o.Logger
	o.Disk.Logger = o.Logger
	o.Hand.Secrets, o.Egress.Secrets, o.Jobs.Secrets = o.Secrets, o.Secrets, o.Secrets
	return o
}
