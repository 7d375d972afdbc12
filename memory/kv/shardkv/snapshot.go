package shardkv

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// snapshot has a view of each store that something was read of.
type snapshot struct {
	db        *DB
	sequences []uint64 // of what it was opened with

	mu     sync.Mutex    // guards views and closed
	views  []kv.Snapshot // by store; nil before the first read
	along  []kv.Reads    // by store: what its view reads along; nil for nothing
	closed bool
}

// Snapshot is kv.Engine's: of the moment of the call in the stores of the refs, and of the
// first read in the others.
func (db *DB) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	return db.SnapshotWith(ctx, refs, kv.Reads{})
}

// SnapshotWith is kv.Far's.
func (db *DB) SnapshotWith(ctx context.Context, refs []kv.Ref, along kv.Reads) (kv.Snapshot, error) {
	s, err := db.later(ctx, along)
	if err != nil || len(refs) == 0 {
		return s, err
	}
	s.sequences, err = divide(refs, db.ofRef, func(store int, some []kv.Ref) ([]uint64, error) {
		view, err := kv.SnapshotWith(ctx, db.engines[store], some, s.foresee(store))
		if err != nil {
			return nil, err
		}
		s.views[store] = view
		return view.Sequences(), nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// SnapshotLater is kv.Far's.
func (db *DB) SnapshotLater(ctx context.Context, along kv.Reads) (kv.Snapshot, error) {
	return db.later(ctx, along)
}

func (db *DB) later(ctx context.Context, along kv.Reads) (*snapshot, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	return &snapshot{db: db, views: make([]kv.Snapshot, len(db.engines)), along: db.share(&along)}, nil
}

// share divides what will be read. A range over several tenants is not read along.
func (db *DB) share(along *kv.Reads) []kv.Reads {
	var shares []kv.Reads
	of := func(store int) *kv.Reads {
		if shares == nil {
			shares = make([]kv.Reads, len(db.engines))
		}
		return &shares[store]
	}
	for _, ks := range kv.Keyspaces() {
		for _, key := range along.Keys(ks) {
			of(db.of(key)).Get(ks, key)
		}
	}
	for _, r := range along.Ranges() {
		if store, one := db.within(r.Range); one {
			of(store).Scan(r.Keyspace, r.Range)
		}
	}
	for _, ref := range along.Refs() {
		of(db.ofRef(ref)).Sequence(ref)
	}
	return shares
}

func (s *snapshot) foresee(store int) kv.Foresight {
	if s.along == nil {
		return nil
	}
	return func(along *kv.Reads) { *along = s.along[store] }
}

// view is that of a store; the first read opens it.
func (s *snapshot) view(ctx context.Context, store int) (kv.Snapshot, error) {
	if store < 0 {
		store = s.db.m.system
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	if err := s.db.enter(ctx); err != nil {
		return nil, err
	}
	if s.views[store] == nil {
		view, err := s.open(ctx, store)
		if err != nil {
			return nil, err
		}
		s.views[store] = view
	}
	return s.views[store], nil
}

func (s *snapshot) open(ctx context.Context, store int) (kv.Snapshot, error) {
	far, ok := s.db.engines[store].(kv.Far)
	if !ok {
		return s.db.engines[store].Snapshot(ctx)
	}
	var along kv.Reads
	if s.along != nil {
		along = s.along[store]
	}
	return far.SnapshotLater(ctx, along) // one round trip with the read that opens it
}

// Sequences is kv.Snapshot's.
func (s *snapshot) Sequences() []uint64 { return s.sequences }

// Get is kv.Reader's.
func (s *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	return divide(keys, s.db.of, func(store int, some [][]byte) ([][]byte, error) {
		view, err := s.view(ctx, store)
		if err != nil {
			return nil, err
		}
		return view.Get(ctx, ks, some...)
	})
}

// Sequence is kv.Reader's.
func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	return divide(refs, s.db.ofRef, func(store int, some []kv.Ref) ([]uint64, error) {
		view, err := s.view(ctx, store)
		if err != nil {
			return nil, err
		}
		return view.Sequence(ctx, some...)
	})
}

// Scan is kv.Reader's.
func (s *snapshot) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return s.db.scan(r, func(store int, rest kv.Range) iter.Seq2[kv.Pair, error] {
		return func(yield func(kv.Pair, error) bool) {
			view, err := s.view(ctx, store)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			view.Scan(ctx, ks, rest)(yield)
		}
	})
}

// Close is kv.Snapshot's.
func (s *snapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, view := range s.views {
		if view != nil {
			errs = append(errs, view.Close())
		}
	}
	return errors.Join(errs...)
}
