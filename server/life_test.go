package server_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// byKey and byID name records.
func byKey(key string) *loombridgev1.GetRecordRequest {
	return &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Key{Key: key}}
}

func byID(id string) *loombridgev1.GetRecordRequest {
	return &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}}
}

// MustGetRecord reads a record.
func MustGetRecord(tb testing.TB, s *servertest.Server, r *loombridgev1.GetRecordRequest) *loombridgev1.Record {
	tb.Helper()
	got, err := s.Memory.GetRecord(tb.Context(), r)
	must(tb, err)
	return got
}

// MustFind returns the ids of what a query finds, sorted.
func MustFind(tb testing.TB, s *servertest.Server, r *loombridgev1.MemoryQueryRequest) (ids []string) {
	tb.Helper()
	r.AgentId = agent
	found, err := s.Bridge.MemoryQuery(tb.Context(), r)
	must(tb, err)
	for _, hit := range found.GetHits() {
		ids = append(ids, hit.GetRecord().GetId())
	}
	slices.Sort(ids)
	return ids
}

// Whichever way the last record of a chain goes, the one before is found again; one from the
// middle leaves its neighbours linked.
//
// Y16
func TestSupersedeChainsHeal(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, s *servertest.Server, id string){
		"deleted": func(t *testing.T, s *servertest.Server, id string) {
			_, err := s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
			must(t, err)
		},
		"deleted by filter": func(t *testing.T, s *servertest.Server, id string) {
			gone, err := s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Filter: fmt.Sprintf("id = %q", id)})
			must(t, err)
			if gone.GetDeleted() != 1 {
				t.Fatalf("%d went", gone.GetDeleted())
			}
		},
		"expired": func(t *testing.T, s *servertest.Server, id string) {
			_, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
				AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: id},
				Record: &loombridgev1.MemorySaveRequest{Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Second)}},
			})
			must(t, err)
			s.Clock.Advance(time.Second) // and nothing sweeps
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, nil)
			before := ""
			for _, flat := range []string{"a", "b", "c", "d"} {
				MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: flat, Key: "home", Text: "Ann lives in flat " + flat, Supersedes: before})
				before = flat
			}
			found := func(want string) {
				t.Helper()
				if got := MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "where does Ann live"}); !slices.Equal(got, []string{want}) {
					t.Errorf("found %q, want %q", got, want)
				}
				if got := MustGetRecord(t, s, byKey("home")); got.GetId() != want || got.GetSupersededBy() != "" {
					t.Errorf("the key names %v, want %q", got, want)
				}
			}
			found("d")
			remove(t, s, "d")
			found("c")
			remove(t, s, "b")
			found("c")
			if a, c := MustGetRecord(t, s, byID("a")), MustGetRecord(t, s, byID("c")); a.GetSupersededBy() != "c" || c.GetSupersedes() != "a" || c.GetVersion() != 1 {
				t.Errorf("linked: %v and %v", a, c)
			}
			remove(t, s, "c")
			found("a")
		})
	}
}

// From the moment on at which a record expires, the one that it had replaced is found again by
// every way of reading, before anything is swept: with a filter that only that one passes, in
// lists, by its id and key, in the memory of a person, and in a prompt that was assembled before.
//
// Y16
func TestReplacedIsFoundAtTheMomentOfExpiry(t *testing.T) {
	const later = "later"
	for name, found := range map[string]func(t *testing.T, s *servertest.Server) bool{
		"query": func(t *testing.T, s *servertest.Server) bool {
			return slices.Equal(MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "where does Ann live"}), []string{"a"})
		},
		"query with a filter": func(t *testing.T, s *servertest.Server) bool {
			return slices.Equal(MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "Ann", Filter: `tags:"old"`}), []string{"a"})
		},
		"query that finds nothing of the replacement": func(t *testing.T, s *servertest.Server) bool {
			return slices.Equal(MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "harbour"}), []string{"a"})
		},
		"list": func(t *testing.T, s *servertest.Server) bool {
			page, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent})
			must(t, err)
			return len(page.GetRecords()) == 1 && page.GetRecords()[0].GetSupersededBy() == ""
		},
		"id": func(t *testing.T, s *servertest.Server) bool {
			return MustGetRecord(t, s, byID("a")).GetSupersededBy() == ""
		},
		"key": func(t *testing.T, s *servertest.Server) bool {
			return MustGetRecord(t, s, byKey("home")).GetId() == "a"
		},
		"prompt": func(t *testing.T, s *servertest.Server) bool {
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: later, Goal: "where does Ann live, at the harbour?"})
			must(t, err)
			text := got.String()
			return strings.Contains(text, "at the harbour") && strings.Contains(text, "flat by the")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, nil)
			MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "a", Kind: "note", Key: "home", Tags: []string{"old"}, Text: "Ann lives in the flat by the harbour"})
			MustSave(t, s, &loombridgev1.MemorySaveRequest{
				AgentId: agent, Id: "b", Kind: "note", Key: "home", Text: "Ann lives in a tent", Supersedes: "a",
				Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Second)},
			})
			if found(t, s) {
				t.Fatal("found what was replaced")
			}
			s.Clock.Advance(time.Second)
			if !found(t, s) {
				t.Error("what was replaced is not found again")
			}
		})
	}
}

