package server

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

// sharedCalls are a server's limits of calls, with calls that run until they are let go.
type sharedCalls struct {
	*Server
	running sync.WaitGroup
	let     chan struct{}
}

func newSharedCalls(l Limits) *sharedCalls {
	l = l.Full()
	shares := NewShares(l, false)
	return &sharedCalls{
		Server: &Server{shares: shares, limits: l, unread: unread.NewRoom(shares.Answers, l.MaxAnswerBytes, l.StallTimeout, time.Now)},
		let:    make(chan struct{}),
	}
}

// begin begins calls of a tenant, and returns how many of them run.
func (s *sharedCalls) begin(ctx context.Context, tenant, method string, n int, r, answer proto.Message) (run *atomic.Int64) {
	run = &atomic.Int64{}
	for range n {
		s.running.Go(func() {
			ctx, _ := unread.WithCall(auth.With(ctx, auth.Anyone(tenant)))
			_, _ = s.limitCalls(ctx, r, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
				run.Add(1)
				<-s.let
				return answer, nil
			})
		})
	}
	synctest.Wait()
	return run
}

// Lists and counts of a tenant get its share of half of the processors while another tenant
// is there, which waits for none of them, and leave its own other calls their places.
func TestSearchesAreSharedByTenants(t *testing.T) {
	half := int64(max(1, runtime.GOMAXPROCS(0)/2))
	list, count, save := &loombridgev1.ListRecordsRequest{AgentId: "a"}, &loombridgev1.CountTokensRequest{AgentId: "a"}, &loombridgev1.MemorySaveRequest{AgentId: "a"}
	for method, r := range map[string]proto.Message{
		loombridgev1.MemoryService_ListRecords_FullMethodName:    list,
		loombridgev1.PromptService_CountTokens_FullMethodName:    count,
		loombridgev1.ToolService_ListAudit_FullMethodName:        &loombridgev1.ListAuditRequest{AgentId: "a"},
		loombridgev1.SessionService_ListSessions_FullMethodName:  &loombridgev1.ListSessionsRequest{AgentId: "a"},
		loombridgev1.PromptService_CompressResult_FullMethodName: &loombridgev1.CompressResultRequest{AgentId: "a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSharedCalls(Limits{ContendedCalls: 16})
			neighbour := s.begin(t.Context(), "neighbour", loombridgev1.BridgeService_MemorySave_FullMethodName, 1, save, nil)
			flood := s.begin(t.Context(), "flood", method, 200, r, nil)
			if got := flood.Load(); got < 1 || got > half {
				t.Errorf("%s: %d of 200 calls of a tenant run at once, want 1 to %d", method, got, half)
			}
			own := s.begin(t.Context(), "flood", loombridgev1.BridgeService_MemorySave_FullMethodName, 4, save, nil)
			theirs := s.begin(t.Context(), "neighbour", method, 1, r, nil)
			if own.Load() != 4 || neighbour.Load() != 1 || theirs.Load() != 1 {
				t.Errorf("%s: %d of 4 saves of the same tenant, %d of 1 and %d of 1 calls of another run", method, own.Load(), neighbour.Load(), theirs.Load())
			}
			close(s.let)
			s.running.Wait()
			time.Sleep(s.limits.StallTimeout) // until nobody looks for stalled readers any more
			if flood.Load() != 200 || s.shares.Searches.Held() != 0 || s.shares.Calls.Held() != 0 || s.shares.Answers.Held() != 0 {
				t.Errorf("%s: %d ran, %d searches, %d calls and %d bytes are held at the end", method, flood.Load(), s.shares.Searches.Held(), s.shares.Calls.Held(), s.shares.Answers.Held())
			}
		})
	}
}

// A list has room for its answer before it is made: while others leave theirs unread, none
// is made that would have to wait.
func TestListsTakeRoomBeforeTheyAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 20
		s := newSharedCalls(Limits{MaxAnswerBytes: 8 * most, MaxSearches: 8, MaxSendBytes: most})
		answer := &loombridgev1.ListRecordsResponse{Records: []*loombridgev1.Record{{Text: strings.Repeat("x", most/2)}}}
		close(s.let)
		list := func(n int) *atomic.Int64 {
			return s.begin(t.Context(), "t", loombridgev1.MemoryService_ListRecords_FullMethodName, n, &loombridgev1.ListRecordsRequest{AgentId: "a"}, answer)
		}
		made := list(100) // nobody reads what they answer
		if held := s.shares.Answers.Held(); held > 8*most || made.Load() > 16 || made.Load() < 8 {
			t.Errorf("%d answers of %d bytes were made, which hold %d of %d", made.Load(), most/2, held, 8*most)
		}
		before := made.Load()
		time.Sleep(callWait)
		s.running.Wait()
		time.Sleep(s.limits.StallTimeout)
		if made.Load() != before {
			t.Errorf("%d answers were made without room", made.Load()-before)
		}
	})
}
