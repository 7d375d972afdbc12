package loomv1_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// quiet is how long nothing comes before a test believes that nothing will.
const quiet = 100 * time.Millisecond

// loomOptions adjusts a loomWorld. Zero fields mean the defaults.
type loomOptions struct {
	// Engine keeps the data; it stays the caller's. Default: a new one in memory.
	Engine kv.Engine
	Loom   loomv1.Options
	Now    func() time.Time
	// Events adjusts the bus of the services. Nil: that of the domain.
	Events *events.Options
	// Sent is called when a message for an agent was sent, before the server goes
	// on. Nil: nothing is.
	Sent func(ctx context.Context, message any)
}

// loomWorld is the loom.v1 services on a loopback port, over a whole domain.
type loomWorld struct {
	*compose.Domain
	bridge  loomv1pb.BridgeClient
	bus     loomv1pb.EventBusClient
	runtime loomv1pb.AgentRuntimeClient
	log     *logText

	tb       testing.TB
	engine   *mortalEngine
	address  string
	server   *grpc.Server
	draining chan struct{}
	drain    func()
	stopOnce func()
	ended    atomic.Int64 // streams that the server has done with
}

// MustLoom starts a world that ends with the test.
func MustLoom(tb testing.TB, opts loomOptions) *loomWorld {
	tb.Helper()
	if opts.Engine == nil {
		engine := memkv.New(nil)
		tb.Cleanup(func() { mustBe(tb, engine.Close()) })
		opts.Engine = engine
	}
	w := &loomWorld{tb: tb, engine: &mortalEngine{Engine: opts.Engine}, draining: make(chan struct{}), log: &logText{}}
	w.drain = sync.OnceFunc(func() { close(w.draining) })
	root, err := os.OpenRoot(tb.TempDir())
	mustBe(tb, err)
	tb.Cleanup(func() { mustBe(tb, root.Close()) })
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	w.Domain, err = compose.Open(w.engine, oneFolder{root}, &compose.Options{Now: opts.Now, Logger: logger})
	mustBe(tb, err)
	if opts.Events != nil {
		writer := kv.NewWriter(w.engine, nil)
		tb.Cleanup(func() { mustBe(tb, writer.Close()) })
		if opts.Events == nil {
			opts.Events = &events.Options{}
		}
		opts.Events.Admit = topics.NewRules(nil, nil, nil, nil).Admit
		w.Events = events.New(w.engine, writer, opts.Events)
		tb.Cleanup(func() { mustBe(tb, w.Events.Close()) })
	}
	deps := *w.Loom()
	deps.Tenant = tenantOf
	deps.Options = opts.Loom
	deps.Options.Draining, deps.Options.Now, deps.Options.Logger = w.draining, opts.Now, logger
	w.listen(deps, opts.Sent)
	w.stopOnce = sync.OnceFunc(func() {
		w.server.Stop()
		if err := w.Close(); err != nil && !w.engine.dead.Load() {
			tb.Errorf("close: %v", err)
		}
	})
	tb.Cleanup(w.stopOnce)
	conn, _ := w.dial()
	w.bridge, w.bus, w.runtime = loomv1pb.NewBridgeClient(conn), loomv1pb.NewEventBusClient(conn), loomv1pb.NewAgentRuntimeClient(conn)
	return w
}

// heardStream calls a function after each send.
type heardStream struct {
	grpc.ServerStream
	sent func(ctx context.Context, message any)
}

// SendMsg sends a message.
func (s heardStream) SendMsg(message any) error {
	err := s.ServerStream.SendMsg(message)
	if s.sent != nil {
		s.sent(s.Context(), message)
	}
	return err
}

func mustBe(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// tenantOf is the tenant that a test's client names, or the default one.
func tenantOf(ctx context.Context) (string, error) {
	if named := metadata.ValueFromIncomingContext(ctx, tenantHeader); len(named) > 0 {
		return named[0], nil
	}
	return "default", nil
}

func (w *loomWorld) listen(deps loomv1.Deps, sent func(context.Context, any)) {
	w.tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	mustBe(w.tb, err)
	w.address = listener.Addr().String()
	w.server = grpc.NewServer(grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		defer w.ended.Add(1)
		return next(srv, heardStream{s, sent})
	}))
	loomv1.Register(w.server, deps)
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(listener) }()
	w.tb.Cleanup(func() {
		w.stopOnce()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			w.tb.Errorf("serve: %v", err)
		}
	})
}

