package pgkv

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Statements of every keyspace, by its number.
type statements struct {
	get, getOne            string
	lock, put, remove      string
	drop                   string
	up, upTo, down, downTo string
	count, sample          string
}

// failed is the list of the commits of a join that loom_raise found to fail.
const failed = `(coalesce((SELECT nullif(current_setting('loom.failed', true), '')), '{}')::int4[])`

// forKeyspaces returns the statements of all keyspaces.
func forKeyspaces() []statements {
	all := make([]statements, len(kv.Keyspaces()))
	for _, ks := range kv.Keyspaces() {
		all[ks] = statements{
			get:    fmt.Sprintf(`SELECT key, value FROM %s WHERE key = ANY($1)`, ks),
			getOne: fmt.Sprintf(`SELECT key, value FROM %s WHERE key = $1`, ks),
			lock:   fmt.Sprintf(`SELECT 1 FROM %s WHERE key = ANY($1) ORDER BY key FOR UPDATE`, ks),
			put: fmt.Sprintf(`INSERT INTO %s (key, value) SELECT p.k, p.v FROM unnest($1::int4[], $2::bytea[], $3::bytea[]) AS p(c, k, v)`+
				` WHERE p.c <> ALL %s ON CONFLICT (key) DO UPDATE SET value = excluded.value`, ks, failed),
			remove: fmt.Sprintf(`DELETE FROM %s t USING unnest($1::int4[], $2::bytea[]) AS d(c, k)`+
				` WHERE t.key = d.k AND d.c <> ALL %s`, ks, failed),
			drop:   fmt.Sprintf(`DELETE FROM %s WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2)`, ks),
			up:     page(ks, `key >= $1`, `key`),
			upTo:   page(ks, `key >= $1 AND key < $4`, `key`),
			down:   page(ks, `key >= $1`, `key DESC`),
			downTo: page(ks, `key >= $1 AND key < $4`, `key DESC`),
			count: fmt.Sprintf(`SELECT count(*), coalesce(sum(size), 0)::int8 FROM (SELECT %s AS size FROM %s WHERE key >= $1`+
				` AND ($2::bytea IS NULL OR key < $2) ORDER BY key LIMIT $4) p`, fmt.Sprintf(pairSize, 3), ks),
			sample: fmt.Sprintf(`SELECT key, %s FROM %s TABLESAMPLE SYSTEM ($1) ORDER BY key`, fmt.Sprintf(pairSize, 2), ks),
		}
	}
	return all
}

// page selects the first $2 pairs of a range, and of those as many as have $3 bytes of
// values between them, the last one beyond that included.
func page(ks kv.Keyspace, where, order string) string {
	return fmt.Sprintf(`SELECT key, value FROM (SELECT key, value, sum(octet_length(value)::int8) OVER (ORDER BY %[3]s) - octet_length(value) AS before`+
		` FROM %[1]s WHERE %[2]s ORDER BY %[3]s LIMIT $2) p WHERE before < $3 ORDER BY %[3]s`, ks, where, order)
}

// pairSize is the size of a pair, of a value smaller than an argument.
const pairSize = `octet_length(key)::int8 + CASE WHEN octet_length(value) < $%d::int8 THEN octet_length(value) ELSE 0 END`

// ReadClock reads the server's clock.
const ReadClock = `SELECT clock_timestamp()`

const (
	tablePages    = `SELECT pg_relation_size(to_regclass($1)) / current_setting('block_size')::int8`
	readSequences = `SELECT g.i, q.n, q.token FROM unnest($1::int2[], $2::bytea[]) WITH ORDINALITY AS g(k, s, i)` +
		` JOIN sequences q ON q.keyspace = g.k AND q.scope = g.s`
	rawSequences  = `SELECT scope, n, token FROM sequences WHERE keyspace = $1 AND scope > $2 AND n <> 0 ORDER BY scope LIMIT $3`
	lastSequence  = `SELECT scope FROM sequences WHERE keyspace = $1 AND n <> 0 ORDER BY scope DESC LIMIT 1`
	fillSequences = `INSERT INTO sequences (keyspace, scope, n, token) SELECT $1, f.s, f.n, f.t FROM unnest($2::bytea[], $3::int8[], $4::int8[]) AS f(s, n, t)` +
		` ON CONFLICT (keyspace, scope) DO UPDATE SET n = excluded.n, token = excluded.token`
	raise     = `SELECT place, actual FROM loom_raise($1, $2, $3, $4, $5, $6, $7, $8)`
	watch     = `SELECT loom_watch($1, $2, $3, $4)`
	unsynced  = `SELECT set_config('synchronous_commit', 'off', true)`
	begin     = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	rollback  = `ROLLBACK`
	firstRead = `SELECT 1`
)
