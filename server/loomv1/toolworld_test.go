package loomv1_test

import (
	"context"
	"iter"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// waitTime is how long a test waits for what must come.
const waitTime = 3 * time.Minute

// toolWorld is the loom.v1 services over real domain objects, with a workspace
// that has the store's directory in it.
type toolWorld struct {
	*compose.Domain
	bridge  loomv1pb.BridgeClient
	tools   loomv1pb.ToolServiceClient
	runtime loomv1pb.AgentRuntimeClient
	folder  string // the workspace
	engine  *faultyEngine

	tb testing.TB
}

// faultyEngine fails while it has a fault.
type faultyEngine struct {
	kv.Engine
	fault atomic.Pointer[error]
}

func (e *faultyEngine) Commit(ctx context.Context, c kv.Commit) error {
	if fault := e.fault.Load(); fault != nil {
		return *fault
	}
	return e.Engine.Commit(ctx, c)
}

func (e *faultyEngine) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	if fault := e.fault.Load(); fault != nil {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, *fault) }
	}
	return e.Engine.Scan(ctx, ks, r)
}

// MustToolWorld starts a world that ends with the test. The changes are made to
// what the services work with.
func MustToolWorld(tb testing.TB, opts loomv1.Options, changes ...func(*loomv1.Deps)) *toolWorld {
	tb.Helper()
	w := &toolWorld{folder: filepath.Join(tb.TempDir(), "workspace"), tb: tb}
	w.write(".loom/store/CURRENT", "secret")
	w.write(".loom/cache/shell_output/step_001.txt", "kept output")
	root, err := os.OpenRoot(w.folder)
	w.must(err)
	tb.Cleanup(func() { w.must(root.Close()) })
	w.engine = &faultyEngine{Engine: memkv.New(nil)}
	tb.Cleanup(func() { w.must(w.engine.Close()) })
	w.Domain, err = compose.Open(w.engine, oneFolder{root}, &compose.Options{
		StoreDir: filepath.Join(w.folder, ".loom/store"), CloseTimeout: waitTime,
	})
	w.must(err)
	tb.Cleanup(func() { w.must(w.Close()) })
	deps := *w.Loom()
	deps.Tenant = func(context.Context) (string, error) { return "default", nil }
	deps.Options = opts
	for _, change := range changes {
		change(&deps)
	}
	w.serve(deps)
	return w
}

type oneFolder struct{ root *os.Root }

func (f oneFolder) Root(kv.Scope) (*os.Root, error) { return f.root, nil }

func (w *toolWorld) serve(deps loomv1.Deps) {
	w.tb.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	loomv1.Register(server, deps)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	w.tb.Cleanup(func() {
		server.Stop()
		w.must(<-ended)
	})
	conn, err := grpc.NewClient("passthrough:///in-memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.must(err)
	w.tb.Cleanup(func() { w.must(conn.Close()) })
	w.bridge = loomv1pb.NewBridgeClient(conn)
	w.tools = loomv1pb.NewToolServiceClient(conn)
	w.runtime = loomv1pb.NewAgentRuntimeClient(conn)
}

func (w *toolWorld) must(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

// write puts a file into the workspace.
func (w *toolWorld) write(name, content string) {
	w.tb.Helper()
	path := filepath.Join(w.folder, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(content), 0o644))
}

// call makes a tool call, which must be answered with the gRPC status OK and the
// call's id.
func (w *toolWorld) call(call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
	w.tb.Helper()
	ctx, cancel := context.WithTimeout(w.tb.Context(), 2*waitTime)
	defer cancel()
	result, err := w.bridge.ForwardToolCall(ctx, call)
	if err != nil {
		w.tb.Fatalf("call of %s: %v", call.GetName(), err)
	}
	if result.GetId() != call.GetId() {
		w.tb.Errorf("call of %s: id %q, want %q", call.GetName(), result.GetId(), call.GetId())
	}
	return result
}

// callAsync is call on a goroutine of its own.
func (w *toolWorld) callAsync(call *loomv1pb.ToolCall) <-chan *loomv1pb.ToolResult {
	result := make(chan *loomv1pb.ToolResult, 1)
	go func() {
		got, err := w.bridge.ForwardToolCall(w.tb.Context(), call)
		if err != nil {
			w.tb.Errorf("call of %s: %v", call.GetName(), err)
		}
		result <- got
	}()
	return result
}

// await returns what comes over a channel.
func await[T any](tb testing.TB, from <-chan T) T {
	tb.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(waitTime):
		tb.Fatal("nothing came")
		panic("unreachable")
	}
}

