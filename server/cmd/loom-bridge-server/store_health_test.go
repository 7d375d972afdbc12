//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	memoryService = "loombridge.v1.MemoryService"
	eventService  = "loombridge.v1.EventService"
)

// serves reports whether a service says that it serves.
func (p *process) serves(tb testing.TB, service string) bool {
	tb.Helper()
	got, err := grpc_health_v1.NewHealthClient(p.conn).Check(tb.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
	must(tb, err)
	return got.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// storeStatus is what the server says of its store.
func (p *process) storeStatus(tb testing.TB) *loombridgev1.StoreStatus {
	tb.Helper()
	got, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(tb.Context(), &loombridgev1.GetStatusRequest{})
	must(tb, err)
	return got.GetStore()
}

// waitUntil waits for what a server does in the background.
func waitUntil(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("%s: not so after five minutes", what)
		}
	}
}

// mustMount makes a file system of that many MiB, and may skip: only root may mount
// one.
func mustMount(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib))
	if errors.Is(err, syscall.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	must(t, err)
	// A process that another test is starting may hold the files for a moment: they go with it.
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// A server whose disk is full says so, also when nobody writes, and serves again when
// there is room.
func TestHealthOfAFullDisk(t *testing.T) {
	t.Parallel()
	dir := mustMount(t, 110)
	p := MustRun(t, dir)
	save(t, p, "kept well")
	if status := p.storeStatus(t); !p.serves(t, "") || status.GetProblem() != "" {
		t.Errorf("at first: %v", status)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 200<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	waitUntil(t, "a full disk shows", func() bool { return !p.serves(t, "") && !p.serves(t, memoryService) })
	if status := p.storeStatus(t); !strings.Contains(status.GetProblem(), "no room") {
		t.Errorf("full: %v", status)
	}
	must(t, os.Remove(ballast))
	waitUntil(t, "room shows", func() bool { return p.serves(t, "") && p.serves(t, memoryService) })
	save(t, p, "kept well, too")
	if status := p.storeStatus(t); status.GetProblem() != "" {
		t.Errorf("with room again: %v", status)
	}
	must(t, p.Stop())
	for _, line := range []string{"the store is not well", "the store is well again"} {
		p.told(t, line)
	}
}

// replaceLog lets every sync of the store's log fail, in this process.
func replaceLog(tb testing.TB, store string) {
	tb.Helper()
	null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	must(tb, err)
	defer null.Close()
	links, err := filepath.Glob("/proc/self/fd/*")
	must(tb, err)
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || filepath.Dir(target) != store || !strings.HasSuffix(target, ".log") {
			continue
		}
		var fd int
		_, err = fmt.Sscanf(filepath.Base(link), "%d", &fd)
		must(tb, err)
		must(tb, syscall.Dup3(int(null.Fd()), fd, syscall.O_CLOEXEC))
	}
}

// After a sync that failed nobody knows what is on disk: the server takes no writes
// until it is started again, and says so.
func TestHealthOfAFailedSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	save(t, p, "kept well")
	replaceLog(t, filepath.Join(dir, "store"))
	_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "perhaps"})
	if status.Code(err) != codes.Internal {
		t.Errorf("a save whose sync fails: %v", err)
	}
	waitUntil(t, "the failure shows", func() bool { return !p.serves(t, "") && !p.serves(t, eventService) })
	if status := p.storeStatus(t); !strings.Contains(status.GetProblem(), "started again") {
		t.Errorf("status: %v", status)
	}
	if n := hits(t, p, "kept"); n != 1 {
		t.Errorf("%d hits while only reading goes on", n)
	}
	must(t, p.Stop())
	p = MustRun(t, dir)
	save(t, p, "kept again")
	if !p.serves(t, "") || hits(t, p, "kept") != 2 {
		t.Errorf("started again: serves %v, %d hits", p.serves(t, ""), hits(t, p, "kept"))
	}
}

