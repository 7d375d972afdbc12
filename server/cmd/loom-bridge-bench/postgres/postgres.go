//go:build cgo && !norocksdb

// Package postgres measures a store in PostgreSQL: commits against bare inserts of the same
// rows, saves and queries through the server against RocksDB, and the round trips of calls.
// All sides of a comparison are measured alternately in one run, and tables show the median
// of each and the median of the ratios of each round.
package postgres

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// Settings select the measurements and their duration.
type Settings struct {
	// Server is the program of the server, Dir an empty folder for stores in directories.
	Server, Dir string
	// Clients call at once, in Rounds of Length for each contestant.
	Clients, Rounds int
	Length          time.Duration
	// Out gets the tables.
	Out io.Writer

	spent *gauge
}

// What a commit of the tables writes.
const (
	commitKeys  = 20
	commitBytes = 300
)

// contestant is one side of an alternating measurement. Its calls are one client's.
type contestant struct {
	name string
	call func(ctx context.Context, client, n int) error
	// rates are calls a second of each round, times the medians of their calls. processor
	// and log are what PostgreSQL spent for one of them.
	rates, log       []float64
	times, processor []time.Duration
	next             []int // by client
}

// Tables starts a PostgreSQL and prints all tables.
func Tables(ctx context.Context, s Settings) error {
	server, stop, err := s.postgres(ctx, map[string]string{
		"fsync": "on", "shared_preload_libraries": "pg_stat_statements", "max_wal_size": "4GB", "shared_buffers": "512MB",
	})
	if err != nil {
		return err
	}
	defer stop()
	if err := s.commits(ctx, server.Address); err != nil {
		return err
	}
	if err := s.calls(ctx, server.Address); err != nil {
		return err
	}
	return s.trips(ctx, server.Address)
}

// postgres starts a PostgreSQL, whose work is counted until it is stopped.
func (s *Settings) postgres(ctx context.Context, settings map[string]string) (*pgtest.Server, func(), error) {
	server, err := pgtest.Start(settings)
	if err != nil {
		return nil, nil, err
	}
	conn, err := pgx.Connect(ctx, server.Address)
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	s.spent = &gauge{conn, server}
	return server, func() { _ = conn.Close(ctx); server.Stop() }, nil
}

