package memory

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// SaveBatch is SaveBatchAs without a choice, and leaves rs to the caller.
func (s *Store) SaveBatch(ctx context.Context, scope kv.Scope, rs []record.Record, requestID string) ([]record.Record, error) {
	saved, err := s.SaveBatchAs(ctx, scope, slices.Clone(rs), Saving{RequestID: requestID})
	return saved.Records, err
}

// VectorSpaces returns the embedding spaces of a scope.
func (s *Store) VectorSpaces(ctx context.Context, scope kv.Scope) ([]vector.Space, error) {
	spaces, _, err := s.embeddings.Stats(ctx, s.engine, scope)
	return spaces, err
}

// WaitingForVectors returns how many records of a scope wait for the embedder.
func (s *Store) WaitingForVectors(ctx context.Context, scope kv.Scope) (int, error) {
	_, n, err := s.embeddings.Stats(ctx, s.engine, scope)
	return n, err
}
