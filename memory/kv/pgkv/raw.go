package pgkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A store into which another one is copied has a row "state" in the table meta until it is
// complete. Its value is this and the quoted name of the other one.
const (
	stateRow     = "state"
	stateFilling = "filling from "
)

// errChanging: a store is to be read from end to end that may change meanwhile.
var errChanging = errors.New("pgkv: the store is open for others, too")

// admits returns an error unless a store with that row "state" may be opened.
func admits(state, fill string) error {
	if fill == "" && state == "" {
		return nil
	}
	quoted, _ := strings.CutPrefix(state, stateFilling)
	switch from, err := strconv.Unquote(quoted); {
	case state == "":
		return kv.ErrOccupied
	case err != nil:
		return fmt.Errorf("%w: state %q", kv.ErrForeign, state)
	case from != fill:
		return fmt.Errorf("%w, %s: finish it with the same migrate command, or drop the schema", kv.ErrUnfinished, from)
	}
	return nil
}

// Raw is migration.Source's.
func (db *DB) Raw(ctx context.Context, ks kv.Keyspace, after []byte) iter.Seq2[kv.Pair, error] {
	if !db.options.Exclusive || !db.options.ReadOnly && db.options.Fill == "" {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, errChanging) }
	}
	r := kv.Range{}
	if after != nil {
		r.Start = append(append([]byte(nil), after...), 0)
	}
	return merge(db.rawPairs(ctx, ks, r), db.rawSequences(ctx, ks, after))
}

// rawPairs reads page by page, each at its own moment: the store does not change.
func (db *DB) rawPairs(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for more := true; more; {
			var pairs []kv.Pair
			err := db.enter(ctx)
			if err == nil {
				pairs, more, err = db.page(ctx, db.calls, ks, &r)
				db.users.Leave()
			}
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			for _, p := range pairs {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// rawSequences yields sequences in the form that they have in pairs.
func (db *DB) rawSequences(ctx context.Context, ks kv.Keyspace, after []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		var from []byte // the prefix of a scope whose sequence was yielded
		if after != nil {
			scope, _, err := kv.SplitKey(after)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			from = scope.AppendPrefix(nil)
		}
		for {
			pairs, err := db.sequencePage(ctx, ks, from)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			for _, p := range pairs {
				if !yield(p, nil) {
					return
				}
			}
			if len(pairs) < pagePairs {
				return
			}
			last := pairs[len(pairs)-1].Key
			from = last[:len(last)-1]
		}
	}
}

func (db *DB) sequencePage(ctx context.Context, ks kv.Keyspace, from []byte) ([]kv.Pair, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	if from == nil {
		from = []byte{}
	}
	rows, err := db.calls.Query(ctx, rawSequences, int16(ks), from, pagePairs)
	if err != nil {
		return nil, db.reading(err)
	}
	pairs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p kv.Pair, err error) {
		var n, token int64
		if err := row.Scan(&p.Key, &n, &token); err != nil {
			return p, err
		}
		p.Key = append(p.Key, 0)
		p.Value = binary.BigEndian.AppendUint64(nil, uint64(n)) //nolint:gosec // all bits are kept
		if token != 0 {
			p.Value = binary.BigEndian.AppendUint64(p.Value, uint64(token)) //nolint:gosec // all bits are kept
		}
		return p, nil
	})
	return pairs, db.reading(err)
}

// Last is migration.Target's.
func (db *DB) Last(ctx context.Context, ks kv.Keyspace) ([]byte, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	pairs, _, err := db.page(ctx, db.calls, ks, &kv.Range{Reverse: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	var sequence, last []byte
	if len(pairs) == 1 {
		last = pairs[0].Key
	}
	err = db.calls.QueryRow(ctx, lastSequence, int16(ks)).Scan(&sequence)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return nil, db.reading(err)
	case string(sequence)+"\x00" > string(last):
		last = append(sequence, 0)
	}
	return last, nil
}

// Fill is migration.Target's.
func (db *DB) Fill(ctx context.Context, ks kv.Keyspace, pairs []kv.Pair) error {
	var put []write
	var scopes [][]byte
	var numbers, tokens []int64
	for _, p := range pairs {
		if !kv.IsReserved(p.Key) {
			put = append(put, write{1, kv.Op{Keyspace: ks, Key: p.Key, Value: p.Value}})
			continue
		}
		if len(p.Value) != 8 && len(p.Value) != 16 {
			return fmt.Errorf("%w: sequence of %d bytes", kv.ErrDamaged, len(p.Value))
		}
		token := uint64(0)
		if len(p.Value) == 16 {
			token = binary.BigEndian.Uint64(p.Value[8:])
		}
		scopes = append(scopes, p.Key[:len(p.Key)-1])
		numbers = append(numbers, int64(binary.BigEndian.Uint64(p.Value))) //nolint:gosec // all bits are kept
		tokens = append(tokens, int64(token))                              //nolint:gosec // all bits are kept
	}
	batch := new(pgx.Batch)
	if len(put) > 0 {
		batch.Queue(db.sql[ks].put, numbersOf(put), keysOf(put), valuesOf(put))
	}
	if len(scopes) > 0 {
		batch.Queue(fillSequences, int16(ks), scopes, numbers, tokens)
	}
	return db.changeRaw(ctx, batch)
}

// Clear is migration.Target's.
func (db *DB) Clear(ctx context.Context, ks kv.Keyspace) error {
	batch := new(pgx.Batch)
	batch.Queue(db.sql[ks].drop, []byte{}, nil)
	batch.Queue(`DELETE FROM sequences WHERE keyspace = $1`, int16(ks))
	return db.changeRaw(ctx, batch)
}

// Finish is migration.Target's. The caller closes the store next.
func (db *DB) Finish(ctx context.Context) error {
	batch := new(pgx.Batch)
	batch.Queue(`DELETE FROM meta WHERE name = $1`, stateRow)
	return db.changeRaw(ctx, batch)
}

// changeRaw writes to a store that is being filled, in one transaction.
func (db *DB) changeRaw(ctx context.Context, batch *pgx.Batch) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if db.options.Fill == "" {
		return kv.ErrReadOnly
	}
	return db.reading(db.calls.SendBatch(ctx, batch).Close())
}

// merge yields the pairs of two streams that are in the order of their keys in that order.
func merge(a, b iter.Seq2[kv.Pair, error]) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		other, err, more := next()
		for pair, failed := range a {
			if failed != nil {
				yield(kv.Pair{}, failed)
				return
			}
			for more && (err != nil || bytes.Compare(other.Key, pair.Key) < 0) {
				if !yield(other, err) || err != nil {
					return
				}
				other, err, more = next()
			}
			if !yield(pair, nil) {
				return
			}
		}
		for more {
			if !yield(other, err) || err != nil {
				return
			}
			other, err, more = next()
		}
	}
}
