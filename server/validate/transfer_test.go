package validate

import (
	"testing"

	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A request is of sessions or of a memory; one of both is refused, so that neither right stands
// for the other.
func TestTransfersAreOfOneThing(t *testing.T) {
	for _, test := range []struct {
		request proto.Message
		refused bool
	}{
		{&loombridgev1.ExportRequest{AgentId: "a"}, false},
		{&loombridgev1.ExportRequest{AgentId: "a", UserId: "u"}, false},
		{&loombridgev1.ExportRequest{AgentId: "a", Sessions: true, SessionId: "s"}, false},
		{&loombridgev1.ExportRequest{AgentId: "a", SessionId: "s"}, true},
		{&loombridgev1.ExportRequest{AgentId: "a", Sessions: true, UserId: "u"}, true},
		{&loombridgev1.ExportRequest{AgentId: "a", Sessions: true, SpaceId: "team"}, true},
		{&loombridgev1.ExportRequest{Sessions: true}, true},
		{&loombridgev1.ImportRequest{AgentId: "a", SkipExisting: true, ImportId: "i"}, false},
		{&loombridgev1.ImportRequest{AgentId: "a", Sessions: true}, false},
		{&loombridgev1.ImportRequest{AgentId: "a", Sessions: true, SpaceId: "team"}, true},
		{&loombridgev1.ImportRequest{AgentId: "a", Sessions: true, SkipExisting: true}, false},
		{&loombridgev1.ImportRequest{AgentId: "a", Sessions: true, ImportId: "i"}, true},
		{&loombridgev1.ListRecordsRequest{AgentId: "a", StatsOnly: true}, false},
		{&loombridgev1.ListRecordsRequest{AgentId: "a", StatsOnly: true, Filter: "pinned = true"}, true},
		{batchOf(&loombridgev1.MemorySaveRequest{Text: "t", Key: "k"}), false},
		{batchOf(&loombridgev1.MemorySaveRequest{Text: "t", AgentId: "b"}), true},
		{batchOf(&loombridgev1.MemorySaveRequest{Text: "t", UserId: "u"}), true},
		{batchOf(&loombridgev1.MemorySaveRequest{Text: "t", SpaceId: "team"}), true},
		{batchOf(&loombridgev1.MemorySaveRequest{Text: "t", Key: "k", Replace: true}), true},
		{batchOf(&loombridgev1.MemorySaveRequest{Text: "t", RequestId: "r"}), true},
	} {
		var err error
		switch r := test.request.(type) {
		case *loombridgev1.ExportRequest:
			err = Request(r)
		case *loombridgev1.ImportRequest:
			err = Request(r)
		case *loombridgev1.ListRecordsRequest:
			err = Request(r)
		case *loombridgev1.BatchSaveRequest:
			err = Request(r)
		}
		if refused := err != nil; refused != test.refused {
			t.Errorf("%T %v: %v", test.request, test.request, err)
		}
	}
}

func batchOf(r *loombridgev1.MemorySaveRequest) *loombridgev1.BatchSaveRequest {
	return &loombridgev1.BatchSaveRequest{AgentId: "a", Records: []*loombridgev1.MemorySaveRequest{r}}
}
