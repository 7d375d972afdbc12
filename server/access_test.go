package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory"
	accesses "github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// counting starts a server that counts accesses.
func counting(t *testing.T, engine kv.Engine, records int) *servertest.Server {
	return servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Memory: memory.Options{CountAccesses: true, MaxRecords: records}}})
}

// lampsSaved saves some records that a query finds alike, and returns their ids.
func lampsSaved(t *testing.T, s *servertest.Server, n int) (ids []string) {
	t.Helper()
	for i := range n {
		s.Clock.Advance(time.Minute)
		ids = append(ids, remember(t, s, &loombridgev1.MemorySaveRequest{Text: fmt.Sprint("The lamp of room ", 100+i)}).GetId())
	}
	return ids
}

// lamps asks for them, and leaves no trace.
func lamps(t *testing.T, s *servertest.Server, weight float64) (*loombridgev1.MemoryQueryResponse, []string) {
	t.Helper()
	got, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "lamp", Limit: 3, AccessWeight: weight, Peek: true, Explain: true})
	must(t, err)
	var ids []string
	for _, hit := range got.GetHits() {
		ids = append(ids, hit.GetRecord().GetId())
	}
	return got, ids
}

// heat is what the explanation of a hit says of its accesses.
func heat(hit *loombridgev1.MemoryHit) (raw, share float64, told bool) {
	for _, signal := range hit.GetExplanation().GetSignals() {
		if signal.GetName() == "access" {
			return signal.GetRaw(), signal.GetShare(), true
		}
	}
	return 0, 0, false
}

func readRecord(t *testing.T, s *servertest.Server, id string, peek bool) {
	t.Helper()
	_, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}, Peek: peek})
	must(t, err)
}

// What is read often and of late ranks higher where a query asks for it, and the explanation
// says by how much; long after, it does no more. A query that does not ask is answered as if
// nothing was counted, and peeking counts nothing.
//
// Y14
func TestAccessWeight(t *testing.T) {
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := counting(t, engine, 0)
	ids := lampsSaved(t, s, 8)
	plain, before := lamps(t, s, 0)
	if slices.Contains(before, ids[0]) {
		t.Fatalf("the oldest is found without being read: %v", before)
	}
	for range 20 {
		readRecord(t, s, ids[1], true)
	}
	for range 6 {
		readRecord(t, s, ids[0], false)
	}
	var weighed *loombridgev1.MemoryQueryResponse
	eventually(t, func() bool {
		var now []string
		weighed, now = lamps(t, s, 0.5)
		return len(now) == 3 && now[0] == ids[0]
	})
	raw, share, told := heat(weighed.GetHits()[0])
	if other, less, _ := heat(weighed.GetHits()[1]); !told || raw < 5.9 || raw > 6.1 || share <= less || other != 0 {
		t.Errorf("explained as %v and %v", weighed.GetHits()[0].GetExplanation(), weighed.GetHits()[1].GetExplanation())
	}
	if slices.Contains(func() []string { _, found := lamps(t, s, 1); return found }(), ids[1]) {
		t.Error("peeking counts")
	}
	again, after := lamps(t, s, 0)
	if !slices.Equal(before, after) || again.GetHits()[0].GetScore() != plain.GetHits()[0].GetScore() {
		t.Errorf("a query that does not ask for it finds %v, before %v", after, before)
	}
	if receipt := weighed.GetReceipt(); receipt.GetLeftOut()["over_limit"] != plain.GetReceipt().GetLeftOut()["over_limit"] {
		t.Errorf("receipts: %v and %v", receipt, plain.GetReceipt())
	}
	s.Clock.Advance(100 * accesses.HalfLife)
	if _, late := lamps(t, s, 0.5); !slices.Equal(late, before) {
		t.Errorf("long after %v are found, want %v", late, before)
	}
	_, err := s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: ids[0]}})
	must(t, err)
	left := 0
	for _, err := range engine.Scan(t.Context(), kv.Records, kv.Prefix(kv.AgentScope("default", agent).Key(accesses.Tag))) {
		must(t, err)
		left++
	}
	if left != 0 {
		t.Errorf("%d counts are left of what was deleted", left)
	}
	_, err = s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "lamp", AccessWeight: 1.5})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")

	off := servertest.Start(t, nil)
	lampsSaved(t, off, 4)
	_, want := lamps(t, off, 0)
	got, found := lamps(t, off, 0.5)
	if len(got.GetReceipt().GetDegraded()) != 2 || !slices.Equal(found, want) {
		t.Errorf("a server that counts nothing: %v", got.GetReceipt())
	}
}

// A memory that is full keeps what is read, and archives what is as old and is not.
//
// Y15
func TestLimitsSpareWhatIsRead(t *testing.T) {
	s := counting(t, nil, 8)
	ids := lampsSaved(t, s, 8)
	for range 6 {
		readRecord(t, s, ids[0], false)
	}
	eventually(t, func() bool {
		_, now := lamps(t, s, 0.5)
		return now[0] == ids[0]
	})
	saved := remember(t, s, &loombridgev1.MemorySaveRequest{Text: "The lamp of the hall"})
	if got := saved.GetArchivedIds(); !slices.Equal(got, []string{ids[1]}) {
		t.Errorf("%v went, want %s, which nobody reads, before the older %s", got, ids[1], ids[0])
	}
}
