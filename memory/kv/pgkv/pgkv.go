package pgkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

var (
	_ kv.Engine       = (*DB)(nil)
	_ kv.Shared       = (*DB)(nil)
	_ kv.Far          = (*DB)(nil)
	_ kv.RangeDropper = (*DB)(nil)
	_ kv.Sizer        = (*DB)(nil)
	_ kv.Snapshot     = (*snapshot)(nil)
)

// DB is an open store. All methods are safe for concurrent use.
type DB struct {
	options  Options
	sql      []statements // by keyspace
	calls    *pgxpool.Pool
	views    *pgxpool.Pool
	joiner   *joiner
	notifier *notifier
	health   kv.Health
	counts   counters
	samples  samples
	origin   string // distinguishes this process's moves from others'

	holder *pgx.Conn // holds the store for this process until the keeper has it
	keeper *keeper   // nil unless this process holds the store
	epoch  int64     // zero unless this process holds the store
	fence  atomic.Pointer[fence]

	users   lifetime.Users
	drained chan struct{}     // closed when no user is let in any more and all have left
	open    lifetime.Holdings // of views
}

// querier is what reads: a pool, or the connection of a view.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (db *DB) enter(ctx context.Context) error {
	if !db.users.Enter() {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		db.users.Leave()
		return err
	}
	return nil
}

// Fence is kv.Shared's.
func (db *DB) Fence(key, value []byte) {
	if key == nil {
		db.fence.Store(nil)
		return
	}
	db.fence.Store(&fence{key, value})
}

// Time is kv.Shared's.
func (db *DB) Time(ctx context.Context) (now time.Time, err error) {
	if err := db.enter(ctx); err != nil {
		return now, err
	}
	defer db.users.Leave()
	return now, db.reading(db.calls.QueryRow(ctx, ReadClock).Scan(&now))
}

// Health is kv.Monitored's: it fails while no server answers commits.
func (db *DB) Health() *kv.Health { return &db.health }

// Get is kv.Reader's: all keys of one call are read at one moment.
func (db *DB) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	return db.get(ctx, db.calls, ks, keys)
}

func (db *DB) get(ctx context.Context, from querier, ks kv.Keyspace, keys [][]byte) ([][]byte, error) {
	if int(ks) >= len(db.sql) {
		return nil, fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ks)
	}
	values := make([][]byte, len(keys))
	if len(keys) == 0 {
		return values, nil
	}
	sql, arg := db.sql[ks].get, any(keys)
	if len(keys) == 1 {
		sql, arg = db.sql[ks].getOne, any(keys[0])
	}
	rows, err := from.Query(ctx, sql, arg)
	if err != nil {
		return nil, db.reading(err)
	}
	pairs, err := pgx.CollectRows(rows, toPair)
	if err != nil {
		return nil, db.reading(err)
	}
	if len(keys) == 1 {
		if len(pairs) == 1 {
			values[0] = pairs[0].Value
		}
		return values, nil
	}
	found := make(map[string][]byte, len(pairs))
	for _, p := range pairs {
		found[string(p.Key)] = p.Value
	}
	for i, key := range keys {
		value, ok := found[string(key)]
		if !ok {
			continue
		}
		if value == nil { // it was given already
			value = append([]byte{}, values[firstIndex(keys, key)]...)
		}
		values[i], found[string(key)] = value, nil
	}
	return values, nil
}

// firstIndex is where a key that is there stands first.
func firstIndex(keys [][]byte, key []byte) int {
	for i := range keys {
		if string(keys[i]) == string(key) {
			return i
		}
	}
	return -1
}

// toPair reads a row of key and value.
func toPair(row pgx.CollectableRow) (p kv.Pair, err error) {
	err = row.Scan(&p.Key, &p.Value)
	if p.Value == nil {
		p.Value = []byte{}
	}
	return p, err
}

