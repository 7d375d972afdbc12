package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/observe"
)

func codeOf(err error) codes.Code { return status.Code(err) }

// everyMethod calls f with every RPC of the API.
func everyMethod(f func(method string, d protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("loombridge.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				f("/"+string(service.FullName())+"/"+string(m.Name()), m)
			}
		}
		return true
	})
}

// call makes one call with a message of any type and drops the answer.
func call(ctx context.Context, conn *grpc.ClientConn, method string, d protoreflect.MethodDescriptor, in any) error {
	out := dynamicpb.NewMessage(d.Output())
	if !d.IsStreamingServer() {
		return conn.Invoke(ctx, method, in, out)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(in); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(out)
}

// A check that was forgotten fails here and not on a user's call.
func TestEveryMethodChecksItsRequest(t *testing.T) {
	s := servertest.Start(t, nil)
	methods := 0
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		methods++
		err := call(t.Context(), s.Conn(), method, d, dynamicpb.NewMessage(d.Input()))
		switch name := d.Name(); {
		case name == "CreateBackup" || name == "ListBackups": // nothing in them can be wrong
			MustFail(t, err, codes.FailedPrecondition, "NO_BACKUP_FOLDER")
			return
		case d.Input().Fields().Len() == 0 || name == "ListScopes" || name == "ListMcpServers" || name == "GetStatus": // all that it has may be left out
			must(t, err)
			return
		}
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if fields := fieldsOf(err); len(fields) == 0 || fields[0] != firstField(d) && !strings.HasPrefix(fields[0], firstField(d)+".") {
			t.Errorf("%s: fields %v", method, fields)
		}
	})
	if methods < 44 {
		t.Errorf("%d methods", methods)
	}
}

// firstField is the field that every request needs: who calls.
func firstField(d protoreflect.MethodDescriptor) string {
	return string(d.Input().Fields().ByNumber(1).Name())
}

// rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func forceRaw() grpc.CallOption {
	return grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2(protocodec.Name)})
}

// Text that is not UTF-8, and bytes that are no message, are typed errors of
// every RPC.
func TestUndecodableMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	conn := s.Dial(t, grpc.WithDefaultCallOptions(forceRaw()))
	badText := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "a\xffb")
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		for name, raw := range map[string][]byte{"bad UTF-8": badText, "no message": {0xff}} {
			err := call(t.Context(), conn, method, d, raw)
			text := d.Input().Fields().ByNumber(1)
			if name == "bad UTF-8" && (text == nil || text.Kind() != protoreflect.StringKind) {
				continue
			}
			if codeOf(err) != codes.InvalidArgument || infoOf(err).GetReason() != "INVALID_REQUEST" {
				t.Errorf("%s with %s: %v", method, name, err)
			}
			if name == "bad UTF-8" && !slices.Equal(fieldsOf(err), []string{string(text.Name())}) {
				t.Errorf("%s: fields %v, want %s", method, fieldsOf(err), text.Name())
			}
		}
	})
}

func TestBadTextInsideIsNamed(t *testing.T) {
	s := servertest.Start(t, nil)
	text := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "a\xffb")
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), text)
	conn := s.Dial(t, grpc.WithDefaultCallOptions(forceRaw()))
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		if d.Name() != "Subscribe" {
			return
		}
		err := call(t.Context(), conn, method, d, raw)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if diff := cmp.Diff([]string{"topics.topic"}, fieldsOf(err)); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	})
}

func TestOversizeMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	conn := s.Dial(t, grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20)))
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		sizes := []int{4<<20 + 1, 16 << 20}
		if testing.Short() && !strings.HasSuffix(method, "/MemorySave") { // gRPC refuses the largest before it knows the method
			sizes = sizes[:1]
		}
		for _, size := range sizes {
			message := dynamicpb.NewMessage(d.Input())
			padding := protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), make([]byte, size))
			message.SetUnknown(padding)
			err := call(t.Context(), conn, method, d, message)
			if codeOf(err) != codes.ResourceExhausted {
				t.Errorf("%s with %d bytes: %v", method, size, err)
			}
			if small := size < 8<<20; small && infoOf(err).GetReason() != "TOO_LARGE" {
				t.Errorf("%s with %d bytes: %v", method, size, err)
			}
		}
	})
}

