package server_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// A caller without a credential is refused by its headers alone: the server
// never waits for a message, of which it would have to hold what has come.
func TestStrangersAreRefusedBeforeTheirMessage(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	everyMethod(func(method string, _ protoreflect.MethodDescriptor) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream, err := s.Conn().NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		must(t, err)
		MustFail(t, stream.RecvMsg(&loombridgev1.ToolResponse{}), codes.Unauthenticated, "UNAUTHENTICATED")
	})
}

// Whoever has no credential can't fill the log either: a line a second says how
// many there were.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	var log lockedBuffer
	s := servertest.Start(t, &servertest.Options{
		Server: server.Options{Credentials: MustCredentials(t, callers())},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	knock := func() {
		_, err := s.Admin.GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
		MustFail(t, err, codes.Unauthenticated, "UNAUTHENTICATED")
	}
	for range 10 {
		knock()
	}
	s.Clock.Advance(time.Second)
	knock()
	if got := log.String(); strings.Count(got, "code=Unauthenticated") != 2 || !strings.Contains(got, "calls_not_logged=9") {
		t.Errorf("log:\n%s", got)
	}
}

func watchHealth(ctx context.Context, conn *grpc.ClientConn, service string) error {
	stream, err := grpc_health_v1.NewHealthClient(conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}

// checkHealth makes one check.
func checkHealth(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// Health needs no credential, so what it can make the server hold is bounded: a
// connection has few calls of it, watches are bounded in all, and neither these nor
// calls whose message never comes keep anybody from a check.
func TestHealthIsBounded(t *testing.T) {
	const ofConnection, watches, unheard = 8, 512, 32
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for n := 0; n < watches; n += ofConnection {
		conn := s.Dial(t)
		for range ofConnection {
			must(t, watchHealth(ctx, conn, ""))
		}
		if n == 0 {
			MustFail(t, watchHealth(ctx, conn, ""), codes.Unavailable, "OVERLOADED")
			MustFail(t, checkHealth(ctx, conn), codes.Unavailable, "OVERLOADED")
		}
	}
	MustFail(t, watchHealth(ctx, s.Dial(t), ""), codes.Unavailable, "OVERLOADED")
	for n := 0; n < 2*unheard; n += ofConnection {
		conn := s.Dial(t)
		for range ofConnection {
			_, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, grpc_health_v1.Health_Check_FullMethodName)
			must(t, err)
		}
	}
	must(t, checkHealth(ctx, s.Conn()))
	cancel()
	deadline, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for err := codes.Unavailable; err == codes.Unavailable && deadline.Err() == nil; {
		err = codeOf(watchHealth(deadline, s.Conn(), ""))
	}
	must(t, deadline.Err())
}

func TestHealthOfAnEndlessName(t *testing.T) {
	s := servertest.Start(t, nil)
	name := strings.Repeat("x", 257)
	MustFail(t, watchHealth(t.Context(), s.Conn(), name), codes.InvalidArgument, "INVALID_REQUEST")
	_, err := grpc_health_v1.NewHealthClient(s.Conn()).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// nested is a Tool request of about that many bytes whose arguments are lists
// within lists, as deep as they go, with text at the bottom that is not UTF-8.
func nested(bytes int) []byte {
	const values, listValue, value, fields, arguments = 1, 6, 2, 1, 3 // field numbers
	text := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "a\xffb")
	// Written from the back: a length stands before what it counts.
	raw := make([]byte, bytes+len(text))
	at := len(raw) - copy(raw[bytes:], text)
	wrap := func(number protowire.Number) {
		head := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(len(raw)-at))
		at -= copy(raw[at-len(head):], head)
	}
	for at > 32 {
		wrap(values)
		wrap(listValue)
	}
	wrap(value)
	wrap(fields)
	wrap(arguments)
	return raw[at:]
}

// A request that nests without end is refused without following it: that took a
// gigabyte of stack and an hour once.
func TestEndlesslyNestedMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	conn := s.Dial(t, grpc.WithDefaultCallOptions(forceRaw()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := conn.Invoke(ctx, loombridgev1.BridgeService_Tool_FullMethodName, nested(4<<20-64), &loombridgev1.ToolResponse{})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
