package server_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// startWithLargeAnswer starts a server with a list of about 200 KiB, and room for one and a
// half such answers that wait for their readers.
func startWithLargeAnswer(t *testing.T, stall time.Duration) (s *servertest.Server, unread func() int64, list func() error) {
	t.Helper()
	limits := server.Limits{MaxAnswerBytes: 300 << 10, StallTimeout: stall}
	shares := server.NewShares(limits, true)
	s = servertest.Start(t, &servertest.Options{Server: server.Options{Limits: limits, Shares: shares}})
	for range 4 {
		remember(t, s, &loombridgev1.MemorySaveRequest{Text: strings.Repeat("words ", 8<<10)})
	}
	return s, shares.Answers.Held, func() error {
		_, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent})
		return err
	}
}

// leftUnread has an event of 200 KiB sent to a subscriber on a connection of its own that
// reads no more, and returns when the server has it on its way.
func leftUnread(t *testing.T, s *servertest.Server, unread func() int64) (stream subscription, leave context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, _ = MustSubscribe(t, ctx, loombridgev1.NewEventServiceClient(s.Dial(t)), &loombridgev1.SubscribeRequest{
		AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "t"}},
	})
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "t", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 200<<10)}})
	eventually(t, func() bool { return unread() > 0 })
	return stream, cancel
}

// What clients don't read takes a bounded room: it comes back when it is read and when its
// stream ends, and who leaves something unread for too long loses the connection once
// others need the room.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("what is read", func(t *testing.T) {
		t.Parallel()
		_, unread, list := startWithLargeAnswer(t, time.Hour)
		for range 20 {
			must(t, list())
		}
		eventually(t, func() bool { return unread() == 0 })
	})
	t.Run("a stream that ends", func(t *testing.T) {
		t.Parallel()
		s, unread, list := startWithLargeAnswer(t, time.Hour)
		_, leave := leftUnread(t, s, unread)
		done := make(chan error, 1)
		go func() { done <- list() }()
		select {
		case err := <-done:
			t.Fatalf("an answer found room that is taken: %v", err)
		case <-time.After(20 * time.Millisecond): // it waits
		}
		leave()
		must(t, <-done)
	})
	t.Run("calls that end at any moment", func(t *testing.T) {
		t.Parallel()
		s, unread, _ := startWithLargeAnswer(t, time.Hour)
		for i := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
			_, _ = s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: agent}) // however it ends
			cancel()
		}
		eventually(t, func() bool {
			runtime.GC() // what the transport dropped is found by it
			return unread() == 0
		})
	})
	t.Run("a reader that stalls", func(t *testing.T) {
		t.Parallel()
		s, unread, list := startWithLargeAnswer(t, 100*time.Millisecond)
		stream, _ := leftUnread(t, s, unread)
		must(t, list())
		for {
			if _, err := stream.Recv(); err != nil {
				MustFail(t, err, codes.Unavailable, "")
				return
			}
		}
	})
	t.Run("an answer that never fits", func(t *testing.T) {
		t.Parallel()
		s, _, list := startWithLargeAnswer(t, time.Hour)
		for range 3 {
			remember(t, s, &loombridgev1.MemorySaveRequest{Text: strings.Repeat("words ", 8<<10)})
		}
		MustFail(t, list(), codes.Unavailable, "OVERLOADED")
	})
}
