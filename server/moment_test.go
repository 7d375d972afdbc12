package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustListAll reads all pages of a listing.
func MustListAll(tb testing.TB, s *servertest.Server, r *loombridgev1.ListRecordsRequest) (all []*loombridgev1.Record) {
	tb.Helper()
	for r.AgentId = agent; ; {
		page, err := s.Memory.ListRecords(tb.Context(), r)
		must(tb, err)
		all = append(all, page.GetRecords()...)
		if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
			return all
		}
	}
}

// seen is what a memory showed at a moment.
type seen struct {
	at    time.Time
	lists map[string][]*loombridgev1.Record // by filter
	found map[string][]string               // by filter and word
}

// look shows the memory, as of a moment unless that is zero.
func lookAt(t *testing.T, s *servertest.Server, at time.Time) seen {
	t.Helper()
	var asOf *timestamppb.Timestamp
	if !at.IsZero() {
		asOf = timestamppb.New(at)
	}
	shown := seen{at: s.Clock.Now(), lists: make(map[string][]*loombridgev1.Record), found: make(map[string][]string)}
	for _, filter := range []string{"", `tags:"red"`, `metadata.n > 1`, `text:"pear"`, `version > 1 AND NOT tags:"red"`} {
		shown.lists[filter] = MustListAll(t, s, &loombridgev1.ListRecordsRequest{Filter: filter, PageSize: 7, AsOf: asOf})
		for _, word := range []string{"apple", "pear plum"} {
			shown.found[filter+"/"+word] = MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: word, Filter: filter, Limit: 100, AsOf: asOf})
		}
	}
	return shown
}

