package pgkv

import (
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Stats counts what a store did since it was opened.
type Stats struct {
	// Commits counts written commits, Conflicts commits that a guard refused, and Unknown
	// commits without an answer.
	Commits, Conflicts, Unknown uint64
	// Joins counts transactions; Commits/Joins is how well joining works.
	Joins uint64
	// CommitTime is how long the transactions took together, from the first byte sent.
	CommitTime time.Duration
	// Calls and Views are the connections for calls and commits, and for snapshots.
	Calls, Views Pool
}

// Pool is how a pool of connections is used.
type Pool struct {
	// InUse is how many are in use, Most how many there may be.
	InUse, Most int
	// Waits counts the waits for one, WaitTime is their total time.
	Waits    uint64
	WaitTime time.Duration
}

// counters are the figures of commits in Stats.
type counters struct {
	commits, conflicts, unknown, joins atomic.Uint64
	time                               atomic.Int64
}

// note counts a transaction that has its answer.
func (c *counters) note(join []*waiter, what verdict, err error, took time.Duration) {
	c.joins.Add(1)
	c.time.Add(int64(took))
	for _, w := range join {
		switch {
		case err != nil && what == unknown:
			c.unknown.Add(1)
		case err != nil:
		case w.err != nil:
			c.conflicts.Add(1)
		default:
			c.commits.Add(1)
		}
	}
}

// Stats returns the counts at this moment.
func (db *DB) Stats() Stats {
	return Stats{
		Commits: db.counts.commits.Load(), Conflicts: db.counts.conflicts.Load(), Unknown: db.counts.unknown.Load(),
		Joins: db.counts.joins.Load(), CommitTime: time.Duration(db.counts.time.Load()),
		Calls: poolOf(db.calls), Views: poolOf(db.views),
	}
}

func poolOf(p *pgxpool.Pool) Pool {
	s := p.Stat()
	return Pool{InUse: int(s.AcquiredConns()), Most: int(s.MaxConns()), Waits: uint64(s.EmptyAcquireCount()), WaitTime: s.EmptyAcquireWaitTime()} //nolint:gosec // counts
}

// Schema is the one that holds the store.
func (db *DB) Schema() string { return db.options.Schema }