// dial connects to the server. The function breaks the connection as a dead
// process or a pulled plug does: without a word of HTTP/2.
func (w *loomWorld) dial(opts ...grpc.DialOption) (conn *grpc.ClientConn, cut func()) {
	w.tb.Helper()
	var mu sync.Mutex
	var sockets []net.Conn
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		socket, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		mu.Lock()
		defer mu.Unlock()
		sockets = append(sockets, socket)
		return socket, err
	}
	opts = append(opts, grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("passthrough:///"+w.address, opts...)
	mustBe(w.tb, err)
	w.tb.Cleanup(func() { _ = conn.Close() })
	return conn, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}
}

// kill ends the server as kill -9 does: from one moment on it writes nothing any
// more. Its engine can be opened again.
func (w *loomWorld) kill() {
	w.tb.Helper()
	w.engine.dead.Store(true)
	w.stopOnce()
}

// settled waits until something is so.
func settled(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(waitTime); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not so: %s", what)
		}
	}
}

// streams waits until an agent has as many streams open.
func (w *loomWorld) streams(id string, n int) {
	w.tb.Helper()
	settled(w.tb, "open streams of "+id, func() bool {
		a, _ := w.Agents.Get("default", id)
		return a.Streams == n
	})
}

// register registers an agent as loom-py does, with its mailbox.
func (w *loomWorld) register(id string, topics ...string) {
	w.tb.Helper()
	res, err := w.bridge.RegisterAgent(w.tb.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: id, SubscribedTopics: append(topics, "agent."+id+".replies"),
	})
	if err != nil || !res.GetSuccess() {
		w.tb.Fatalf("register %s: %v %v", id, res, err)
	}
}

// publish gives an event to the bus as a native client does that is no agent.
func (w *loomWorld) publish(topic, id string) {
	w.tb.Helper()
	res, err := w.bus.Publish(w.tb.Context(), &loomv1pb.PublishRequest{Topic: topic, Event: &loomv1pb.Event{Id: id, Type: "test"}})
	if err != nil || !res.GetSuccess() {
		w.tb.Fatalf("publish %s: %v %v", id, res, err)
	}
}

// mortalEngine writes nothing once it is dead.
type mortalEngine struct {
	kv.Engine
	dead atomic.Bool
}

var errDead = errors.New("the process is dead")

func (e *mortalEngine) Commit(ctx context.Context, c kv.Commit) error {
	if e.dead.Load() {
		return errDead
	}
	return e.Engine.Commit(ctx, c)
}

// logText holds what a server logged. All methods are safe for concurrent use.
type logText struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// rawStream is a stream of an agent, message by message.
type rawStream struct {
	grpc.BidiStreamingClient[loomv1pb.ClientEvent, loomv1pb.ServerEvent]
	tb     testing.TB
	events chan *loomv1pb.ServerEvent
	end    chan error // one error: what ended the stream; io.EOF for OK
	cancel context.CancelFunc
	conn   *grpc.ClientConn
	cut    func() // breaks its connection
}

// open opens a stream on a connection of its own and waits for its headers.
func (w *loomWorld) open(id string) *rawStream {
	w.tb.Helper()
	s := w.openUnread(id)
	go s.read()
	return s
}

// openUnread is open for an agent that takes nothing.
func (w *loomWorld) openUnread(id string) *rawStream {
	w.tb.Helper()
	s := w.connect()
	s.send(ackOf(id))
	_, err := s.Header()
	mustBe(w.tb, err)
	return s
}

// connect begins a stream, says nothing on it and reads nothing from it yet.
func (w *loomWorld) connect() *rawStream {
	w.tb.Helper()
	conn, cut := w.dial()
	ctx, cancel := context.WithCancel(w.tb.Context())
	w.tb.Cleanup(cancel)
	stream, err := loomv1pb.NewBridgeClient(conn).EventStream(ctx)
	mustBe(w.tb, err)
	return &rawStream{
		BidiStreamingClient: stream, tb: w.tb, cancel: cancel, conn: conn, cut: cut,
		events: make(chan *loomv1pb.ServerEvent, 16_384), end: make(chan error, 1),
	}
}

func (s *rawStream) read() {
	for {
		message, err := s.Recv()
		if err != nil {
			s.end <- err
			return
		}
		s.events <- message
	}
}

