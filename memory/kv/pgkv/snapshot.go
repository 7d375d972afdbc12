package pgkv

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

// rollbackTimeout bounds the end of a view. What takes longer loses its connection.
const rollbackTimeout = 2 * time.Second

// snapshot is a view: a transaction on its own connection.
type snapshot struct {
	db        *DB
	sequences []uint64 // of what it was opened with
	open      lifetime.Holding
	expired   atomic.Bool           // it has become too old, and may be closed as well
	why       atomic.Pointer[error] // nothing can be read any more; nil while it can

	mu     sync.Mutex    // held while the connection is in use
	conn   *pgxpool.Conn // guarded by mu; nil once it is given back
	unread *reading      // guarded by mu; what the first read reads along; nil behind it
	known  known         // guarded by mu; what was read along
}

// Snapshot is kv.Engine's: a transaction is begun, and the sequences read, in one round
// trip.
func (db *DB) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	return db.SnapshotWith(ctx, refs, kv.Reads{})
}

// SnapshotWith is kv.Far's.
func (db *DB) SnapshotWith(ctx context.Context, refs []kv.Ref, along kv.Reads) (kv.Snapshot, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	s, now := &snapshot{db: db, unread: newReading(&along), sequences: make([]uint64, len(refs))}, time.Now()
	s.unread.refs = append(s.unread.refs, refs...)
	s.mu.Lock()
	err := s.begin(ctx)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i, ref := range refs {
		s.sequences[i] = s.known.sequences[ref]
	}
	db.open.Add(&s.open, now, now.Add(db.options.SnapshotLife), s.expire)
	return s, nil
}

// SnapshotLater is kv.Far's.
func (db *DB) SnapshotLater(ctx context.Context, along kv.Reads) (kv.Snapshot, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	s, now := &snapshot{db: db, unread: newReading(&along)}, time.Now()
	db.open.Add(&s.open, now, now.Add(db.options.SnapshotLife), s.expire)
	return s, nil
}

// expire ends all reading and gives the connection back.
func (s *snapshot) expire() {
	s.expired.Store(true)
	if why := kv.ErrTooOld; s.why.CompareAndSwap(nil, &why) {
		s.releaseBehind()
	}
}

// releaseBehind releases the view without waiting for its readers, unless the store is
// being closed: who does that waits for the connection.
func (s *snapshot) releaseBehind() {
	if !s.db.users.Enter() {
		s.release()
		return
	}
	go func() {
		defer s.db.users.Leave()
		s.release()
	}()
}

// release ends the transaction and gives the connection back.
func (s *snapshot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()
	_, _ = s.conn.Exec(ctx, rollback) // a connection that fails is not given out again
	s.conn.Release()
	s.conn = nil
}

// Sequences is kv.Snapshot's.
func (s *snapshot) Sequences() []uint64 { return s.sequences }

// Close is kv.Snapshot's. The connection is given back behind it, without a wait.
func (s *snapshot) Close() error {
	s.db.open.Remove(&s.open)
	closed := kv.ErrClosed
	if before := s.why.Swap(&closed); before != nil {
		return nil
	}
	if s.mu.TryLock() { // otherwise it is being read, and has a connection
		unread := s.unread != nil
		s.mu.Unlock()
		if unread {
			return nil
		}
	}
	s.releaseBehind()
	return nil
}

// read runs do on the view's connection, alone. The first one begins with what is read
// along, to which ask adds what do will look for.
func (s *snapshot) read(ctx context.Context, ask func(*reading), do func() error) error {
	if err := s.db.enter(ctx); err != nil {
		return err
	}
	defer s.db.users.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.why.Load(); why != nil {
		return *why
	}
	var err error
	if s.unread != nil {
		ask(s.unread)
		err = s.begin(ctx)
	}
	if err == nil {
		err = do()
	}
	if s.lost(err) {
		return errors.Join(kv.ErrTooOld, err) // another one may be had
	}
	return err
}

// Get is kv.Reader's.
func (s *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) (values [][]byte, err error) {
	err = s.read(ctx, func(r *reading) { r.get(ks, keys) }, func() (err error) {
		var known bool
		if values, known = s.known.get(ks, keys); !known {
			values, err = s.db.get(ctx, s.conn, ks, keys)
		}
		return err
	})
	return values, err
}

// Sequence is kv.Reader's.
func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) (sequences []uint64, err error) {
	err = s.read(ctx, func(r *reading) { r.refs = append(r.refs, refs...) }, func() (err error) {
		var known bool
		if sequences, known = s.known.sequencesOf(refs); !known {
			sequences, err = sequencesOf(s.db.lastCommits(ctx, s.conn, refs))
		}
		return err
	})
	return sequences, err
}

// Scan is kv.Reader's. It reads a page at a time, so that what runs inside the loop can
// use the connection. One that is too old says so also when it was closed since.
func (s *snapshot) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		rest, begun := r, s.why.Load() == nil
		for more := true; more; {
			var pairs []kv.Pair
			err := s.read(ctx, func(along *reading) { along.scan(ks, rest) }, func() (err error) {
				if page, known := s.known.page(ks, rest); known {
					pairs, more, rest = page.pairs, page.more, page.rest
					return nil
				}
				pairs, more, err = s.db.page(ctx, s.conn, ks, &rest)
				return err
			})
			if err != nil {
				if begun && s.expired.Load() && errors.Is(err, kv.ErrClosed) {
					err = kv.ErrTooOld
				}
				yield(kv.Pair{}, err)
				return
			}
			for _, pair := range pairs {
				if s.expired.Load() {
					yield(kv.Pair{}, kv.ErrTooOld)
					return
				}
				if !yield(pair, nil) {
					return
				}
			}
		}
	}
}
