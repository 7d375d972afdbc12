package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/readback"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/transfer"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	servera2a "github.com/loom-bridge/loom-bridge/server/a2a"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
	"github.com/loom-bridge/loom-bridge/server/forward"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/sharing"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

// ErrOpenToAll: the address can be reached from other machines while
// authentication is off.
var ErrOpenToAll = errors.New("server: the address is reachable from other machines and authentication is off")

// streamWorkers goroutines stay and run calls one after another, with stacks
// that have grown already; a new goroutine for each call spends about a
// twentieth of the time of a call on growing its own. Calls beyond them still
// get a goroutine each.
const streamWorkers = 64

const (
	// idleTime is how long no call may be under way before a shutdown closes
	// connections: enough for the last answers to leave the machine.
	idleTime   = 100 * time.Millisecond
	idleChecks = 10
)

// Options configure a Server; nil means all defaults.
type Options struct {
	// Limits bound sizes, counts and times. Default: DefaultLimits.
	Limits Limits
	// Shares divide calls and streams among tenants and agents. Default: NewShares with the
	// limits.
	Shares *Shares
	// Credentials switch authentication on. Default nil: off, one tenant, and
	// only loopback addresses and Unix sockets are served.
	Credentials *auth.Credentials
	// TrustNetwork serves other machines although authentication is off: who
	// reaches the address can do everything. Default false.
	TrustNetwork bool
	// TLS secures connections. Default nil: plain text.
	TLS *auth.TLS
	// Loom serves the loom.v1 API as well, over these parts; the server sets
	// Tenant and all of Options but Replay. Its clients know no credentials, so it
	// must be nil when Credentials are given. Default nil: not served.
	Loom *loomv1.Deps
	// LoomTenant serves loom.v1 alone, and everybody who connects as this
	// tenant. Default: the native API is served, too, and with authentication off
	// everybody is DefaultTenant.
	LoomTenant string
	// Logger takes one line per call that is worth one. Default nil: silent.
	Logger *slog.Logger
	// Metrics counts the calls. Default nil: they are not counted.
	Metrics *observe.Metrics
	// Trace makes a span of each call. Default nil: there are no traces.
	Trace stats.Handler
	// Contents adds texts to those spans. Default nil: they have none.
	Contents *observe.Contents
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// About is what GetStatus returns about the process.
	About About
	// Store is the health of the store: the standard health service follows it, and
	// GetStatus reports it. Default nil: healthy.
	Store *kv.Health
	// Sandbox is how programs that tools run are confined. Default: none are run.
	Sandbox sandbox.Confinement
	// Scrubbed returns when the store had last been read back whole, zero for never.
	// Default nil: never.
	Scrubbed func() time.Time
	// Backups makes copies of the store. Default nil: none are made.
	Backups *backup.Keeper
	// Bridges are the servers on the same store. Default: there is this one alone.
	Bridges *registry.Registry
	// Places knows which of those servers has the workspace of an agent. Default nil: calls
	// that touch one run here.
	Places *places.Places
	// Redact looks for secrets in requests whose texts are stored, which marks then stand
	// for. What records and steps say is the domain's to redact. Default nil: nothing is.
	Redact *redact.Redactor
}

// About describes the process.
type About struct {
	// Version is the server's version.
	Version string
	// Durability is `sync`, `wal` or `none`.
	Durability string
	// StoreFormat is the version of the on-disk format.
	StoreFormat int
}

// Server serves the native API, health and reflection. All methods are safe
// for concurrent use.
type Server struct {
	services    Services
	limits      Limits
	credentials *auth.Credentials
	anyone      auth.Identity // who calls while authentication is off
	// trustNetwork serves other machines without authentication.
	trustNetwork bool
	about        About
	store        *kv.Health
	scrubbed     func() time.Time
	backups      *backup.Keeper
	bridges      *registry.Registry
	places       *places.Places
	forwards     *forward.Forwarder // nil where all calls run here
	redact       *redact.Redactor
	sandbox      sandbox.Confinement
	following    sync.Once // the start of followHealth
	now          func() time.Time

	grpc     *grpc.Server
	health   *health.Server
	observer observe.Observer
	metrics  *observe.Metrics

	shares        *Shares
	unread        *unread.AnswerRoom
	inFlight      atomic.Int64 // calls and streams
	healthLimiter healthLimiter
	// reflections has a token for each stream of reflection.
	reflections chan struct{}
	refusals    refusalLog
	// conns are the connections of all listeners.
	conns    *conns.Pool
	draining chan struct{}  // closed when stopping begins
	handlers sync.WaitGroup // of streams and forwarded calls; Add only under mu and before stopping
	// forwarding ends when forwarded calls are to end.
	forwarding context.Context
	cutOff     context.CancelFunc

	mu       sync.Mutex
	stopping bool // guarded by mu
}

