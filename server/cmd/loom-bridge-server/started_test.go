package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Whoever starts the server reads in its log what it is, what it works on and how
// far it can be trusted.
func TestStartIsLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--metrics-addr", "127.0.0.1:0")
	must(t, p.Stop())
	for _, want := range []string{
		"loom-bridge-server is serving\n",
		`  version +` + regexp.QuoteMeta(buildVersion()),
		`  workspace +` + dir + `\n`,
		`  store +` + dir + `/store\n`,
		`  durability +sync: acknowledged writes survive a power loss\n`,
		`  grpc +` + p.Address + `\n`,
		`  loom_v1 +at the same address\n`,
		`  metrics +http://127\.0\.0\.1:\d+/metrics\n`,
		`  embedder +off: memory is searched by words`,
		`  credentials +none: authentication is off`,
		`  encryption +none`,
	} {
		p.told(t, want)
	}
}

// The same as one record where logs are JSON, and of a server that has everything.
func TestStartIsLoggedAsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	MustCertificate(t, dir, "server")
	p := MustRun(t, dir, "--log-format=json", "--durability=wal", "--credentials", MustCallers(t, dir, "acme", "umbrella"),
		"--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server.key"),
		"--loom-addr", "127.0.0.1:0", "--loom-tenant", "acme",
		"--embedder-url", "http://127.0.0.1:1/v1", "--embedder-model", "m", "--embedder-key", "sk-secret")
	p.told(t, `"msg":"serving"`)
	must(t, p.Stop())
	var said map[string]string
	for line := range strings.Lines(p.Log.String()) {
		if strings.Contains(line, `"msg":"serving"`) {
			must(t, json.Unmarshal([]byte(line), &said))
		}
	}
	for key, want := range map[string]string{
		"grpc": p.Address, "loom_v1": "for the tenant acme", "metrics": "none", "embedder": "m at http://127.0.0.1:1", "durability": "wal: ",
		"credentials": "2 callers in " + dir, "encryption": "TLS", "workspace": dir,
	} {
		if !strings.Contains(said[key], want) {
			t.Errorf("%s is %q, want %q in it", key, said[key], want)
		}
	}
	if strings.Contains(p.Log.String(), "sk-secret") {
		t.Error("the log shows a key")
	}
}

// A second server in a folder is told which process holds the store, and that it
// may have one of its own, which leaves nothing behind.
func TestEphemeralStore(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // of the first server's socket
	dir := t.TempDir()
	first := MustRun(t, dir)
	save(t, first, "kept")
	err := runBriefly(t, "--addr=127.0.0.1:0", "--workspace="+dir, "--data-dir="+filepath.Join(dir, "store"))
	want := fmt.Sprintf("process %d (", os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--ephemeral (LOOM_BRIDGE_EPHEMERAL=1)") {
		t.Errorf("%v, want %q in it", err, want)
	}

	env := environment{vars: map[string]string{"LOOM_BRIDGE_EPHEMERAL": "1"}}
	second := MustRunIn(t, env, "--addr=127.0.0.1:0", "--workspace="+dir, "--data-dir="+filepath.Join(dir, "store"))
	if n := hits(t, second, "kept"); n != 0 {
		t.Errorf("the store has %d records of the other", n)
	}
	save(t, second, "gone")
	if made, err := filepath.Glob(filepath.Join(temp, "loom-bridge-ephemeral-*", "store", "LOOM-FORMAT")); err != nil || len(made) != 1 {
		t.Errorf("stores: %v, %v", made, err)
	}
	second.told(t, `\(ephemeral: removed when the server ends\)`)
	must(t, second.Stop())
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if n := hits(t, first, "kept"); n != 1 {
		t.Errorf("the first server has %d records", n)
	}
}

// A lock that nobody holds has no holder.
func TestLockHolder(t *testing.T) {
	t.Parallel()
	if pid, ok := lockHolder(t.TempDir()); ok {
		t.Errorf("process %s", pid)
	}
	dir := t.TempDir()
	p := MustRun(t, dir)
	if pid, ok := lockHolder(filepath.Join(dir, "store")); !ok || pid != strconv.Itoa(os.Getpid()) {
		t.Errorf("process %q, %v", pid, ok)
	}
	must(t, p.Stop())
}

// Whoever finds a store in use is told by which process, also where the address is taken as well.
func TestStoreInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, beside := filepath.Join(dir, "store"), t.TempDir()
	p := MustRun(t, dir)
	want := fmt.Sprintf("process %d (", os.Getpid())
	err := runBriefly(t, "--addr="+p.Address, "--workspace="+dir, "--data-dir="+store)
	if _, taken := errors.AsType[takenError](err); !taken || !strings.HasPrefix(err.Error(), "--data-dir (LOOM_BRIDGE_DATA_DIR)") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), p.Address) {
		t.Errorf("store and address: %v", err)
	}
	for _, command := range [][]string{
		{"check"},
		{"repair"},
		{"audit", "verify"},
		{"backup", "create", "--offline", "--backup-dir", filepath.Join(beside, "copies")},
		{"erase", "--agent", "a", "--key", filepath.Join(beside, "k"), "--out", filepath.Join(beside, "o")},
		{"export", "--agent", "a", "--out", filepath.Join(beside, "e")},
	} {
		if said, err := loomCommand(t, append(command, "--data-dir", store)...); !errors.Is(err, kv.ErrLocked) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "--ephemeral") {
			t.Errorf("%v: %v: %q", command, err, said)
		}
	}
}
