package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// asServer makes this test binary the server itself.
const asServer = "LOOM_TEST_AS_SERVER"

// sideBySide is how many parallel tests run at once unless -parallel says otherwise: most of
// the time of a test is waits for the disk and for other processes.
const sideBySide = 8

func TestMain(m *testing.M) {
	becomeOther()
	pgtest.Become()
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	if mode := os.Getenv(asMCPServer); mode != "" {
		serveMCP(mode)
		return
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(sideBySide)) // it is a number
	}
	code := m.Run()
	binary.remove()
	pgtest.StopShared()
	os.Exit(code)
}

// stopLimit is when a stop has hung. The binary promises two seconds, and takes a
// fraction of one; a busy machine takes longer to do the same.
const stopLimit = 15 * time.Second

// output is what a server printed, readable while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	line chan string // the address, once
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if address, ok := strings.CutPrefix(strings.TrimSpace(string(p)), "listening on "); ok {
		o.line <- address
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is a server that runs inside the test.
type process struct {
	// Workspace is the directory its tools work in.
	Workspace string
	Address   string
	Log       *output
	conn      *grpc.ClientConn
	cancel    context.CancelFunc
	ended     chan error
	once      sync.Once
	err       error
}

// MustRun starts run with port 0, a data directory and further arguments, and
// waits until it serves.
func MustRun(tb testing.TB, dir string, args ...string) *process {
	tb.Helper()
	return MustRunIn(tb, noEnvironment, append([]string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir}, args...)...)
}

// MustRunWith is MustRun for a server of which change sets what no setting does.
func MustRunWith(tb testing.TB, dir string, change func(c *Config), args ...string) *process {
	tb.Helper()
	p, err := tryRunWith(tb, noEnvironment, change, append([]string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", dir}, args...)...)
	must(tb, err)
	return p
}

// checkedOften has a server measure what is stored again and again.
func checkedOften(c *Config) { c.Sharing.StoreCheckInterval = 20 * time.Millisecond }

// MustRunIn starts run in an environment, and waits until it serves.
func MustRunIn(tb testing.TB, env environment, args ...string) *process {
	tb.Helper()
	p, err := tryRun(tb, env, args...)
	if err != nil {
		tb.Fatalf("run %v: %v", args, err)
	}
	return p
}

// tryRun is MustRunIn for a server that may not start.
func tryRun(tb testing.TB, env environment, args ...string) (*process, error) {
	tb.Helper()
	return tryRunWith(tb, env, func(*Config) {}, args...)
}

func tryRunWith(tb testing.TB, env environment, change func(c *Config), args ...string) (*process, error) {
	tb.Helper()
	changed := func(ctx context.Context, c Config, env environment, stdout, stderr io.Writer) error {
		change(&c)
		return serve(ctx, c, env, stdout, stderr)
	}
	p, args := &process{Log: &output{}, ended: make(chan error, 1)}, byWords(args)
	if i := slices.Index(args, "--workspace"); i >= 0 {
		p.Workspace = args[i+1]
	}
	stdout := &output{line: make(chan string, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- runWith(ctx, args, env, stdout, p.Log, changed) }()
	tb.Cleanup(func() { _ = p.Stop() })
	select {
	case p.Address = <-stdout.line:
	case err := <-p.ended:
		p.ended <- err // for Stop
		return nil, err
	}
	p.conn = MustDial(tb, p.Address)
	return p, nil
}

// byWords returns arguments of a server that is asked by words alone, unless they say which
// embedder it has: what is found must not depend on the machine, nor on how far vectors are.
func byWords(args []string) []string {
	for _, name := range []string{"--embedder", "--http-addr"} {
		if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, name) }) {
			args = append(slices.Clip(args), name+"=off")
		}
	}
	return args
}

// noEnvironment has no variable and no .env file.
var noEnvironment environment

func MustDial(tb testing.TB, address string) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// told waits for a line of the log: a goroutine of its own writes them.
func (p *process) told(tb testing.TB, pattern string) {
	tb.Helper()
	p.toldTimes(tb, pattern, 1)
}