// fakeMemory answers a query as the test wants.
type fakeMemory struct {
	server.Memory
	query func(ctx context.Context) (memory.Answer, error)
}

func (f fakeMemory) QueryScopes(ctx context.Context, _ []kv.Scope, _ question.Question) (memory.Answer, error) {
	return f.query(ctx)
}

// StartWithQuery starts a server whose MemoryQuery is the function.
func StartWithQuery(tb testing.TB, o servertest.Options, query func(ctx context.Context) (memory.Answer, error)) *servertest.Server {
	tb.Helper()
	o.Wrap = func(s server.Services) server.Services {
		s.Memory = fakeMemory{s.Memory, query}
		return s
	}
	return servertest.Start(tb, &o)
}

func query(ctx context.Context, s *servertest.Server) error {
	_, err := s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "x"})
	return err
}

func TestAnswersTooLargeToSend(t *testing.T) {
	hits := make([]memory.Hit, 100)
	for i := range hits {
		hits[i].Record.Text = strings.Repeat("x", 256<<10)
	}
	s := StartWithQuery(t, servertest.Options{}, func(context.Context) (memory.Answer, error) {
		return memory.Answer{Hits: hits}, nil
	})
	MustFail(t, query(t.Context(), s), codes.ResourceExhausted, "TOO_LARGE")
}

// lockedBuffer is a log that a test can read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A fault of the server is told to the log in full, and to the client not at
// all.
func TestFaultsAreLoggedAndHidden(t *testing.T) {
	for name, fault := range map[string]func() (memory.Answer, error){
		"panic":   func() (memory.Answer, error) { panic("secret detail") },
		"unknown": func() (memory.Answer, error) { return memory.Answer{}, errors.New("secret detail") },
		"full": func() (memory.Answer, error) {
			return memory.Answer{}, errors.Join(kv.ErrFull, errors.New("secret detail"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &lockedBuffer{}
			o := servertest.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}
			s := StartWithQuery(t, o, func(context.Context) (memory.Answer, error) { return fault() })
			err := query(t.Context(), s)
			if name == "full" {
				MustFail(t, err, codes.ResourceExhausted, "STORAGE_FULL")
			} else {
				MustFail(t, err, codes.Internal, "INTERNAL")
			}
			if strings.Contains(status.Convert(err).Message(), "secret") {
				t.Errorf("client got %v", err)
			}
			if text := log.String(); strings.Count(text, "secret detail") == 0 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "agent="+agent) {
				t.Errorf("log = %q", text)
			}
			must(t, reachable(t, s))
		})
	}
}

func reachable(tb testing.TB, s *servertest.Server) error {
	tb.Helper()
	_, err := s.Admin.GetStatus(tb.Context(), &loombridgev1.GetStatusRequest{})
	return err
}

// The log has a line for what was refused, and none for what went well.
func TestLogIsQuiet(t *testing.T) {
	log := &lockedBuffer{}
	s := servertest.Start(t, &servertest.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	for range 10 {
		must(t, reachable(t, s))
	}
	if log.String() != "" {
		t.Errorf("log = %q", log.String())
	}
	_, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: agent, Name: "no:such", Thought: "private"})
	MustFail(t, err, codes.NotFound, "TOOL_NOT_FOUND")
	line := log.String()
	for _, want := range []string{"level=INFO", "method=/loombridge.v1.BridgeService/Tool", "code=NotFound", "reason=TOOL_NOT_FOUND", "agent=" + agent} {
		if !strings.Contains(line, want) {
			t.Errorf("log %q lacks %q", line, want)
		}
	}
	if strings.Contains(line, "private") || strings.Contains(line, "no:such") {
		t.Errorf("payload in the log: %q", line)
	}
}