// freePort is an address that nobody listens on.
func freePort(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	defer listener.Close()
	return listener.Addr().String()
}

// metric reads one figure of a server.
func metric(tb testing.TB, address, name string) string {
	tb.Helper()
	got, err := http.Get("http://" + address + "/metrics")
	must(tb, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must(tb, err)
	_, rest, ok := strings.Cut(string(text), "\n"+name+" ")
	if !ok {
		tb.Fatalf("no figure %s", name)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// harmTable flips a bit in the first table with records of a stopped server's store.
func harmTable(tb testing.TB, store string) {
	tb.Helper()
	tables, err := filepath.Glob(filepath.Join(store, "*.sst"))
	must(tb, err)
	for _, table := range tables {
		data, err := os.ReadFile(table)
		must(tb, err)
		if strings.Contains(string(data), "remembered") {
			data[10] ^= 1
			must(tb, os.WriteFile(table, data, 0o600))
			return
		}
	}
	tb.Fatal("no table has records")
}

// A server reads its store back while it serves, and says what it finds: by the health
// of the services that need it, in GetStatus, in the metrics and in the log.
func TestScrub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"first", "second"} { // whose start writes the first's log to tables
		p := MustRun(t, dir)
		fill(t, p, name)
		must(t, p.Stop())
	}
	figures := freePort(t)
	args := []string{"--scrub-rate=1000000000", "--metrics-addr=" + figures}
	often := func(c *Config) { c.Scrub.Interval = 100 * time.Millisecond }
	p := MustRunWith(t, dir, often, args...)
	waitUntil(t, "the store was read back", func() bool { return p.storeStatus(t).GetScrubTime() != nil })
	if status := p.storeStatus(t); !p.serves(t, memoryService) || len(status.GetDamage()) > 0 ||
		metric(t, figures, "loom_bridge_store_scrub_findings") != "0" || metric(t, figures, "loom_bridge_store_writable") != "1" {
		t.Errorf("a good store: %v", status)
	}
	must(t, p.Stop())

	harmTable(t, filepath.Join(dir, "store"))
	p = MustRunWith(t, dir, often, args...)
	waitUntil(t, "the damage shows", func() bool { return !p.serves(t, memoryService) })
	waitUntil(t, "the reading has ended", func() bool { return p.storeStatus(t).GetScrubTime() != nil })
	if !p.serves(t, "") || !p.serves(t, eventService) {
		t.Error("what is not damaged does not serve")
	}
	said := p.storeStatus(t)
	if damage := said.GetDamage(); said.GetProblem() != "" || len(damage) == 0 || !strings.HasPrefix(damage[0], "records: ") {
		t.Errorf("status: %v", said)
	}
	for name, want := range map[string]string{
		`loom_bridge_store_damaged{keyspace="records"}`: "1",
		`loom_bridge_store_damaged{keyspace="events"}`:  "0",
	} {
		if got := metric(t, figures, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	_, err := loombridgev1.NewMemoryServiceClient(p.conn).ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "a"})
	if reason := reasonOf(err); status.Code(err) != codes.DataLoss || reason != "STORE_DAMAGED" {
		t.Errorf("reading what is damaged: %v, %s", err, reason)
	}
	if passes := metric(t, figures, "loom_bridge_store_scrub_passes_total"); passes == "0" {
		t.Error("no pass is counted")
	}
	must(t, p.Stop())
	p.told(t, "damage was found in the store")
	p.told(t, `\.sst at byte `)
}

// Settings of a scrub that make no sense are refused.
func TestScrubSettings(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--scrub-rate=-1"}, {"--scrub-rate=2000000000"}} {
		var wrong *ConfigError
		if err := run(context.Background(), args, noEnvironment, io.Discard, io.Discard); !errors.As(err, &wrong) || "--"+wrong.Field != strings.Split(args[0], "=")[0] {
			t.Errorf("%v: %v", args, err)
		}
	}
}
