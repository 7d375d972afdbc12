package paths

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Store is an engine that counts. A snapshot is not a separate round trip.
type Store struct {
	kv.Engine

	gets, keys, scans, pairs, commits, written atomic.Int64
	underWay                                   atomic.Int64 // commits
}

// Get counts a round trip and its keys.
func (s *Store) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	return s.get(ctx, s.Engine, ks, keys)
}

func (s *Store) get(ctx context.Context, from kv.Reader, ks kv.Keyspace, keys [][]byte) ([][]byte, error) {
	s.gets.Add(1)
	s.keys.Add(int64(len(keys)))
	return from.Get(ctx, ks, keys...)
}

// Scan counts a scan and its pairs.
func (s *Store) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return s.scan(s.Engine.Scan(ctx, ks, r))
}

func (s *Store) scan(all iter.Seq2[kv.Pair, error]) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		s.scans.Add(1)
		for p, err := range all {
			s.pairs.Add(1)
			if !yield(p, err) {
				return
			}
		}
	}
}

// Snapshot returns one that counts, too.
func (s *Store) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	view, err := s.Engine.Snapshot(ctx, refs...)
	if err != nil {
		return nil, err
	}
	return &snapshot{view, s}, nil
}

// Commit counts a sync and the bytes of the batch.
func (s *Store) Commit(ctx context.Context, c kv.Commit) error {
	s.commits.Add(1)
	s.underWay.Add(1)
	defer s.underWay.Add(-1)
	if c.Batch != nil {
		for _, op := range c.Batch.Ops() {
			s.written.Add(int64(len(op.Key) + len(op.Value)))
		}
	}
	return s.Engine.Commit(ctx, c)
}

// snapshot counts what is read of it.
type snapshot struct {
	kv.Snapshot

	store *Store
}

func (v *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	return v.store.get(ctx, v.Snapshot, ks, keys)
}

func (v *snapshot) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return v.store.scan(v.Snapshot.Scan(ctx, ks, r))
}
