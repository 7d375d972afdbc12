package server

import (
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// needs are the keyspaces without which a service can't answer all calls. Services
// that are not named need none.
var needs = map[string][]kv.Keyspace{
	loombridgev1.BridgeService_ServiceDesc.ServiceName:  {kv.Records, kv.Index, kv.Log, kv.Blobs, kv.Events, kv.System},
	loombridgev1.MemoryService_ServiceDesc.ServiceName:  {kv.Records, kv.Index, kv.System},
	loombridgev1.ContextService_ServiceDesc.ServiceName: {kv.Log, kv.Blobs, kv.Records, kv.Index},
	loombridgev1.EventService_ServiceDesc.ServiceName:   {kv.Events},
	"loom.v1.MemoryService":                             {kv.Records, kv.Index},
	"loom.v1.EventBus":                                  {kv.Events},
	"loom.v1.Bridge":                                    {kv.Events, kv.System},
}

// serving tells whether a service can answer while the store is in a condition. The
// empty name stands for the server as a whole.
func serving(service string, c kv.Condition) bool {
	if c.Failed != nil || c.Damaged[kv.WholeStore] != nil {
		return false
	}
	for _, ks := range needs[service] {
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