// An imported chain heals as one that was saved.
//
// Y16
func TestImportedChainsHeal(t *testing.T) {
	from, to := servertest.Start(t, nil), servertest.Start(t, nil)
	before := ""
	for _, flat := range []string{"a", "b", "c"} {
		MustSave(t, from, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: flat, Key: "home", Text: "Ann lives in flat " + flat, Supersedes: before})
		before = flat
	}
	MustImport(t, to, MustExport(t, from)...)
	for _, left := range []string{"b", "a"} {
		_, err := to.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Key{Key: "home"}})
		must(t, err)
		if got := MustFind(t, to, &loombridgev1.MemoryQueryRequest{Query: "where does Ann live"}); !slices.Equal(got, []string{left}) {
			t.Errorf("found %q, want %q", got, left)
		}
	}
}

// MustExport returns the lines of the agent's memory.
func MustExport(tb testing.TB, s *servertest.Server) (lines []string) {
	tb.Helper()
	stream, err := s.Transfer.Export(tb.Context(), &loombridgev1.ExportRequest{AgentId: agent})
	must(tb, err)
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines
		}
		must(tb, err)
		lines = append(lines, part.GetLines()...)
	}
}

// MustImport takes lines into the agent's memory.
func MustImport(tb testing.TB, s *servertest.Server, lines ...string) *loombridgev1.ImportResponse {
	tb.Helper()
	stream, err := s.Transfer.Import(tb.Context())
	must(tb, err)
	must(tb, stream.Send(&loombridgev1.ImportRequest{AgentId: agent, Lines: lines}))
	done, err := stream.CloseAndRecv()
	must(tb, err)
	return done
}

// Reading with peek prolongs nothing, in whatever way a record is read.
//
// Y17
func TestPeekProlongsNothing(t *testing.T) {
	s := servertest.Start(t, nil)
	const span = time.Hour
	began := s.Clock.Now()
	for _, id := range []string{"peeked", "read"} {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: id, Text: id + " apples", Expiry: &loombridgev1.MemorySaveRequest_SlidingTtl{SlidingTtl: durationpb.New(span)}})
	}
	s.Clock.Advance(span / 2)
	watch, err := s.Memory.WatchRecords(t.Context(), &loombridgev1.WatchRecordsRequest{AgentId: agent})
	must(t, err)
	for caught := false; !caught; {
		change, err := watch.Recv()
		must(t, err)
		caught = change.GetCaughtUp()
	}
	peek := byID("peeked")
	peek.Peek = true
	MustGetRecord(t, s, peek)
	MustFind(t, s, &loombridgev1.MemoryQueryRequest{Query: "apples", Peek: true})
	_, err = s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, Peek: true})
	must(t, err)
	_, err = s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, Name: &loombridgev1.ListRecordsRequest_Id{Id: "peeked"}})
	must(t, err)
	MustGetRecord(t, s, byID("read")) // lives are prolonged in the order in which records are read
	change, err := watch.Recv()
	must(t, err)
	if got := change.GetSaved(); got.GetId() != "read" || !got.GetExpireTime().AsTime().Equal(began.Add(span/2+span)) {
		t.Errorf("the first change is %v", change)
	}
	if got := MustGetRecord(t, s, peek); !got.GetExpireTime().AsTime().Equal(began.Add(span)) {
		t.Errorf("peeked at, it expires at %v", got.GetExpireTime().AsTime())
	}
}
