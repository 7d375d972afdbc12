package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// slowBus lets no publish through until it is released.
type slowBus struct {
	server.Events
	entered, release chan struct{}
}

func (b slowBus) EmitAll(ctx context.Context, tenant string, all []events.Event, opts []events.EmitOptions) []events.EmitResult {
	select {
	case b.entered <- struct{}{}:
	default:
	}
	<-b.release
	return b.Events.EmitAll(ctx, tenant, all, opts)
}

// MustStartSlow starts a server whose bus is slow.
func MustStartSlow(tb testing.TB) (*servertest.Server, *agents.Directory, slowBus) {
	tb.Helper()
	bus := slowBus{entered: make(chan struct{}, 1), release: make(chan struct{})}
	s, directory := MustStartAttached(tb, servertest.Options{Wrap: func(s server.Services) server.Services {
		bus.Events = s.Events
		s.Events = bus
		return s
	}})
	return s, directory, bus
}

// Tool results and heartbeats pass publishes that wait.
func TestAttachResultsPassPublishes(t *testing.T) {
	s, directory, bus := MustStartSlow(t)
	hello := helloOf("busy")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "echo"}}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	for n := range 100 {
		a.publish(int64(n+1), countPublish(n, "news", n%2 == 0))
	}
	<-bus.entered
	a.send(heartbeatMessage(1000))
	a.answer(1000)
	done := relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: "{}"})
	a.send(resultMessage(&loombridgev1.AttachToolResult{CallId: a.call().GetCallId(), Success: true}))
	if _, err := (<-done)(); err != nil || len(a.seen) != 0 {
		t.Errorf("err = %v; answers %v", err, a.seen)
	}
	close(bus.release)
	for n := range 100 {
		a.answer(int64(n + 1))
	}
}

// A stream with too many publishes on their way is not read until there is
// room; then all is done and in order.
func TestAttachPushesBack(t *testing.T) {
	const publishes = 3000
	s, _, bus := MustStartSlow(t)
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("flood"))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for n := range publishes {
			a.publish(int64(n+1), countPublish(n, "news", false))
		}
		a.send(heartbeatMessage(-1))
		must(t, a.stream.CloseSend())
	}()
	<-bus.entered
	close(bus.release)
	var last int64
	for {
		m, err := a.stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		switch ref := m.GetAnswer().GetRef(); {
		case ref == -1 && last < publishes-1024:
			t.Errorf("the heartbeat was read when %d publishes had been answered", last)
		case ref > 0 && ref != last+1:
			t.Fatalf("answer %d after %d", ref, last)
		case ref > 0:
			last = ref
		}
	}
	<-sent
	if last != publishes {
		t.Errorf("%d answers", last)
	}
}

// Large publishes are bounded by their size, too.
func TestAttachBoundsBytes(t *testing.T) {
	s, _, bus := MustStartSlow(t)
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("flood"))
	payload := &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 1<<20)}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for n := range 20 {
			a.publish(int64(n+1), &loombridgev1.EmitRequest{Topic: "big", Delivery: volatileDelivery, PayloadForm: payload})
		}
		a.send(heartbeatMessage(-1))
	}()
	<-bus.entered
	close(bus.release)
	for n := range 20 {
		if answer := a.answer(int64(n + 1)); answer.GetError() != nil {
			t.Fatalf("answer %v", answer)
		}
	}
	<-sent
	a.answer(-1)
}

// A reader that takes nothing is cut off.
func TestAttachStalls(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{Server: server.Options{Limits: server.Limits{StallTimeout: 100 * time.Millisecond}}})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("sleepy", "flood"))
	for range 100 {
		MustEmit(t, s, &loombridgev1.EmitRequest{
			AgentId: agent, Topic: "flood", Delivery: volatileDelivery, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 64<<10)},
		})
	}
	MustBecome(t, "the stream has ended", func() bool {
		got, _ := directory.Get(auth.DefaultTenant, "sleepy")
		return got.Streams == 0
	})
	MustFail(t, a.end(), codes.ResourceExhausted, "SLOW_CONSUMER")
}

