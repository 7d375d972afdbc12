package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// flooding is one tenant that does as much as it can, of every sort.
type flooding struct {
	address string
	ctx     context.Context
	work    sync.WaitGroup
	done    atomic.Int64
}

// each makes calls over and over, several at a time. What is refused is the flood's
// own loss.
func (f *flooding) each(tb testing.TB, several int, call func(conn *grpc.ClientConn, i int) error) {
	tb.Helper()
	conn := MustDial(tb, f.address)
	for worker := range several {
		f.work.Go(func() {
			for i := worker; f.ctx.Err() == nil; i += several {
				if call(conn, i) == nil {
					f.done.Add(1)
				} else {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

func (f *flooding) begin(tb testing.TB) {
	tb.Helper()
	bridge := loombridgev1.NewBridgeServiceClient
	payload := make([]byte, 64<<10)
	agent := func(i int) string { return fmt.Sprint("flood-", i%8) }
	f.each(tb, 32, func(c *grpc.ClientConn, i int) error {
		_, err := bridge(c).MemorySave(f.ctx, &loombridgev1.MemorySaveRequest{AgentId: agent(i), Text: strings.Repeat(fmt.Sprint("word", i, " "), 50)})
		return err
	})
	f.each(tb, 32, func(c *grpc.ClientConn, i int) error {
		_, err := bridge(c).MemoryQuery(f.ctx, &loombridgev1.MemoryQueryRequest{AgentId: agent(i), Query: fmt.Sprint("word", i)})
		return err
	})
	f.each(tb, 32, func(c *grpc.ClientConn, i int) error {
		_, err := bridge(c).Tool(f.ctx, &loombridgev1.ToolRequest{AgentId: agent(i), Name: "fs:list_dir"})
		return err
	})
	f.each(tb, 32, func(c *grpc.ClientConn, i int) error {
		_, err := bridge(c).Emit(f.ctx, &loombridgev1.EmitRequest{
			AgentId: agent(i), Topic: fmt.Sprint("flood.", i%64), Delivery: loombridgev1.Delivery(1 + i%2),
			PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload},
		})
		return err
	})
	f.each(tb, 128, func(c *grpc.ClientConn, i int) error { // open, and left alone
		stream, err := loombridgev1.NewEventServiceClient(c).Subscribe(f.ctx, &loombridgev1.SubscribeRequest{
			AgentId: agent(i), Topics: []*loombridgev1.TopicPosition{{Topic: "flood.**"}},
		})
		if err == nil {
			_, err = stream.Recv()
		}
		if err == nil {
			<-f.ctx.Done()
		}
		return err
	})
	hanging := MustDial(tb, f.address)
	provide(tb, f.ctx, hanging, "flood-hanging", "flood:hang", func(*peerStream, pushed) {})
	f.each(tb, 128, func(_ *grpc.ClientConn, _ int) error {
		_, err := bridge(hanging).Tool(f.ctx, &loombridgev1.ToolRequest{AgentId: "flood-hanging", Name: "flood:hang", Timeout: durationpb.New(time.Minute)})
		return err
	})
}

// While one tenant makes calls, opens streams, runs tools, searches and emits as much
// as it can, another one is refused nothing, loses no event, and its tools that call
// tools all answer.
func TestOneTenantAtFullTilt(t *testing.T) {
	dir := t.TempDir()
	p := MustRunWith(t, dir, func(c *Config) {
		c.Retention.Every, c.Sharing.MaxQueuedEventBytes = 100*time.Millisecond, 8e6
	}, "--credentials", MustCallers(t, dir, "busy", "quiet"), "--log-level", "off", "--max-streams", "256", "--events-max-bytes", "4000000")
	quiet := as(t.Context(), "quiet")
	conn := MustDial(t, p.Address)
	emits(t, quiet, conn, "quiet", 20, 1000, 2)
	ctx, cancel := context.WithCancel(as(t.Context(), "busy"))
	flood := &flooding{address: p.Address, ctx: ctx}
	flood.begin(t)
	defer flood.work.Wait()
	defer cancel()

	provide(t, quiet, conn, "research", "agent:research", func(s *peerStream, call pushed) {
		go func() {
			r, err := loombridgev1.NewBridgeServiceClient(conn).Tool(quiet, &loombridgev1.ToolRequest{AgentId: "research", Name: "fs:list_dir"})
			if err == nil {
				err = s.reply(call.id, fmt.Sprintf(`{"ok":%v}`, r.GetSuccess()))
			}
			if err != nil && t.Context().Err() == nil {
				t.Errorf("the inner call: %v", err)
			}
		}()
	})
	length := 1500 * time.Millisecond
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		length = time.Minute
	}
	rounds := 0
	for began := time.Now(); time.Since(began) < length; rounds++ {
		works(t, quiet, conn, "quiet")
		err := together(quiet, 8, func(ctx context.Context) error {
			r, err := loombridgev1.NewBridgeServiceClient(conn).Tool(ctx, &loombridgev1.ToolRequest{AgentId: "asking", Name: "agent:research"})
			if err == nil && !r.GetSuccess() {
				err = errors.New(r.GetErrorMessage())
			}
			return err
		})
		if err != nil {
			t.Errorf("a nested call: %v", err)
		}
	}
	for i := range 2 {
		if first := keptFrom(t, quiet, conn, fmt.Sprint("quiet.", i)); first != 1 {
			t.Errorf("the quiet tenant's events begin with %d", first)
		}
	}
	if flood.done.Load() < 100 {
		t.Errorf("the flood made only %d calls", flood.done.Load())
	}
	t.Logf("%d rounds beside %d calls of the flood", rounds, flood.done.Load())
}
