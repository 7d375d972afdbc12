package pgkv

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Options configure Open. Zero fields mean the defaults.
type Options struct {
	// Schema holds the store's tables; it is made if it is not there. Default
	// DefaultSchema.
	Schema string
	// Connections bounds those for calls and commits. Default 16.
	Connections int
	// Views bounds the snapshots and long scans that are open at once; more wait.
	// Default 48.
	Views int
	// Lanes is how many joins are written at once. Default 2.
	Lanes int
	// Unsynced acknowledges commits before the server has them on disk. They survive
	// the end of this process, not that of the server.
	Unsynced bool
	// Exclusive refuses to open a store that another process holds (ErrLocked), and
	// refuses the commits of this one (ErrFailed) once another has opened it so.
	Exclusive bool
	// Shared holds the store together with others that open it so, but not with one that
	// has it exclusively; once another has, commits of this one are refused (ErrFailed).
	Shared bool
	// ReadOnly opens a store for reading only, even if another process has it open
	// exclusively. Its tables must exist; commits fail with kv.ErrReadOnly. With Exclusive,
	// no other process can have it open at the same time.
	ReadOnly bool
	// Fill, unless empty, is the name of another store that is to be copied into this one:
	// Open makes a store that no other process opens until Finish (kv.ErrUnfinished), or goes on
	// with one that was begun under that name. Where there is another store it is
	// kv.ErrOccupied. It is Exclusive.
	Fill string
	// CommitTimeout is how long a commit waits for the server's answer. Default 15 s.
	CommitTimeout time.Duration
	// SnapshotLife is how long a snapshot lives. Default kv.SnapshotLife.
	SnapshotLife time.Duration
	// Logger logs lost connections. Nil is silent.
	Logger *slog.Logger
}

// Defaults of Options.
const (
	DefaultSchema        = "loom_bridge"
	defaultConnections   = 16
	defaultViews         = 48
	defaultLanes         = 2
	defaultCommitTimeout = 15 * time.Second
)

// minVersion is the oldest server that is tested, as server_version_num has it.
const minVersion = 150000

// connectTimeout bounds how long one connection may take to be made.
const connectTimeout = 5 * time.Second

//go:embed schema.sql
var schema string

func (o *Options) withDefaults() Options {
	all := *cmp.Or(o, &Options{})
	all.Exclusive = all.Exclusive || all.Fill != ""
	all.Schema = cmp.Or(all.Schema, DefaultSchema)
	if all.Connections <= 0 {
		all.Connections = defaultConnections
	}
	if all.Views <= 0 {
		all.Views = defaultViews
	}
	if all.Lanes <= 0 {
		all.Lanes = defaultLanes
	}
	if all.CommitTimeout <= 0 {
		all.CommitTimeout = defaultCommitTimeout
	}
	if all.SnapshotLife <= 0 {
		all.SnapshotLife = kv.SnapshotLife
	}
	all.Logger = cmp.Or(all.Logger, slog.New(slog.DiscardHandler))
	return all
}

// Open opens the store behind an address of PostgreSQL, as libpq takes it
// (postgres://user:password@host/database), and makes its tables where they are missing.
// It fails with kv.ErrLocked, kv.ErrNewer or kv.ErrForeign, kv.ErrUnreachable where no
// server answers, or the server's own error.
func Open(ctx context.Context, address string, options *Options) (_ *DB, err error) {
	o := options.withDefaults()
	calls, err := poolConfig(address, o, o.Connections)
	if err != nil {
		return nil, err
	}
	views, err := poolConfig(address, o, o.Views)
	if err != nil {
		return nil, err
	}
	// A process that stands still must not keep the server from cleaning up for ever.
	views.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt((4 * o.SnapshotLife).Milliseconds(), 10)
	db := &DB{options: o, sql: forKeyspaces(), drained: make(chan struct{}), origin: newOrigin()}
	db.users.Release = func() { close(db.drained) }
	defer func() {
		if err != nil {
			err = errors.Join(err, db.release())
		}
	}()
	if err := db.prepare(ctx, calls.ConnConfig); err != nil {
		return nil, fmt.Errorf("open store %s of PostgreSQL: %w", o.Schema, err)
	}
	if db.calls, err = pgxpool.NewWithConfig(ctx, calls); err != nil {
		return nil, err
	}
	if db.views, err = pgxpool.NewWithConfig(ctx, views); err != nil {
		return nil, err
	}
	db.joiner = newJoiner(db, o.Lanes)
	db.notifier = newNotifier(db, calls.ConnConfig)
	if db.holder != nil {
		db.keeper = startKeeper(db, db.holder, calls.ConnConfig)
		db.holder = nil
	}
	return db, nil
}

// CheckAddress returns an error, without the password, unless address is one that Open
// takes.
func CheckAddress(address string) error {
	if _, err := pgx.ParseConfig(address); err != nil {
		return hidePassword(err)
	}
	return nil
}

// processName is how the server's list of sessions names this process.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("loom-bridge %.32s %d", host, os.Getpid())
}

