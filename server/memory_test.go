package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// MustUpdate changes a record by its key.
func MustUpdate(tb testing.TB, s *servertest.Server, key string, draft *loombridgev1.MemorySaveRequest, paths ...string) *loombridgev1.Record {
	tb.Helper()
	r := &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: key}, Record: draft,
	}
	if len(paths) > 0 {
		r.UpdateMask = &fieldmaskpb.FieldMask{Paths: paths}
	}
	updated, err := s.Memory.UpdateRecord(convert.AskText(tb.Context()), r)
	must(tb, err)
	return updated
}

// A change without a mask touches what the draft sets, one with a mask empties
// what it leaves out.
func TestUpdateRecord(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Text: "The office is in Oslo", Key: "office", Kind: "state", Tags: []string{"place"}, Author: "ada",
	})
	got := MustUpdate(t, s, "office", &loombridgev1.MemorySaveRequest{Text: "The office is in Bergen"})
	if got.GetText() != "The office is in Bergen" || got.GetVersion() != 2 || got.GetKind() != "state" || len(got.GetTags()) != 1 || got.GetUpdateTime() == nil {
		t.Errorf("record is %v", got)
	}
	got = MustUpdate(t, s, "office", &loombridgev1.MemorySaveRequest{Author: "bob", Pinned: true}, "author", "tags", "pinned")
	if got.GetAuthor() != "bob" || len(got.GetTags()) != 0 || !got.GetPinned() || got.GetVersion() != 3 {
		t.Errorf("record is %v", got)
	}
	for query, hits := range map[string]int{"Bergen": 1, "Oslo": 0} {
		found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: query})
		must(t, err)
		if len(found.GetHits()) != hits {
			t.Errorf("%s: %d hits, want %d", query, len(found.GetHits()), hits)
		}
	}
}

func TestUpdateRecordRefuses(t *testing.T) {
	s := servertest.Start(t, nil)
	saved := MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "one", Key: "k"})
	request := func() *loombridgev1.UpdateRecordRequest {
		return &loombridgev1.UpdateRecordRequest{
			AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: saved.GetId()}, Record: &loombridgev1.MemorySaveRequest{Text: "two"},
		}
	}
	version := int64(7)
	stale := request()
	stale.ExpectedVersion = &version
	_, err := s.Memory.UpdateRecord(t.Context(), stale)
	info := MustFail(t, err, codes.Aborted, "VERSION_CONFLICT")
	if info.GetMetadata()["version"] != "1" || info.GetMetadata()["expected_version"] != "7" {
		t.Errorf("details %v", info.GetMetadata())
	}
	unknown := request()
	unknown.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"text", "create_time"}}
	_, err = s.Memory.UpdateRecord(t.Context(), unknown)
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	nothing := request()
	nothing.Record = &loombridgev1.MemorySaveRequest{}
	_, err = s.Memory.UpdateRecord(t.Context(), nothing)
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	missing := request()
	missing.Name = &loombridgev1.UpdateRecordRequest_Key{Key: "nobody's"}
	_, err = s.Memory.UpdateRecord(t.Context(), missing)
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Key{Key: "k"}})
	must(t, err)
	if got.GetText() != "one" || got.GetVersion() != 1 {
		t.Errorf("record changed to %v", got)
	}
}

func TestDeleteRecord(t *testing.T) {
	s := servertest.Start(t, nil)
	saved := MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "gone soon", Key: "k"})
	for range 2 { // the request id makes the second the first again
		deleted, err := s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{
			AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Key{Key: "k"}, RequestId: "once",
		})
		must(t, err)
		if deleted.GetId() != saved.GetId() {
			t.Errorf("deleted %q, want %q", deleted.GetId(), saved.GetId())
		}
	}
	_, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: saved.GetId()}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "gone"})
	must(t, err)
	if len(found.GetHits()) != 0 || found.GetReceipt().GetEmptyReason() != loombridgev1.EmptyReason_EMPTY_REASON_NOTHING_STORED {
		t.Errorf("found %v", found)
	}
}

