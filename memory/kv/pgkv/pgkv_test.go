package pgkv_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
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
	kvtest.RunFar(t, with(pgkv.Options{Views: 64, SnapshotLife: time.Hour}), with(pgkv.Options{SnapshotLife: shortLife}))
}

// TestContractOfOneLaneSoak is the contract on settings that change little of it.
func TestContractOfOneLaneSoak(t *testing.T) {
	if os.Getenv("LOOM_SOAK_ROUNDS") == "" {
		t.Skip("the contract on the usual settings is enough; make soak runs this, too")
	}
	kvtest.RunFar(t, with(pgkv.Options{Lanes: 1, Views: 64, Exclusive: true, Unsynced: true, SnapshotLife: time.Hour}), with(pgkv.Options{Lanes: 1, SnapshotLife: shortLife}))
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

// A snapshot that is opened by its first read is of that moment, and stays so.
func TestSnapshotLater(t *testing.T) {
	db := open(t, pgkv.Options{})
	defer db.Close()
	ref, key := counterOf(0)
	put := func(n uint64, value string) {
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: n}}, Batch: new(kv.Batch)}
		c.Batch.Put(kv.Records, key, []byte(value))
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	unread, err := db.SnapshotLater(t.Context(), kv.Reads{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unread.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := db.SnapshotLater(t.Context(), kv.Reads{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n, value := range []string{"first", "second"} {
		put(uint64(n), value)
		if found, err := s.Get(t.Context(), kv.Records, key); err != nil || string(found[0]) != "first" {
			t.Errorf("behind %s: %q, %v", value, found, err)
		}
	}
	if found, err := s.Sequence(t.Context(), ref); err != nil || found[0] != 1 {
		t.Errorf("sequence %v, %v", found, err)
	}
}
