package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/memory/kv/bridges"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// storeMap is a map of two stores: umbrella lies in the first one, which is the system's, acme
// in the second one.
type storeMap struct {
	file, callers string
	stores        [2]string // places
	servers       [2]string // addresses of their PostgreSQL
}

const mapCredentials = "[[credential]]\ntoken = \"acme-token\"\ntenant = \"acme\"\nagents = [\"*\"]\noperates = true\n\n[[credential]]\ntoken = \"umbrella-token\"\ntenant = \"umbrella\"\nagents = [\"*\"]\noperates = true\n"

func newStoreMap(tb testing.TB, first, second string) *storeMap {
	tb.Helper()
	m := &storeMap{servers: [2]string{first, second}, stores: [2]string{postgresPlace(tb, first), postgresPlace(tb, second)}, callers: MustFile(tb, mapCredentials)}
	m.file = m.write(tb, 7, `{"acme": "two"}`)
	return m
}

// write writes a map of an epoch with some pinned tenants.
func (m *storeMap) write(tb testing.TB, epoch int, pinned string) string {
	tb.Helper()
	return MustFile(tb, fmt.Sprintf(`{"epoch": %d, "system": "one", "pinned": %s, "stores": [
		{"name": "one", "address": %q, "shards": ["0-511"]}, {"name": "two", "address": %q, "shards": ["512-1023"]}]}`, epoch, pinned, m.stores[0], m.stores[1]))
}

func (m *storeMap) args() []string {
	return []string{"--store-map", m.file, "--credentials", m.callers}
}

// rows counts by SQL what a tenant has of records in each store.
func (m *storeMap) rows(tb testing.TB, tenant string) (found [2]int) {
	tb.Helper()
	for i, server := range m.servers {
		place, err := url.Parse(m.stores[i])
		must(tb, err)
		conn, err := pgx.Connect(tb.Context(), server)
		must(tb, err)
		query := fmt.Sprintf(`SELECT count(*) FROM %s.records WHERE key >= $1 AND key < $2`, pgx.Identifier{place.Query().Get("schema")}.Sanitize())
		must(tb, conn.QueryRow(tb.Context(), query, []byte(tenant+"\x00"), []byte(tenant+"\x01")).Scan(&found[i]))
		must(tb, conn.Close(tb.Context()))
	}
	return found
}

// saveOf saves as a tenant.
func saveOf(tb testing.TB, p *process, tenant, text, request string) error {
	tb.Helper()
	_, err := p.bridge().MemorySave(as(tb.Context(), tenant+"-token"), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: text, RequestId: request})
	return err
}

// recordsOf counts those of a tenant.
func recordsOf(tb testing.TB, p *process, tenant string) int {
	tb.Helper()
	found, err := p.bridge().MemoryQuery(as(tb.Context(), tenant+"-token"), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "number"})
	must(tb, err)
	return int(found.GetReceipt().GetRecords())
}