func TestBatchSaveAndListRecords(t *testing.T) {
	s := servertest.Start(t, nil)
	batch := &loombridgev1.BatchSaveRequest{AgentId: agent, RequestId: "import"}
	for i := range 7 {
		batch.Records = append(batch.Records, &loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("line %d", i), Id: fmt.Sprintf("r%d", i), Tags: []string{[]string{"even", "odd"}[i%2]}})
	}
	first, err := s.Memory.BatchSave(t.Context(), batch)
	must(t, err)
	again, err := s.Memory.BatchSave(t.Context(), batch)
	must(t, err)
	if len(first.GetSaved()) != 7 || !first.GetSaved()[6].GetCreateTime().AsTime().Equal(again.GetSaved()[6].GetCreateTime().AsTime()) {
		t.Errorf("saved %v, then %v", first, again)
	}
	for _, test := range []struct {
		request *loombridgev1.ListRecordsRequest
		want    []string
	}{
		{&loombridgev1.ListRecordsRequest{PageSize: 3}, []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6"}},
		{&loombridgev1.ListRecordsRequest{PageSize: 2, NewestFirst: true, Filter: `tags:"odd"`}, []string{"r5", "r3", "r1"}},
	} {
		if got := MustListRecords(t, s, test.request); !slices.Equal(got, test.want) {
			t.Errorf("listed %v, want %v", got, test.want)
		}
	}
}

// MustListRecords returns the ids of all pages.
func MustListRecords(tb testing.TB, s *servertest.Server, r *loombridgev1.ListRecordsRequest) (ids []string) {
	tb.Helper()
	for r.AgentId = agent; ; {
		page, err := s.Memory.ListRecords(tb.Context(), r)
		must(tb, err)
		for _, record := range page.GetRecords() {
			ids = append(ids, record.GetId())
		}
		if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
			return ids
		}
	}
}

// One bad record refuses all, and the answer says which.
func TestBatchSaveIsAllOrNothing(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, test := range []struct {
		bad    *loombridgev1.MemorySaveRequest
		code   codes.Code
		reason string
		field  string
	}{
		{&loombridgev1.MemorySaveRequest{}, codes.InvalidArgument, "INVALID_REQUEST", "records[1].text"},
		{&loombridgev1.MemorySaveRequest{Text: "x", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: "[]"}}, codes.InvalidArgument, "INVALID_REQUEST", "records[1].metadata"},
		{&loombridgev1.MemorySaveRequest{Text: "x", Id: "first"}, codes.AlreadyExists, "RECORD_EXISTS", ""},
		{&loombridgev1.MemorySaveRequest{Text: "x", Supersedes: "nobody"}, codes.NotFound, "RECORD_NOT_FOUND", ""},
	} {
		_, err := s.Memory.BatchSave(t.Context(), &loombridgev1.BatchSaveRequest{
			AgentId: agent, Records: []*loombridgev1.MemorySaveRequest{{Text: "good", Id: "first"}, test.bad},
		})
		MustFail(t, err, test.code, test.reason)
		if fields := fieldsOf(err); test.field != "" && !slices.Contains(fields, test.field) {
			t.Errorf("fields %v, want %s", fields, test.field)
		}
	}
	if ids := MustListRecords(t, s, &loombridgev1.ListRecordsRequest{}); len(ids) != 0 {
		t.Errorf("stored %v", ids)
	}
}

// A query over an agent and a user ranks both as one memory and says whose each
// hit is.
func TestMemoryQueryOverSeveralOwners(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "The deployment runs on Tuesdays"})
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: "ada", Text: "Ada wants the deployment report by email on Tuesdays"})
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{
		AgentId: agent, Query: "deployment report Ada", Explain: true,
		Owners: []*loombridgev1.MemoryOwner{
			{Owner: &loombridgev1.MemoryOwner_AgentId{AgentId: agent}}, {Owner: &loombridgev1.MemoryOwner_UserId{UserId: "ada"}},
		},
	})
	must(t, err)
	if len(found.GetHits()) != 2 || found.GetReceipt().GetRecords() != 2 {
		t.Fatalf("found %v", found)
	}
	best := found.GetHits()[0]
	if best.GetOwner().GetUserId() != "ada" || len(best.GetExplanation().GetSignals()) == 0 || len(best.GetExplanation().GetMatchedWords()) == 0 {
		t.Errorf("best is %v", best)
	}
}

// A question finds the same words in other forms, and a hit claims no word but its own:
// what was found by what stands around it has none.
func TestMemoryQueryMatchesForms(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "Ann lives in Paris", SessionId: "talk"})
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "Nice!", SessionId: "talk"})
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "Where does she live?", Explain: true})
	must(t, err)
	for i, want := range [][]string{{"live"}, nil} {
		if got := found.GetHits()[i].GetExplanation().GetMatchedWords(); !slices.Equal(got, want) {
			t.Errorf("hit %d matched %q, want %q", i, got, want)
		}
	}
}