// New makes a server over the services; none of them may be nil. It does not
// own them: close them after Shutdown.
func New(services Services, opts *Options) *Server {
	o := withDefaults(opts)
	s := &Server{
		services:     services,
		limits:       o.Limits,
		credentials:  o.Credentials,
		anyone:       auth.Anyone(cmp.Or(o.LoomTenant, auth.DefaultTenant)),
		trustNetwork: o.TrustNetwork,
		about:        o.About,
		store:        o.Store,
		scrubbed:     o.Scrubbed,
		backups:      o.Backups,
		bridges:      o.Bridges,
		places:       o.Places,
		redact:       o.Redact,
		sandbox:      o.Sandbox,
		now:          o.Now,
		health:       health.NewServer(),
		observer:     observe.Observer{Log: o.Logger, Metrics: o.Metrics, Outcomes: &observe.Outcomes{}, Contents: o.Contents, OwnTool: ownTools(services, o.Loom)},
		metrics:      o.Metrics,
		shares:       o.Shares,
		unread:       unread.NewRoom(o.Shares.Answers, o.Limits.MaxAnswerBytes, o.Limits.StallTimeout, time.Now),
		conns:        conns.NewPool(o.Limits.MaxConnections, o.Limits.SilentTimeout),
		reflections:  make(chan struct{}, maxReflections),
		draining:     make(chan struct{}),
	}
	s.forwarding, s.cutOff = context.WithCancel(context.Background())
	if o.Places != nil {
		s.forwards = forward.New(o.Places, s.forwarded, o.Logger)
	}
	s.grpc = grpc.NewServer(s.grpcOptions(o)...)
	if o.LoomTenant == "" {
		s.registerNative()
	}
	if o.Loom != nil {
		s.registerLoom(*o.Loom, o)
	}
	condition, _ := s.store.Condition()
	s.showHealth(condition)
	grpc_health_v1.RegisterHealthServer(s.grpc, healthService{s.health, &s.healthLimiter})
	reflection.Register(s.grpc)
	if s.metrics != nil {
		s.metrics.GRPC.InitializeMetrics(s.grpc)
	}
	return s
}

// ownTools names the tools of the server itself.
func ownTools(services Services, loom *loomv1.Deps) observe.ToolNamer {
	var known interface {
		Own(name string) (*tools.Tool, bool)
	} = services.Tools
	if loom != nil {
		known = loom.Tools
	}
	return func(name string) (string, bool) {
		tool, ok := known.Own(name)
		if !ok {
			return "", false
		}
		return tool.Descriptor().Name, true
	}
}

func withDefaults(opts *Options) Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Limits = o.Limits.Full()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Store == nil {
		o.Store = new(kv.Health)
	}
	if o.Scrubbed == nil {
		o.Scrubbed = func() time.Time { return time.Time{} }
	}
	if o.Shares == nil {
		o.Shares = NewShares(o.Limits, o.Credentials == nil)
	}
	return o
}

func (s *Server) grpcOptions(o Options) []grpc.ServerOption {
	l := o.Limits
	options := []grpc.ServerOption{
		grpc.InTapHandle(s.admit),
		grpc.ChainUnaryInterceptor(s.unaryChain()...),
		grpc.ChainStreamInterceptor(s.streamChain()...),
		grpc.ForceServerCodecV2(newCodec(l)),
		grpc.MaxRecvMsgSize(l.MaxReceiveBytes + receiveSlack),
		grpc.MaxSendMsgSize(l.MaxSendBytes),
		grpc.MaxHeaderListSize(MaxHeaderBytes),
		grpc.MaxConcurrentStreams(uint32(l.MaxStreamsPerConnection)),
		grpc.ConnectionTimeout(l.ConnectionTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout, MaxConnectionIdle: IdleTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
	}
	if o.Trace != nil {
		options = append(options, grpc.StatsHandler(o.Trace))
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(newMixedCredentials(o.TLS.Config())))
	}
	return options
}

