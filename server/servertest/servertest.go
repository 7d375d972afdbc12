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
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// listenerBytes is the buffer of the in-memory listener, as a socket has one.
const listenerBytes = 256 << 10

// stopTimeout bounds the end of a test's server.
const stopTimeout = 10 * time.Second

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
	// Dial are further options of the client.
	Dial []grpc.DialOption
}

// Server is a running server and its client.
type Server struct {
	Bridge  loombridgev1.BridgeServiceClient
	Memory  loombridgev1.MemoryServiceClient
	Context loombridgev1.ContextServiceClient
	Tools   loombridgev1.ToolServiceClient
	Events  loombridgev1.EventServiceClient
	Admin   loombridgev1.AdminServiceClient

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
		engine := memkv.New(nil)
		tb.Cleanup(func() { must(tb, engine.Close()) })
		o.Engine = engine
	}
	if o.Workspace == "" {
		o.Workspace = tb.TempDir()
	}
	s := &Server{Workspace: o.Workspace, Clock: NewClock(), listener: bufconn.Listen(listenerBytes), dial: o.Dial}
	services := s.services(tb, o)
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

// services builds the domain as main does, and closes it with the test.
func (s *Server) services(tb testing.TB, o Options) server.Services {
	tb.Helper()
	writer := kv.NewWriter(o.Engine, nil)
	tb.Cleanup(func() { must(tb, writer.Close()) })
	memories := memory.New(o.Engine, writer, &memory.Options{Now: s.Clock.Now, Logger: o.Logger})
	tb.Cleanup(func() {
		checkIndex(tb, o.Engine, memories)
		must(tb, memories.Close())
	})
	bus := events.New(o.Engine, writer, &events.Options{Now: s.Clock.Now})
	tb.Cleanup(func() { must(tb, bus.Close()) })
	blobs := blob.New(o.Engine, writer, &blob.Options{Now: s.Clock.Now})
	log := session.New(o.Engine, writer, &session.Options{Now: s.Clock.Now})
	counter, err := tokens.New(nil)
	must(tb, err)
	registry := tools.NewRegistry(nil)
	must(tb, native.Register(registry, &native.Options{Blobs: blobs}))
	root, err := os.OpenRoot(s.Workspace)
	must(tb, err)
	tb.Cleanup(func() { must(tb, root.Close()) })
	hands := hand.New(hand.Deps{
		Registry: registry, Log: log, Blobs: blobs, Reducer: step.NewReducer(nil),
		Engine: o.Engine, Writer: writer, Workspaces: workspace{root},
	}, &hand.Options{Now: s.Clock.Now, Logger: o.Logger})
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		must(tb, hands.Close(ctx))
	})
	return server.Services{
		Memory: memories, Hand: hands, Tools: registry, Log: log, Blobs: blobs,
		Tokens: counter, Assembler: assemble.New(log, counter, nil), Events: bus,
	}
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

// Dial returns a new connection to the server, closed with the test. The
// options come behind those of Start.
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
	s.Context = loombridgev1.NewContextServiceClient(s.conn)
	s.Tools = loombridgev1.NewToolServiceClient(s.conn)
	s.Events = loombridgev1.NewEventServiceClient(s.conn)
	s.Admin = loombridgev1.NewAdminServiceClient(s.conn)
}

// checkIndex compares index and records of every owner.
func checkIndex(tb testing.TB, engine kv.Engine, memories *memory.Store) {
	tb.Helper()
	ctx := context.Background()
	checked := map[kv.Scope]bool{}
	for pair, err := range engine.Scan(ctx, kv.Records, kv.Range{}) {
		if errors.Is(err, kv.ErrClosed) {
			return
		}
		must(tb, err)
		scope, _, err := kv.SplitKey(pair.Key)
		must(tb, err)
		if !checked[scope] {
			checked[scope] = true
			must(tb, memories.Check(ctx, scope))
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Errorf("servertest: %v", err)
	}
}
