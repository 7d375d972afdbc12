//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

// snapshot reads the database as it was. Every read counts as a user of the DB, and
// of the snapshot while it needs what RocksDB holds for that. A scan has its own iterator,
// which outlives the snapshot.
type snapshot struct {
	db     *DB
	view   view
	entry  lifetime.Holding
	closed atomic.Bool // by Close, not by its age
	users  lifetime.Users
	// sequences are the sequences of the refs that it was opened with.
	sequences []uint64

	mu sync.Mutex // guards known
	// known are the sequences that were asked for, which stay what they are here.
	known []knownSequence
}

// maxKnownSequences bounds the refs whose sequence a snapshot remembers.
const maxKnownSequences = 8

type knownSequence struct {
	ref    kv.Ref
	number uint64
}

// Snapshot is kv.Engine's. While it is open, RocksDB keeps what it sees, so
// close it soon.
func (db *DB) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	return db.snapshot(ctx, refs, false)
}

// Sweep is kv.Sweeper's.
func (db *DB) Sweep(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	return db.snapshot(ctx, refs, true)
}

func (db *DB) snapshot(ctx context.Context, refs []kv.Ref, sweeping bool) (kv.Snapshot, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	s := &snapshot{db: db, view: db.latest}
	s.view.moment = db.recent.Now()
	s.users.Release = s.release
	s.view.at = db.rocks.NewSnapshot()
	s.view.reads = grocksdb.NewDefaultReadOptions()
	s.view.reads.SetSnapshot(s.view.at)
	s.view.sweeping = sweeping
	s.view.reads.SetFillCache(!sweeping)
	var err error
	if s.sequences, err = s.view.sequences(refs); err != nil {
		s.release()
		return nil, err
	}
	now := time.Now()
	db.open.Add(&s.entry, now, now.Add(db.life), func() { s.users.Close() })
	return s, nil
}

// Sequences is kv.Snapshot's.
func (s *snapshot) Sequences() []uint64 { return s.sequences }

// release lets go of what RocksDB holds for the snapshot. Nobody reads it any more.
func (s *snapshot) release() {
	s.db.open.Remove(&s.entry)
	s.view.reads.Destroy()
	s.view.rocks.ReleaseSnapshot(s.view.at)
}

func (s *snapshot) enter(ctx context.Context) error {
	if err := s.db.enter(ctx); err != nil {
		return err
	}
	if s.users.Enter() {
		return nil
	}
	s.db.users.Leave()
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return kv.ErrTooOld
}

// leave leaves the snapshot first: the DB must outlive the release.
func (s *snapshot) leave() {
	s.users.Leave()
	s.db.users.Leave()
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
		c, err := s.view.cursor(ks, r, time.Time{}, s.entry.Until())
		s.users.Leave()
		defer s.db.users.Leave()
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		if tooOld := c.run(ctx, yield); tooOld {
			yield(kv.Pair{}, kv.ErrTooOld)
		}
	}
}

func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers := make([]uint64, len(refs))
	for i, ref := range refs {
		at := slices.IndexFunc(s.known, func(k knownSequence) bool { return k.ref == ref })
		if at >= 0 {
			numbers[i] = s.known[at].number
			continue
		}
		read, err := s.view.sequences(refs[i : i+1])
		if err != nil {
			return nil, err
		}
		if numbers[i] = read[0]; len(s.known) < maxKnownSequences {
			s.known = append(s.known, knownSequence{ref, read[0]})
		}
	}
	return numbers, nil
}

// Close returns at once; a scan that still runs ends as it would have.
func (s *snapshot) Close() error {
	s.closed.Store(true)
	if !s.db.users.Enter() {
		return nil // the DB has released it, or is about to
	}
	defer s.db.users.Leave()
	s.users.Close()
	return nil
}
