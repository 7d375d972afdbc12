package memkv

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// snapshot reads one version.
type snapshot struct {
	db     *DB
	then   version
	closed atomic.Bool
}

func (s *snapshot) version(ctx context.Context) (version, error) {
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	if _, err := s.db.current(ctx); err != nil {
		return nil, err
	}
	return s.then, nil
}

func (s *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	v, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	return v.get(ks, keys)
}

func (s *snapshot) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return scan(ctx, s.version, ks, r)
}

func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	v, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	return v.sequences(refs)
}

func (s *snapshot) Close() error {
	s.closed.Store(true)
	return nil
}

// scan yields a range of the version that at returns when the loop begins.
func scan(ctx context.Context, at func(context.Context) (version, error), ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		v, err := at(ctx)
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		root, err := v.tree(ks)
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		walk := root.ascend
		if r.Reverse {
			walk = root.descend
		}
		walk(r.Start, r.End, visit(ctx, r.Limit, yield))
	}
}

// visit turns a loop's yield into one for nodes: it skips reserved keys and
// ends the walk at the limit and with ctx.
func visit(ctx context.Context, limit int, yield func(kv.Pair, error) bool) func(*node) bool {
	yielded := 0
	return func(n *node) bool {
		if kv.IsReserved(n.key) {
			return true
		}
		if err := ctx.Err(); err != nil {
			yield(kv.Pair{}, err)
			return false
		}
		yielded++
		return yield(kv.Pair{Key: own(n.key), Value: own(n.value)}, nil) && yielded != limit
	}
}
