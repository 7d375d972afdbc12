package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
)

// wireBytes is the buffer of a connection within the process, as a socket has one.
const wireBytes = 256 << 10

// Within calls a server from its own process, over connections that pass every check that a
// client's pass. It opens one more when those there are have all the calls that a connection
// may have. All methods are safe for concurrent use.
type Within struct {
	listener *bufconn.Listener
	limits   Limits
	erasures *live.Worker

	mu    sync.Mutex // guards the fields below
	lines []*line
}

// line is one connection. The mu of its owner guards calls.
type line struct {
	*grpc.ClientConn
	calls int
}

var _ grpc.ClientConnInterface = (*Within)(nil)

// Within serves callers of this process until Shutdown. Close what it returns.
func (s *Server) Within() *Within {
	w := &Within{listener: bufconn.Listen(wireBytes), limits: s.limits, erasures: s.services.Erasures}
	go func() { _ = s.Serve(withinListener{w.listener}) }() // a listener within the process fails only when it is closed
	return w
}

// OnErase has a function called with each erasure, which forgets what answers of the server said.
func (w *Within) OnErase(forget func()) { w.erasures.OnForget(forget) }

// Invoke makes a unary call.
func (w *Within) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	l, err := w.take()
	if err != nil {
		return err
	}
	defer w.leave(l)
	return l.ClientConn.Invoke(ctx, method, args, reply, opts...)
}

// NewStream begins a stream. It counts as a call until it has ended.
func (w *Within) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	l, err := w.take()
	if err != nil {
		return nil, err
	}
	var once sync.Once
	left := func(error) { once.Do(func() { w.leave(l) }) }
	stream, err := l.ClientConn.NewStream(ctx, desc, method, append(opts, grpc.OnFinish(left))...)
	if err != nil {
		left(err)
	}
	return stream, err
}

// take counts a call on the connection with the fewest.
func (w *Within) take() (*line, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var best *line
	for _, l := range w.lines {
		if best == nil || l.calls < best.calls {
			best = l
		}
	}
	if best == nil || best.calls >= w.limits.MaxStreamsPerConnection {
		conn, err := grpc.NewClient("passthrough:///this-process",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return w.listener.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(w.limits.MaxSendBytes)))
		if err != nil {
			return nil, fmt.Errorf("server: connect within the process: %w", err)
		}
		best = &line{ClientConn: conn}
		w.lines = append(w.lines, best)
	}
	best.calls++
	return best, nil
}

func (w *Within) leave(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.calls--
}

// Close closes the connections. Calls under way end.
func (w *Within) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := []error{w.listener.Close()}
	for _, l := range w.lines {
		errs = append(errs, l.Close())
	}
	w.lines = nil
	return errors.Join(errs...)
}

// withinNetwork is the network of connections within the process. No client chooses the network of
// its address.
const withinNetwork = "within"

type withinListener struct{ *bufconn.Listener }

// Accept waits for a connection.
func (l withinListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return withinConn{conn}, nil
}

type withinConn struct{ net.Conn }

// LocalAddr distinguishes it from every other connection.
func (withinConn) LocalAddr() net.Addr { return withinAddr{} }

type withinAddr struct{}

// Network is that of no other connection.
func (withinAddr) Network() string { return withinNetwork }

func (withinAddr) String() string { return withinNetwork }

// mixedCredentials secure connections by TLS, but for those within the process.
type mixedCredentials struct {
	credentials.TransportCredentials
}

func newMixedCredentials(config *tls.Config) credentials.TransportCredentials {
	return mixedCredentials{credentials.NewTLS(config)}
}

// ServerHandshake secures a connection.
func (m mixedCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if conn.LocalAddr().Network() == withinNetwork {
		return insecure.NewCredentials().ServerHandshake(conn)
	}
	return m.TransportCredentials.ServerHandshake(conn)
}

// Clone copies the credentials.
func (m mixedCredentials) Clone() credentials.TransportCredentials {
	return mixedCredentials{m.TransportCredentials.Clone()}
}

// StatusOf is what a caller gets for an error.
func StatusOf(ctx context.Context, err error) *status.Status {
	return status.Convert(failureOf(ctx, err))
}
