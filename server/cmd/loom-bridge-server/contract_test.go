package main

import (
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/loom-bridge/loom-bridge/server/console"
)

// startLimit is when a start has hung. The promise is two seconds, for agents are
// started so long after the server; it takes a tenth of one, but not on a machine
// that is busy with other tests.
const startLimit = waitTime

// copyAlone copies this binary, and nothing beside it, to a new folder. Nothing is forked
// meanwhile: a child would have the file open for writing, and it could not be started.
func copyAlone(tb testing.TB) string {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	from, err := os.Open(os.Args[0])
	must(tb, err)
	defer from.Close()
	path := filepath.Join(tb.TempDir(), "loom-bridge-server")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	must(tb, err)
	_, err = io.Copy(to, from)
	must(tb, err)
	must(tb, to.Close())
	return path
}

// lastHost is the last byte of the loopback address that freeAddress gave last.
var lastHost atomic.Uint32

// freeAddress is an address that a server can listen at. It is given back before the
// server takes it, so it is of a host that nobody else here listens at.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	host := lastHost.Add(1)
	listener, err := net.Listen("tcp", net.IPv4(127, 0, byte(1+host>>8), byte(host)).String()+":0")
	must(tb, err)
	defer listener.Close()
	return listener.Addr().String()
}

// environmentOf is the environment that `loom run` gives in full mode.
func environmentOf(address string) []string {
	return append(os.Environ(), asServer+"=1", "LOOM_BRIDGE_ADDR="+address,
		"LOOM_DASHBOARD=true", "LOOM_DASHBOARD_PORT=3030", "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317",
		"OTEL_TRACE_SAMPLER=always_on", "OTEL_SERVICE_NAME=loom-runtime", "RUST_LOG=loom_core=debug,info")
}

// The binary starts as `loom run` starts it: copied alone, without arguments,
// from the environment, with output that goes nowhere; it listens, stores in the
// current directory, and ends within two seconds of SIGTERM.
func TestStartedByLoomRun(t *testing.T) {
	dir, address := t.TempDir(), freeAddress(t)
	program := copyAlone(t)
	// How busy the machine is says the start of the same program that does nothing.
	idle := exec.CommandContext(t.Context(), program, "--version")
	idle.Env = environmentOf(address)
	started := time.Now()
	must(t, idle.Run())
	limit := max(stopLimit, 20*time.Since(started))

	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Env = dir, environmentOf(address)
	started = time.Now()
	must(t, cmd.Start()) // without Stdout and Stderr: /dev/null
	conn := MustDial(t, address)
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if time.Since(started) > startLimit {
			t.Fatalf("not serving after %v", startLimit)
		}
		conn.Connect()
		if state == connectivity.TransientFailure {
			conn.ResetConnectBackoff()
		}
		time.Sleep(10 * time.Millisecond) // another process: nothing to wait on
	}
	save(t, &process{conn: conn}, "kept")
	stopping := time.Now()
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if took := time.Since(stopping); took > limit {
		t.Errorf("the stop took %v, at most %v are allowed", took, limit)
	}
	if _, err := os.Stat(filepath.Join(dir, ".loom", "store", "LOOM-FORMAT")); err != nil {
		t.Errorf("the store is not in the current directory: %v", err)
	}
	if kept, err := os.ReadFile(filepath.Join(dir, ".loom", ".gitignore")); err != nil || string(kept) != "*\n!sandbox.toml\n" {
		t.Errorf("a repository would take the store in: %q, %v", kept, err)
	}
}

// What a server refuses for want of a credential says how a command gets one.
func TestRefusalsSayWhatCommandsTake(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "callers.toml")
	must(t, os.WriteFile(file, []byte("[[credential]]\ntoken = \"t\"\ntenant = \"x\"\nagents = [\"mine\"]\n"), 0o600))
	p := MustRun(t, t.TempDir(), "--credentials", file)
	for token, want := range map[string]string{"": "LOOM_BRIDGE_TOKEN", "t": "--agent names one"} {
		env := environment{vars: map[string]string{envToken: token}}
		err := run(t.Context(), []string{"memory", "list", "--agent", "other", "--addr", p.Address}, env, io.Discard, io.Discard)
		if err == nil || !strings.Contains(worded(err), want) {
			t.Errorf("with the token %q: %v, want %q in it", token, err, want)
		}
	}
}

// Where `loom run` says that the dashboard is, the console is.
func TestDashboardOfLoomRun(t *testing.T) {
	env := environment{vars: map[string]string{"LOOM_DASHBOARD": "true", "LOOM_DASHBOARD_PORT": "0"}}
	dir := t.TempDir()
	p := MustRunIn(t, env, "--addr", "127.0.0.1:0", "--http-addr", "", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir, "--log-level", "info")
	base := p.httpURL(t)
	if strings.HasSuffix(base, ":50080") {
		t.Fatalf("HTTP is served at its default address, %s", base)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/", http.NoBody)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != console.Path {
		t.Errorf("%s leads to %s: %s", base, answer.Request.URL, answer.Status)
	}
}

// --version answers at once, with the version as its last word, and touches
// neither the directory nor the port.
func TestVersionTouchesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer busy.Close()
	cmd := exec.CommandContext(t.Context(), copyAlone(t), "--version")
	cmd.Dir, cmd.Env = dir, environmentOf(busy.Addr().String())
	out, err := cmd.Output()
	must(t, err)
	if !regexp.MustCompile(`^loom-bridge-server \d+\.\d+\.\d+\S*\n$`).Match(out) {
		t.Errorf("printed %q", out)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("left %v", entries)
	}
}

// A host name is an address, and settings come from the project's .env file.
func TestAddressFromDotenv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	MustDotenv(t, dir, "LOOM_BRIDGE_ADDR=localhost:0\nBRAVE_API_KEY=secret-key\n")
	inside := filepath.Join(dir, "project")
	must(t, os.MkdirAll(inside, fs.FileMode(0o755)))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir, cmd.Env = inside, append(os.Environ(), asServer+"=1", "RUST_LOG=debug")
	var log strings.Builder
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line := make([]byte, 256)
	n, err := stdout.Read(line)
	must(t, err)
	if got := string(line[:n]); !regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):[1-9]\d*\n$`).MatchString(got) || strings.Contains(got, ":50051") {
		t.Errorf("printed %q, want a port of localhost that is not the default one", got)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	must(t, cmd.Wait())
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log shows a key:\n%s", log.String())
	}
}
