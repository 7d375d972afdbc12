package memkv

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

// view holds one version until it is closed or too old.
type view struct {
	db   *DB
	open lifetime.Holding
	held atomic.Pointer[version] // nil once it is too old
}

func (db *DB) view(ctx context.Context) (*view, error) {
	current, err := db.current(ctx)
	if err != nil {
		return nil, err
	}
	v, now := &view{db: db}, time.Now()
	v.held.Store(&current)
	db.open.Add(&v.open, now, now.Add(db.life), func() { v.held.Store(nil) })
	return v, nil
}

func (v *view) close() { v.db.open.Remove(&v.open) }

// version returns what the view holds, or why there is nothing to read.
func (v *view) version(ctx context.Context) (version, error) {
	held := v.held.Load()
	if _, err := v.db.current(ctx); err != nil { // also if that was why nothing is held
		return nil, err
	}
	if held == nil {
		return nil, kv.ErrTooOld
	}
	return *held, nil
}

// Bounds of what a scan copies at once. It holds nothing of the version while its
// loop runs, so that a slow one keeps no memory.
const (
	chunkPairs = 64
	chunkBytes = 1 << 20
)

// scan yields a range, one chunk after another.
func (v *view) scan(ctx context.Context, ks kv.Keyspace, r kv.Range, yield func(kv.Pair, error) bool) {
	for more := true; more; {
		var chunk []kv.Pair
		held, err := v.version(ctx)
		if err == nil {
			chunk, err = held.chunk(ks, &r)
		}
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		for _, pair := range chunk {
			if _, err := v.version(ctx); err != nil {
				yield(kv.Pair{}, err)
				return
			}
			if !yield(pair, nil) {
				return
			}
		}
		more = len(chunk) > 0 && r.Limit >= 0
	}
}

// chunk returns the first pairs of a range, none at its end, and takes them off it. A
// limit that is reached becomes negative.
func (v version) chunk(ks kv.Keyspace, r *kv.Range) ([]kv.Pair, error) {
	root, err := v.tree(ks)
	if err != nil {
		return nil, err
	}
	walk := root.ascend
	if r.Reverse {
		walk = root.descend
	}
	var chunk []kv.Pair
	size := 0
	walk(r.Start, r.End, func(n *node) bool {
		if kv.IsReserved(n.key) {
			return true
		}
		chunk = append(chunk, kv.Pair{Key: own(n.key), Value: own(n.value)})
		size += len(n.key) + len(n.value)
		if r.Reverse {
			r.End = n.key
		} else {
			r.Start = next(n.key)
		}
		if r.Limit--; r.Limit == 0 {
			r.Limit = -1
			return false
		} else if r.Limit < 0 {
			r.Limit = 0 // there is none
		}
		return len(chunk) < chunkPairs && size < chunkBytes
	})
	return chunk, nil
}

// snapshot reads one view.
type snapshot struct {
	view      atomic.Pointer[view] // nil once it is closed
	sequences []uint64             // of what it was opened with
}

func (s *snapshot) Sequences() []uint64 { return s.sequences }

func (s *snapshot) version(ctx context.Context) (version, error) {
	v := s.view.Load()
	if v == nil {
		return nil, kv.ErrClosed
	}
	return v.version(ctx)
}

func (s *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	v, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	return v.get(ks, keys)
}

func (s *snapshot) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		if v := s.view.Load(); v != nil {
			v.scan(ctx, ks, r, yield)
		} else {
			yield(kv.Pair{}, kv.ErrClosed)
		}
	}
}

func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	v, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	return v.sequences(refs)
}

// Close lets a scan that still runs end as it would have.
func (s *snapshot) Close() error {
	if v := s.view.Swap(nil); v != nil {
		v.close()
	}
	return nil
}
