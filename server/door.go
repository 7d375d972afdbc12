package server

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

const (
	// tellEvery is how often a call that was turned away is logged: who has no
	// credential could make fifty thousand lines a second.
	tellEvery = time.Second
)

// door remembers when it told last of those it turned away. Its zero value is
// ready.
type door struct {
	mu       sync.Mutex
	next     time.Time // guarded by mu
	unlogged int       // guarded by mu
}

// tell returns whether to log now, and how many were not logged before.
func (d *door) tell(now time.Time) (unlogged int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.next) {
		d.unlogged++
		return 0, false
	}
	unlogged, d.unlogged = d.unlogged, 0
	d.next = now.Add(tellEvery)
	return unlogged, true
}

// admit decides by the headers of a call whether its message is taken in at
// all: whoever has no credential can't make the server hold megabytes. It runs
// on the goroutine of the connection and must not block.
func (s *Server) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	var err error
	conn := connOf(ctx)
	switch {
	case strings.HasPrefix(call.FullMethodName, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/"):
		ctx, err = s.healthDoor.enter(ctx, conn)
	case isReflection(call.FullMethodName):
		err = s.admitReflection(ctx)
	default:
		if _, err = s.authenticate(ctx); err == nil {
			conn.Known()
		}
	}
	if err != nil {
		return nil, s.turnAway(ctx, call.FullMethodName, err)
	}
	return ctx, nil
}

// authenticate puts the caller's identity into ctx. If ctx is that of a stream, the
// stream ends with the credential.
func (s *Server) authenticate(ctx context.Context) (context.Context, error) {
	if s.credentials == nil {
		return auth.With(ctx, s.anyone), nil
	}
	caller, over, err := s.credentials.Authenticate(ctx)
	if err != nil {
		return nil, err
	}
	if guarded(ctx) {
		forget := context.AfterFunc(over, func() { endStream(ctx, context.Cause(over)) })
		context.AfterFunc(ctx, func() { forget() })
	}
	return auth.With(ctx, caller), nil
}

// connOf is the connection of a call; nil where nobody counts connections.
func connOf(ctx context.Context) *conns.Conn {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return conns.Of(from.Addr)
}

// turnAway ends a call that never reaches the interceptors: it is told what
// they would tell it, and logged when it is time.
func (s *Server) turnAway(ctx context.Context, method string, err error) error {
	failure := failureOf(ctx, err)
	s.metrics.Refuse(failure)
	if unlogged, ok := s.door.tell(s.now()); ok {
		watch := s.observer
		watch.Metrics = nil // the call is counted
		if unlogged > 0 {
			watch.Log = watch.Log.With(observe.KeyUnlogged, unlogged)
		}
		reporter, _ := watch.ServerReporter(ctx, interceptors.NewServerCallMeta(method, nil, nil))
		reporter.PostCall(failure, 0)
	}
	return failure
}

// acceptable refuses what the codec could not decode, and a health check of a
// name that no service has.
func acceptable(message any) error {
	if err := refuseMarked(message); err != nil {
		return err
	}
	health, ok := message.(*grpc_health_v1.HealthCheckRequest)
	if !ok {
		return nil
	}
	return validate.HealthCheckRequest(health)
}

// reachableByOthers tells whether other machines can reach a listener.
func reachableByOthers(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
