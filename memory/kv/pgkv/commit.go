package pgkv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// write is one change of a join, the last one of its key.
type write struct {
	number int32 // of its commit in the join
	kv.Op
}

// guards are the exact guards of a join, in the order of their refs: one column for each
// argument of loom_raise.
type guards struct {
	of        []guard
	numbers   []int32
	keyspaces []int16
	scopes    [][]byte
	expected  []int64
	tokens    []int64
}

// guard is where an exact guard stands.
type guard struct {
	number int // of its commit in the join
	place  int // among the guards of its commit
}

// writeJoin writes a join in one transaction and one round trip. It gives each waiter
// whose guards do not hold its conflict; an error is that of all.
func (db *DB) writeJoin(join []*waiter) error {
	ctx, cancel := context.WithTimeout(context.Background(), db.options.CommitTimeout)
	defer cancel()
	conn, err := db.calls.Acquire(ctx)
	if err != nil {
		return unsentError{err}
	}
	defer conn.Release()
	batch, conflicts := new(pgx.Batch), make([]*kv.ConflictError, len(join))
	if lazy(join) {
		batch.Queue(unsynced)
	}
	db.queueGuards(batch, join, conflicts, db.fenceOf(join))
	queueWatched(batch, join[0].commit.Watched)
	db.queueWrites(batch, join)
	if batch.Len() == 0 {
		return nil
	}
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		if state, ok := errors.AsType[*pgconn.PgError](err); ok && state.Code == stateWatched {
			join[0].err = watchedConflict(join[0].commit, state)
			return nil
		}
		if ctx.Err() != nil {
			// The server may have been fenced: its connections would hang one by one.
			db.calls.Reset()
			db.views.Reset()
		}
		return err
	}
	for i, w := range join {
		if w.err = nil; conflicts[i] != nil {
			w.err = conflicts[i]
		}
	}
	return nil
}

// unsentError is one before anything was sent.
type unsentError struct{ error }

// SafeToRetry says so to pgconn.
func (unsentError) SafeToRetry() bool { return true }

func (e unsentError) Unwrap() error { return e.error }

// lazy reports whether no commit of a join waits for the disk.
func lazy(join []*waiter) bool {
	return !slices.ContainsFunc(join, func(w *waiter) bool { return !w.commit.Lazy })
}

// fence is a key of System, and what it must have.
type fence struct{ key, value []byte }

// fenceOf is the fence that a join goes through. One that goes through none goes alone.
func (db *DB) fenceOf(join []*waiter) fence {
	if by := db.fence.Load(); by != nil && !join[0].commit.Unfenced {
		return *by
	}
	return fence{}
}

// queueGuards raises the sequences of all exact guards.
func (db *DB) queueGuards(batch *pgx.Batch, join []*waiter, conflicts []*kv.ConflictError, by fence) {
	g := exact(join)
	if len(g.of) == 0 && db.epoch == 0 && by.key == nil {
		return
	}
	batch.Queue(raise, db.epoch, by.key, by.value, g.numbers, g.keyspaces, g.scopes, g.expected, g.tokens).Query(func(rows pgx.Rows) error {
		var place, found int64
		_, err := pgx.ForEachRow(rows, []any{&place, &found}, func() error {
			at := g.of[place-1]
			failed := join[at.number].commit.Guards[at.place]
			// The first one of a commit, in the caller's order, is named.
			if before := conflicts[at.number]; before == nil || slices.Index(join[at.number].commit.Guards, before.Guard) > at.place {
				conflicts[at.number] = &kv.ConflictError{Guard: failed, Found: uint64(found)} //nolint:gosec // all bits are kept
			}
			return nil
		})
		return err
	})
}

func exact(join []*waiter) guards {
	var g guards
	prefixes := make(map[guard][]byte)
	for n, w := range join {
		for i, of := range w.commit.Guards {
			if !of.Any {
				g.of = append(g.of, guard{n, i})
				prefixes[guard{n, i}] = of.Scope.AppendPrefix(nil)
			}
		}
	}
	at := func(p guard) kv.Guard { return join[p.number].commit.Guards[p.place] }
	slices.SortFunc(g.of, func(a, b guard) int {
		return cmp.Or(cmp.Compare(at(a).Keyspace, at(b).Keyspace), bytes.Compare(prefixes[a], prefixes[b]))
	})
	for _, p := range g.of {
		g.numbers = append(g.numbers, int32(p.number)) //nolint:gosec // at most maxJoinCommits
		g.keyspaces = append(g.keyspaces, int16(at(p).Keyspace))
		g.scopes = append(g.scopes, prefixes[p])
		g.expected = append(g.expected, int64(at(p).Sequence))          //nolint:gosec // all bits are kept
		g.tokens = append(g.tokens, int64(join[p.number].commit.Token)) //nolint:gosec // all bits are kept
	}
	return g
}