// poolConfig is how connections of a pool are made.
func poolConfig(address string, o Options, most int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("address of PostgreSQL: %w", hidePassword(err))
	}
	config.MaxConns = int32(min(most, 1<<15)) //nolint:gosec // bounded
	config.MinIdleConns = 1
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	params := config.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = processName()
	}
	params["search_path"] = pgx.Identifier{o.Schema}.Sanitize()
	params["default_transaction_isolation"] = "read committed"
	// Every statement goes by keys. A plan that was made while a table was small must not
	// read all of it later.
	for _, off := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		params[off] = "off"
	}
	params["plan_cache_mode"] = "force_generic_plan"
	if o.Unsynced {
		params["synchronous_commit"] = "off"
	}
	if o.ReadOnly {
		params["default_transaction_read_only"] = "on"
	} else {
		config.ConnConfig.ValidateConnect = primaryOnly(config.ConnConfig.ValidateConnect)
	}
	return config, nil
}

// errStandby: what a standby has may be old, and it takes no commits.
var errStandby = errors.New("the server is a standby, or takes no writes; it is not used")

// primaryOnly refuses a connection to a standby, as servers report it of themselves, so that
// the next host of the address is tried. It costs no round trip. before is what the address
// itself asks for (target_session_attrs); nil for nothing.
func primaryOnly(before pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if conn.ParameterStatus("in_hot_standby") == "on" || conn.ParameterStatus("default_transaction_read_only") == "on" {
			return errStandby
		}
		if before == nil {
			return nil
		}
		return before(ctx, conn)
	}
}

// hidePassword returns an error of parsing without what it was made from.
func hidePassword(err error) error {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		if cause := errors.Unwrap(parse); cause != nil {
			return cause
		}
	}
	return errors.New("it can't be read; give postgres://user@host:5432/database")
}

// prepare checks the server, makes the tables and takes the store for this process.
func (db *DB) prepare(ctx context.Context, config *pgx.ConnConfig) (err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return db.reading(err)
	}
	defer func() {
		if db.holder != conn {
			err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}()
	var version int
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return db.reading(err)
	}
	if version < minVersion {
		return fmt.Errorf("%w: the server is PostgreSQL %d, and 15 is the oldest that will do", kv.ErrForeign, version/10000)
	}
	if db.options.ReadOnly {
		found, err := db.format(ctx, conn)
		if err == nil && found == 0 {
			err = fmt.Errorf("%w: there is no store", kv.ErrForeign)
		}
		if err != nil || !db.options.Exclusive {
			return err
		}
		return db.holdUnchanged(ctx, conn)
	}
	if err := db.migrate(ctx, conn); err != nil {
		return err
	}
	if !db.options.Exclusive && !db.options.Shared {
		return nil
	}
	return db.take(ctx, conn)
}

// migrate makes what is missing, or was made by another schema, unless the store has a newer
// format.
func (db *DB) migrate(ctx context.Context, conn *pgx.Conn) error {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(schema)))
	found, err := db.format(ctx, conn)
	if err != nil {
		return err
	}
	if found == kv.Format {
		var made string
		if err := conn.QueryRow(ctx, `SELECT value FROM meta WHERE name = 'schema'`).Scan(&made); err == nil && made == sum {
			return nil
		}
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, db.lockNumber("schema")); err != nil {
			return err
		}
		name := pgx.Identifier{db.options.Schema}.Sanitize()
		if _, err := tx.Exec(ctx, fmt.Sprintf(schema, name), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		made, err := tx.Exec(ctx, `INSERT INTO meta VALUES ('format', $1), ('epoch', '0') ON CONFLICT DO NOTHING`, strconv.Itoa(kv.Format))
		if err == nil { // a store of an earlier version is from now on of this one
			_, err = tx.Exec(ctx, `UPDATE meta SET value = $1 WHERE name = 'format' AND value::int < $2`, strconv.Itoa(kv.Format), kv.Format)
		}
		if err == nil && db.options.Fill != "" && made.RowsAffected() > 0 { // otherwise another process was faster
			_, err = tx.Exec(ctx, `INSERT INTO meta VALUES ($1, $2)`, stateRow, stateFilling+strconv.Quote(db.options.Fill))
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO meta VALUES ('schema', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, sum)
		return err
	})
	if err == nil {
		_, err = db.format(ctx, conn)
	}
	return err
}

// format returns the number of the store's format, zero if there is no store.
func (db *DB) format(ctx context.Context, conn *pgx.Conn) (int, error) {
	var there bool
	name := pgx.Identifier{db.options.Schema}.Sanitize()
	if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name+".meta").Scan(&there); err != nil || !there {
		return 0, db.reading(err)
	}
	var text, state string
	err := conn.QueryRow(ctx, `SELECT value, coalesce((SELECT value FROM meta WHERE name = $1), '') FROM meta WHERE name = 'format'`, stateRow).Scan(&text, &state)
	if err != nil {
		return 0, fmt.Errorf("%w: its table meta has no format: %w", kv.ErrForeign, err)
	}
	number, err := strconv.Atoi(text)
	switch {
	case err != nil || number <= 0:
		return 0, fmt.Errorf("%w: format %q", kv.ErrForeign, text)
	case number > kv.Format:
		return 0, fmt.Errorf("%w: format %d, this version reads up to %d", kv.ErrNewer, number, kv.Format)
	}
	return number, admits(state, db.options.Fill)
}

// lockNumber is the number of an advisory lock of this store.
func (db *DB) lockNumber(what string) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "loom-bridge\x00%s\x00%s", db.options.Schema, what)
	return int64(h.Sum64()) //nolint:gosec // all bits are wanted
}
