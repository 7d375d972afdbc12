package shardkv_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv/shardkv"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shortLife lets snapshots grow old while a test waits.
const shortLife = time.Second

// named is an engine whose snapshots name a tenant of each store, so that they are of the
// moment of the call in all of them, as the suite wants.
type named struct{ *shardkv.DB }

// Divided is kvtest.Divided's.
func (named) Divided() {}

var named1, named2 = kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("tenant-2", "x")}, kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("acme", "x")}

func (n named) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	return n.SnapshotWith(ctx, refs, kv.Reads{})
}

func (n named) SnapshotWith(ctx context.Context, refs []kv.Ref, along kv.Reads) (kv.Snapshot, error) {
	s, err := n.DB.SnapshotWith(ctx, append(slices.Clone(refs), named1, named2), along)
	if err != nil {
		return nil, err
	}
	return &namedSnapshot{s, s.Sequences()[:len(refs)]}, nil
}

type namedSnapshot struct {
	kv.Snapshot
	sequences []uint64
}

func (s *namedSnapshot) Sequences() []uint64 { return s.sequences }

// inMemory are n processes over two stores in memory.
func inMemory(tb testing.TB, n int, opts *memkv.Options) (dbs []*shardkv.DB, stores [2][]*memkv.Peer) {
	m := mustParse(tb, mapOf)
	stores = [2][]*memkv.Peer{memkv.Peers(n, opts), memkv.Peers(n, opts)}
	for i := range n {
		dbs = append(dbs, shardkv.New(m, []kv.Shared{stores[0][i], stores[1][i]}))
	}
	return dbs, stores
}

func TestContract(t *testing.T) {
	kvtest.Run(t, func(tb testing.TB) kv.Engine {
		dbs, _ := inMemory(tb, 1, nil)
		return named{dbs[0]}
	})
}

func TestContractOfPair(t *testing.T) {
	kvtest.RunPair(t, func(tb testing.TB) (a, b kv.Engine) {
		dbs, _ := inMemory(tb, 2, nil)
		return named{dbs[0]}, named{dbs[1]}
	})
}

// onPostgres opens two schemas of one server.
func onPostgres(tb testing.TB, o pgkv.Options, schemas ...string) *shardkv.DB {
	tb.Helper()
	address := pgtest.Address(tb)
	var engines []kv.Shared
	for i := range 2 {
		if len(schemas) == i {
			schemas = append(schemas, pgtest.Schema(tb, address))
		}
		o.Schema = schemas[i]
		db, err := pgkv.Open(context.Background(), address, &o)
		if err != nil {
			tb.Fatal(err)
		}
		engines = append(engines, db)
	}
	return shardkv.New(mustParse(tb, mapOf), engines)
}

func TestContractOnPostgres(t *testing.T) {
	with := func(o pgkv.Options) kvtest.Factory {
		return func(tb testing.TB) kv.Engine { return named{onPostgres(tb, o)} }
	}
	kvtest.RunFar(t, with(pgkv.Options{Connections: 4, Views: 64}), with(pgkv.Options{Connections: 4, Views: 8, SnapshotLife: shortLife}))
}

func TestReopenOnPostgres(t *testing.T) {
	schemas := make(map[string][]string)
	kvtest.RunReopen(t, func(tb testing.TB, dir string) kv.Engine {
		if schemas[dir] == nil {
			address := pgtest.Address(tb)
			schemas[dir] = []string{pgtest.Schema(t, address), pgtest.Schema(t, address)}
		}
		return named{onPostgres(tb, pgkv.Options{Connections: 4, Views: 8}, schemas[dir]...)}
	})
}

func put(tenant, owner, value string) kv.Commit {
	s := kv.AgentScope(tenant, owner)
	c := kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: s}, Any: true}}, Batch: new(kv.Batch)}
	c.Batch.Put(kv.Records, s.Key('k'), []byte(value))
	return c
}

