package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustBridge starts a server on a store that others have, too.
func MustBridge(tb testing.TB, store, name string, args ...string) *process {
	tb.Helper()
	return MustRun(tb, tb.TempDir(), append([]string{"--store", store, "--bridge-name", name}, args...)...)
}

// apart is a server in a process of its own.
type apart struct {
	process
	command *exec.Cmd
}

// MustBridgeApart is MustBridge for one that can be killed.
func MustBridgeApart(tb testing.TB, store, name string, args ...string) *apart {
	tb.Helper()
	return MustRunApart(tb, nil, append([]string{"--store", store, "--bridge-name", name}, args...)...)
}

// MustRunApart starts a server in a process of its own, with further variables in its environment.
func MustRunApart(tb testing.TB, env []string, args ...string) *apart {
	tb.Helper()
	dir := tb.TempDir()
	self, err := os.Executable()
	must(tb, err)
	command := exec.Command(self, append([]string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "local"), "--workspace", dir, "--log-level", "error"}, args...)...)
	command.Env, command.Stderr = append(append(os.Environ(), asServer+"=1"), env...), os.Stderr
	out, err := command.StdoutPipe()
	must(tb, err)
	must(tb, command.Start())
	tb.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		tb.Fatalf("%v did not start: %q %v", args, line, err)
	}
	a := &apart{process{Workspace: dir, Address: address, conn: mustDial(tb, address)}, command}
	tb.Cleanup(func() { _ = a.conn.Close() })
	return a
}

// Kill ends it at once.
func (a *apart) Kill(tb testing.TB) {
	tb.Helper()
	must(tb, a.command.Process.Kill())
	_ = a.command.Wait() // it was killed
}

// StandStill stops it, and waits until none of its threads runs: a signal stops one that is under
// way only when another one has taken the signal.
func (a *apart) StandStill(tb testing.TB) {
	tb.Helper()
	must(tb, a.command.Process.Signal(syscall.SIGSTOP))
	waitUntil(tb, "all threads stand still", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", a.command.Process.Pid))
		must(tb, err)
		return len(threads) > 0 && !slices.ContainsFunc(threads, func(of string) bool {
			stat, err := os.ReadFile(of)
			return err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T")
		})
	})
}

// bridges are those that a server lists.
func (p *process) bridges(tb testing.TB) []*loombridgev1.BridgeStatus {
	tb.Helper()
	got, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(tb.Context(), &loombridgev1.GetStatusRequest{})
	must(tb, err)
	return got.GetBridges()
}

// listed waits until a server lists those of the names and no others.
func (p *process) listed(tb testing.TB, names ...string) {
	tb.Helper()
	var all []*loombridgev1.BridgeStatus
	defer func() {
		if tb.Failed() {
			tb.Logf("wanted %q, the list is %v", names, all)
		}
	}()
	waitUntil(tb, "the list of bridges", func() bool {
		all = p.bridges(tb)
		var got []string
		for _, b := range all {
			got = append(got, b.GetName())
		}
		slices.Sort(got)
		return slices.Equal(got, names)
	})
}

// Servers on one PostgreSQL have its store together, and list each other. One that ends is
// gone from the list at once, one that is killed when its lease has run out, and one that
// stood still comes back under another epoch. On RocksDB there is nobody.
//
// Z01
func TestBridgesShareStore(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	a := MustBridge(t, store, "a")
	b := MustBridge(t, store, "b", "--bridge-addr", "b.example:50051")
	c := MustBridgeApart(t, store, "c")
	a.listed(t, "a", "b", "c")
	c.listed(t, "a", "b", "c")
	for i, bridge := range a.bridges(t) {
		address := []string{a.Address, "b.example:50051", c.Address}[i]
		if bridge.GetAddress() != address || bridge.GetAnswering() != (i == 0) {
			t.Errorf("%v, want address %s", bridge, address)
		}
	}
	save(t, a, "tides follow the moon")
	if n := hits(t, b, "moon"); n != 1 {
		t.Errorf("%d hits of what another saved", n)
	}

	// One stands still for longer than its lease, then goes on.
	c.StandStill(t)
	a.listed(t, "a", "b")
	must(t, c.command.Process.Signal(syscall.SIGCONT))
	a.listed(t, "a", "b", "c")
	saved(t, &c.process, "tides come twice a day", "r1")

	began := time.Now()
	c.Kill(t)
	a.listed(t, "a", "b")
	if passed := time.Since(began); passed > 2*registry.Term {
		t.Errorf("one that was killed was gone after %v", passed)
	}
	began = time.Now()
	must(t, b.Stop())
	a.listed(t, "a")
	if passed := time.Since(began); passed > registry.Term {
		t.Errorf("one that ended was gone after %v", passed)
	}
	if alone := MustRun(t, t.TempDir()); len(alone.bridges(t)) > 0 {
		t.Errorf("on RocksDB: %v", alone.bridges(t))
	}
}

