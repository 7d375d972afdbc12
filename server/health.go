package server

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/conns"
)

// needs are the keyspaces without which a service can't answer all calls; none for
// services that are not named here.
func needs(service string) []kv.Keyspace {
	switch service {
	case loombridgev1.BridgeService_ServiceDesc.ServiceName:
		return kv.Keyspaces()
	case loombridgev1.MemoryService_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.Records, kv.Index, kv.System}
	case loombridgev1.SharingService_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.System}
	case loombridgev1.SessionService_ServiceDesc.ServiceName, loombridgev1.PromptService_ServiceDesc.ServiceName,
		loombridgev1.BlobService_ServiceDesc.ServiceName, loombridgev1.AgentService_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.Log, kv.Blobs, kv.Records, kv.Index}
	case loombridgev1.EventService_ServiceDesc.ServiceName, loomv1pb.EventBus_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.Events}
	case loomv1pb.MemoryService_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.Records, kv.Index}
	case loomv1pb.Bridge_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.Events, kv.System}
	}
	return nil
}

// serving reports whether a service can answer while the store is in a condition. The
// empty name stands for the server as a whole.
func serving(service string, c kv.Condition) bool {
	if c.Failed != nil || c.Damaged[kv.WholeStore] != nil {
		return false
	}
	for _, ks := range needs(service) {
		if c.Damaged[ks] != nil {
			return false
		}
	}
	return true
}

// showHealth gives each service the status that the store's condition allows.
func (s *Server) showHealth(c kv.Condition) {
	names := []string{""}
	for name := range s.grpc.GetServiceInfo() {
		names = append(names, name)
	}
	for _, name := range names {
		status := grpc_health_v1.HealthCheckResponse_SERVING
		if !serving(name, c) {
			status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
		s.health.SetServingStatus(name, status)
	}
}

// startFollowing begins to follow the store's health, unless the server stops.
func (s *Server) startFollowing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.handlers.Go(s.followHealth)
	}
}

// followHealth shows the store's health until the server stops.
func (s *Server) followHealth() {
	for {
		condition, changed := s.store.Condition()
		s.showHealth(condition)
		select {
		case <-changed:
		case <-s.draining:
			return
		}
	}
}

const (
	// maxWaitingHealth bounds the health calls whose message has not come: they need
	// no credential, and each can make gRPC hold one. Beyond it the oldest is ended:
	// an honest one takes a moment.
	maxWaitingHealth = 32
	// maxHealthWatches bounds the watches, which last. A check is none.
	maxHealthWatches = 512
	// maxHealthOfConnection bounds the health calls of one connection. Clients need
	// one watch, and checks now and then.
	maxHealthOfConnection = 8
)

// healthLimiter counts the health calls. Its zero value is ready.
type healthLimiter struct {
	mu      sync.Mutex // guards the fields below, and the fields of calls
	waiting list.List  // the calls whose message has not come, the oldest first
	watches int
}

// healthCall is one check or watch. The limiter's mu guards its fields.
type healthCall struct {
	end     context.CancelCauseFunc
	waiting *list.Element // nil once the message has come
	watches bool
}

type healthCallKey struct{}

// enter takes a call in by its headers. What it returns is the context of the call.
func (l *healthLimiter) enter(ctx context.Context, conn *conns.Conn) (context.Context, error) {
	if !conn.Hold(maxHealthOfConnection) {
		return ctx, fmt.Errorf("%w: the connection has %d health calls under way", ErrOverloaded, maxHealthOfConnection)
	}
	inner, end := context.WithCancelCause(ctx)
	call := &healthCall{end: end}
	context.AfterFunc(ctx, func() {
		l.leave(call)
		conn.Release()
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Len() >= maxWaitingHealth {
		oldest := l.waiting.Front().Value.(*healthCall)
		l.received(oldest)
		oldest.end(ErrOverloaded)
	}
	call.waiting = l.waiting.PushBack(call)
	return context.WithValue(inner, healthCallKey{}, call), nil
}

func (l *healthLimiter) leave(call *healthCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received(call)
	if call.watches {
		call.watches = false
		l.watches--
	}
	call.end(context.Canceled)
}

func (l *healthLimiter) received(call *healthCall) {
	if call.waiting != nil {
		l.waiting.Remove(call.waiting)
		call.waiting = nil
	}
}

// arrive says that the message of a call has come.
func (l *healthLimiter) arrive(ctx context.Context, watches bool) error {
	call, ok := ctx.Value(healthCallKey{}).(*healthCall)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received(call)
	if !watches || ctx.Err() != nil {
		return nil
	}
	if l.watches >= maxHealthWatches {
		return fmt.Errorf("%w: %d health watches are open", ErrOverloaded, maxHealthWatches)
	}
	l.watches++
	call.watches = true
	return nil
}

// healthService is gRPC's own behind the limiter.
type healthService struct {
	*health.Server
	limiter *healthLimiter
}

// Check answers how a service is.
func (s healthService) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if err := s.limiter.arrive(ctx, false); err != nil {
		return nil, err
	}
	return s.Server.Check(ctx, r)
}

// Watch answers whenever that changes.
func (s healthService) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	if err := s.limiter.arrive(stream.Context(), true); err != nil {
		return err
	}
	return s.Server.Watch(r, stream)
}