func mustCommit(tb testing.TB, e kv.Engine, c kv.Commit) {
	tb.Helper()
	if err := e.Commit(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
}

// tenants are those of the keys of a scan, in its order, and its error.
func tenants(tb testing.TB, from kv.Reader, r kv.Range) (found []string, err error) {
	tb.Helper()
	for pair, err := range from.Scan(tb.Context(), kv.Records, r) {
		if err != nil {
			return found, err
		}
		scope, _, err := kv.SplitKey(pair.Key)
		if err != nil {
			tb.Fatal(err)
		}
		found = append(found, scope.Tenant)
	}
	return found, nil
}

// Tenants lie where the map says, and are read together in the order of their keys. What a
// store has of a tenant that lies elsewhere is never seen.
func TestTenantsApart(t *testing.T) {
	dbs, stores := inMemory(t, 1, nil)
	db, m := dbs[0], mustParse(t, mapOf)
	defer db.Close()
	var all []string
	var keys [][]byte
	for i := range 20 {
		tenant := fmt.Sprint("tenant-", i)
		all, keys = append(all, tenant), append(keys, kv.AgentScope(tenant, "a").Key('k'))
		mustCommit(t, db, put(tenant, "a", tenant))
		mustCommit(t, stores[1-m.Of(tenant)][0], put(tenant, "a", "of a move")) // left behind
		mustCommit(t, stores[1-m.Of(tenant)][0], put(tenant, "b", "of a move"))
	}
	values, err := db.Get(t.Context(), kv.Records, keys...)
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range values {
		if string(value) != all[i] {
			t.Errorf("%s reads %q", all[i], value)
		}
	}
	slices.Sort(all)
	view, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	for _, from := range []kv.Reader{db, view} {
		for limit := range len(all) + 2 {
			want := all
			if limit > 0 {
				want = all[:min(limit, len(all))]
			}
			if got, err := tenants(t, from, kv.Range{Limit: limit}); err != nil || !slices.Equal(got, want) {
				t.Errorf("limit %d: %v %v", limit, got, err)
			}
			if got, err := tenants(t, from, kv.Range{Limit: limit, Reverse: true}); err != nil || len(got) != len(want) || got[0] != all[len(all)-1] || !slices.IsSortedFunc(got, func(a, b string) int { return -compare(a, b) }) {
				t.Errorf("reverse, limit %d: %v %v", limit, got, err)
			}
		}
	}
	// Two tenants are one commit nowhere.
	for _, other := range []string{"tenant-0", "tenant-1", "tenant-2", "tenant-3"} {
		c := put("acme", "a", "x")
		c.Guards = append(c.Guards, kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope(other, "a")}, Any: true})
		if err := db.Commit(t.Context(), c); !errors.Is(err, shardkv.ErrTwoTenants) {
			t.Errorf("acme and %s: %v", other, err)
		}
	}
	if values, err := db.Get(t.Context(), kv.Records, kv.AgentScope("acme", "a").Key('k')); err != nil || values[0] != nil {
		t.Errorf("a refused commit wrote %q, %v", values[0], err)
	}
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// cut is a store that can't be reached.
type cut struct {
	kv.Shared
	off atomic.Bool
}

func (c *cut) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	if c.off.Load() {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, kv.ErrUnreachable) }
	}
	return c.Shared.Scan(ctx, ks, r)
}

// While a store is away, scans over all tenants yield those of the others, and then fail; its
// health is a part of the whole.
func TestStoreAway(t *testing.T) {
	m := mustParse(t, mapOf)
	stores := []kv.Shared{memkv.Peers(1, nil)[0], &cut{Shared: memkv.Peers(1, nil)[0]}}
	db := shardkv.New(m, stores)
	defer db.Close()
	var here []string
	for i := range 20 {
		tenant := fmt.Sprint("tenant-", i)
		mustCommit(t, db, put(tenant, "a", "x"))
		if m.Of(tenant) == 0 {
			here = append(here, tenant)
		}
	}
	slices.Sort(here)
	stores[1].(*cut).off.Store(true)
	if got, err := tenants(t, db, kv.Range{}); !errors.Is(err, kv.ErrUnreachable) || !slices.Equal(got, here) {
		t.Errorf("%v %v, want %v", got, err, here)
	}
	if got, err := tenants(t, db, kv.TenantRange(here[0])); err != nil || len(got) != 1 {
		t.Errorf("of one that is well: %v %v", got, err)
	}
	stores[1].Health().Fail(kv.ErrUnreachable)
	for {
		condition, changed := db.Health().Condition()
		if slices.Equal(condition.Down(), []string{"two"}) && condition.Failed == nil {
			break
		}
		<-changed
	}
}

// What moves in a store is told unless it is of a tenant that lies elsewhere.
func TestMoved(t *testing.T) {
	dbs, stores := inMemory(t, 2, nil)
	defer dbs[0].Close()
	defer dbs[1].Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	moved := dbs[1].Moved(ctx)
	raise := func(e kv.Engine, tenant string) {
		mustCommit(t, e, kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope(tenant, "a")}}}})
	}
	raise(stores[0][0], "acme") // lies in the other one
	raise(dbs[0], "acme")
	raise(dbs[0], "tenant-2")
	told := make(map[string]int)
	for move := range moved {
		if told[move.Ref.Scope.Tenant]++; len(told) == 2 {
			break
		}
	}
	if told["acme"] != 1 || told["tenant-2"] != 1 {
		t.Errorf("told %v", told)
	}
}