// Sequence is kv.Reader's.
func (db *DB) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	return sequencesOf(db.lastCommits(ctx, db.calls, refs))
}

// LastCommits is kv.Engine's.
func (db *DB) LastCommits(ctx context.Context, refs ...kv.Ref) ([]kv.LastCommit, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	return db.lastCommits(ctx, db.calls, refs)
}

func (db *DB) lastCommits(ctx context.Context, from querier, refs []kv.Ref) ([]kv.LastCommit, error) {
	keyspaces, scopes, err := columns(refs)
	if err != nil {
		return nil, err
	}
	found := make([]kv.LastCommit, len(refs))
	if len(refs) == 0 {
		return found, nil
	}
	rows, err := from.Query(ctx, readSequences, keyspaces, scopes)
	if err != nil {
		return nil, db.reading(err)
	}
	if err := readLast(rows, found); err != nil {
		return nil, db.reading(err)
	}
	return found, nil
}

// columns returns the keyspaces and scopes of refs as the server takes them.
func columns(refs []kv.Ref) (keyspaces []int16, scopes [][]byte, err error) {
	keyspaces, scopes = make([]int16, len(refs)), make([][]byte, len(refs))
	for i, ref := range refs {
		if int(ref.Keyspace) >= len(kv.Keyspaces()) {
			return nil, nil, fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ref.Keyspace)
		}
		if err := ref.Scope.Validate(); err != nil {
			return nil, nil, err
		}
		keyspaces[i], scopes[i] = int16(ref.Keyspace), ref.Scope.AppendPrefix(nil)
	}
	return keyspaces, scopes, nil
}

// readLast reads the rows of readSequences.
func readLast(rows pgx.Rows, found []kv.LastCommit) error {
	var place, n, token int64
	_, err := pgx.ForEachRow(rows, []any{&place, &n, &token}, func() error {
		found[place-1] = kv.LastCommit{Sequence: uint64(n), Token: uint64(token)} //nolint:gosec // all bits are kept
		return nil
	})
	return err
}

func sequencesOf(last []kv.LastCommit, err error) ([]uint64, error) {
	if err != nil {
		return nil, err
	}
	sequences := make([]uint64, len(last))
	for i := range last {
		sequences[i] = last[i].Sequence
	}
	return sequences, nil
}

// Commit is kv.Engine's. It joins the commits that wait; a ctx that ends while it waits
// withdraws it, one that ends later does not.
func (db *DB) Commit(ctx context.Context, c kv.Commit) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if err := c.Check(); err != nil {
		return err
	}
	if db.options.ReadOnly {
		return kv.ErrReadOnly
	}
	if err := db.joiner.commit(ctx, c); err != nil {
		return err
	}
	if !db.options.Exclusive { // otherwise there is no process to notify
		db.notifier.announce(c.Guards)
	}
	return nil
}

// DropRange is kv.RangeDropper's. The server takes the room back later, by itself.
func (db *DB) DropRange(ctx context.Context, ks kv.Keyspace, r kv.Range) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if int(ks) >= len(db.sql) {
		return fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ks)
	}
	if db.options.ReadOnly {
		return kv.ErrReadOnly
	}
	_, err := db.calls.Exec(ctx, db.sql[ks].drop, from(r), r.End)
	return db.reading(err)
}

// from is where a range starts, as the server compares it.
func from(r kv.Range) []byte {
	if r.Start == nil {
		return []byte{}
	}
	return r.Start
}

// Scan is kv.Reader's. What fits into one page is read at once; a longer one holds a
// view.
func (db *DB) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return kv.ResumeScan(r, func(rest kv.Range) iter.Seq2[kv.Pair, error] {
		return func(yield func(kv.Pair, error) bool) {
			pairs, more, err := db.firstPage(ctx, ks, rest)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			if more {
				db.scanView(ctx, ks, rest, yield)
				return
			}
			for _, p := range pairs {
				if !yield(p, nil) {
					return
				}
			}
		}
	})
}

