package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// Relations stay through changes of their records, a replacement under the key and the
// archive, and go with either record: deleted, deleted by filter, or expired and swept. Of a
// record that another one replaces they stay with the old one.
//
// Y21
func TestRelationsGoWithRecords(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	for _, id := range []string{"a", "b", "c", "d"} {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: id, Key: "k-" + id, Text: "this is about " + id, Tags: []string{id}})
	}
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "brief", Text: "gone soon", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Minute)}})
	mustRelate(t, s, "a to b", "b to c", "c to a", "a to brief", "brief to a", "d to a")
	_, err := s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "a"}, Record: &loombridgev1.MemorySaveRequest{Text: "another text"}})
	must(t, err)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Key: "k-a", Text: "a third text", Replace: true})
	_, err = s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "a"}, Archived: proto.Bool(true)})
	must(t, err)
	mustRelations(t, s, "a", "a to b", "a to brief", "brief to a", "c to a", "d to a")
	_, err = s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Key: "k-a", Text: "x", Replace: true, Relations: []*loombridgev1.RelationTo{{Name: "to", ToId: "b"}}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")

	s.Clock.Advance(2 * time.Minute)
	_, err = s.Memory.ListRelations(ctx, &loombridgev1.ListRelationsRequest{AgentId: agent, Name: &loombridgev1.ListRelationsRequest_Id{Id: "brief"}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	_, err = s.Domain.Memory.Sweep(ctx)
	must(t, err)
	mustRelations(t, s, "a", "a to b", "c to a", "d to a")
	_, err = s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "b"}})
	must(t, err)
	mustRelations(t, s, "c", "c to a")
	_, err = s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, Filter: `tags:"c"`})
	must(t, err)
	mustRelations(t, s, "a", "d to a")
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "d2", Text: "a later d", Supersedes: "d"})
	mustRelations(t, s, "d2")
	mustRelations(t, s, "d", "d to a")
	mustCheck(t, s)

	// An id that is given again has no relations of the one before.
	_, err = s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "a"}})
	must(t, err)
	note(t, s, "a", "a again")
	mustRelations(t, s, "a")
	mustRelations(t, s, "d")
	mustCheck(t, s)
}

// A save that repeats a record adds its relations to that one.
//
// Y21
func TestRepeatsAddRelations(t *testing.T) {
	s := servertest.Start(t, nil)
	note(t, s, "plan", "the plan for the garden in spring")
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "The roses need water on Fridays.", Duplicates: loombridgev1.Duplicates_DUPLICATES_REINFORCE})
	repeated := MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Text: "the roses need water on fridays", Duplicates: loombridgev1.Duplicates_DUPLICATES_REINFORCE,
		Relations: []*loombridgev1.RelationTo{{Name: "part_of", ToId: "plan"}},
	})
	if repeated.GetOutcome() != loombridgev1.SaveOutcome_SAVE_OUTCOME_REINFORCED {
		t.Fatalf("saved as %v", repeated)
	}
	mustRelations(t, s, repeated.GetId(), repeated.GetId()+" part_of plan")
	mustCheck(t, s)
}

// Who watches a memory is told of a record whose relations changed, with those that it has,
// and of those that end because the other record goes.
//
// Y21
func TestWatchTellsRelations(t *testing.T) {
	s := servertest.Start(t, nil)
	note(t, s, "a", "this is about a")
	note(t, s, "b", "this is about b")
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	watch, err := s.Memory.WatchRecords(ctx, &loombridgev1.WatchRecordsRequest{AgentId: agent})
	must(t, err)
	until := func(want string) {
		t.Helper()
		got, err := drained(watch, nil, func(m *loombridgev1.WatchRecordsResponse) bool { return m.GetCaughtUp() })
		if must(t, err); !strings.Contains(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	until("this is about b")
	mustRelate(t, s, "a to b")
	told, err := watch.Recv()
	must(t, err)
	if r := told.GetSaved(); r.GetId() != "a" || len(r.GetRelations()) != 1 || r.GetRelations()[0].GetToId() != "b" {
		t.Errorf("told %v", told)
	}
	until("")
	_, err = s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "b"}})
	must(t, err)
	told, err = watch.Recv()
	must(t, err)
	if told.GetDeletedId() != "b" {
		t.Errorf("told %v", told)
	}
	told, err = watch.Recv()
	must(t, err)
	if r := told.GetSaved(); r.GetId() != "a" || len(r.GetRelations()) != 0 {
		t.Errorf("told %v", told)
	}
}

// The check finds a relation that stands under one end alone, or of a record that is none.
//
// Y21
func TestCheckFindsBrokenRelations(t *testing.T) {
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	note(t, s, "a", "this is about a")
	note(t, s, "b", "this is about b")
	mustRelate(t, s, "a to b", "b ended a")
	s.Clock.Advance(time.Second)
	_, err := s.Memory.UnrelateRecords(t.Context(), &loombridgev1.UnrelateRecordsRequest{AgentId: agent, Relations: edges("b ended a")})
	must(t, err)
	mustCheck(t, s)
	scope := kv.AgentScope(auth.DefaultTenant, agent)
	guards := []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}}
	for _, tag := range []byte{'o', 'i', 'O', 'I', 'r'} {
		var first kv.Pair
		for pair, err := range engine.Scan(t.Context(), kv.Records, kv.Prefix(scope.Key(tag))) {
			must(t, err)
			first = pair
			break
		}
		var without, again kv.Batch
		without.Delete(kv.Records, first.Key)
		again.Put(kv.Records, first.Key, first.Value)
		must(t, engine.Commit(t.Context(), kv.Commit{Guards: guards, Batch: &without}))
		var found []string
		must(t, memory.CheckRecords(t.Context(), engine, scope, func(err error) { found = append(found, err.Error()) }))
		if !slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, "relation") }) {
			t.Errorf("without %s: %q", fmt.Sprintf("%c", tag), found)
		}
		must(t, engine.Commit(t.Context(), kv.Commit{Guards: guards, Batch: &again}))
	}
	mustCheck(t, s)
}
