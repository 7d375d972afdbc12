package pgkv_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shortLife lets snapshots grow old while a test waits, and is long enough for a slow
// machine to do what tests do with one.
const shortLife = time.Second

// open opens a store in a schema, a new one unless it is named.
func open(tb testing.TB, o pgkv.Options) *pgkv.DB {
	tb.Helper()
	address := pgtest.Address(tb)
	if o.Schema == "" {
		o.Schema = pgtest.Schema(tb, address)
	}
	db, err := pgkv.Open(context.Background(), address, &o)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return db
}

// with returns what opens stores so.
func with(o pgkv.Options) kvtest.Factory {
	return func(tb testing.TB) kv.Engine { return open(tb, o) }
}

func TestContract(t *testing.T) {
	kvtest.RunFar(t, with(pgkv.Options{Views: 64}), with(pgkv.Options{SnapshotLife: shortLife}))
}

// TestContractOfOneLaneSoak is the contract on settings that change little of it.
func TestContractOfOneLaneSoak(t *testing.T) {
	if os.Getenv("LOOM_SOAK_ROUNDS") == "" {
		t.Skip("the contract on the usual settings is enough; make soak runs this, too")
	}
	kvtest.RunFar(t, with(pgkv.Options{Lanes: 1, Views: 64, Exclusive: true, Unsynced: true}), with(pgkv.Options{Lanes: 1, SnapshotLife: shortLife}))
}

func TestContractOfPair(t *testing.T) {
	kvtest.RunPair(t, func(tb testing.TB) (a, b kv.Engine) {
		first := pgkv.Options{Schema: pgtest.Schema(tb, pgtest.Address(tb))}
		return open(tb, first), open(tb, first)
	})
}

func TestReopen(t *testing.T) {
	schemas := make(map[string]string)
	kvtest.RunReopen(t, func(tb testing.TB, dir string) kv.Engine {
		if schemas[dir] == "" {
			schemas[dir] = pgtest.Schema(t, pgtest.Address(tb))
		}
		return open(tb, pgkv.Options{Schema: schemas[dir]})
	})
}
