package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
)

const (
	// Path is where the protocol is served.
	Path = "/mcp"

	// wireBytes is the buffer between the face and the native API, as a socket has one.
	wireBytes = 256 << 10

	// firstStateless is the first version of the protocol without sessions.
	firstStateless = "2026-07-28"
)

// FaceOptions configure a Face.
type FaceOptions struct {
	Options
	// Native are the options of the native API server that the face creates for itself: its
	// limits, shares, credentials and logger hold for the face, too. Its TLS secures the
	// face's connections. Loom must be nil.
	Native server.Options
	// Hosts are the names, in addition to loopback names, by which the face may be called.
	// Default: none. Addresses need no name.
	Hosts []string
}

// Face serves a Server over HTTP. All methods are safe for concurrent use.
type Face struct {
	native      *server.Server
	wire        *bufconn.Listener
	conn        *grpc.ClientConn
	own         *Server
	credentials *auth.Credentials
	trust       bool
	hosts       []string
	limits      server.Limits
	shares      *server.Shares
	tls         *auth.TLS
	conns       *conns.Pool
	sessions    *sessions
	http        *http.Server
	// streams is done when streams without an end have to end.
	streams    context.Context
	endStreams context.CancelFunc
}

// NewFace makes a face over the services, which it does not own. Its calls run through a
// separate server of the native API, which shares all limits with the others of the
// process.
func NewFace(services server.Services, opts FaceOptions) (*Face, error) {
	n := opts.Native
	f := &Face{
		credentials: n.Credentials, trust: n.TrustNetwork, hosts: opts.Hosts, tls: n.TLS,
		limits: n.Limits.Full(), wire: bufconn.Listen(wireBytes),
	}
	if n.Logger == nil {
		n.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Logger == nil {
		opts.Logger = n.Logger
	}
	if n.Shares == nil {
		n.Shares = server.NewShares(n.Limits, n.Credentials == nil)
	}
	f.shares = n.Shares
	f.conns = conns.NewPool(f.limits.MaxConnections, f.limits.SilentTimeout)
	// All calls come over one connection within the process.
	n.TLS, n.Limits.MaxStreamsPerConnection = nil, f.limits.MaxStreams
	f.native = server.New(services, &n)
	var err error
	f.conn, err = grpc.NewClient("passthrough:///this-process",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.wire.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(f.limits.MaxSendBytes)))
	if err != nil {
		return nil, fmt.Errorf("mcp: connect to the native API: %w", err)
	}
	f.own = New(f.conn, &opts.Options)
	f.sessions = newSessions(f.own.server, n.Credentials == nil)
	f.streams, f.endStreams = context.WithCancel(context.Background())
	f.http = &http.Server{
		Handler: f.routes(), ReadHeaderTimeout: f.limits.ConnectionTimeout, IdleTimeout: server.IdleTimeout,
		MaxHeaderBytes: server.MaxHeaderBytes, ConnContext: withConn, ErrorLog: slog.NewLogLogger(n.Logger.Handler(), slog.LevelDebug),
	}
	return f, nil
}

// routes are the handlers: clients of the newest protocol are served without state, all
// others with a session, which their cancellations and list changes need.
func (f *Face) routes() http.Handler {
	get := func(*http.Request) *sdk.Server { return f.own.server }
	options := sdk.StreamableHTTPOptions{
		Logger: slog.New(loud{f.own.own.Logger.Handler()}), MaxRequestBodyBytes: int64(f.limits.MaxReceiveBytes), SessionTimeout: sessionIdle,
		DisableLocalhostProtection:   true, // names looks at more than that
		PropagateRequestCancellation: true,
	}
	withSession := sdk.NewStreamableHTTPHandler(get, &options)
	options.Stateless = true
	stateless := sdk.NewStreamableHTTPHandler(get, &options)
	mux := http.NewServeMux()
	mux.Handle(Path, f.guarded(f.owned(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if endless := r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"; endless {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(f.streams, cancel)()
			r = r.WithContext(ctx)
		}
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= firstStateless:
			stateless.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "":
			f.sessions.opening(w, r, ownerOf(r), withSession)
		default:
			withSession.ServeHTTP(w, r)
		}
	}))))
	return mux
}

type connKey struct{}

// withConn lets a request find its connection in the pool.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conns.Of(c.RemoteAddr()))
}

// Serve answers on a listener until Shutdown, which makes it return nil. It closes the
// listener. While authentication is off an address that other machines can reach is
// refused with server.ErrOpenToAll.
func (f *Face) Serve(listener net.Listener) error {
	if f.credentials == nil && !f.trust && server.ReachableByOthers(listener.Addr()) {
		return errors.Join(fmt.Errorf("%w: %s", server.ErrOpenToAll, listener.Addr()), listener.Close())
	}
	ended := make(chan error, 2)
	go func() { ended <- f.native.Serve(f.wire) }()
	pooled := f.conns.Listener(listener)
	if f.tls != nil {
		pooled = tls.NewListener(pooled, httpOnly(f.tls.Config()))
	}
	go func() { ended <- f.http.Serve(pooled) }()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// httpOnly is a configuration for HTTP/1.1 in place of gRPC's HTTP/2.
func httpOnly(config *tls.Config) *tls.Config {
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := choose(hello)
		if err != nil {
			return nil, err
		}
		current = current.Clone()
		current.NextProtos = []string{"http/1.1"}
		return current, nil
	}
	return config
}

// Shutdown lets calls in flight finish for as long as the native API does, ends streams,
// and closes all connections. It returns when no call runs any more, or the error of ctx.
// Calling it again is harmless.
func (f *Face) Shutdown(ctx context.Context) error {
	f.endStreams()
	patience, cancel := context.WithTimeout(ctx, f.limits.DrainTimeout)
	defer cancel()
	if err := f.http.Shutdown(patience); err != nil {
		_ = f.http.Close() // what is still open is cut off, which cancels it
	}
	err := f.native.Shutdown(ctx)
	_ = f.conn.Close() // again, if this is not the first time
	return err
}
