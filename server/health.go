package server

import (
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// needs are the keyspaces without which a service can't answer all calls; none for
// services that are not named here.
func needs(service string) []kv.Keyspace {
	switch service {
	case loombridgev1.BridgeService_ServiceDesc.ServiceName:
		return kv.Keyspaces()
	case loombridgev1.MemoryService_ServiceDesc.ServiceName:
		return []kv.Keyspace{kv.Records, kv.Index, kv.System}
	case loombridgev1.ContextService_ServiceDesc.ServiceName:
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

// serving tells whether a service can answer while the store is in a condition. The
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