func TestTooManyCalls(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	o := servertest.Options{Server: server.Options{Limits: server.Limits{MaxCalls: 1, MaxWaitingCalls: -1}}}
	s := StartWithQuery(t, o, func(context.Context) (memory.Answer, error) {
		close(entered)
		<-release
		return memory.Answer{}, nil
	})
	first := make(chan error, 1)
	go func() { first <- query(t.Context(), s) }()
	<-entered
	MustFail(t, reachable(t, s), codes.Unavailable, "OVERLOADED")
	if _, err := grpc_health_v1.NewHealthClient(s.Conn()).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("health under load: %v", err)
	}
	close(release)
	must(t, <-first)
	must(t, reachable(t, s))
}

func TestTooManyStreams(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{MaxStreams: 1}}})
	topics := &loombridgev1.SubscribeRequest{AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news"}}}
	MustSubscribe(t, t.Context(), s.Events, topics)
	second, err := s.Events.Subscribe(t.Context(), topics)
	must(t, err)
	_, err = second.Recv()
	MustFail(t, err, codes.Unavailable, "OVERLOADED")
}

// A client that stops reading is cut off; what it was sent is bounded by flow
// control, and the handler that waited for it is gone.
func TestSlowConsumer(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{StallTimeout: 100 * time.Millisecond, MaxStreams: 1}}})
	topics := &loombridgev1.SubscribeRequest{AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "flood"}}}
	stream, _ := MustSubscribe(t, t.Context(), s.Events, topics)
	payload := bytes.Repeat([]byte{'x'}, 64<<10)
	const events = 64
	for range events {
		MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "flood", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload}})
	}
	waitForStream(t, s, topics)
	received := 0
	for {
		_, err := stream.Recv()
		if err == nil {
			received++
			continue
		}
		MustFail(t, err, codes.ResourceExhausted, "SLOW_CONSUMER")
		break
	}
	if received == 0 || received >= events/2 {
		t.Errorf("%d of %d events were on their way to a client that did not read", received, events)
	}
}

// waitForStream returns when the one stream allowed is free again. The reader
// that stalled frees it, so this ends with the stall.
func waitForStream(tb testing.TB, s *servertest.Server, topics *loombridgev1.SubscribeRequest) {
	tb.Helper()
	for {
		stream, err := s.Events.Subscribe(tb.Context(), topics)
		must(tb, err)
		_, err = stream.Recv()
		if err == nil {
			return
		}
		MustFail(tb, err, codes.Unavailable, "OVERLOADED")
	}
}