// measure lets the contestants run in turns.
func (s Settings) measure(ctx context.Context, all []*contestant) error {
	for _, c := range all {
		c.next = make([]int, s.Clients)
		if err := s.round(ctx, c, s.Length/4, false); err != nil { // warms up
			return err
		}
	}
	for n := range s.Rounds {
		for i := range all { // another one begins each round
			if err := s.round(ctx, all[(i+n)%len(all)], s.Length, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s Settings) round(ctx context.Context, c *contestant, length time.Duration, counts bool) error {
	var all sync.WaitGroup
	var done atomic.Int64
	var mu sync.Mutex
	var times []time.Duration
	var failed error
	before, err := s.spent.read(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	for client := range s.Clients {
		all.Go(func() {
			var own []time.Duration
			var err error
			for err == nil && time.Since(begin) < length {
				from := time.Now()
				if err = c.call(ctx, client, c.next[client]); err == nil {
					own = append(own, time.Since(from))
					done.Add(1)
				}
				c.next[client]++
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			if failed == nil {
				failed = err
			}
		})
	}
	all.Wait()
	if failed != nil {
		return fmt.Errorf("bench: %s: %w", c.name, failed)
	}
	length = time.Since(begin)
	after, err := s.spent.read(ctx)
	if counts && done.Load() > 0 {
		c.rates = append(c.rates, float64(done.Load())/length.Seconds())
		c.times = append(c.times, median(times))
		c.processor = append(c.processor, (after.processor-before.processor)/time.Duration(done.Load()))
		c.log = append(c.log, float64(after.log-before.log)/float64(done.Load()))
	}
	if err != nil {
		return err
	}
	return nil
}

func median[T ~int64 | ~float64](of []T) (middle T) {
	if len(of) == 0 {
		return middle
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// show prints contestants, with the ratio of each to some of them round by round.
func (s Settings) show(title string, all []*contestant, beside ...int) error {
	table := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(s.Out, "\n%s: %d clients, %d rounds of %v in turns\n", title, s.Clients, s.Rounds, s.Length)
	fmt.Fprint(table, "\tcalls/s\tp50\tPostgreSQL's processor\tits log\t")
	for _, b := range beside {
		fmt.Fprintf(table, "of %s\t", all[b].name)
	}
	fmt.Fprintln(table)
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%.0f\t%.2f ms\t%d µs\t%.1f kB\t", c.name, median(c.rates), float64(median(c.times))/1e6, median(c.processor).Microseconds(), median(c.log)/1000)
		for _, b := range beside {
			ratios := make([]float64, len(c.rates))
			for i := range c.rates {
				ratios[i] = c.rates[i] / all[b].rates[i]
			}
			fmt.Fprintf(table, "%.2f\t", median(ratios))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// value is one of the values that commits write: text that compresses as texts do.
var value = func() []byte {
	v := make([]byte, commitBytes)
	for i := range v {
		v[i] = "etaoinshrdlu the of and"[(i*i+i/7)%23]
	}
	return v
}()

func keysOf(scope kv.Scope, n int) [][]byte {
	keys := make([][]byte, commitKeys)
	for i := range keys {
		keys[i] = scope.Key('k', fmt.Appendf(nil, "%08d.%02d", n, i))
	}
	return keys
}

// commit is the n-th of a client; it raises its scope's sequence, and names hot blindly.
func commit(client, n int, hot *kv.Ref) kv.Commit {
	ref := kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("bench", fmt.Sprint("agent-", client))}
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: uint64(n)}}, Batch: new(kv.Batch), Token: uint64(n + 1)} //nolint:gosec // small
	for _, key := range keysOf(ref.Scope, n) {
		c.Batch.Put(kv.Records, key, value)
	}
	if hot != nil {
		c.Guards = append(c.Guards, kv.Guard{Ref: *hot, Any: true})
		c.Batch.Put(hot.Keyspace, hot.Scope.Key('k', fmt.Appendf(nil, "%d.%d", client, n)), nil)
	}
	return c
}

// commits compares commits of the engine with bare inserts of the same rows.
func (s Settings) commits(ctx context.Context, address string) error {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return err
	}
	config.MaxConns = int32(s.Clients) //nolint:gosec // small
	bare, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer bare.Close()
	if _, err := bare.Exec(ctx, `CREATE TABLE bare (key bytea PRIMARY KEY, value bytea NOT NULL)`); err != nil {
		return err
	}
	all := []*contestant{{name: "bare inserts", call: func(ctx context.Context, client, n int) error {
		keys := keysOf(kv.AgentScope("bench", fmt.Sprint("agent-", client)), n)
		values := make([][]byte, len(keys))
		for i := range values {
			values[i] = value
		}
		_, err := bare.Exec(ctx, `INSERT INTO bare SELECT * FROM unnest($1::bytea[], $2::bytea[])`, keys, values)
		return err
	}}}
	for _, lanes := range []int{2, 4} {
		db, err := pgkv.Open(ctx, address, &pgkv.Options{Schema: fmt.Sprint("lanes_", lanes), Lanes: lanes})
		if err != nil {
			return err
		}
		defer db.Close()
		all = append(all, &contestant{name: fmt.Sprintf("joined, %d lanes", lanes), call: func(ctx context.Context, client, n int) error {
			return db.Commit(ctx, commit(client, n, nil))
		}})
	}
	db, err := pgkv.Open(ctx, address, &pgkv.Options{Schema: "hot"})
	if err != nil {
		return err
	}
	defer db.Close()
	hot := kv.Ref{Keyspace: kv.System, Scope: kv.Scope{Tenant: "bench", Kind: kv.OwnerSystem, Owner: "hot"}}
	all = append(all, &contestant{name: "joined, one hot ref", call: func(ctx context.Context, client, n int) error {
		return db.Commit(ctx, commit(client, n, &hot))
	}})
	rocks, err := rockskv.Open(filepath.Join(s.Dir, "commits"), nil)
	if err != nil {
		return err
	}
	defer rocks.Close()
	all = append(all, &contestant{name: "rockskv", call: func(ctx context.Context, client, n int) error {
		return rocks.Commit(ctx, commit(client, n, nil))
	}})
	if err := s.measure(ctx, all); err != nil {
		return err
	}
	return s.show(fmt.Sprintf("Commits of %d keys with %d bytes each", commitKeys, commitBytes), all, 0, 1, 4)
}
