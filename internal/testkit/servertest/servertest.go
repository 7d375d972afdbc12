package servertest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// listenerBytes is the buffer of the in-memory listener, as a socket has one.
const listenerBytes = 256 << 10

// stopTimeout bounds the end of a test's server.
const stopTimeout = time.Minute

// Options adjusts a Server. Nil and zero fields mean the defaults.
type Options struct {
	// Engine keeps the data; it stays the caller's. Default: a new one in
	// memory.
	Engine kv.Engine
	// Workspace is the directory the tools work in. Default: a new empty one.
	Workspace string
	// Server is passed on; its Now is set to the clock.
	Server server.Options
	// Logger takes what the server and the hand log. Default silent.
	Logger *slog.Logger
	// Wrap may replace services, to make them fail. Default: none.
	Wrap func(server.Services) server.Services
	// Retention says how long events are kept. Default that of package events.
	Retention events.Retention
	// Blobs says how long blobs are kept. Default that of package blob.
	Blobs blob.Options
	// History is how the prompts of sessions are made that say nothing. Default
	// that of package compose.
	History session.Config
	// Domain are further settings of what the server serves; those above, the clock
	// and the logger are laid over it. Default none.
	Domain compose.Options
	// Dial are further options of the client.
	Dial []grpc.DialOption
}

// Server is a running server and its client.
type Server struct {
	Bridge  loombridgev1.BridgeServiceClient
	Memory  loombridgev1.MemoryServiceClient
	Sharing loombridgev1.SharingServiceClient
	// Transfer exports and imports.
	Transfer loombridgev1.TransferServiceClient
	Context  contexts.Client
	Tools    loombridgev1.ToolServiceClient
	Events   loombridgev1.EventServiceClient
	Admin    loombridgev1.AdminServiceClient

	LoomBridge  loomv1pb.BridgeClient
	LoomMemory  loomv1pb.MemoryServiceClient
	LoomTools   loomv1pb.ToolServiceClient
	LoomEvents  loomv1pb.EventBusClient
	LoomRuntime loomv1pb.AgentRuntimeClient

	// Domain is what the server serves.
	Domain *compose.Domain
	// Workspace is the directory the tools work in.
	Workspace string
	// Clock is what the server takes for the time.
	Clock *Clock
	// Face is the server itself, for tests that stop it.
	Face *server.Server

	conn     *grpc.ClientConn
	listener *bufconn.Listener
	dial     []grpc.DialOption
}

// Start starts a server that ends with the test.
func Start(tb testing.TB, opts *Options) *Server {
	tb.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Engine == nil {
		engine := pgtest.Engine(tb)
		tb.Cleanup(func() { must(tb, engine.Close()) })
		o.Engine = engine
	}
	if o.Workspace == "" {
		o.Workspace = tb.TempDir()
	}
	s := &Server{Workspace: o.Workspace, Clock: NewClock(), listener: bufconn.Listen(listenerBytes), dial: o.Dial}
	if o.Server.Shares == nil {
		o.Server.Shares = server.NewShares(o.Server.Limits, o.Server.Credentials == nil)
	}
	s.Domain = s.open(tb, o)
	services := s.Domain.Services()
	if o.Server.Credentials == nil && o.Server.Loom == nil {
		o.Server.Loom = s.Domain.Loom()
	}
	if o.Wrap != nil {
		services = o.Wrap(services)
	}
	o.Server.Now = s.Clock.Now
	o.Server.Logger = o.Logger
	s.Face = server.New(services, &o.Server)
	s.serve(tb)
	s.conn = s.Dial(tb)
	s.connect()
	return s
}

// open builds the domain as main does, and closes it with the test.
func (s *Server) open(tb testing.TB, o Options) *compose.Domain {
	tb.Helper()
	root, err := os.OpenRoot(s.Workspace)
	must(tb, err)
	tb.Cleanup(func() { must(tb, root.Close()) })
	d := o.Domain
	d.Shares, d.OneTenant = o.Server.Shares, o.Server.Credentials == nil
	if o.Server.Credentials != nil {
		d.HolderOf = o.Server.Credentials.HolderOf
	}
	d.Now, d.Logger, d.CloseTimeout, d.Events.Retention, d.Blobs, d.History = s.Clock.Now, o.Logger, stopTimeout, o.Retention, o.Blobs, o.History
	parts, err := compose.Open(o.Engine, workspace{root}, &d)
	if err != nil {
		tb.Fatalf("servertest: %v", err)
	}
	tb.Cleanup(func() {
		checkStore(tb, o.Engine, parts.Memory)
		must(tb, parts.Close())
	})
	return parts
}

// workspace is one directory for everybody.
type workspace struct{ root *os.Root }

func (w workspace) Root(kv.Scope) (*os.Root, error) { return w.root, nil }

func (s *Server) serve(tb testing.TB) {
	tb.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.Face.Serve(s.listener) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		must(tb, s.Face.Shutdown(ctx))
		must(tb, <-ended)
	})
}

// Dial returns a new connection to the server, closed with the test. The options follow the
// ones of Start.
func (s *Server) Dial(tb testing.TB, options ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	all := append([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}, s.dial...)
	conn, err := grpc.NewClient("passthrough:///in-memory", append(all, options...)...)
	must(tb, err)
	tb.Cleanup(func() { must(tb, conn.Close()) })
	return conn
}

// Conn is the connection that the clients use.
func (s *Server) Conn() *grpc.ClientConn { return s.conn }

func (s *Server) connect() {
	s.Bridge = loombridgev1.NewBridgeServiceClient(s.conn)
	s.Memory = loombridgev1.NewMemoryServiceClient(s.conn)
	s.Transfer = loombridgev1.NewTransferServiceClient(s.conn)
	s.Sharing = loombridgev1.NewSharingServiceClient(s.conn)
	s.Context = contexts.New(s.conn)
	s.Tools = loombridgev1.NewToolServiceClient(s.conn)
	s.Events = loombridgev1.NewEventServiceClient(s.conn)
	s.Admin = loombridgev1.NewAdminServiceClient(s.conn)
	s.LoomBridge = loomv1pb.NewBridgeClient(s.conn)
	s.LoomMemory = loomv1pb.NewMemoryServiceClient(s.conn)
	s.LoomTools = loomv1pb.NewToolServiceClient(s.conn)
	s.LoomEvents = loomv1pb.NewEventBusClient(s.conn)
	s.LoomRuntime = loomv1pb.NewAgentRuntimeClient(s.conn)
}

// checkStore reads back everything that a test has stored, and compares the index of
// every owner with its records.
func checkStore(tb testing.TB, engine kv.Engine, memories *memory.Store) {
	tb.Helper()
	_, err := integrity.Entries(context.Background(), engine, integrity.Options{
		Memory: memories,
		Found:  func(f integrity.Finding) { tb.Errorf("servertest: what is stored is damaged: %v", f) },
	})
	if !errors.Is(err, kv.ErrClosed) {
		must(tb, err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Errorf("servertest: %v", err)
	}
}
