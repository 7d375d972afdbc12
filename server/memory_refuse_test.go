package server_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// Whatever is wrong with the new values of a record, and whoever finds it, the
// field at fault is named where it stands in the request.
func TestUpdateRecordNamesFieldsBelowRecord(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "one", Key: "k", Embedding: []float32{1, 2}, EmbeddingSpace: "two"})
	metadata := func(text string) *loombridgev1.MemorySaveRequest {
		return &loombridgev1.MemorySaveRequest{MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: text}}
	}
	for field, draft := range map[string]*loombridgev1.MemorySaveRequest{
		"record.metadata":      metadata("[]"),
		"record.metadata_json": metadata(`"` + strings.Repeat("x", 64<<10) + `"`),
		"record.expire_time":   {Expiry: &loombridgev1.MemorySaveRequest_ExpireTime{ExpireTime: &timestamppb.Timestamp{Seconds: 5}}},
		"record.embedding":     {Embedding: []float32{1, 2, 3}, EmbeddingSpace: "two"},
		"record.importance":    {Importance: proto.Float64(2)},
		// What no update changes must not get lost in silence.
		"record.session_id":   {Text: "two", SessionId: "s2"},
		"record.key":          {Text: "two", Key: "other"},
		"record.id":           {Text: "two", Id: "other"},
		"record.supersedes":   {Text: "two", Supersedes: "other"},
		"record.derived_from": {Text: "two", DerivedFrom: []string{"other"}},
		"record.origin":       {Text: "two", Origin: loombridgev1.Origin_ORIGIN_WEB},
	} {
		_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Record: draft,
		})
		if fields := fieldsOf(err); !slices.Equal(fields, []string{field}) {
			t.Errorf("%s: the fields at fault are %v: %v", field, fields, err)
		}
	}
	nan := &loombridgev1.MemorySaveRequest{Text: "NaN", MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: &structpb.Struct{
		Fields: map[string]*structpb.Value{"n": structpb.NewNumberValue(math.NaN())},
	}}}
	_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Record: nan,
	})
	if fields := fieldsOf(err); !slices.Equal(fields, []string{"record.metadata"}) {
		t.Errorf("the fields at fault are %v: %v", fields, err)
	}
	_, err = s.Memory.BatchSave(t.Context(), &loombridgev1.BatchSaveRequest{AgentId: agent, Records: []*loombridgev1.MemorySaveRequest{{Text: "good"}, nan}})
	if fields := fieldsOf(err); !slices.Equal(fields, []string{"records[1].metadata"}) {
		t.Errorf("the fields at fault are %v: %v", fields, err)
	}
	// With a mask, what it does not name does not matter.
	got := MustUpdate(t, s, "k", &loombridgev1.MemorySaveRequest{Text: "two", SessionId: "s2"}, "text")
	if got.GetText() != "two" || got.GetVersion() != 2 {
		t.Errorf("record is %v", got)
	}
}

// A field of the request itself has no prefix.
func TestUpdateRecordNamesOwnFields(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "a\nb"}, Record: &loombridgev1.MemorySaveRequest{Text: "x"},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
	})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if fields := fieldsOf(err); !slices.Equal(fields, []string{"id"}) {
		t.Errorf("the fields at fault are %v", fields)
	}
}

// No record has version zero: who expects it must not get any record changed.
func TestExpectedVersionZero(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "one", Key: "k"})
	_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Record: &loombridgev1.MemorySaveRequest{Text: "two"}, ExpectedVersion: proto.Int64(0),
	})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	_, err = s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{
		AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Key{Key: "k"}, ExpectedVersion: proto.Int64(0),
	})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// A program can tell which record of a batch is at fault, and whether the record
// itself is missing or one that it names.
func TestErrorsOfABatchNameTheRecord(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Memory.BatchSave(t.Context(), &loombridgev1.BatchSaveRequest{
		AgentId: agent, Records: []*loombridgev1.MemorySaveRequest{{Text: "a"}, {Text: "b"}, {Text: "c", Supersedes: "nobody"}},
	})
	info := MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	if details := info.GetMetadata(); details["index"] != "2" || details["field"] != "supersedes" {
		t.Errorf("details %v", details)
	}
}

// The shortest span of life is a span of life.
func TestTTLBelowTheClock(t *testing.T) {
	s := servertest.Start(t, nil)
	saved := MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "gone", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: &durationpb.Duration{Nanos: 1}}})
	if !saved.GetExpireTime().AsTime().After(saved.GetCreateTime().AsTime()) {
		t.Errorf("saved %v", saved)
	}
}

// An answer that would be too long for one message has the best hits that fit,
// and says how many it lacks.
func TestMemoryQueryFitsOneMessage(t *testing.T) {
	const records, limit = 12, 256 << 10
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{MaxSendBytes: limit}}})
	metadata := `{"n":[` + strings.Repeat("1,", 3000) + `1]}` // five times as long as a Struct
	for range records {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{
			AgentId: agent, Text: "apple " + strings.Repeat("pie ", 5<<10), MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: metadata},
			Embedding: make([]float32, 1024), EmbeddingSpace: "zeros",
		})
	}
	for _, test := range []struct {
		name  string
		query *loombridgev1.MemoryQueryRequest
		least int
	}{
		{"as text", &loombridgev1.MemoryQueryRequest{}, 8},
		{"as a Struct", &loombridgev1.MemoryQueryRequest{}, 4},
		{"with vectors", &loombridgev1.MemoryQueryRequest{IncludeEmbeddings: true, Explain: true}, 3},
		{"within tokens", &loombridgev1.MemoryQueryRequest{MaxTokens: 1 << 20}, 4},
	} {
		test.query.AgentId, test.query.Query, test.query.Limit = agent, "apple", 100
		ctx := t.Context()
		if test.name == "as text" {
			ctx = convert.AskText(ctx)
		}
		found, err := s.Bridge.MemoryQuery(ctx, test.query)
		must(t, err)
		hits, receipt := len(found.GetHits()), found.GetReceipt()
		if hits < test.least || hits == records || int(receipt.GetLeftOut()["over_max_bytes"]) != records-hits || receipt.GetLeftOut()["over_limit"] != 0 {
			t.Errorf("%s: %d hits, receipt %v", test.name, hits, receipt)
		}
		if size := proto.Size(found); size > limit {
			t.Errorf("%s: %d bytes", test.name, size)
		}
	}
}