// toolAgent is an agent as loom-py makes them: registered, then on a stream.
type toolAgent struct {
	id     string
	stream grpc.BidiStreamingClient[loomv1pb.ClientEvent, loomv1pb.ServerEvent]
	events chan *loomv1pb.ServerEvent // closed when the stream has ended
	leave  context.CancelFunc
	tb     testing.TB
}

// register registers an agent with tools and opens no stream.
func (w *toolWorld) register(id string, names ...string) {
	w.tb.Helper()
	req := &loomv1pb.AgentRegisterRequest{AgentId: id, SubscribedTopics: []string{"agent." + id + ".replies"}}
	for _, name := range names {
		req.Tools = append(req.Tools, &loomv1pb.ToolDescriptor{Name: name, Description: "a tool of " + id, ParametersSchema: "{}"})
	}
	res, err := w.bridge.RegisterAgent(w.tb.Context(), req)
	w.must(err)
	if !res.GetSuccess() {
		w.tb.Fatalf("register %s: %s", id, res.GetErrorMessage())
	}
}

// agent registers an agent and opens its stream.
func (w *toolWorld) agent(id string, names ...string) *toolAgent {
	w.tb.Helper()
	w.register(id, names...)
	return w.open(id)
}

// open opens a stream of an agent.
func (w *toolWorld) open(id string) *toolAgent {
	w.tb.Helper()
	ctx, cancel := context.WithCancel(w.tb.Context())
	w.tb.Cleanup(cancel)
	stream, err := w.bridge.EventStream(ctx)
	w.must(err)
	a := &toolAgent{id: id, stream: stream, events: make(chan *loomv1pb.ServerEvent, 16), leave: cancel, tb: w.tb}
	a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: id}}})
	_, err = stream.Header()
	w.must(err)
	go a.read()
	return a
}

func (a *toolAgent) read() {
	defer close(a.events)
	for {
		event, err := a.stream.Recv()
		if err != nil {
			return
		}
		a.events <- event
	}
}

func (a *toolAgent) send(event *loomv1pb.ClientEvent) {
	a.tb.Helper()
	if err := a.stream.Send(event); err != nil {
		a.tb.Errorf("agent %s: %v", a.id, err)
	}
}

// next returns the next tool call that the agent gets.
func (a *toolAgent) next() *loomv1pb.ToolCall {
	a.tb.Helper()
	call := await(a.tb, a.events).GetToolCall()
	if call == nil {
		a.tb.Fatalf("agent %s got something else than a tool call", a.id)
	}
	return call
}

func (a *toolAgent) answer(result *loomv1pb.ToolResult) {
	a.tb.Helper()
	a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: result}})
}

// serve answers every further call with what the function makes of it.
func (a *toolAgent) serve(tool func(*loomv1pb.ToolCall) *loomv1pb.ToolResult) {
	go func() {
		for event := range a.events {
			call := event.GetToolCall()
			if call == nil {
				continue
			}
			result := tool(call)
			result.Id = call.GetId()
			if a.stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: result}}) != nil {
				return
			}
		}
	}()
}

// gone ends the stream as a process that dies does, and waits for the server to
// notice.
func (w *toolWorld) gone(a *toolAgent) {
	w.tb.Helper()
	a.leave()
	for deadline := time.Now().Add(waitTime); ; time.Sleep(time.Millisecond) {
		if known, ok := w.Agents.Get("default", a.id); !ok || known.Streams == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.tb.Fatalf("agent %s has still a stream", a.id)
		}
	}
}