func (s *Server) registerNative() {
	d := s.services
	calls := &bridgeService{
		memory: d.Memory, grants: d.Grants, hand: d.Hand, events: d.Events, given: d.A2A, agents: d.Agents, children: d.Children, limits: s.limits,
		signals: topics.Signals{Log: d.Log, Bus: d.Events, Told: s.metrics.Interrupted},
		shares:  s.shares, now: s.now, log: s.observer.Log,
	}
	loombridgev1.RegisterBridgeServiceServer(s.grpc, calls)
	loombridgev1.RegisterMemoryServiceServer(s.grpc, &memoryService{memory: d.Memory, grants: d.Grants, erasures: d.Erasures, limits: s.limits})
	loombridgev1.RegisterTransferServiceServer(s.grpc, &transferService{memory: d.Memory, grants: d.Grants, mover: d.Mover, limits: s.limits})
	loombridgev1.RegisterSharingServiceServer(s.grpc, &sharing.Service{Grants: d.Grants, MaxSendBytes: s.limits.MaxSendBytes})
	contexts := &contextService{
		log: d.Log, memory: d.Memory, blobs: d.Blobs, reads: d.Reads, tokens: d.Tokens, assembler: d.Assembler,
		signals: topics.Signals{Log: d.Log, Bus: d.Events, Told: s.metrics.Interrupted},
		hand:    d.Hand, children: d.Children, tasks: d.Tasks, conversations: d.Conversations, lessons: d.Lessons, limits: s.limits,
		metrics: s.metrics,
	}
	loombridgev1.RegisterSessionServiceServer(s.grpc, contexts)
	loombridgev1.RegisterPromptServiceServer(s.grpc, contexts)
	loombridgev1.RegisterBlobServiceServer(s.grpc, contexts)
	loombridgev1.RegisterAgentServiceServer(s.grpc, contexts)
	described := &toolService{tools: d.Tools, audit: d.Audit, approvals: d.Approvals, profiles: d.Profiles, hosted: d.ToolServers, children: d.Children, limits: s.limits}
	loombridgev1.RegisterToolServiceServer(s.grpc, described)
	if s.forwards != nil {
		tool := forward.To(calls.Tool, func(ctx context.Context, r *loombridgev1.ToolRequest) (kv.Scope, bool) {
			return touched(ctx, d.Tools, r, r.GetName())
		})
		tool.Away = hand.WithoutWorkspace
		s.forwards.Add(loombridgev1.BridgeService_Tool_FullMethodName, tool)
		// What a tool may do stands in a file of the workspace.
		s.forwards.Add(loombridgev1.ToolService_ListTools_FullMethodName, forward.To(described.ListTools, func(ctx context.Context, r *loombridgev1.ListToolsRequest) (kv.Scope, bool) {
			return touched(ctx, d.Tools, r, r.GetTool())
		}))
	}
	loombridgev1.RegisterEventServiceServer(s.grpc, &eventService{
		events: d.Events, given: d.A2A, messages: d.Messages, sender: d.Sender, children: d.Children, limits: s.limits, log: s.observer.Log,
	})
	servera2a.Register(s.grpc, servera2a.Deps{
		Tasks: d.A2A, Events: d.Events, Agents: d.Agents, Authenticated: s.credentials != nil, MaxSendBytes: s.limits.MaxSendBytes,
	})
	loombridgev1.RegisterAdminServiceServer(s.grpc, &adminService{
		about: s.about, limits: s.limits, started: s.now(), authentication: s.credentials != nil, tools: d.Tools,
		store: s.store, scrubbed: s.scrubbed, sandbox: s.sandbox, backups: s.backups,
		outcomes: s.observer.Outcomes, bridges: s.bridges, places: s.places, redact: s.redact, memory: d.Memory, grants: d.Grants, retention: d.Retention,
	})
}