// toldTimes waits until the log has as many matches of a regular expression.
func (p *process) toldTimes(tb testing.TB, pattern string, times int) {
	tb.Helper()
	search := regexp.MustCompile(pattern)
	eventually(tb, waitTime, func() error {
		if log := p.Log.String(); len(search.FindAllString(log, -1)) < times {
			return fmt.Errorf("the log does not say %q %d times\n%s", pattern, times, log)
		}
		return nil
	})
}

// Stop ends the server as SIGTERM does and returns what run returned.
func (p *process) Stop() error {
	p.once.Do(func() {
		p.cancel()
		p.err = <-p.ended
	})
	return p.err
}

func (p *process) bridge() loombridgev1.BridgeServiceClient {
	return loombridgev1.NewBridgeServiceClient(p.conn)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func save(tb testing.TB, p *process, text string) {
	tb.Helper()
	_, err := p.bridge().MemorySave(tb.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: text})
	must(tb, err)
}

func hits(tb testing.TB, p *process, query string) int {
	tb.Helper()
	found, err := p.bridge().MemoryQuery(tb.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: query})
	must(tb, err)
	return len(found.GetHits())
}

// What was acknowledged is there after a restart: memories, steps, blobs and
// events.
// A blob comes back byte for byte by its step.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	content := strings.Repeat("a long line of text\n", 1000)
	must(t, os.WriteFile(filepath.Join(dir, "long.txt"), []byte(content), 0o600))
	first := MustRun(t, dir)
	save(t, first, "Bitcoin closed at 45,000")
	answer, err := first.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
		AgentId: "a", Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"long.txt"}`},
	})
	must(t, err)
	_, err = first.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news"})
	must(t, err)
	must(t, first.Stop())

	second := MustRun(t, dir)
	if n := hits(t, second, "bitcoin"); n != 1 {
		t.Errorf("%d hits after the restart", n)
	}
	blob, err := contexts.New(second.conn).ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: "a", Name: answer.GetStep().GetId()})
	must(t, err)
	piece, err := blob.Recv()
	must(t, err)
	if string(piece.GetData()) != content {
		t.Errorf("the blob has %d bytes", len(piece.GetData()))
	}
	taken, err := second.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news"})
	must(t, err)
	if taken.GetSequence() != 2 {
		t.Errorf("sequence = %d", taken.GetSequence())
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--durability", "wal", "--addr", "localhost:0")
	got, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
	must(t, err)
	tools, err := loombridgev1.NewToolServiceClient(p.conn).ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: "a", PageSize: 100})
	must(t, err)
	if got.GetVersion() != buildVersion() || got.GetDurability() != "wal" || int(got.GetTools()) != len(tools.GetTools()) || got.GetAuthentication() {
		t.Errorf("status = %v", got)
	}
	marker, err := os.ReadFile(filepath.Join(dir, "store", "LOOM-FORMAT"))
	must(t, err)
	if number := regexp.MustCompile(`\d+`).FindString(string(marker)); number != strconv.Itoa(kv.Format) || got.GetStoreFormat() != kv.Format {
		t.Errorf("the store says %q, the status %d", marker, got.GetStoreFormat())
	}
}

// SIGTERM: streams end with UNAVAILABLE, calls in flight finish, the store
// closes, within two seconds.
func TestStopDrains(t *testing.T) {
	dir := t.TempDir()
	p := MustRun(t, dir)
	stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(t.Context(), &loombridgev1.SubscribeRequest{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
	})
	must(t, err)
	_, err = stream.Recv()
	must(t, err)
	stop := make(chan struct{})
	saved := make(chan int, 1)
	go func() { saved <- saveUntil(t.Context(), p, stop) }()

	started := time.Now()
	must(t, p.Stop())
	if took := time.Since(started); took > stopLimit {
		t.Errorf("the stop took %v", took)
	}
	close(stop)
	_, err = stream.Recv()
	if status.Code(err) != codes.Unavailable || reasonOf(err) != "SHUTTING_DOWN" {
		t.Errorf("the stream ended with %v", err)
	}
	acknowledged := <-saved
	second := MustRun(t, dir)
	found, err := second.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "counted", Limit: 1})
	must(t, err)
	if n := int(found.GetReceipt().GetRecords()); n < acknowledged {
		t.Errorf("%d of %d acknowledged records are left", n, acknowledged)
	}
}

// A reader that takes nothing, and a connection that stays open because of it,
// do not hold the stop up.
func TestStopWithStalledReader(t *testing.T) {
	p := MustRun(t, t.TempDir())
	stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(t.Context(), &loombridgev1.SubscribeRequest{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "flood"}},
	})
	must(t, err)
	_, err = stream.Recv()
	must(t, err)
	for range 8 {
		_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "flood", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 256<<10)},
		})
		must(t, err)
	}
	started := time.Now()
	must(t, p.Stop())
	if took := time.Since(started); took > stopLimit {
		t.Errorf("the stop took %v", took)
	}
}

// saveUntil saves one record after the other and returns how many were
// acknowledged.
func saveUntil(ctx context.Context, p *process, stop <-chan struct{}) int {
	for n := 0; ; {
		select {
		case <-stop:
			return n
		default:
		}
		if _, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "counted"}); err == nil {
			n++
		}
	}
}

func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// runBriefly runs a server that should not get as far as serving.
func runBriefly(tb testing.TB, args ...string) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	return run(ctx, args, noEnvironment, io.Discard, io.Discard)
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	foreign := filepath.Join(dir, "foreign")
	must(t, os.Mkdir(foreign, 0o700))
	must(t, os.WriteFile(filepath.Join(foreign, "thesis.doc"), nil, 0o600))
	newer := filepath.Join(dir, "newer")
	must(t, os.Mkdir(newer, 0o700))
	must(t, os.WriteFile(filepath.Join(newer, "LOOM-FORMAT"), []byte("loom-bridge store\nformat 999\n"), 0o600))
	for _, test := range []struct {
		name string
		args []string
		is   error
		want string
	}{
		{"locked store", []string{"--addr=127.0.0.1:0", "--data-dir=" + filepath.Join(dir, "store")}, kv.ErrLocked, "--data-dir"},
		{"foreign directory", []string{"--addr=127.0.0.1:0", "--data-dir=" + foreign}, kv.ErrForeign, "thesis.doc"},
		{"newer store", []string{"--addr=127.0.0.1:0", "--data-dir=" + newer}, kv.ErrNewer, "later"},
		{"data directory is a file", []string{"--addr=127.0.0.1:0", "--data-dir=" + filepath.Join(foreign, "thesis.doc")}, nil, "--data-dir"},
		{"port in use", []string{"--addr=" + p.Address}, nil, "--addr (LOOM_BRIDGE_ADDR)"},
		{"no such host", []string{"--addr=no-such-host.invalid:1"}, nil, "--addr"},
		{"no such workspace", []string{"--addr=127.0.0.1:0", "--data-dir=" + filepath.Join(dir, "s2"), "--workspace=" + filepath.Join(dir, "nowhere")}, nil, "--workspace"},
		{"no such credentials", []string{"--addr=127.0.0.1:0", "--credentials=nowhere.toml"}, auth.ErrCredentials, "nowhere.toml"},
		{"no such certificate", []string{"--addr=127.0.0.1:0", "--tls-cert=nowhere.pem", "--tls-key=nowhere.key"}, auth.ErrTLS, "nowhere.pem"},
		{"open to all", []string{"--addr=0.0.0.0:0", "--data-dir=" + filepath.Join(dir, "s3"), "--workspace=" + dir}, server.ErrOpenToAll, "authentication is off"},
		{"metrics port in use", []string{"--addr=127.0.0.1:0", "--data-dir=" + filepath.Join(dir, "s4"), "--workspace=" + dir, "--metrics-addr=" + p.Address}, nil, "--metrics-addr"},
		{"unknown command", []string{"serve"}, nil, "unknown command"},
		{"argument", []string{"check", "everything"}, nil, "unknown command"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := runBriefly(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) || (test.is != nil && !errors.Is(err, test.is)) {
				t.Errorf("err = %v, want %q and %v", err, test.want, test.is)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(foreign, "LOOM-FORMAT")); err == nil {
		t.Error("a foreign directory was written to")
	}
}

func TestMetricsEndpoint(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	must(t, free.Close())
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	p := MustRun(t, t.TempDir(), "--metrics-addr", ":"+port)
	save(t, p, "counted")
	response, err := http.Get("http://" + address + "/metrics")
	must(t, err)
	defer func() { must(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	for _, want := range []string{`grpc_server_handled_total{grpc_code="OK",grpc_method="MemorySave"`, "go_goroutines"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

// With credentials each tenant has a folder of its own in the workspace.
func TestTenantsHaveTheirOwnWorkspace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	callers := "" +
		"[[credential]]\ntoken_sha256 = \"" + hashOf("one") + "\"\ntenant = \"acme\"\nagents = [\"*\"]\n" +
		"[[credential]]\ntoken_sha256 = \"" + hashOf("two") + "\"\ntenant = \"umbrella\"\nagents = [\"*\"]\n"
	path := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(path, []byte(callers), 0o600))
	p := MustRun(t, dir, "--credentials", path)
	call := func(token, name, args string) *loombridgev1.ToolResponse {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		got, err := p.bridge().Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
		})
		must(t, err)
		return got
	}
	if got := call("one", "fs:write_file", `{"path":"plan.txt","content":"secret"}`); !got.GetSuccess() {
		t.Fatalf("write: %v", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "acme", "plan.txt")); err != nil || string(text) != "secret" {
		t.Errorf("file = %q, %v", text, err)
	}
	for _, path := range []string{"plan.txt", "../acme/plan.txt", "../callers.toml"} {
		if got := call("two", "fs:read_file", `{"path":"`+path+`"}`); got.GetSuccess() {
			t.Errorf("umbrella reads %s: %v", path, got)
		}
	}
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// No tool reaches the store, although it lies in the workspace.
func TestStoreIsOutOfReach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	must(t, os.Symlink("store", filepath.Join(dir, "link")))
	for _, path := range []string{"store/LOOM-FORMAT", "./store/../store/CURRENT", "link/LOOM-FORMAT"} {
		got, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: "a", Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"` + path + `"}`},
		})
		must(t, err)
		if got.GetSuccess() || got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PERMISSION_DENIED {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// child is the server as a process of its own.
type child struct {
	*exec.Cmd
	Address string
}

// MustStartChild starts the server with pipes for its output of which nobody
// reads more than the first line.
func MustStartChild(tb testing.TB, dir string, args ...string) *child {
	tb.Helper()
	return MustStartChildIn(tb, nil, dir, args...)
}

// MustStartChildIn is MustStartChild with further variables, NAME=value.
func MustStartChildIn(tb testing.TB, env []string, dir string, args ...string) *child {
	tb.Helper()
	args = append([]string{"--addr=127.0.0.1:0", "--data-dir=" + filepath.Join(dir, "store"), "--workspace=" + dir}, args...)
	c := &child{Cmd: exec.CommandContext(tb.Context(), os.Args[0], byWords(args)...)}
	c.Env = append(append(os.Environ(), asServer+"=1"), env...)
	stdout, err := c.StdoutPipe()
	must(tb, err)
	_, err = c.StderrPipe()
	must(tb, err)
	must(tb, c.Start())
	tb.Cleanup(func() { _ = c.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(tb, err)
	c.Address = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return c
}

// The process serves with output nobody reads, however much it logs, and
// SIGTERM ends it with success.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	c := MustStartChild(t, dir, "--log-level=debug")
	p := &process{conn: MustDial(t, c.Address)}
	for range 1500 { // some 300 KiB of log, a pipe holds 64
		_, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
		must(t, err)
	}
	save(t, p, "kept")
	started := time.Now()
	must(t, c.Process.Signal(syscall.SIGTERM))
	if err := c.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if took := time.Since(started); took > stopLimit {
		t.Errorf("the stop took %v", took)
	}
}

// What was acknowledged outlives the death of the process.
func TestProcessKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := MustStartChild(t, dir)
	save(t, &process{conn: MustDial(t, c.Address)}, "Bitcoin closed at 45,000")
	must(t, c.Process.Kill())
	_ = c.Wait()
	if n := hits(t, MustRun(t, dir), "bitcoin"); n != 1 {
		t.Errorf("%d hits after the kill", n)
	}
}
