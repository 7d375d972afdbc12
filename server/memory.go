package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Memory is what the handlers need of long-term memory.
type Memory interface {
	Save(ctx context.Context, scope kv.Scope, r memory.Record, requestID string) (memory.Record, error)
	Query(ctx context.Context, scope kv.Scope, q memory.Query) (memory.Result, error)
	Get(ctx context.Context, scope kv.Scope, id string) (memory.Record, error)
	GetByKey(ctx context.Context, scope kv.Scope, key string) (memory.Record, error)
}

var _ Memory = (*memory.Store)(nil)

type memoryService struct {
	loombridgev1.UnimplementedMemoryServiceServer
	memory Memory
}

// GetRecord returns one record by id or key.
func (s *memoryService) GetRecord(ctx context.Context, r *loombridgev1.GetRecordRequest) (*loombridgev1.GetRecordResponse, error) {
	if err := checkGetRecordRequest(r); err != nil {
		return nil, err
	}
	scope, err := memoryScope(ctx, r.GetAgentId(), r.GetUserId())
	if err != nil {
		return nil, err
	}
	get, name := s.memory.Get, r.GetId()
	if r.GetKey() != "" {
		get, name = s.memory.GetByKey, r.GetKey()
	}
	found, err := get(ctx, scope, name)
	if err != nil {
		return nil, err
	}
	view := recordView{r.GetJsonForm(), r.GetIncludeEmbeddings()}
	return &loombridgev1.GetRecordResponse{Record: view.record(found)}, nil
}
