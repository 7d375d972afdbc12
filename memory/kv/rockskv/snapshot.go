//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"iter"
	"sync"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// snapshot reads the database as it was. Every read enters the gate of the DB,
// then its own.
type snapshot struct {
	db   *DB
	view view
	gate gate
	once sync.Once
}

// Snapshot is kv.Engine's. While it is open, RocksDB keeps what it sees, so
// close it soon.
func (db *DB) Snapshot(ctx context.Context) (kv.Snapshot, error) { return db.snapshot(ctx, false) }

// Sweep is kv.Sweeper's.
func (db *DB) Sweep(ctx context.Context) (kv.Snapshot, error) { return db.snapshot(ctx, true) }

func (db *DB) snapshot(ctx context.Context, sweeping bool) (kv.Snapshot, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.gate.leave()
	s := &snapshot{db: db, view: db.latest}
	s.gate.release = s.forget
	s.view.at = db.rocks.NewSnapshot()
	s.view.reads = grocksdb.NewDefaultReadOptions()
	s.view.reads.SetSnapshot(s.view.at)
	s.view.sweeping = sweeping
	s.view.reads.SetFillCache(!sweeping)
	db.mu.Lock()
	defer db.mu.Unlock()
	db.snapshots[s] = struct{}{}
	return s, nil
}

// forget releases the snapshot while the DB is open.
func (s *snapshot) forget() {
	s.db.mu.Lock()
	delete(s.db.snapshots, s)
	s.db.mu.Unlock()
	s.free()
}

// free releases what RocksDB holds for the snapshot.
func (s *snapshot) free() {
	s.once.Do(func() {
		s.view.reads.Destroy()
		s.view.rocks.ReleaseSnapshot(s.view.at)
	})
}

func (s *snapshot) enter(ctx context.Context) error {
	if err := s.db.enter(ctx); err != nil {
		return err
	}
	if !s.gate.enter() {
		s.db.gate.leave()
		return kv.ErrClosed
	}
	return nil
}

// leave leaves the inner gate first: the DB must outlive the release.
func (s *snapshot) leave() {
	s.gate.leave()
	s.db.gate.leave()
}

func (s *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.view.get(ks, keys)
}

func (s *snapshot) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		if err := s.enter(ctx); err != nil {
			yield(kv.Pair{}, err)
			return
		}
		defer s.leave()
		s.view.scan(ctx, ks, r, yield)
	}
}

func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.view.sequences(refs)
}

// Close returns at once; a scan that still runs ends as it would have, and the
// last one out releases the snapshot.
func (s *snapshot) Close() error {
	if !s.db.gate.enter() {
		return nil // the DB has released it, or is about to
	}
	defer s.db.gate.leave()
	s.gate.shut()
	return nil
}
