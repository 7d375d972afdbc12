package pgkv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// keepEvery is the time between two looks at the session that holds a store.
	keepEvery = 500 * time.Millisecond
	// keepTimeout is how long such a look may take.
	keepTimeout = 5 * time.Second
)

// dead lets a server end a session, and with it the hold on a store, soon after the machine
// that had it has gone without a word. The end of a process is noticed at once.
var dead = []string{`SET tcp_keepalives_idle = 5`, `SET tcp_keepalives_interval = 2`, `SET tcp_keepalives_count = 3`}

// hold makes a session one that has the store, alone or with others, for as long as it
// lives.
func (db *DB) hold(ctx context.Context, conn *pgx.Conn) error {
	take := `SELECT pg_try_advisory_lock($1)`
	if db.options.Shared {
		take = `SELECT pg_try_advisory_lock_shared($1)`
	}
	var free bool
	if err := conn.QueryRow(ctx, take, db.lockNumber("holder")).Scan(&free); err != nil {
		return db.reading(err)
	}
	if !free {
		return fmt.Errorf("%w: %s", kv.ErrLocked, db.holderName(ctx, conn))
	}
	for _, setting := range dead { // harmless where the system has no such thing
		if _, err := conn.Exec(ctx, setting); err != nil {
			return db.reading(err)
		}
	}
	return nil
}

// holderName is what the server says of the session that has the store.
func (db *DB) holderName(ctx context.Context, conn *pgx.Conn) string {
	var name, place, since string
	err := conn.QueryRow(ctx, `SELECT coalesce(a.application_name, ''), coalesce(host(a.client_addr), 'its own machine'), to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ')`+
		` FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1`+
		` AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`+
		` AND (l.classid::int8 << 32 | l.objid::int8) = $1`, db.lockNumber("holder")).Scan(&name, &place, &since)
	if err != nil {
		return "the server does not say which"
	}
	return fmt.Sprintf("%q from %s, since %s", name, place, since)
}

// take makes this process hold the store for as long as conn lives. One that has it alone
// begins an epoch.
func (db *DB) take(ctx context.Context, conn *pgx.Conn) error {
	if err := db.hold(ctx, conn); err != nil {
		return err
	}
	begin := `UPDATE meta SET value = (value::int8 + 1)::text WHERE name = 'epoch' RETURNING value::int8`
	if db.options.Shared {
		begin = `UPDATE meta SET value = greatest(value::int8, 1)::text WHERE name = 'epoch' RETURNING value::int8`
	}
	err := conn.QueryRow(ctx, begin).Scan(&db.epoch)
	if err != nil {
		return db.reading(err)
	}
	db.holder = conn
	return nil
}

// holdUnchanged makes this process the only one that has the store, for as long as conn
// lives, and writes nothing.
func (db *DB) holdUnchanged(ctx context.Context, conn *pgx.Conn) error {
	if err := db.hold(ctx, conn); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, `SELECT value::int8 FROM meta WHERE name = 'epoch'`).Scan(&db.epoch); err != nil {
		return db.reading(err)
	}
	db.holder = conn
	return nil
}

// errTaken: the store was opened by another process while this one had lost it.
var errTaken = fmt.Errorf("%w: another process has opened it for itself alone", kv.ErrFailed)

// errLet: a store that was to stay as it is was not held all the time.
var errLet = fmt.Errorf("%w: the session that kept others from it has ended", kv.ErrFailed)

// keeper watches the session that holds a store. While there is none, as while the server is
// away, it says so in the store's health; then it takes the store again, unless another
// process was faster.
type keeper struct {
	db     *DB
	config *pgx.ConnConfig
	conn   *pgx.Conn // nil while there is none
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func startKeeper(db *DB, conn *pgx.Conn, config *pgx.ConnConfig) *keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeper{db: db, config: config, conn: conn, stop: stop}
	k.done.Go(func() { k.run(ctx) })
	return k
}

func (k *keeper) close() {
	k.stop()
	k.done.Wait()
}

func (k *keeper) run(ctx context.Context) {
	defer k.leave()
	for kv.Sleep(ctx, keepEvery) {
		err := k.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, kv.ErrFailed):
			k.db.health.Fail(err)
			return
		case err != nil:
			k.leave()
			k.db.health.Fail(err)
		default:
			// What a commit has met is for a commit to clear.
			if condition, _ := k.db.health.Condition(); errors.Is(condition.Failed, kv.ErrUnreachable) {
				k.db.health.Recover()
			}
		}
	}
}

// leave ends the session.
func (k *keeper) leave() {
	if k.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = k.conn.Close(ctx) // the server ends it, too
	k.conn = nil
}

// look fails unless the session lives, and can write; it makes a new one where there is
// none.
func (k *keeper) look(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if k.conn == nil && k.db.options.ReadOnly {
		return errLet
	}
	if k.conn == nil {
		if k.conn, err = pgx.ConnectConfig(ctx, k.config); err != nil {
			return k.unreached(err)
		}
		if err := k.db.hold(ctx, k.conn); err != nil {
			return k.unreached(err)
		}
	}
	var epoch int64
	var standby bool
	if err := k.conn.QueryRow(ctx, `SELECT value::int8, pg_is_in_recovery() FROM meta WHERE name = 'epoch'`).Scan(&epoch, &standby); err != nil {
		return k.unreached(err)
	}
	switch {
	case epoch != k.db.epoch:
		return errTaken
	case standby:
		return fmt.Errorf("%w: the server is a standby", kv.ErrUnreachable)
	}
	return nil
}

// unreached is an error of the session, which has no deadline of a caller's.
func (k *keeper) unreached(err error) error {
	if err = k.db.reading(err); errors.Is(err, kv.ErrUnreachable) {
		return err
	}
	return unreachable(err)
}
