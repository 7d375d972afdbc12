package server_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// Subscribers that never read durable events hold no more than the room for what waits for
// readers, however many they are, and give it back when they leave.
func TestSubscribersThatNeverRead(t *testing.T) {
	const (
		readers, events, size = 60, 6, 900 << 10
		room                  = 24 << 20
	)
	limits := server.Limits{MaxAnswerBytes: room}
	shares := server.NewShares(limits, true)
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: limits, Shares: shares}})
	for range events {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "large", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, size)},
		})
		must(t, err)
	}
	before := heapBytes()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var begun sync.WaitGroup
	begin := int64(0)
	for i := range readers {
		conn := s.Dial(t, grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
		stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
			// No agent gets all of the room.
			AgentId: fmt.Sprint("reader", i%4), Topics: []*loombridgev1.TopicPosition{{Topic: "large", AfterSequence: &begin}},
		})
		must(t, err)
		begun.Go(func() { _, _ = stream.Header() })
	}
	MustBecome(t, "the room is used", func() bool { return shares.Answers.Held() > room*3/4 })
	if held := shares.Answers.Held(); held > room {
		t.Errorf("%d bytes are held, of %d", held, room)
	}
	// Each connection has buffers and windows at both ends, which are in this process. What was
	// refused room gives its buffers back to pools, which collections empty one after another.
	const clients = readers * 640 << 10
	MustBecome(t, "the readers take no more than the setting says", func() bool {
		return heapBytes()-before <= room*5/4+clients
	})
	leave()
	begun.Wait()
	MustBecome(t, "all is given back", func() bool {
		runtime.GC()
		return shares.Answers.Held() == 0
	})
	_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "b", Text: "a neighbour's note"})
	must(t, err)
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
