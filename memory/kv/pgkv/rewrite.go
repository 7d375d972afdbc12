package pgkv

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Bounds of what Rewrite writes at once.
const (
	rewriteBytes = 1 << 20
	rewritePairs = 2000
)

// besideSuffix ends the schema that a store is rewritten into.
const besideSuffix = "_rewritten"

// maxSchemaBytes bounds a name in PostgreSQL.
const maxSchemaBytes = 63

// Each calls see for each entry of a store that no other process has open, sequences included,
// in the order of keyspaces and keys.
func (db *DB) Each(ctx context.Context, see func(ks kv.Keyspace, p kv.Pair) error) error {
	for _, ks := range kv.Keyspaces() {
		for pair, err := range db.Raw(ctx, ks, nil) {
			if err == nil {
				err = see(ks, pair)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Rewrite copies a store that is open for reading alone, and that no other process has open,
// entry by entry into tables of a second schema. change says of each entry, in the order of
// keyspaces and keys, which value it gets and whether it is copied at all; more writes what
// else the copy gets. Then the tables change places in one transaction, and the old ones are
// dropped. before is called right before that. Killed at any moment it leaves the old store
// or the new one, and perhaps the second schema, which the next call removes.
func (db *DB) Rewrite(ctx context.Context, change func(kv.Keyspace, kv.Pair) ([]byte, bool, error), more func(to kv.Engine) error, before func() error) (err error) {
	if !db.options.Exclusive || !db.options.ReadOnly {
		return errChanging
	}
	beside := db.options.Schema + besideSuffix
	if len(beside) > maxSchemaBytes {
		return fmt.Errorf("rewrite: the schema name %s exceeds %d bytes: no room for the suffix of a second schema", db.options.Schema, maxSchemaBytes-len(besideSuffix))
	}
	fill := "rewriting of " + db.options.Schema
	if err := db.dropBeside(ctx, beside, fill); err != nil {
		return err
	}
	to, err := Open(ctx, db.calls.Config().ConnString(), &Options{Schema: beside, Fill: fill, Logger: db.options.Logger})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the next call looks for what is left where this fails
			_ = db.dropBeside(context.WithoutCancel(ctx), beside, fill)
		}
	}()
	err = db.copyTo(ctx, to, change)
	if err == nil {
		err = more(to)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("rewrite store %s: %w", db.options.Schema, err)
	}
	if condition, _ := db.health.Condition(); condition.Failed != nil {
		return fmt.Errorf("rewrite: the store may have been changed meanwhile: %w", condition.Failed)
	}
	if err := before(); err != nil {
		return err
	}
	return db.exchange(ctx, beside)
}

func (db *DB) copyTo(ctx context.Context, to *DB, change func(kv.Keyspace, kv.Pair) ([]byte, bool, error)) error {
	for _, ks := range kv.Keyspaces() {
		var pairs []kv.Pair
		size := 0
		flush := func() error {
			err := to.Fill(ctx, ks, pairs)
			pairs, size = pairs[:0], 0
			return err
		}
		for pair, err := range db.Raw(ctx, ks, nil) {
			if err != nil {
				return err
			}
			value, keep, err := change(ks, pair)
			if err != nil {
				return err
			}
			if !keep {
				continue
			}
			if value == nil {
				value = []byte{}
			}
			pairs = append(pairs, kv.Pair{Key: pair.Key, Value: value})
			if size += len(pair.Key) + len(value); size >= rewriteBytes || len(pairs) >= rewritePairs {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		if len(pairs) > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropBeside removes what a rewriting has left. A schema of that name which is anything else
// is a kv.ErrOccupied.
func (db *DB) dropBeside(ctx context.Context, beside, fill string) error {
	name := pgx.Identifier{beside}.Sanitize()
	return pgx.BeginTxFunc(ctx, db.calls, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		var schema, store bool
		if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL`, name, name+".meta").Scan(&schema, &store); err != nil || !schema {
			return db.reading(err)
		}
		state := ""
		if store {
			err := tx.QueryRow(ctx, `SELECT value FROM `+name+`.meta WHERE name = $1`, stateRow).Scan(&state)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return db.reading(err)
			}
		}
		if state != stateFilling+strconv.Quote(fill) {
			return fmt.Errorf("%w: the schema %s is no rewriting of this store; rename it or drop it", kv.ErrOccupied, beside)
		}
		_, err := tx.Exec(ctx, `DROP SCHEMA `+name+` CASCADE`)
		return db.reading(err)
	})
}

// exchange drops the store's tables and puts the copied tables in their place. Functions and
// meta stay; a process that had the store before is refused by the epoch.
func (db *DB) exchange(ctx context.Context, beside string) error {
	here, there := pgx.Identifier{db.options.Schema}.Sanitize(), pgx.Identifier{beside}.Sanitize()
	err := pgx.BeginTxFunc(ctx, db.calls, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		for _, table := range append(kv.Keyspaces(), kv.WholeStore) {
			name := pgx.Identifier{table.String()}.Sanitize()
			if table == kv.WholeStore {
				name = "sequences"
			}
			for _, step := range []string{"DROP TABLE " + here + "." + name, "ALTER TABLE " + there + "." + name + " SET SCHEMA " + here} {
				if _, err := tx.Exec(ctx, step); err != nil {
					return fmt.Errorf("%s: %w", step, err)
				}
			}
		}
		for _, step := range []string{"DROP SCHEMA " + there + " CASCADE", "UPDATE " + here + ".meta SET value = (value::int8 + 1)::text WHERE name = 'epoch'"} {
			if _, err := tx.Exec(ctx, step); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put the new tables in the place of the old ones: %w", err)
	}
	return nil
}