// At shutdown streams end with UNAVAILABLE, calls in flight finish, and health
// says so.
func TestShutdownDrains(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := StartWithQuery(t, servertest.Options{}, func(context.Context) (memory.Answer, error) {
		close(entered)
		<-release
		return memory.Answer{}, nil
	})
	stream, _ := MustSubscribe(t, t.Context(), s.Events, &loombridgev1.SubscribeRequest{AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news"}}})
	health, err := grpc_health_v1.NewHealthClient(s.Conn()).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	must(t, err)
	_, err = health.Recv()
	must(t, err)
	reflection, err := grpc_reflection_v1.NewServerReflectionClient(s.Conn()).ServerReflectionInfo(t.Context())
	must(t, err)
	running := make(chan error, 1)
	go func() { running <- query(t.Context(), s) }()
	<-entered

	stopped := make(chan error, 1)
	go func() { stopped <- s.Face.Shutdown(context.Background()) }()
	_, err = stream.Recv()
	MustFail(t, err, codes.Unavailable, "SHUTTING_DOWN")
	_, err = reflection.Recv()
	MustFail(t, err, codes.Unavailable, "SHUTTING_DOWN")
	for err = nil; err == nil; _, err = health.Recv() {
	}
	MustFail(t, err, codes.Unavailable, "SHUTTING_DOWN")
	close(release)
	must(t, <-running)
	must(t, <-stopped)
}

// A call that does not end is cancelled when the drain is over.
func TestShutdownIsBounded(t *testing.T) {
	entered := make(chan struct{})
	o := servertest.Options{Server: server.Options{Limits: server.Limits{DrainTimeout: 50 * time.Millisecond}}}
	s := StartWithQuery(t, o, func(ctx context.Context) (memory.Answer, error) {
		close(entered)
		<-ctx.Done()
		return memory.Answer{}, ctx.Err()
	})
	running := make(chan error, 1)
	go func() { running <- query(t.Context(), s) }()
	<-entered
	must(t, s.Face.Shutdown(context.Background()))
	if err := <-running; codeOf(err) != codes.Unavailable {
		t.Errorf("err = %v", err)
	}
}

func TestShutdownGivesUp(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	o := servertest.Options{Server: server.Options{Limits: server.Limits{DrainTimeout: time.Millisecond}}}
	s := StartWithQuery(t, o, func(context.Context) (memory.Answer, error) {
		close(entered)
		<-release
		return memory.Answer{}, nil
	})
	go func() { _ = query(t.Context(), s) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Face.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	close(release)
}

func TestMetricsCountCalls(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Metrics: observe.NewMetrics(registry)}})
	must(t, reachable(t, s))
	MustFail(t, query(t.Context(), &servertest.Server{Bridge: loombridgev1.NewBridgeServiceClient(s.Dial(t, grpc.WithUnaryInterceptor(emptied)))}), codes.InvalidArgument, "INVALID_REQUEST")
	families, err := registry.Gather()
	must(t, err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "grpc_server_handled_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := ""
			for _, label := range metric.GetLabel() {
				if name := label.GetName(); name == "grpc_method" || name == "grpc_code" {
					key += label.GetValue() + " "
				}
			}
			counts[key] += metric.GetCounter().GetValue()
		}
	}
	if counts["OK GetStatus "] != 1 || counts["InvalidArgument MemoryQuery "] != 1 {
		t.Errorf("counts = %v", counts)
	}
}

// emptied replaces every request by an empty one of its type.
func emptied(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	empty := req.(proto.Message).ProtoReflect().New().Interface()
	return next(ctx, method, empty, reply, conn, opts...)
}

// Whatever a request does wrong, the answer fits what clients take of metadata.
func TestErrorsFitTheTrailers(t *testing.T) {
	s := servertest.Start(t, nil)
	request := &loombridgev1.MemorySaveRequest{AgentId: strings.Repeat("ä", 300), Id: strings.Repeat("日", 300)}
	for range 200 {
		request.DerivedFrom = append(request.DerivedFrom, strings.Repeat("ö", 200))
		request.Tags = append(request.Tags, strings.Repeat("ü", 200))
	}
	_, err := s.Bridge.MemorySave(t.Context(), request)
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	st := status.Convert(err)
	if size := proto.Size(st.Proto()); size > 4<<10 {
		t.Errorf("status of %d bytes", size)
	}
	if len(st.Message()) > 640 || len(fieldsOf(err)) == 0 {
		t.Errorf("message of %d bytes, fields %v", len(st.Message()), fieldsOf(err))
	}
	for _, detail := range st.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.GetFieldViolations()) == 0 {
			t.Error("no violation was left")
		}
	}
}

func TestReadBlobStopsWithItsReader(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{StallTimeout: 100 * time.Millisecond, MaxStreams: 1}}})
	MustWrite(t, s, "big.txt", strings.Repeat("0123456789abcdef", 1<<19))
	blob := MustRead(t, s, agent, "big.txt").GetOutputBlob()
	stream, err := s.Context.ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: agent, Name: blob.GetRef()})
	must(t, err)
	_, err = stream.Recv()
	must(t, err)
	waitForStream(t, s, &loombridgev1.SubscribeRequest{AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news"}}})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Fatal("the blob was sent to a client that did not read")
	}
	MustFail(t, err, codes.ResourceExhausted, "SLOW_CONSUMER")
}