// queueWatched compares the watched keys of a commit that goes alone.
func queueWatched(batch *pgx.Batch, watched []kv.Watch) {
	if len(watched) == 0 {
		return
	}
	places := make([]int32, len(watched))
	for i := range places {
		places[i] = int32(i) //nolint:gosec // far fewer, by their bytes
	}
	slices.SortStableFunc(places, func(a, b int32) int {
		return cmp.Or(cmp.Compare(watched[a].Keyspace, watched[b].Keyspace), bytes.Compare(watched[a].Key, watched[b].Key))
	})
	keyspaces := make([]string, len(places))
	keys, values := make([][]byte, len(places)), make([][]byte, len(places))
	for i, place := range places {
		w := watched[place]
		keyspaces[i], keys[i], values[i] = w.Keyspace.String(), w.Key, w.Value
	}
	batch.Queue(watch, places, keyspaces, keys, values)
}

// watchedConflict names the first watched key that loom_watch found changed.
func watchedConflict(c kv.Commit, state *pgconn.PgError) error {
	place, err := strconv.Atoi(state.Detail)
	if err != nil || place < 0 || place >= len(c.Watched) {
		return kv.ErrConflict
	}
	changed := c.Watched[place]
	return &kv.ConflictError{Key: string(changed.Key), Keyspace: changed.Keyspace}
}

// queueWrites writes what changes, keyspace by keyspace and in the order of the keys.
func (db *DB) queueWrites(batch *pgx.Batch, join []*waiter) {
	puts, removes := make([][]write, len(db.sql)), make([][]write, len(db.sql))
	for n, w := range join {
		if w.commit.Batch == nil {
			continue
		}
		for _, op := range lastOfEach(w.commit.Batch.Ops()) {
			to := puts
			if op.Delete {
				to = removes
			}
			to[op.Keyspace] = append(to[op.Keyspace], write{int32(n), op}) //nolint:gosec // at most maxJoinCommits
		}
	}
	for ks, sql := range db.sql {
		put, remove := puts[ks], removes[ks]
		if len(put) > 0 && len(remove) > 0 {
			// Two statements would take their rows in two orders.
			batch.Queue(sql.lock, keysOf(slices.Concat(put, remove)))
		}
		if len(put) > 0 {
			sortWrites(put)
			batch.Queue(sql.put, numbersOf(put), keysOf(put), valuesOf(put))
		}
		if len(remove) > 0 {
			sortWrites(remove)
			batch.Queue(sql.remove, numbersOf(remove), keysOf(remove))
		}
	}
}

// lastOfEach returns the last change of each key.
func lastOfEach(ops []kv.Op) []kv.Op {
	type place struct {
		ks  kv.Keyspace
		key string
	}
	last := make(map[place]int, len(ops))
	for i, op := range ops {
		last[place{op.Keyspace, string(op.Key)}] = i
	}
	if len(last) == len(ops) {
		return ops
	}
	left := make([]kv.Op, 0, len(last))
	for i, op := range ops {
		if last[place{op.Keyspace, string(op.Key)}] == i {
			left = append(left, op)
		}
	}
	return left
}

func sortWrites(all []write) {
	slices.SortFunc(all, func(a, b write) int { return bytes.Compare(a.Key, b.Key) })
}

func numbersOf(all []write) []int32 {
	numbers := make([]int32, len(all))
	for i := range all {
		numbers[i] = all[i].number
	}
	return numbers
}

func keysOf(all []write) [][]byte {
	keys := make([][]byte, len(all))
	for i := range all {
		keys[i] = all[i].Key
	}
	return keys
}

func valuesOf(all []write) [][]byte {
	values := make([][]byte, len(all))
	for i := range all {
		if values[i] = all[i].Value; values[i] == nil {
			values[i] = []byte{}
		}
	}
	return values
}
