package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/loom-bridge/loom-bridge/memory/writer"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const (
	// DefaultAgent is who a host acts as that says nothing.
	DefaultAgent = "mcp"
	// DefaultSession is the session of a host that says nothing, as in the native API.
	DefaultSession = "default"

	// listTTL is how long a host may keep the lists of tools, prompts and templates:
	// they change with the version of the server only.
	listTTL = time.Hour
)

// Names of HTTP headers that say who a host acts as. The query of the URL may say
// `agent` and `session` instead.
const (
	HeaderAgent   = "Loom-Agent"
	HeaderSession = "Loom-Session"
)

// Versions are the protocol versions that are spoken, the newest first.
func Versions() []string {
	return []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// Options adjust a Server. Nil and zero fields mean the defaults.
type Options struct {
	// Agent is who a host acts as that names no agent. Default DefaultAgent.
	Agent string
	// Session is the session of a host that names none. Default DefaultSession.
	Session string
	// Token is the bearer token of calls that come without HTTP. Default: none.
	Token string
	// Version is that of the server, as hosts show it. Default "0".
	Version string
	// Logger takes what the protocol's library has to say. Default: silent.
	Logger *slog.Logger
}

// Server is the domain as hosts see it. All methods are safe for concurrent use.
type Server struct {
	bridge   loombridgev1.BridgeServiceClient
	memory   loombridgev1.MemoryServiceClient
	sessions loombridgev1.SessionServiceClient
	prompts  loombridgev1.PromptServiceClient
	blobs    loombridgev1.BlobServiceClient
	tools    loombridgev1.ToolServiceClient
	events   loombridgev1.EventServiceClient
	own      Options
	server   *sdk.Server
}

// New makes a server over a connection to the native API, which it does not own.
func New(conn grpc.ClientConnInterface, opts *Options) *Server {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Agent, o.Session, o.Version = cmp.Or(o.Agent, DefaultAgent), cmp.Or(o.Session, DefaultSession), cmp.Or(o.Version, "0")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		bridge:   loombridgev1.NewBridgeServiceClient(conn),
		memory:   loombridgev1.NewMemoryServiceClient(conn),
		sessions: loombridgev1.NewSessionServiceClient(conn),
		prompts:  loombridgev1.NewPromptServiceClient(conn),
		blobs:    loombridgev1.NewBlobServiceClient(conn),
		tools:    loombridgev1.NewToolServiceClient(conn),
		events:   loombridgev1.NewEventServiceClient(conn),
		own:      o,
	}
	options := &sdk.ServerOptions{
		Instructions:              instructions,
		Logger:                    slog.New(loud{o.Logger.Handler()}),
		SetCacheable:              cacheable,
		SupportedProtocolVersions: Versions(),
		// No list changes while a host is connected.
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{},
		},
	}
	fixtureOptions(options)
	s.server = sdk.NewServer(&sdk.Implementation{Name: "loom-bridge", Version: o.Version}, options)
	for _, t := range allTools() {
		declared := t.declared()
		schema, _ := declared.InputSchema.(json.RawMessage)
		s.server.AddTool(declared, s.running(t.checking(schema)))
	}
	s.addResources()
	s.addPrompts()
	addFixtures(s.server)
	return s
}

// instructions explain to a model in which order the tools serve it.
const instructions = "Long-term memory, context and tools of Loom Bridge. " +
	"Ask memory_query before work on what may be known already; memory_save what should outlive this session. " +
	"step_record keeps long results out of the prompt: blob_read gives any part back. " +
	"tool_list names the tools that tool_run can run."

// Run serves one host over a transport until the host leaves or ctx ends.
func (s *Server) Run(ctx context.Context, transport sdk.Transport) error {
	return s.server.Run(ctx, transport)
}

// cacheable says how long a host may keep a result.
func cacheable(_ context.Context, request sdk.Request, c *sdk.Cacheable) {
	switch request.(type) {
	case *sdk.ServerRequest[*sdk.ReadResourceParams], *sdk.ServerRequest[*sdk.ListResourcesParams]:
		c.TTLMs, c.CacheScope = 0, "private"
	default:
		c.TTLMs, c.CacheScope = int(listTTL.Milliseconds()), "public"
	}
}

// caller is who makes a call, and the context of calls on its behalf.
type caller struct {
	ctx            context.Context
	agent, session string
}

// callerOf finds out who makes a call. Only the HTTP face sets headers of a request, and
// it lets nothing through that the caller's credential does not allow to try.
func (s *Server) callerOf(ctx context.Context, request sdk.Request) caller {
	var header http.Header
	if extra := request.GetExtra(); extra != nil {
		header = extra.Header
	}
	who := caller{agent: cmp.Or(header.Get(HeaderAgent), s.own.Agent), session: cmp.Or(header.Get(HeaderSession), s.own.Session)}
	pairs := []string{auth.WriterKey, writer.Model.String(), convert.JSONKey, convert.JSONText} // whatever a host calls, its model has said so
	authorization := header.Get("Authorization")
	if authorization == "" && s.own.Token != "" {
		authorization = "Bearer " + s.own.Token
	}
	if authorization != "" {
		pairs = append(pairs, "authorization", authorization)
	}
	for _, name := range traceKeys {
		if value := traceOf(request, header, name); value != "" {
			pairs = append(pairs, name, value)
		}
	}
	who.ctx = metadata.AppendToOutgoingContext(ctx, pairs...)
	return who
}

// traceKeys are the keys of the W3C trace context; the protocol has them in _meta, without
// a prefix (SEP-414).
var traceKeys = []string{"traceparent", "tracestate", "baggage"}

// maxTraceBytes bounds one of them: what the W3C asks every carrier to take.
const maxTraceBytes = 512

// traceOf is what a request says under a key of the trace context.
func traceOf(request sdk.Request, header http.Header, key string) string {
	value := header.Get(key)
	if params := request.GetParams(); params != nil {
		if own, ok := params.GetMeta()[key].(string); ok {
			value = own
		}
	}
	if len(value) > maxTraceBytes || slices.ContainsFunc([]byte(value), func(c byte) bool { return c < ' ' || c > '~' }) {
		return "" // gRPC refuses the whole call for it
	}
	return value
}