// What a memory showed at any moment, it shows as of that moment later, whatever was saved,
// changed and replaced since: the same records in the same order, and the same hits.
//
// Y18
func TestAsOfShowsWhatWas(t *testing.T) {
	s := servertest.Start(t, nil)
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	words := []string{"apple", "pear", "plum", "fig"}
	draft := func() *loombridgev1.MemorySaveRequest {
		return &loombridgev1.MemorySaveRequest{
			AgentId: agent, Text: strings.Join([]string{words[rng.IntN(4)], words[rng.IntN(4)], "tart"}, " "),
			Tags:         []string{[]string{"red", "green"}[rng.IntN(2)]},
			MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"n":%d}`, rng.IntN(4))},
		}
	}
	var current []string
	var history []seen
	for i := range 60 {
		s.Clock.Advance(time.Second)
		r := draft()
		switch move := rng.IntN(6); {
		case move == 0 && len(current) > 0:
			at := rng.IntN(len(current))
			r.Supersedes = current[at]
			current[at] = MustSave(t, s, r).GetId()
		case move <= 2 && len(current) > 0:
			_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
				AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: current[rng.IntN(len(current))]},
				Record:     &loombridgev1.MemorySaveRequest{Text: r.GetText(), Tags: r.GetTags()},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text", "tags"}[:1+rng.IntN(2)]},
			})
			must(t, err)
		case move == 3:
			r.Key, r.Replace = fmt.Sprint("k", rng.IntN(2)), true
			if saved := MustSave(t, s, r); !slices.Contains(current, saved.GetId()) && saved.GetVersion() == 1 {
				current = append(current, saved.GetId())
			}
		default:
			current = append(current, MustSave(t, s, r).GetId())
		}
		if i%6 == 5 {
			history = append(history, lookAt(t, s, time.Time{}))
		}
	}
	for _, was := range history {
		is := lookAt(t, s, was.at)
		if diff := cmp.Diff(was.lists, is.lists, protocmp.Transform()); diff != "" {
			t.Fatalf("listed as of %v (-then +now):\n%s", was.at, diff)
		}
		if diff := cmp.Diff(was.found, is.found); diff != "" {
			t.Fatalf("found as of %v (-then +now):\n%s", was.at, diff)
		}
	}
	if got := lookAt(t, s, s.Clock.Now().Add(-time.Hour)); len(got.lists[""]) != 0 {
		t.Errorf("before all: %v", got.lists[""])
	}
}

// The receipt says as of when, what was read again, and that what is gone can't be shown.
//
// Y18
func TestAsOfReceipt(t *testing.T) {
	s := servertest.Start(t, nil)
	city := func(text string) {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Key: "city", Replace: true, Text: text})
	}
	city("Ann lives in Paris")
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "gone", Text: "Ann lives alone"})
	then := s.Clock.Now()
	s.Clock.Advance(time.Hour)
	city("Ann lives in Oslo")
	_, err := s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "gone"}})
	must(t, err)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "Ann lives near the harbour"})
	got, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "where does Ann live, in Paris or Oslo", AsOf: timestamppb.New(then), Explain: true})
	must(t, err)
	if len(got.GetHits()) != 1 || got.GetHits()[0].GetRecord().GetText() != "Ann lives in Paris" || got.GetHits()[0].GetRecord().GetVersion() != 1 {
		t.Errorf("hits %v", got.GetHits())
	}
	receipt := got.GetReceipt()
	if receipt.GetReread() != 1 || receipt.GetLost() != 0 {
		t.Errorf("receipt %v", receipt)
	}
	if !slices.ContainsFunc(receipt.GetDegraded(), func(d string) bool { return strings.Contains(d, "deleted") }) {
		t.Errorf("degraded %q", receipt.GetDegraded())
	}
	_, err = s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "x", AsOf: &timestamppb.Timestamp{Nanos: -1}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	page, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, PageSize: 1})
	must(t, err)
	_, err = s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, PageSize: 1, PageToken: page.GetNextPageToken(), AsOf: timestamppb.New(then)})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// What was true at a moment is found by the times that records tell, whatever replaced them
// since, also as far as was known at an earlier moment.
//
// Y19
func TestValidAt(t *testing.T) {
	s := servertest.Start(t, nil)
	year := func(y int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	save := func(id, before string, from, until *timestamppb.Timestamp) {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: id, Text: "Ann lives in " + id, Supersedes: before, EventTime: from, ValidUntil: until})
	}
	save("Paris", "", year(2010), nil)
	save("Oslo", "Paris", year(2015), nil)
	known := s.Clock.Now()
	s.Clock.Advance(time.Hour)
	save("Rome", "Oslo", year(2020), nil)
	save("camp", "", year(2012), year(2013))
	save("abroad", "", nil, nil) // from when it is saved
	at := func(y int, asOf *timestamppb.Timestamp, want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "where does Ann live", ValidAt: year(y), AsOf: asOf}); !slices.Equal(got, want) {
			t.Errorf("in %d found %q, want %q", y, got, want)
		}
		var listed []string
		for _, r := range MustListAll(t, s, &loombridgev1.ListRecordsRequest{ValidAt: year(y), AsOf: asOf}) {
			listed = append(listed, r.GetId())
		}
		if slices.Sort(listed); !slices.Equal(listed, want) {
			t.Errorf("in %d listed %q, want %q", y, listed, want)
		}
	}
	at(2009, nil)
	at(2011, nil, "Paris")
	at(2012, nil, "Paris", "camp")
	at(2013, nil, "Paris")
	at(2015, nil, "Oslo")
	at(2019, nil, "Oslo")
	at(2021, nil, "Rome")
	at(2021, timestamppb.New(known), "Oslo")
	at(2012, timestamppb.New(known), "Paris")
	at(s.Clock.Now().Year()+1, nil, "Rome", "abroad")
	got, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "Rome"}, Record: &loombridgev1.MemorySaveRequest{ValidUntil: year(2022)},
	})
	must(t, err)
	if !got.GetValidUntil().AsTime().Equal(year(2022).AsTime()) {
		t.Errorf("updated %v", got)
	}
	at(2021, nil, "Rome")
	at(2022, nil)
	if got := MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "where does Ann live", Filter: `valid_until < "2022-06-01"`}); !slices.Equal(got, []string{"Rome", "camp"}) {
		t.Errorf("by the filter %q", got)
	}
	other := servertest.Start(t, nil)
	lines := MustExport(t, s)
	MustImport(t, other, lines...)
	if diff := cmp.Diff(lines, MustExport(t, other)); diff != "" {
		t.Errorf("exported again (-want +got):\n%s", diff)
	}
	if got := MustFind(t, other, &loombridgev1.MemoryQueryRequest{Query: "where does Ann live", ValidAt: year(2012)}); !slices.Equal(got, []string{"Paris", "camp"}) {
		t.Errorf("imported, in 2012 found %q", got)
	}
}