// Servers with a map of stores have each tenant's data where the map says. Who has another
// map, or none, is refused and says what to do. With one store away its tenants are
// UNAVAILABLE, and the others are served.
//
// Z30, Z47
func TestStoreMap(t *testing.T) {
	t.Parallel()
	second := mustStartPostgres(t)
	m := newStoreMap(t, pgtest.Address(t), second.Address)
	a, metrics := MustMeasure(t, t.TempDir(), append(m.args(), "--store-map-connections", "41")...)
	b := MustRun(t, t.TempDir(), m.args()...)
	for i, tenant := range []string{"umbrella", "acme"} {
		must(t, saveOf(t, a, tenant, "number one", ""))
		must(t, saveOf(t, b, tenant, "number two", ""))
		if n := recordsOf(t, a, tenant); n != 2 {
			t.Errorf("%s has %d records", tenant, n)
		}
		if found := m.rows(t, tenant); found[i] == 0 || found[1-i] != 0 {
			t.Errorf("%s has %v records in the stores", tenant, found)
		}
	}

	// Its stores share connections: two of each listen and hold the store.
	most := 0.0
	for series, value := range scrape(t, metrics) {
		if strings.HasPrefix(series, "loom_bridge_postgres_connections_most{") {
			most += value
		}
	}
	if most != 41-2*2 {
		t.Errorf("pools of %v connections", most)
	}
	for few, want := range map[string]string{"19": "leaves 19 for the 2 of 2 stores", "-1": "--store-map-connections"} {
		if err := runBriefly(t, append(m.args(), "--store-map-connections="+few)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s connections for two stores: %v", few, err)
		}
	}

	// Other maps and none.
	for file, want := range map[string]string{
		m.write(t, 6, `{"acme": "two"}`):     "epoch 7, this map has 6",
		m.write(t, 7, `{}`):                  "another map of the same epoch 7",
		m.write(t, 8, `{"umbrella": "two"}`): `"umbrella"`,
	} {
		err := runBriefly(t, "--addr=127.0.0.1:0", "--store-map="+file, "--credentials="+m.callers, "--data-dir="+t.TempDir(), "--workspace="+t.TempDir())
		if !errors.Is(err, bridges.ErrDivision) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--store-map") || strings.Contains(err.Error(), pgSecret) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, store := range m.stores {
		err := runBriefly(t, "--addr=127.0.0.1:0", "--store="+store, "--data-dir="+t.TempDir(), "--workspace="+t.TempDir())
		if !errors.Is(err, bridges.ErrDivision) || !strings.Contains(err.Error(), "give the server that map") {
			t.Errorf("without a map: %v", err)
		}
	}

	// Commands.
	if said, err := loomCommand(t, "check", "--store-map", m.file); err != nil || !strings.Contains(said, "records: 2 owners, 0 bad") {
		t.Errorf("check: %v: %s", err, said)
	}
	if said, err := loomCommand(t, "check", "--store", m.stores[1]); err != nil || !strings.Contains(said, "records: 1 owners, 0 bad") {
		t.Errorf("check of one store: %v: %s", err, said)
	}
	if said, err := loomCommand(t, "export", "--store-map", m.file, "--tenant", "acme", "--agent", "a", "--out", filepath.Join(t.TempDir(), "out")); err != nil {
		t.Errorf("export: %v: %s", err, said)
	}
	for _, command := range []string{"verify", "list"} {
		if said, err := loomCommand(t, "audit", command, "--store-map", m.file); err != nil || strings.Contains(said, pgSecret) {
			t.Errorf("audit %s: %v: %s", command, err, said)
		}
	}
	if said, _ := loomCommand(t, "doctor", "--jobs=false", "--store-map", m.file); !strings.Contains(said, "answers, and holds a store") || strings.Contains(said, pgSecret) {
		t.Errorf("doctor: %s", said)
	}
	for _, args := range [][]string{
		{"erase", "--agent", "a", "--key", filepath.Join(t.TempDir(), "k"), "--out", filepath.Join(t.TempDir(), "erased")},
		{"repair"},
		{"backup", "create", "--offline", "--backup-dir", filepath.Join(t.TempDir(), "copies")},
	} {
		if _, err := loomCommand(t, append(args, "--store-map", m.file, "--data-dir", t.TempDir())...); err == nil || !strings.Contains(err.Error(), "--store-map") || !strings.Contains(err.Error(), "store") {
			t.Errorf("%s: %v", args[0], err)
		}
	}

	// The second store is killed.
	must(t, second.Kill())
	waitUntil(t, "its end shows", func() bool {
		status, err := loombridgev1.NewAdminServiceClient(a.conn).GetStatus(as(t.Context(), "umbrella-token"), &loombridgev1.GetStatusRequest{})
		must(t, err)
		store := status.GetStore()
		return store.GetWritable() && strings.Contains(store.GetProblem(), `store "two"`) && scrape(t, metrics)[`loom_bridge_store_part_writable{store="two"}`] == 0
	})
	if !a.serves(t, "") || !a.serves(t, memoryService) {
		t.Error("with one store away the server serves nobody")
	}
	for range 3 {
		if err := saveOf(t, a, "acme", "number three", "r3"); status.Code(err) != codes.Unavailable || reasonOf(err) != "STORE_UNREACHABLE" {
			t.Errorf("a save in the store that is away: %v %s", err, reasonOf(err))
		}
		must(t, saveOf(t, a, "umbrella", "number three", "r3"))
		if n := recordsOf(t, b, "umbrella"); n != 3 {
			t.Errorf("%d records in the other store", n)
		}
	}
	must(t, second.Restart())
	waitUntil(t, "it is back", func() bool {
		return saveOf(t, a, "acme", "number three", "r3") == nil && saveOf(t, b, "acme", "number three", "r3") == nil
	})
	if n := recordsOf(t, b, "acme"); n != 3 {
		t.Errorf("%d records after the return", n)
	}
}