func (s *rawStream) send(message *loomv1pb.ClientEvent) {
	s.tb.Helper()
	if err := s.Send(message); err != nil {
		s.tb.Fatalf("send: %v", err)
	}
}

func (s *rawStream) publish(topic string, e *loomv1pb.Event) {
	s.tb.Helper()
	s.send(publishOf(topic, e))
}

// next is the next message.
func (s *rawStream) next() *loomv1pb.ServerEvent {
	s.tb.Helper()
	return await(s.tb, s.events)
}

// delivery is the next message, which must be a delivery.
func (s *rawStream) delivery() *loomv1pb.Delivery {
	s.tb.Helper()
	message := s.next()
	if message.GetDelivery() == nil {
		s.tb.Fatalf("got %v, want a delivery", message)
	}
	return message.GetDelivery()
}

// ids are those of the next deliveries, n of them and no more.
func (s *rawStream) ids(n int) []string {
	s.tb.Helper()
	var ids []string
	for range n {
		ids = append(ids, s.delivery().GetEvent().GetId())
	}
	s.silent()
	return ids
}

// silent fails if anything comes.
func (s *rawStream) silent() {
	s.tb.Helper()
	select {
	case message := <-s.events:
		s.tb.Errorf("got %v, want nothing", message)
	case <-time.After(quiet):
	}
}

// unavailable waits for the end of the stream and wants it UNAVAILABLE, with a
// reason that has these words.
func (s *rawStream) unavailable(words ...string) {
	s.tb.Helper()
	wantCode(s.tb, "end of the stream", await(s.tb, s.end), codes.Unavailable, words...)
}

func ackOf(id string) *loomv1pb.ClientEvent {
	return &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: id}}}
}

func publishOf(topic string, e *loomv1pb.Event) *loomv1pb.ClientEvent {
	return &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{Publish: &loomv1pb.Publish{Topic: topic, Event: e}}}
}

func pingOf() *loomv1pb.ClientEvent {
	return &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ping{Ping: &loomv1pb.HeartbeatRequest{}}}
}

// sdkAgent behaves as an agent of loom-py does: it registers with its mailbox,
// opens a stream, and takes what comes strictly one at a time. A delivery that
// carries the correlation id of a request resolves it; then the handler runs. A
// tool call is answered.
type sdkAgent struct {
	id      string
	handler func(a *sdkAgent, topic string, e *loomv1pb.Event)
	tools   map[string]func(arguments string) (output string, err error)

	tb     testing.TB
	bridge loomv1pb.BridgeClient
	stream grpc.BidiStreamingClient[loomv1pb.ClientEvent, loomv1pb.ServerEvent]
	out    chan *loomv1pb.ClientEvent
	ended  chan error

	mu       sync.Mutex
	pending  map[string]chan *loomv1pb.Event // guarded by mu
	received []string                        // guarded by mu: ids of the deliveries
}

// MustSDK starts an agent that ends with the test. The handler may be nil.
func MustSDK(w *loomWorld, id string, topics []string, handler func(a *sdkAgent, topic string, e *loomv1pb.Event), tools map[string]func(string) (string, error)) *sdkAgent {
	w.tb.Helper()
	conn, _ := w.dial()
	a := &sdkAgent{
		id: id, handler: handler, tools: tools, tb: w.tb, bridge: loomv1pb.NewBridgeClient(conn),
		out: make(chan *loomv1pb.ClientEvent, 1024), ended: make(chan error, 1), pending: map[string]chan *loomv1pb.Event{},
	}
	a.register(topics)
	ctx, stop := context.WithCancel(w.tb.Context())
	stream, err := a.bridge.EventStream(ctx)
	mustBe(w.tb, err)
	a.stream = stream
	a.out <- ackOf(id)
	running := sync.WaitGroup{}
	running.Go(func() { a.sendAll(ctx) })
	running.Go(func() { a.ended <- a.receiveAll() })
	w.tb.Cleanup(func() {
		stop()
		running.Wait()
	})
	w.streams(id, 1)
	return a
}