// While a server stands still it may have been taken for dead. What it then writes under its
// old epoch is refused, as UNAVAILABLE, and no later.
//
// Z02
func TestFencedBridgeWritesNothingSoak(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	a, b := MustBridge(t, store, "a"), MustBridgeApart(t, store, "b")
	a.listed(t, "a", "b")
	b.StandStill(t)
	// These wait in the kernel until it goes on; then its registration is gone.
	const calls = 16
	failures := make(chan error, calls)
	for i := range calls {
		go func() {
			_, err := b.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: fmt.Sprintf("number %d", i), RequestId: fmt.Sprint(i)})
			failures <- err
		}()
	}
	a.listed(t, "a")
	must(t, b.command.Process.Signal(syscall.SIGCONT))
	acknowledged := 0
	for range calls {
		switch err := <-failures; {
		case err == nil: // it had registered anew by then
			acknowledged++
		case status.Code(err) != codes.Unavailable || reasonOf(err) != "STORE_UNREACHABLE":
			t.Errorf("a save of one that was taken for dead: %v %s", err, reasonOf(err))
		}
	}
	for i := range calls { // again, by their request ids
		saved(t, &b.process, fmt.Sprintf("number %d", i), fmt.Sprint(i))
	}
	if n := records(t, a); n != calls {
		t.Errorf("%d records of %d saves, %d of which were acknowledged at once", n, calls, acknowledged)
	}
}

// records counts those of an agent.
func records(tb testing.TB, p *process) int {
	tb.Helper()
	found, err := p.bridge().MemoryQuery(tb.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "number"})
	must(tb, err)
	return int(found.GetReceipt().GetRecords())
}

// What others would make of a server's name is checked before it starts.
func TestBridgeRefusesNames(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	for flag, value := range map[string]string{"--bridge-name": strings.Repeat("x", registry.MaxNameBytes+1), "--bridge-addr": "no port"} {
		err := runBriefly(t, "--addr=127.0.0.1:0", "--store="+store, "--data-dir="+filepath.Join(t.TempDir(), "local"), "--workspace="+t.TempDir(), flag+"="+value)
		if wrong, ok := errors.AsType[*ConfigError](err); !ok || "--"+wrong.Field != flag {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if got := reachable("0.0.0.0:7", "host"); got != net.JoinHostPort("host", "7") {
		t.Errorf("all addresses of a machine are reached at %s", got)
	}
}

// A server whose clock differs from that of the store by more than a second is not started,
// and says which way.
//
// Z01
func TestBridgeOfAnotherTime(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	for ahead, want := range map[string]string{"+ interval '3 s'": "behind", "- interval '3 s'": "before", "+ interval '0.5 s'": ""} {
		other, err := pgtest.StartRewriting(store, map[string]string{pgkv.ReadClock: pgkv.ReadClock + ahead})
		must(t, err)
		t.Cleanup(func() { _ = other.Close() })
		if want == "" {
			save(t, MustBridge(t, other.Address, "near"), "tide")
			continue
		}
		err = runBriefly(t, "--store", other.Address, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir())
		if !errors.Is(err, registry.ErrSkew) || !strings.Contains(err.Error(), "s "+want) {
			t.Errorf("the store's clock %s: %v", ahead, err)
		}
	}
}