// A server of two is killed while agents of both stores save at both: each save is said again,
// by its request id, until it is acknowledged. None is lost, and none is there twice.
//
// Z31
func TestStoreMapKill(t *testing.T) {
	t.Parallel()
	m := newStoreMap(t, pgtest.Address(t), pgtest.Address(t))
	a, b := MustRun(t, t.TempDir(), m.args()...), MustBridgeApart(t, "", "b", m.args()...)
	tenants := [2]string{"umbrella", "acme"}
	var acknowledged, alive [2]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var killed atomic.Bool
	for i, tenant := range tenants {
		for writer := range 2 {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					request := fmt.Sprintf("%d-%d", writer, n)
					for to := n % 2; ; to = 0 { // at one server, and again at the one that lives
						at := a
						if to == 1 {
							at = &b.process
						}
						if saveOf(t, at, tenant, "number "+request, request) == nil {
							break
						}
					}
					acknowledged[i].Add(1)
					if killed.Load() {
						alive[i].Add(1)
					}
				}
			})
		}
	}
	enough := func(of *[2]atomic.Int64) func() bool {
		return func() bool { return of[0].Load() > 20 && of[1].Load() > 20 }
	}
	waitUntil(t, "they save", enough(&acknowledged))
	b.Kill(t)
	killed.Store(true)
	waitUntil(t, "they go on", enough(&alive))
	stop()
	all.Wait()
	for i, tenant := range tenants {
		if n, want := recordsOf(t, a, tenant), int(acknowledged[i].Load()); n != want {
			t.Errorf("%s has %d records, %d were acknowledged", tenant, n, want)
		}
		if found := m.rows(t, tenant); found[i] == 0 || found[1-i] != 0 {
			t.Errorf("%s has %v records in the stores", tenant, found)
		}
	}
	t.Logf("acknowledged %d and %d, lost 0, twice 0", acknowledged[0].Load(), acknowledged[1].Load())
}

// A map that can't be used is refused before anything is opened, without a password.
func TestStoreMapRefused(t *testing.T) {
	t.Parallel()
	secret := "postgres://loom:" + pgSecret + "@db/loom"
	one := `{"epoch": 1, "system": "one", "stores": [{"name": "one", "address": "` + secret + `", "shards": ["0-1023"]}`
	for text, want := range map[string]string{
		one + `]}}`: "behind its end",
		strings.Replace(one, "0-", "1-", 1) + `]}`:                             "shard 0 has no store",
		one + `, {"name": "two", "address": "` + secret + `", "shards": []}]}`: `"one" and "two" have one address`,
		one + `, {"name": "two", "address": "rocksdb:x", "shards": []}]}`:      `store "two" is a directory`,
		one + `, {"name": "two", "address": "mysql://x", "shards": []}]}`:      `address of store "two"`,
	} {
		err := runBriefly(t, "--store-map="+MustFile(t, text))
		if wrong, ok := errors.AsType[*ConfigError](err); !ok || wrong.Field != keyStoreMap || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), pgSecret) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	file := MustFile(t, one+`]}`)
	for _, more := range []string{"--store=rocksdb:" + t.TempDir(), "--ephemeral"} {
		if err := runBriefly(t, "--store-map="+file, more); err == nil || !strings.Contains(err.Error(), "--store-map") {
			t.Errorf("with %s: %v", more, err)
		}
	}
	if err := runBriefly(t, "--store-map="+filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("a missing file: %v", err)
	}
}
