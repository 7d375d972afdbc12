package pgkv

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

// rollbackTimeout bounds the end of a view. What takes longer loses its connection.
const rollbackTimeout = 2 * time.Second

// snapshot is a view: a transaction on a connection of its own.
type snapshot struct {
	db        *DB
	sequences []uint64 // of what it was opened with
	open      lifetime.Holding
	expired   atomic.Bool           // it has become too old, and may be closed as well
	why       atomic.Pointer[error] // nothing can be read any more; nil while it can

	mu    sync.Mutex    // held while the connection is in use
	conn  *pgxpool.Conn // guarded by mu; nil once it is given back
	later bool          // guarded by mu; nothing was read yet, and there is no connection
}

// Snapshot is kv.Engine's: a transaction is begun, and the sequences read, in one round
// trip.
func (db *DB) Snapshot(ctx context.Context, refs ...kv.Ref) (_ kv.Snapshot, err error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	keyspaces, scopes, err := columns(refs)
	if err != nil {
		return nil, err
	}
	conn, err := db.views.Acquire(ctx)
	if err != nil {
		return nil, db.reading(err)
	}
	s, now := &snapshot{db: db, conn: conn, sequences: make([]uint64, len(refs))}, time.Now()
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	batch := new(pgx.Batch)
	batch.Queue(begin)
	if len(refs) == 0 { // the first statement, not BEGIN, is what takes the moment
		batch.Queue(firstRead)
	} else {
		last := make([]kv.LastCommit, len(refs))
		batch.Queue(readSequences, keyspaces, scopes).Query(func(rows pgx.Rows) error {
			err := readLast(rows, last)
			for i := range last {
				s.sequences[i] = last[i].Sequence
			}
			return err
		})
	}
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, db.reading(err)
	}
	db.open.Add(&s.open, now, now.Add(db.options.SnapshotLife), s.expire)
	return s, nil
}

// SnapshotLater is kv.Deferrer's.
func (db *DB) SnapshotLater(ctx context.Context) (kv.Snapshot, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	s, now := &snapshot{db: db, later: true}, time.Now()
	db.open.Add(&s.open, now, now.Add(db.options.SnapshotLife), s.expire)
	return s, nil
}

// first begins the transaction of a view with its first statement, in one round trip.
type first struct{ conn *pgxpool.Conn }

func (f first) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	batch := new(pgx.Batch)
	batch.Queue(begin)
	batch.Queue(sql, args...)
	results := f.conn.SendBatch(ctx, batch)
	if _, err := results.Exec(); err != nil {
		return nil, errors.Join(err, results.Close())
	}
	rows, err := results.Query()
	if err != nil {
		return nil, errors.Join(err, results.Close())
	}
	return firstRows{rows, results}, nil
}

// firstRows are rows of a batch, which ends with them.
type firstRows struct {
	pgx.Rows
	results pgx.BatchResults
}

func (r firstRows) Close() {
	r.Rows.Close()
	_ = r.results.Close() // an error of the rows is theirs
}

// expire lets nobody read any more and gives the connection back.
func (s *snapshot) expire() {
	s.expired.Store(true)
	if why := kv.ErrTooOld; s.why.CompareAndSwap(nil, &why) {
		s.release()
	}
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

// Close is kv.Snapshot's. The connection is given back behind it, so that nobody waits.
func (s *snapshot) Close() error {
	s.db.open.Remove(&s.open)
	closed := kv.ErrClosed
	if before := s.why.Swap(&closed); before != nil {
		return nil
	}
	if s.mu.TryLock() { // otherwise it is being read, and has a connection
		unread := s.later
		s.mu.Unlock()
		if unread {
			return nil
		}
	}
	if !s.db.users.Enter() { // who closes the store waits for the connection
		s.release()
		return nil
	}
	go func() {
		defer s.db.users.Leave()
		s.release()
	}()
	return nil
}

// read runs do on the view's connection, alone.
func (s *snapshot) read(ctx context.Context, do func(from querier) error) error {
	if err := s.db.enter(ctx); err != nil {
		return err
	}
	defer s.db.users.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.why.Load(); why != nil {
		return *why
	}
	from := querier(s.conn)
	if s.later {
		conn, err := s.db.views.Acquire(ctx)
		if err != nil {
			return s.db.reading(err)
		}
		s.conn, s.later, from = conn, false, first{conn}
	}
	err := do(from)
	if errors.Is(err, kv.ErrUnreachable) && s.conn.Conn().IsClosed() {
		return errors.Join(kv.ErrTooOld, err) // another one may be had
	}
	return err
}

// Get is kv.Reader's.
func (s *snapshot) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) (values [][]byte, err error) {
	err = s.read(ctx, func(from querier) error {
		values, err = s.db.get(ctx, from, ks, keys)
		return err
	})
	return values, err
}

// Sequence is kv.Reader's.
func (s *snapshot) Sequence(ctx context.Context, refs ...kv.Ref) (sequences []uint64, err error) {
	err = s.read(ctx, func(from querier) error {
		sequences, err = sequencesOf(s.db.lastCommits(ctx, from, refs))
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
			err := s.read(ctx, func(from querier) (err error) {
				pairs, more, err = s.db.page(ctx, from, ks, &rest)
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