// A query can leave out signals by their names, and refuses names that are none. What states
// the same of the same as a later record ranks behind, and the later one names it.
func TestMemoryQuerySignals(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, text := range []string{"Ada's favourite tea is rooibos.", "Bob's car is green.", "Ada's favourite tea is oolong now.", "Bob drinks tea in his car."} {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: text})
	}
	ask := func(without ...string) []*loombridgev1.MemoryHit {
		found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "What is Ada's favourite tea?", WithoutSignals: without})
		must(t, err)
		return found.GetHits()
	}
	hits := ask()
	if old := hits[len(hits)-1]; hits[0].GetRecord().GetText() != "Ada's favourite tea is oolong now." || old.GetRecord().GetText() != "Ada's favourite tea is rooibos." ||
		!slices.Equal(hits[0].GetOlderIds(), []string{old.GetRecord().GetId()}) {
		t.Errorf("found %v", hits)
	}
	if hits := ask("newer"); len(hits[0].GetOlderIds()) > 0 || hits[1].GetRecord().GetText() == "Bob drinks tea in his car." {
		t.Errorf("without newer found %v", hits)
	}
	if hits := ask("now", "several"); len(hits) == 0 {
		t.Error("without now and several nothing is found")
	}
	_, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "tea", WithoutSignals: []string{"magic"}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if fields := fieldsOf(err); !slices.Contains(fields, "without_signals") {
		t.Errorf("fields %v", fields)
	}
}

// max_tokens leaves out what does not fit; without a limit, it alone bounds the hits.
func TestMemoryQueryWithinTokens(t *testing.T) {
	s := servertest.Start(t, nil)
	const records = 8
	for range records {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "Bitcoin closed at forty five thousand dollars today"})
	}
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "bitcoin", MaxTokens: 20})
	must(t, err)
	receipt := found.GetReceipt()
	if n := len(found.GetHits()); n == 0 || n == records || int(receipt.GetLeftOut()["over_max_tokens"]) != records-n || receipt.GetTokens() > 20 {
		t.Errorf("%d hits, receipt %v", n, receipt)
	}
	for limit, want := range map[int32]int{0: records, 3: 3} {
		found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "bitcoin", MaxTokens: 1000, Limit: limit})
		must(t, err)
		if n := len(found.GetHits()); n != want {
			t.Errorf("with limit %d %d hits, want %d", limit, n, want)
		}
	}
}

// An answer that needs an embedder says so where there is none.
func TestWithoutEmbedder(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "words", Embedding: []float32{1, 0}, EmbeddingSpace: "mine"})
	_, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "words", Mode: loombridgev1.QueryMode_QUERY_MODE_VECTOR})
	MustFail(t, err, codes.FailedPrecondition, "NO_EMBEDDER")
	stream, err := s.Memory.Reembed(t.Context(), &loombridgev1.ReembedRequest{AgentId: agent})
	must(t, err)
	_, err = stream.Recv()
	MustFail(t, err, codes.FailedPrecondition, "NO_EMBEDDER")
	if errors.Is(err, io.EOF) {
		t.Error("stream ended well")
	}
	_, err = s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "other", Embedding: []float32{1, 0, 0}, EmbeddingSpace: "mine"})
	info := MustFail(t, err, codes.InvalidArgument, "EMBEDDING_MISMATCH")
	if info.GetMetadata()["want_dimension"] != "2" {
		t.Errorf("details %v", info.GetMetadata())
	}
	stats, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
	must(t, err)
	if spaces := stats.GetStats().GetSpaces(); stats.GetStats().GetRecords() != 1 || len(spaces) != 1 || spaces[0].GetName() != "mine" || spaces[0].GetDimension() != 2 || spaces[0].GetVectors() != 1 {
		t.Errorf("stats %v", stats)
	}
}

// A record with a sliding span lives on while it is read.
func TestSlidingTTLOverTheWire(t *testing.T) {
	s := servertest.Start(t, nil)
	saved := MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Text: "kept while used", Expiry: &loombridgev1.MemorySaveRequest_SlidingTtl{SlidingTtl: durationpb.New(3600e9)},
	})
	if !saved.GetExpireTime().AsTime().Equal(s.Clock.Now().Add(3600e9)) {
		t.Errorf("expires at %v", saved.GetExpireTime().AsTime())
	}
}

// A page that the store takes for short may be long on the wire, where numbers
// in metadata and vectors take several times as much.
func TestListedPagesCanBeSent(t *testing.T) {
	s := servertest.Start(t, nil)
	const records = 16
	metadata := `{"n":[` + strings.Repeat("1,", 30_000) + `1]}`
	for range records {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{
			AgentId: agent, Text: "numbers", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: metadata},
			Embedding: make([]float32, 4096), EmbeddingSpace: "zeros",
		})
	}
	for form, ctx := range map[string]context.Context{"as a Struct": t.Context(), "as text": convert.AskText(t.Context())} {
		listed, token := 0, ""
		for pages := 0; pages == 0 || token != ""; pages++ {
			page, err := s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{
				AgentId: agent, PageSize: 100, PageToken: token, IncludeEmbeddings: true,
			})
			must(t, err)
			if listed += len(page.GetRecords()); len(page.GetRecords()) == 0 {
				t.Fatalf("%s: empty page after %d records", form, listed)
			}
			token = page.GetNextPageToken()
		}
		if listed != records {
			t.Errorf("%s: %d records listed, want %d", form, listed, records)
		}
	}
}

