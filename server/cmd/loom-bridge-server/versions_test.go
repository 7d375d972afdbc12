package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func (p *process) transfer() loombridgev1.TransferServiceClient {
	return loombridgev1.NewTransferServiceClient(p.conn)
}

func (p *process) memory() loombridgev1.MemoryServiceClient {
	return loombridgev1.NewMemoryServiceClient(p.conn)
}

// replace saves a text under a key, whether or not that is taken.
func replace(key, text, request string) *loombridgev1.MemorySaveRequest {
	return &loombridgev1.MemorySaveRequest{AgentId: "a", Key: key, Text: text, Replace: true, RequestId: request}
}

// versionsOf are all versions of a record by its key, read in pages of a size.
func (p *process) versionsOf(tb testing.TB, key string, size int32) (all []*loombridgev1.Record) {
	tb.Helper()
	r := &loombridgev1.ListRecordsRequest{AgentId: "a", Name: &loombridgev1.ListRecordsRequest_Key{Key: key}, PageSize: size}
	for {
		page, err := p.memory().ListRecords(tb.Context(), r)
		must(tb, err)
		all = append(all, page.GetRecords()...)
		if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
			return all
		}
	}
}

// A record is replaced by its key, by many at once, and each of its versions is found: in the
// list, and as of when it held, also after a restart.
//
// Y01, Y02, Y03
func TestVersions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	const writers, each = 8, 5
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, err := p.bridge().MemorySave(t.Context(), replace("city", fmt.Sprintf("She lives in town %d-%d", w, i), "")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, p.Stop())
	p = MustRun(t, dir)
	versions := p.versionsOf(t, "city", 7)
	if len(versions) != writers*each || versions[0].GetVersion() != writers*each {
		t.Fatalf("%d versions, the newest is %d", len(versions), versions[0].GetVersion())
	}
	for i, v := range versions {
		if want := int64(writers*each - i); v.GetVersion() != want || v.GetId() != versions[0].GetId() {
			t.Errorf("in place %d is version %d of %s, want %d", i, v.GetVersion(), v.GetId(), want)
		}
		from := v.GetUpdateTime()
		if from == nil {
			from = v.GetCreateTime()
		}
		got, err := p.memory().GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Key{Key: "city"}, AsOf: from})
		must(t, err)
		// Several may have come within a microsecond: the last of them held then.
		if r := got; r.GetVersion() < v.GetVersion() || r.GetVersion() == v.GetVersion() && r.GetText() != v.GetText() {
			t.Errorf("as of version %d it is %d: %q, want %q", v.GetVersion(), r.GetVersion(), r.GetText(), v.GetText())
		}
	}
	before := timestamppb.New(versions[len(versions)-1].GetCreateTime().AsTime().Add(-time.Microsecond))
	_, err := p.memory().GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Key{Key: "city"}, AsOf: before})
	if reasonOf(err) != "RECORD_NOT_FOUND" {
		t.Errorf("before it was saved: %v", err)
	}
	if n := hits(t, p, "town lives"); n != 1 {
		t.Errorf("%d hits, want the record as it is", n)
	}
	for what, r := range map[string]*loombridgev1.ListRecordsRequest{
		"a filter":   {Filter: "version > 1"},
		"an order":   {NewestFirst: true},
		"embeddings": {IncludeEmbeddings: true},
		"tiers":      {Tiers: []int32{4}},
		"a moment":   {AsOf: before},
		"a validity": {ValidAt: before},
		"counts":     {StatsOnly: true},
	} {
		r.AgentId, r.Name = "a", &loombridgev1.ListRecordsRequest_Key{Key: "city"}
		if _, err := p.memory().ListRecords(t.Context(), r); reasonOf(err) != "INVALID_REQUEST" || !strings.Contains(err.Error(), "versions of one record") {
			t.Errorf("versions with %s: %v", what, err)
		}
	}
}