func (s *Server) registerLoom(d loomv1.Deps, o Options) {
	d.Tenant = auth.TenantOf
	d.Options.MaxSendBytes = s.limits.MaxSendBytes
	d.Options.StallTimeout = s.limits.StallTimeout
	d.Options.Requests = s.shares.Requests
	d.Options.Now, d.Options.Logger, d.Options.Draining = s.now, o.Logger, s.draining
	if s.forwards != nil {
		d.Forward = s.forwards.Add
	}
	loomv1.Register(s.grpc, d)
}

// Serve answers calls on a listener until Shutdown, which makes it return nil.
// It closes the listener. While authentication is off an address that other
// machines can reach is refused with ErrOpenToAll.
func (s *Server) Serve(listener net.Listener) error {
	if s.credentials == nil && !s.trustNetwork && ReachableByOthers(listener.Addr()) {
		return errors.Join(fmt.Errorf("%w: %s", ErrOpenToAll, listener.Addr()), listener.Close())
	}
	s.following.Do(s.startFollowing)
	err := s.grpc.Serve(s.conns.Listener(listener))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Shutdown drains: health becomes NOT_SERVING, streams end with UNAVAILABLE, and calls in
// flight, including calls forwarded by other servers, may finish until DrainTimeout or ctx
// ends; then they are cancelled. Connections without a call are closed after a moment. It
// returns when no handler runs any more, or the error of ctx. Calling it again is harmless.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.Shutdown()
	s.endStreams()
	patience, cancel := context.WithTimeout(ctx, s.limits.DrainTimeout)
	defer cancel()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.grpc.GracefulStop()
		s.handlers.Wait()
	}()
	select {
	case <-finished:
		return nil
	case <-s.idle(patience):
	}
	// Stop waits for handlers too, so it needs a goroutine as well; it makes
	// the GracefulStop above return.
	go s.grpc.Stop()
	s.cutOff()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server: calls still run at the end of the shutdown: %w", context.Cause(ctx))
	}
}

// idle returns a channel that is closed when no call has been under way for
// idleTime, or when ctx ends. It does not wait for connections without a call, which most
// clients keep open.
func (s *Server) idle(ctx context.Context) <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		ticker := time.NewTicker(idleTime / idleChecks)
		defer ticker.Stop()
		for quiet := 0; quiet < idleChecks; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			quiet++
			if s.inFlight.Load() > 0 {
				quiet = 0
			}
		}
	}()
	return idle
}

func (s *Server) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.stopping = true
		close(s.draining)
	}
}

// Services are the domain objects behind the handlers. All are required and must be
// safe for concurrent use.
type Services struct {
	// Memory keeps records.
	Memory Memory
	// Grants says who has access to memories that are shared.
	Grants *grants.Store
	// Retention deletes what is too old.
	Retention *retention.Sweeper
	// Erasures erases subjects, and knows the calls for them that are under way.
	Erasures *live.Worker
	// Hand runs tools and records them.
	Hand *hand.Hand
	// Audit has the records of calls.
	Audit *audit.Log
	// Approvals has the calls that wait for a person.
	Approvals *approval.Broker
	// Profiles says what calls may do.
	Profiles Profiles
	// Tasks finds tasks in the tiers of memory.
	Tasks *tiers.Tiers
	// Tools lists what can be run.
	Tools *tools.Catalogue
	// ToolServers are the servers of the Model Context Protocol.
	ToolServers *mcp.Clients
	// Log holds steps and messages.
	Log *session.Log
	// Conversations reads back what Log holds.
	Conversations *conversation.Reader
	// Mover exports and imports what Log and Blobs hold of sessions.
	Mover *transfer.Mover
	// Lessons makes playbooks of sessions.
	Lessons *recall.Drafts
	// Blobs holds offloaded bytes.
	Blobs *blob.Store
	// Reads gives back what prompts leave out.
	Reads *readback.Reader
	// Tokens counts.
	Tokens *tokens.Counter
	// Assembler builds prompts.
	Assembler *assemble.Assembler
	// Events carries events.
	Events Events
	// Children makes the children of agents.
	Children *children.Spawner
	// A2A has the tasks that clients of the Agent2Agent protocol give to agents.
	A2A *a2a.Tasks
	// Messages has the direct messages of agents, Sender sends them.
	Messages *messages.Box
	Sender   topics.Sender
	// Agents knows who is attached.
	Agents *agents.Directory
}