// A vector that does not fit its space is the field at fault, and the record.
func TestVectorOfAnotherDimension(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "one", Embedding: []float32{1, 2}, EmbeddingSpace: "two"})
	_, err := s.Memory.BatchSave(t.Context(), &loombridgev1.BatchSaveRequest{AgentId: agent, Records: []*loombridgev1.MemorySaveRequest{
		{Text: "fits", Embedding: []float32{1, 2}, EmbeddingSpace: "two"},
		{Text: "does not", Embedding: []float32{1, 2, 3}, EmbeddingSpace: "two"},
	}})
	MustFail(t, err, codes.InvalidArgument, "EMBEDDING_MISMATCH")
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && bad.GetFieldViolations()[0].GetField() == "records[1].embedding" {
			return
		}
	}
	t.Errorf("no field is named: %v", err)
}

// Members of the metadata change by themselves: the others stay, one that is named and
// not given goes, and a repeated call answers again.
func TestUpdateMembersOfMetadata(t *testing.T) {
	// M18
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Text: "how to book", Key: "book", Kind: "playbook",
		MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"status": "draft", "n": 12345678901234567890, "reviewer": "eve"}`},
	})
	approve := &loombridgev1.MemorySaveRequest{MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"status": "approved", "n": 1}`}}
	got := MustUpdate(t, s, "book", approve, "metadata.status", "metadata.reviewer", "metadata.absent")
	if want := `{"n":12345678901234567890,"status":"approved"}`; got.GetMetadataJson() != want || got.GetText() != "how to book" || got.GetVersion() != 2 {
		t.Errorf("got %v", got)
	}
	if got = MustUpdate(t, s, "book", &loombridgev1.MemorySaveRequest{}, "metadata.status", "metadata.n"); got.GetMetadataForm() != nil && got.GetMetadataJson() != "" {
		t.Errorf("without members it is %q", got.GetMetadataJson())
	}
	for _, paths := range [][]string{{"metadata", "metadata.status"}, {"metadata."}, {"metadata.a.b"}} {
		_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "book"}, Record: approve, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
		})
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	large := &loombridgev1.MemorySaveRequest{MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"a": "` + strings.Repeat("x", 40<<10) + `"}`}}
	MustUpdate(t, s, "book", large, "metadata.a")
	large = &loombridgev1.MemorySaveRequest{MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"b": "` + strings.Repeat("x", 40<<10) + `"}`}}
	_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "book"}, Record: large, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"metadata.b"}},
	})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// What is saved again in capitals or with emoji at its end repeats the record that is there.
func TestEmphasisOverTheWire(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, text := range []string{"Ann parks in the garage of the town hall", "ANN PARKS IN THE GARAGE OF THE TOWN HALL!!", "Ann parks in the garage of the town hall! 🚗"} {
		saved, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: text, Duplicates: loombridgev1.Duplicates_DUPLICATES_REINFORCE})
		must(t, err)
		if int(saved.GetRepeats()) != i {
			t.Errorf("%q: %v", text, saved)
		}
	}
}

// The same text, in whatever case and with whatever end, takes the place of nothing else when it
// was said often; with a filter it stands as often as it was said.
func TestSameTextOverTheWire(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, text := range []string{
		"Water the tomatoes", "WATER THE TOMATOES!", "Water the tomatoes 🍅", "Water the tomatoes.", "Water the tomatoes!!",
		"The tomatoes like two litres of water a day.", "The tomatoes grow in the yard behind the house.",
	} {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: text, SessionId: fmt.Sprint("day", i)})
	}
	for filter, want := range map[string]int{"": 2, `kind = "fact"`: 4} {
		found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "Who waters the tomatoes?", Filter: filter, Limit: 4})
		must(t, err)
		same := 0
		for _, hit := range found.GetHits() {
			if strings.HasPrefix(strings.ToLower(hit.GetRecord().GetText()), "water the tomatoes") {
				same++
			}
		}
		if same != want || len(found.GetHits()) != 4 {
			t.Errorf("with the filter %q: %d of %v", filter, same, found.GetHits())
		}
	}
}