func (db *DB) firstPage(ctx context.Context, ks kv.Keyspace, r kv.Range) ([]kv.Pair, bool, error) {
	if err := db.enter(ctx); err != nil {
		return nil, false, err
	}
	defer db.users.Leave()
	return db.page(ctx, db.calls, ks, &r)
}

// scanView scans its own view.
func (db *DB) scanView(ctx context.Context, ks kv.Keyspace, r kv.Range, yield func(kv.Pair, error) bool) {
	s, err := db.Snapshot(ctx)
	if err != nil {
		yield(kv.Pair{}, err)
		return
	}
	defer s.Close()
	for pair, err := range s.Scan(ctx, ks, r) {
		if !yield(pair, err) {
			return
		}
	}
}

// Bounds of what a scan reads at once.
const (
	pagePairs = 512
	pageBytes = 1 << 20
)

// page reads the first pairs of a range, takes them off it, and reports whether there may
// be more.
func (db *DB) page(ctx context.Context, q querier, ks kv.Keyspace, r *kv.Range) (pairs []kv.Pair, more bool, err error) {
	if int(ks) >= len(db.sql) {
		return nil, false, fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ks)
	}
	sql, args, want := db.pageQuery(ks, *r)
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, false, db.reading(err)
	}
	if pairs, more, err = takePage(rows, want, r); err != nil {
		return nil, false, db.reading(err)
	}
	return pairs, more, nil
}

// pageQuery is the statement for the first pairs of a range, and how many they are at most.
func (db *DB) pageQuery(ks kv.Keyspace, r kv.Range) (sql string, args []any, want int) {
	sql, args = db.sql[ks].up, []any{from(r), 0, pageBytes}
	if r.Reverse {
		sql = db.sql[ks].down
	}
	if r.End != nil {
		sql, args = db.sql[ks].upTo, append(args, r.End)
		if r.Reverse {
			sql = db.sql[ks].downTo
		}
	}
	want = pagePairs
	if r.Limit > 0 {
		want = min(want, r.Limit)
	}
	args[1] = want
	return sql, args, want
}

// takePage reads the rows of pageQuery, takes them off the range, and reports whether there
// may be more.
func takePage(rows pgx.Rows, want int, r *kv.Range) (pairs []kv.Pair, more bool, err error) {
	if pairs, err = pgx.CollectRows(rows, toPair); err != nil {
		return nil, false, err
	}
	if len(pairs) == 0 {
		return nil, false, nil
	}
	size := 0
	for _, p := range pairs {
		size += len(p.Value)
	}
	last := pairs[len(pairs)-1].Key
	if r.Reverse {
		r.End = last
	} else {
		r.Start = append(last[:len(last):len(last)], 0)
	}
	if r.Limit > 0 {
		if r.Limit -= len(pairs); r.Limit == 0 {
			return pairs, false, nil
		}
	}
	return pairs, len(pairs) == want || size >= pageBytes, nil
}

// Close is kv.Engine's. Snapshots still open are released with it.
func (db *DB) Close() error {
	if !db.users.Close() {
		return kv.ErrClosed
	}
	<-db.drained
	return db.release()
}

// release closes the open connections and pools.
func (db *DB) release() (err error) {
	db.open.Close()
	if db.notifier != nil {
		db.notifier.close()
	}
	if db.keeper != nil {
		db.keeper.close()
	}
	if db.calls != nil {
		db.calls.Close()
	}
	if db.views != nil {
		db.views.Close()
	}
	if db.holder != nil {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		err = db.holder.Close(ctx)
	}
	return err
}

// noteFailure keeps why no commit succeeds.
func (db *DB) noteFailure(err error) {
	if errors.Is(err, kv.ErrFailed) || errors.Is(err, kv.ErrFenced) || errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrUnreachable) {
		db.health.Fail(err)
	}
}
