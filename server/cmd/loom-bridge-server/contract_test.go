package main

import (
	"bufio"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
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

// A script tells by the exit status why a command failed.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "callers.toml")
	must(t, os.WriteFile(file, []byte("[[credential]]\ntoken = \"t\"\ntenant = \"x\"\nagents = [\"mine\"]\n"), 0o600))
	p := MustRun(t, t.TempDir(), "--credentials", file)
	for line, want := range map[string]int{
		"remember": exitUsage, "--nope": exitUsage, "agents --nope": exitUsage, "approvals deny": exitUsage, "--max-jobs none": exitUsage,
		"hook --nope": exitFailed, "hook": exitFailed,
		"memory show none --agent mine --addr ADDRESS": exitNotFound, "memory list --agent other --addr ADDRESS": exitDenied,
		"agents --addr 127.0.0.1:1": exitUnavailable,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(strings.ReplaceAll(line, "ADDRESS", p.Address))
			err := run(t.Context(), args, environment{vars: map[string]string{envToken: "t"}}, io.Discard, io.Discard)
			if err == nil || exitStatus(err, args) != want {
				t.Errorf("ends with %d: %v", exitStatus(err, args), err)
			}
		})
	}
	failed := exec.CommandContext(t.Context(), os.Args[0], "--nope")
	failed.Env = append(os.Environ(), asServer+"=1")
	if _ = failed.Run(); failed.ProcessState.ExitCode() != exitUsage {
		t.Errorf("the program ends with %d", failed.ProcessState.ExitCode())
	}
}

// Where `loom run` says that the dashboard is, the console is, and what the page of its own core asks is
// answered.
//
// R19
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

	get := func(path string) string {
		return exchange{method: "GET", path: path, want: http.StatusOK}.check(t, base)
	}
	bridge := loomv1pb.NewBridgeClient(p.conn)
	_, err = bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: "desk", SubscribedTopics: []string{"market.*"}, Tools: []*loomv1pb.ToolDescriptor{{Name: "quotes"}}})
	must(t, err)
	// None of the answers has a null where the page reads a list.
	for _, path := range []string{"/api/topology", "/api/flow"} {
		if got := get(path); strings.Contains(got, "null") {
			t.Errorf("%s: %s", path, got)
		}
	}
	stream, err := http.DefaultClient.Do(exchange{method: "GET", path: "/api/events/stream"}.request(t, base))
	must(t, err)
	defer func() { _ = stream.Body.Close() }()
	lines := bufio.NewScanner(stream.Body)
	if !lines.Scan() { // the stream reads by then
		t.Fatal(lines.Err())
	}
	if got := get("/api/events/status"); got != "{\"subscribers\":1}\n" {
		t.Errorf("status: %s", got)
	}
	_, err = loomv1pb.NewEventBusClient(p.conn).Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "market.closed", Event: &loomv1pb.Event{
		Id: "e1", Type: "t", Source: "python", Metadata: map[string]string{"loom.sender": "ticker", "loom.thread_id": "th", "trace_id": "tr"},
		Payload: []byte(strings.Repeat("ü", 150)),
	}})
	must(t, err)
	_, err = bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: "fs:list_dir", Arguments: `{"path":"."}`, Headers: map[string]string{"agent_id": "desk"}})
	must(t, err)
	var event map[string]any
	for event["topic"] != "market.closed" && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: {"); ok {
			must(t, json.Unmarshal([]byte("{"+data), &event))
		}
	}
	stamped, _ := event["timestamp"].(string)
	if _, err := time.Parse(time.RFC3339, stamped); err != nil {
		t.Errorf("the event's time: %v", err)
	}
	delete(event, "timestamp")
	if want := (map[string]any{
		"event_type": "event_published", "event_id": "e1", "topic": "market.closed", "sender": "ticker", "thread_id": "th",
		"correlation_id": "e1", "payload_preview": strings.Repeat("ü", 100), "trace_id": "tr",
	}); !reflect.DeepEqual(event, want) {
		t.Errorf("the stream has %v, want %v", event, want)
	}
	for path, pattern := range map[string]string{
		"/api/topology": `^{"agents":\[{"id":"desk","topics":\["market\.\*"\],"capabilities":\["quotes"\]}\],` +
			`"edges":\[{"from_topic":"market\.\*","to_agent":"desk","event_count":1}\],"timestamp":"20[^"]+Z"}\n$`,
		"/api/flow": `^{"nodes":\[{"id":"[^"]*","node_type":"agent","event_count":1,"topics":\["[^"]+"\],"last_active_ms":\d{13}}.*` +
			`{"id":"fs:list_dir","node_type":"tool","event_count":1,.*"flows":\[.*{"source":"ticker","target":"desk","topic":"market.closed","count":1,"last_event_ms":\d{13}}.*\],"timestamp":"20[^"]+Z"}\n$`,
		"/api/metrics": `^{"events_per_sec":0\.01\d+,"active_agents":1,"active_subscriptions":\d+,"tool_invocations_per_sec":0\.01\d+}\n$`,
	} {
		if got := get(path); !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("%s: %s", path, got)
		}
	}
	must(t, p.Stop()) // which ends the stream
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