// What a replacing save changes, answers and refuses.
//
// Y01
func TestSaveReplaces(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	save := func(r *loombridgev1.MemorySaveRequest) *loombridgev1.MemorySaveResponse {
		t.Helper()
		got, err := p.bridge().MemorySave(t.Context(), r)
		must(t, err)
		return got
	}
	r := replace("k", "the first", "one")
	r.Tags, r.Author = []string{"old"}, "ann"
	first := save(r)
	second := save(replace("k", "the second", "two"))
	if first.GetVersion() != 1 || second.GetVersion() != 2 || first.GetId() != second.GetId() || first.GetCreateTime().AsTime() != second.GetCreateTime().AsTime() {
		t.Errorf("first %v, second %v", first, second)
	}
	got, err := p.memory().GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Key{Key: "k"}})
	must(t, err)
	if r := got; r.GetText() != "the second" || len(r.GetTags()) != 0 || r.GetAuthor() != "" || r.GetKind() != "fact" {
		t.Errorf("replaced: %v", r)
	}
	// Repeated requests give their first answers, and change nothing.
	for request, want := range map[string]int64{"one": 1, "two": 2} {
		again := replace("k", map[string]string{"one": "the first", "two": "the second"}[request], request)
		if request == "one" {
			again.Tags, again.Author = []string{"old"}, "ann"
		}
		if got := save(again); got.GetVersion() != want || got.GetId() != first.GetId() {
			t.Errorf("request %s again: %v", request, got)
		}
	}
	if n := len(p.versionsOf(t, "k", 0)); n != 2 {
		t.Errorf("%d versions", n)
	}
	for name, change := range map[string]func(*loombridgev1.MemorySaveRequest){
		"no key":     func(r *loombridgev1.MemorySaveRequest) { r.Key = "" },
		"an id":      func(r *loombridgev1.MemorySaveRequest) { r.Id = "x" },
		"supersedes": func(r *loombridgev1.MemorySaveRequest) { r.Supersedes = first.GetId() },
	} {
		r := replace("k", "refused", "")
		change(r)
		if _, err := p.bridge().MemorySave(t.Context(), r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.bridge().MemorySave(t.Context(), replace("k", "other content", "two")); reasonOf(err) != "REQUEST_ID_REUSED" {
		t.Errorf("a request id with other content: %v", err)
	}
}

// A filter deletes what it lets through and nothing else, and of a person's memory only what
// is the caller's.
//
// Y04
func TestDeleteRecords(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for i := range 300 {
		_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{
			AgentId: "a", Text: fmt.Sprintf("number %d", i), Id: fmt.Sprintf("n%03d", i), Tags: []string{[]string{"even", "odd"}[i%2]},
		})
		must(t, err)
	}
	remove := func(filter string, dry bool) int64 {
		t.Helper()
		got, err := p.memory().DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Filter: filter, DryRun: dry})
		must(t, err)
		return got.GetDeleted()
	}
	left := func() (ids []string) {
		t.Helper()
		got, err := p.memory().ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "a", PageSize: 500})
		must(t, err)
		for _, r := range got.GetRecords() {
			ids = append(ids, r.GetId())
		}
		return ids
	}
	const odd = `tags:"odd"`
	if n := remove(odd, true); n != 150 || len(left()) != 300 {
		t.Errorf("a dry run counts %d, %d are left", n, len(left()))
	}
	if n := remove(odd, false); n != 150 || remove(odd, false) != 0 {
		t.Errorf("%d deleted", n)
	}
	if ids := left(); len(ids) != 150 || slices.ContainsFunc(ids, func(id string) bool { return (id[3]-'0')%2 == 1 }) {
		t.Errorf("left: %v", ids)
	}
	for filter, reason := range map[string]string{"": "INVALID_REQUEST", "nonsense": "INVALID_FILTER"} {
		if _, err := p.memory().DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Filter: filter}); reasonOf(err) != reason {
			t.Errorf("filter %q: %v", filter, err)
		}
	}
	if n := remove("version >= 1", false); n != 150 || len(left()) != 0 {
		t.Errorf("all: %d deleted, %d left", n, len(left()))
	}
}
