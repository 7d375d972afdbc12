package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conns"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

const (
	// refusalLogEvery is how often a call that was turned away is logged: a client
	// without a credential could cause fifty thousand lines a second.
	refusalLogEvery = time.Second
)

// refusalLog remembers when a refused call was logged last. Its zero value is
// ready.
type refusalLog struct {
	mu       sync.Mutex
	next     time.Time // guarded by mu
	unlogged int       // guarded by mu
}

// due returns whether to log now, and how many were not logged before.
func (d *refusalLog) due(now time.Time) (unlogged int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.next) {
		d.unlogged++
		return 0, false
	}
	unlogged, d.unlogged = d.unlogged, 0
	d.next = now.Add(refusalLogEvery)
	return unlogged, true
}

// admit decides by the headers of a call whether its message is taken in at
// all: a client without a credential cannot make the server hold megabytes. It runs
// on the goroutine of the connection and must not block.
func (s *Server) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	var err error
	conn := connOf(ctx)
	switch {
	case strings.HasPrefix(call.FullMethodName, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/"):
		ctx, err = s.healthLimiter.enter(ctx, conn)
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
	ctx = auth.Written(ctx)
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

// connOf is the connection of a call; nil where connections are not counted.
func connOf(ctx context.Context) *conns.Conn {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return conns.Of(from.Addr)
}

// turnAway ends a call that never reaches the interceptors: it gets what
// they would answer, and is logged when it is time.
func (s *Server) turnAway(ctx context.Context, method string, err error) error {
	failure := failureOf(ctx, err)
	s.metrics.Refuse(failure)
	if unlogged, ok := s.refusals.due(s.now()); ok {
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

// checked is the check of a request.
func checked(message any) error {
	if request, ok := message.(proto.Message); ok {
		return validate.Request(request)
	}
	return nil
}

// ReachableByOthers reports whether other machines can reach a listener.
func ReachableByOthers(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

const (
	// maxReflections bounds the streams of reflection: they need no credential.
	maxReflections = 64
	// maxReflected bounds an answer to one of them. A tool that reads all
	// services asks for some twenty files.
	maxReflected = 256
	// maxReflectionBytes bounds a question: the name of a file or a symbol.
	maxReflectionBytes = 4 * kib
	// maxReflectionTime bounds how long one stays open. Tools read what they need
	// at their start; grpcurl keeps the stream for as long as its call lasts, and
	// does not miss it.
	maxReflectionTime = time.Minute
)

// reflectionPrefix is what the names of the services of reflection begin with, of any version.
const reflectionPrefix = "grpc.reflection."

// isReflection reports whether a method, with the service in front, is one of
// reflection.
func isReflection(method string) bool { return strings.HasPrefix(method, "/"+reflectionPrefix) }

// admitReflection takes in a stream of reflection, if there are not too many.
func (s *Server) admitReflection(ctx context.Context) error {
	select {
	case s.reflections <- struct{}{}:
		context.AfterFunc(ctx, func() { <-s.reflections })
		return nil
	default:
		return fmt.Errorf("%w: %d streams of reflection are open", ErrOverloaded, cap(s.reflections))
	}
}

// boundDescriptions bounds what one stream of reflection may ask for, and for how
// long.
func boundDescriptions(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !isReflection(info.FullMethod) {
		return next(srv, stream)
	}
	over := time.AfterFunc(maxReflectionTime, func() {
		endStream(stream.Context(), fmt.Errorf("server: a stream of reflection stays open for %v: %w", maxReflectionTime, context.DeadlineExceeded))
	})
	defer over.Stop()
	return next(srv, &countedStream{ServerStream: stream})
}

// countedStream counts what it is asked. Only one goroutine may receive.
type countedStream struct {
	grpc.ServerStream
	asked int
}

func (s *countedStream) RecvMsg(m any) error {
	if s.asked++; s.asked > maxReflected {
		return fmt.Errorf("%w: %d descriptions were asked for in one stream of reflection", ErrOverloaded, maxReflected)
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if question, ok := m.(proto.Message); ok && proto.Size(question) > maxReflectionBytes {
		return fmt.Errorf("%w: a question of reflection has at most %d bytes", ErrTooLarge, maxReflectionBytes)
	}
	return nil
}