func (a *sdkAgent) register(topics []string) {
	a.tb.Helper()
	req := &loomv1pb.AgentRegisterRequest{AgentId: a.id, SubscribedTopics: append(topics, "agent."+a.id+".replies")}
	for name := range a.tools {
		req.Tools = append(req.Tools, &loomv1pb.ToolDescriptor{Name: name, ParametersSchema: "{}"})
	}
	res, err := a.bridge.RegisterAgent(a.tb.Context(), req)
	if err != nil || !res.GetSuccess() {
		a.tb.Fatalf("register %s: %v %v", a.id, res, err)
	}
}

func (a *sdkAgent) sendAll(ctx context.Context) {
	for {
		select {
		case message := <-a.out:
			if a.stream.Send(message) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (a *sdkAgent) receiveAll() error {
	for {
		message, err := a.stream.Recv()
		if err != nil {
			return err
		}
		switch m := message.GetMsg().(type) {
		case *loomv1pb.ServerEvent_Delivery:
			a.deliver(m.Delivery)
		case *loomv1pb.ServerEvent_ToolCall:
			a.out <- &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: a.runTool(m.ToolCall)}}
		}
	}
}

func (a *sdkAgent) deliver(d *loomv1pb.Delivery) {
	a.mu.Lock()
	a.received = append(a.received, d.GetEvent().GetId())
	waiting := a.pending[envelopeOf(d.GetEvent(), "correlation_id")]
	a.mu.Unlock()
	if waiting != nil {
		select {
		case waiting <- d.GetEvent():
		default:
		}
	}
	if a.handler != nil {
		a.handler(a, d.GetTopic(), d.GetEvent())
	}
}

func (a *sdkAgent) runTool(call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
	result := &loomv1pb.ToolResult{Id: call.GetId(), Status: loomv1pb.ToolStatus_TOOL_ERROR}
	tool := a.tools[call.GetName()]
	if tool == nil {
		result.Error = &loomv1pb.ToolError{Code: "NOT_FOUND", Message: "no tool " + call.GetName()}
		return result
	}
	arguments := call.GetArguments()
	if arguments == "" {
		arguments = "{}"
	}
	output, err := tool(arguments)
	if err != nil {
		result.Error = &loomv1pb.ToolError{Code: "TOOL_ERROR", Message: err.Error()}
		return result
	}
	result.Status, result.Output = loomv1pb.ToolStatus_TOOL_OK, output
	return result
}

// envelopeOf reads a key of the envelope as loom-py does: the one it writes, then
// the bare one.
func envelopeOf(e *loomv1pb.Event, key string) string {
	if value := e.GetMetadata()["loom."+key]; value != "" {
		return value
	}
	return e.GetMetadata()[key]
}

// emit publishes an event, as ctx.emit does.
func (a *sdkAgent) emit(topic, id, payload string, own map[string]string) {
	m := map[string]string{"loom.sender": a.id}
	for key, value := range own {
		m[key] = value
	}
	a.out <- publishOf(topic, &loomv1pb.Event{
		Id: id, Type: "message", TimestampMs: time.Now().UnixMilli(), Source: "python", Metadata: m,
		Payload: []byte(payload), Confidence: 1, Priority: 50,
	})
}

// request publishes an event and waits for its answer, as ctx.request does: the
// event's id is the correlation id, and the metadata names neither that nor where
// to answer.
func (a *sdkAgent) request(topic, id, payload string) (*loomv1pb.Event, error) {
	answer := make(chan *loomv1pb.Event, 1)
	a.mu.Lock()
	a.pending[id] = answer
	a.mu.Unlock()
	a.emit(topic, id, payload, nil)
	select {
	case e := <-answer:
		return e, nil
	case <-time.After(time.Minute):
		return nil, errors.New("request timed out")
	}
}

// reply answers an event, as ctx.reply does.
func (a *sdkAgent) reply(to *loomv1pb.Event, id, payload string) {
	topic := envelopeOf(to, "reply_to")
	correlation := envelopeOf(to, "correlation_id")
	if correlation == "" {
		correlation = to.GetId()
	}
	a.emit(topic, id, payload, map[string]string{"loom.correlation_id": correlation})
}

// heard are the ids of the deliveries so far.
func (a *sdkAgent) heard() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.received...)
}

// endsWithOK reads a stream until it ends, and wants that to be OK.
func endsWithOK(tb testing.TB, end <-chan error) {
	tb.Helper()
	if err := await(tb, end); !errors.Is(err, io.EOF) {
		tb.Errorf("stream ended with %v, want OK", status.Convert(err))
	}
}
