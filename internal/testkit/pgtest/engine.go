package pgtest

import (
	"os"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// AddressEnv is the environment variable with the address of a server on which tests of the
// domain run. Without it they run in memory.
const AddressEnv = "LOOM_TEST_POSTGRES"

// Engine returns an empty engine for a test of the domain: in memory, or in a schema of its
// own on the server that the environment names. Who calls it closes it.
func Engine(tb testing.TB) kv.Engine {
	tb.Helper()
	address := os.Getenv(AddressEnv)
	if address == "" {
		return memkv.New(nil)
	}
	db, err := pgkv.Open(tb.Context(), address, &pgkv.Options{Schema: Schema(tb, address), Connections: 8, Views: 24})
	if err != nil {
		tb.Fatalf("open a store of PostgreSQL: %v", err)
	}
	return db
}