// What breaks the protocol ends the stream also while its reader takes nothing.
func TestAttachEndsWhileSending(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("rude", "flood"))
	for range 100 {
		MustEmit(t, s, &loombridgev1.EmitRequest{
			AgentId: agent, Topic: "flood", Delivery: volatileDelivery, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 64<<10)},
		})
	}
	a.send(&loombridgev1.AttachRequest{})
	MustBecome(t, "the stream has ended", func() bool {
		got, _ := directory.Get(auth.DefaultTenant, "rude")
		return got.Streams == 0
	})
	MustFail(t, a.end(), codes.InvalidArgument, "INVALID_REQUEST")
}

// A REALTIME topic drops what the agent is too slow for, and says how much.
func TestAttachCountsDrops(t *testing.T) {
	const emitted = 3000
	s, _ := MustStartAttached(t, servertest.Options{})
	hello := helloOf("slow")
	hello.Topics = []*loombridgev1.TopicPosition{{Topic: "ticks", QualityOfService: loombridgev1.QualityOfService_QUALITY_OF_SERVICE_REALTIME}}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	payload := &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 1<<10)}
	for n := range emitted {
		r := &loombridgev1.EmitRequest{AgentId: agent, Topic: "ticks", PayloadForm: payload, Delivery: volatileDelivery}
		if n%2 == 0 {
			r.Delivery = loombridgev1.Delivery_DELIVERY_DURABLE
		}
		MustEmit(t, s, r)
	}
	var got, dropped int64
	for got+dropped < emitted-512 {
		m, err := a.stream.Recv()
		must(t, err)
		got++
		dropped += m.GetDropped()
	}
	if dropped == 0 {
		t.Errorf("%d events came and none was dropped", got)
	}
}

// Whoever leaves leaves nothing behind.
func TestAttachedAgentsLeaveNothing(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	MustAttach(t, t.Context(), s.Bridge, helloOf("first")).leave()
	before := runtime.NumGoroutine()
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var all []*attachment
		for n := range 40 {
			a := MustAttach(t, ctx, s.Bridge, helloOf(fmt.Sprintf("agent-%d", n), "news", "a.*"))
			a.publish(0, countPublish(round, "news", n%2 == 0))
			all = append(all, a)
		}
		for _, a := range all[:20] {
			a.leave()
		}
		cancel()
	}
	MustBecome(t, "no stream is open", func() bool {
		for n := range 40 {
			if a, _ := directory.Get(auth.DefaultTenant, fmt.Sprintf("agent-%d", n)); a.Streams > 0 {
				return false
			}
		}
		return true
	})
	MustBecome(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

// A fault of the server is told without its cause, which goes into the log.
func TestAttachHidesFaults(t *testing.T) {
	var log lockedBuffer
	s, _ := MustStartAttached(t, servertest.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Wrap: func(s server.Services) server.Services {
			s.Events = brokenBus{s.Events}
			return s
		},
	})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("x"))
	a.publish(1, countPublish(1, "news", false))
	failure := a.answer(1).GetError()
	if failure.GetReason() != loombridgev1.ErrorReason_ERROR_REASON_INTERNAL || strings.Contains(failure.GetMessage(), "secret") {
		t.Errorf("failure %v", failure)
	}
	if !strings.Contains(log.String(), "secret") {
		t.Errorf("log: %s", log.String())
	}
}

// brokenBus fails every publish for a reason that is nobody else's business.
type brokenBus struct{ server.Events }

func (brokenBus) EmitAll(_ context.Context, _ string, all []events.Event, _ []events.EmitOptions) []events.EmitResult {
	results := make([]events.EmitResult, len(all))
	for i := range results {
		results[i].Err = errors.New("a secret of the server")
	}
	return results
}
