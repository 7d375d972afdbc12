//go:build cgo && !norocksdb

package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
)

// cost is what a server of PostgreSQL has spent: time on the processor, and bytes of its log.
type cost struct {
	processor time.Duration
	log       int64
}

// gauge reads what a server has spent.
type gauge struct {
	conn   *pgx.Conn
	server *pgtest.Server
}

// read sums over the processes that live. What those spent that ended is missing.
func (g *gauge) read(ctx context.Context) (c cost, err error) {
	if err := g.conn.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8`).Scan(&c.log); err != nil {
		return c, err
	}
	text, err := os.ReadFile(filepath.Join(g.server.Folder(), "postmaster.pid"))
	if err != nil {
		return c, err
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return c, err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil { // it has ended
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) < 2 || fields[1] != postmaster { // state, parent, …
			continue
		}
		spent, err := os.ReadFile(filepath.Join(filepath.Dir(path), "schedstat")) // nanoseconds first
		if err != nil {
			continue
		}
		nanoseconds, _, _ := strings.Cut(string(spent), " ")
		n, err := strconv.ParseInt(nanoseconds, 10, 64)
		if err != nil {
			return c, fmt.Errorf("bench: %s: %w", path, err)
		}
		c.processor += time.Duration(n)
	}
	return c, nil
}
