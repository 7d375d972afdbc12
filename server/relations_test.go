package server_test

import (
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
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// edges reads relations such as "a likes b".
func edges(all ...string) (out []*loombridgev1.Relation) {
	for _, text := range all {
		part := strings.Fields(text)
		out = append(out, &loombridgev1.Relation{FromId: part[0], Name: part[1], ToId: part[2]})
	}
	return out
}

func mustRelate(tb testing.TB, s *servertest.Server, all ...string) {
	tb.Helper()
	_, err := s.Memory.RelateRecords(tb.Context(), &loombridgev1.RelateRecordsRequest{AgentId: agent, Relations: edges(all...)})
	must(tb, err)
}

// relationsOf are a record's, as "a likes b".
func relationsOf(tb testing.TB, s *servertest.Server, id string, way loombridgev1.RelationDirection, names ...string) (out []string) {
	tb.Helper()
	ask := &loombridgev1.ListRelationsRequest{
		AgentId: agent, Name: &loombridgev1.ListRelationsRequest_Id{Id: id}, Direction: way, Names: names, PageSize: 1000,
	}
	for {
		got, err := s.Memory.ListRelations(tb.Context(), ask)
		must(tb, err)
		for _, r := range got.GetRelations() {
			if r.GetCreateTime() == nil || got.GetRecordId() != id {
				tb.Errorf("%v of %q has no time, or is of another record", r, got.GetRecordId())
			}
			out = append(out, fmt.Sprintf("%s %s %s", r.GetFromId(), r.GetName(), r.GetToId()))
		}
		if ask.PageToken = got.GetNextPageToken(); ask.PageToken == "" {
			return out
		}
	}
}

func mustRelations(tb testing.TB, s *servertest.Server, id string, want ...string) {
	tb.Helper()
	if got := relationsOf(tb, s, id, 0); !slices.Equal(got, want) {
		tb.Errorf("relations of %s: %q, want %q", id, got, want)
	}
}

func mustCheck(tb testing.TB, s *servertest.Server) {
	tb.Helper()
	must(tb, s.Domain.Memory.Check(tb.Context(), kv.AgentScope(auth.DefaultTenant, agent)))
}

func note(tb testing.TB, s *servertest.Server, id, text string) {
	tb.Helper()
	MustSave(tb, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: id, Text: text})
}

// Relations are made, listed from both ends, ended, and given with a save; a repeated call
// gives the first answer, and what is refused changes nothing. Records keep their version.
//
// Y21
func TestRelations(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	for _, id := range []string{"ann", "bob", "oat"} {
		note(t, s, id, "this is about "+id)
	}
	request := &loombridgev1.RelateRecordsRequest{AgentId: agent, Relations: edges("ann prefers oat", "ann knows bob", "bob knows ann"), RequestId: "once"}
	for range 2 {
		made, err := s.Memory.RelateRecords(ctx, request)
		must(t, err)
		if made.GetCreated() != 3 {
			t.Errorf("created %d, want 3", made.GetCreated())
		}
	}
	mustRelations(t, s, "ann", "ann knows bob", "ann prefers oat", "bob knows ann")
	mustRelations(t, s, "oat", "ann prefers oat")
	if got := relationsOf(t, s, "ann", loombridgev1.RelationDirection_RELATION_DIRECTION_IN); !slices.Equal(got, []string{"bob knows ann"}) {
		t.Errorf("to ann: %q", got)
	}
	if got := relationsOf(t, s, "ann", loombridgev1.RelationDirection_RELATION_DIRECTION_OUT, "prefers", "hates"); !slices.Equal(got, []string{"ann prefers oat"}) {
		t.Errorf("from ann, by name: %q", got)
	}
	got, err := s.Memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: "ann"}})
	must(t, err)
	if r := got; len(r.GetRelations()) != 2 || r.GetRelations()[1].GetName() != "prefers" || r.GetRelations()[1].GetToId() != "oat" || r.GetVersion() != 1 || r.GetUpdateTime() != nil {
		t.Errorf("read: %v", r)
	}
	again, err := s.Memory.RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: agent, Relations: edges("ann prefers oat", "oat made_by bob")})
	must(t, err)
	if again.GetCreated() != 1 {
		t.Errorf("one of two was new: created %d", again.GetCreated())
	}

	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "cat", Text: "the cat is grey", Relations: []*loombridgev1.RelationTo{{Name: "owned_by", ToId: "ann"}}})
	mustRelations(t, s, "cat", "cat owned_by ann")
	_, err = s.Memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: agent, Records: []*loombridgev1.MemorySaveRequest{
		{Id: "kit", Text: "the kitten is black", Relations: []*loombridgev1.RelationTo{{Name: "child_of", ToId: "cat"}}},
		{Id: "kit-2", Text: "the other is white", Relations: []*loombridgev1.RelationTo{{Name: "sibling_of", ToId: "kit"}}},
	}})
	must(t, err)
	mustRelations(t, s, "kit", "kit child_of cat", "kit-2 sibling_of kit")

	before := relationsOf(t, s, "ann", 0)
	full := make([]string, 101)
	for i := range full {
		full[i] = fmt.Sprintf("ann n%d bob", i)
	}
	for _, test := range []struct {
		relations []*loombridgev1.Relation
		code      codes.Code
		reason    string
	}{
		{edges("ann likes bob", "ann likes nobody"), codes.NotFound, "RECORD_NOT_FOUND"},
		{edges("ann likes bob", "nobody likes ann"), codes.NotFound, "RECORD_NOT_FOUND"},
		{edges("ann likes ann"), codes.InvalidArgument, "INVALID_REQUEST"},
		{edges("ann 1st bob"), codes.InvalidArgument, "INVALID_REQUEST"},
		{edges("ann like\xc3\xa4 bob"), codes.InvalidArgument, "INVALID_REQUEST"},
		{edges("ann " + strings.Repeat("x", 65) + " bob"), codes.InvalidArgument, "INVALID_REQUEST"},
		{nil, codes.InvalidArgument, "INVALID_REQUEST"},
		{edges(full...), codes.InvalidArgument, "INVALID_REQUEST"},
	} {
		_, err := s.Memory.RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: agent, Relations: test.relations})
		MustFail(t, err, test.code, test.reason)
	}
	_, err = s.Memory.RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: agent, Relations: edges("ann likes bob"), RequestId: "once"})
	MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
	_, err = s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "lost", Text: "x", Relations: []*loombridgev1.RelationTo{{Name: "of", ToId: "nobody"}}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	_, err = s.Memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: "lost"}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
	if after := relationsOf(t, s, "ann", 0); !slices.Equal(after, before) {
		t.Errorf("what was refused changed %q to %q", before, after)
	}

	ended, err := s.Memory.UnrelateRecords(ctx, &loombridgev1.UnrelateRecordsRequest{AgentId: agent, Relations: edges("ann knows bob", "ann knows oat", "nobody knows ann")})
	must(t, err)
	if ended.GetDeleted() != 1 {
		t.Errorf("ended %d, want 1", ended.GetDeleted())
	}
	mustRelations(t, s, "bob", "bob knows ann", "oat made_by bob")
	mustCheck(t, s)
}

// A record has at most 256 relations from it and 1,024 to it, and what is beyond is refused
// with all of its call.
//
// Y21
func TestRelationsHaveLimits(t *testing.T) {
	s := servertest.Start(t, nil)
	note(t, s, "hub", "the hub")
	var drafts []*loombridgev1.MemorySaveRequest
	for i := range 1000 {
		drafts = append(drafts, &loombridgev1.MemorySaveRequest{Id: fmt.Sprint("leaf", i), Text: fmt.Sprint("leaf ", i), Relations: []*loombridgev1.RelationTo{{Name: "at", ToId: "hub"}}})
	}
	_, err := s.Memory.BatchSave(t.Context(), &loombridgev1.BatchSaveRequest{AgentId: agent, Records: drafts})
	must(t, err)
	relate := func(way string, n int) error {
		var all []string
		for i := range n {
			if all = append(all, fmt.Sprintf("hub to leaf%d", i)); way == "in" {
				all[i] = fmt.Sprintf("leaf%d in hub", i)
			}
		}
		_, err := s.Memory.RelateRecords(t.Context(), &loombridgev1.RelateRecordsRequest{AgentId: agent, Relations: edges(all...)})
		return err
	}
	MustFail(t, relate("in", 25), codes.ResourceExhausted, "QUOTA_EXCEEDED")
	must(t, relate("in", 24))
	MustFail(t, relate("in", 25), codes.ResourceExhausted, "QUOTA_EXCEEDED")
	for i := range 256 {
		mustRelate(t, s, fmt.Sprintf("hub r%d leaf1", i))
	}
	MustFail(t, relate("out", 1), codes.ResourceExhausted, "QUOTA_EXCEEDED")
	if got := relationsOf(t, s, "hub", 0); len(got) != 1280 {
		t.Errorf("the hub has %d relations", len(got))
	}
	answer, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "hub", Related: &loombridgev1.RelatedOptions{Limit: 50}})
	must(t, err)
	if r := answer.GetReceipt(); r.GetLeftOut()["related_over_limit"] == 0 || len(answer.GetHits()) != 51 {
		t.Errorf("of a hub: %d hits, %v", len(answer.GetHits()), r)
	}
	_, err = s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "hub"}})
	must(t, err)
	mustRelations(t, s, "leaf1")
	mustCheck(t, s)
}

// throughs are the hits as "id", and those that came along as "id<hit name" and "id>hit name".
func throughs(tb testing.TB, s *servertest.Server, r *loombridgev1.MemoryQueryRequest) (out []string, receipt *loombridgev1.QueryReceipt) {
	tb.Helper()
	r.AgentId = agent
	answer, err := s.Bridge.MemoryQuery(tb.Context(), r)
	must(tb, err)
	for _, hit := range answer.GetHits() {
		text := hit.GetRecord().GetId()
		if via := hit.GetThrough(); via != nil {
			arrow := map[bool]string{true: "<", false: ">"}[via.GetOutgoing()]
			text += arrow + via.GetHitId() + " " + via.GetName()
			if via.GetReplacedId() != "" {
				text += " for " + via.GetReplacedId()
			}
			if hit.GetScore() != 0 {
				tb.Errorf("%s has a score", text)
			}
		}
		out = append(out, text)
	}
	return out, answer.GetReceipt()
}

// A query that asks for it brings what is one relation away from its hits, marked with the
// relation and the hit, and only what the query itself could have found. One that does not
// ask is as it was.
//
// Y22
func TestRelatedRecordsComeAlong(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Memory: memory.Options{Hold: []record.Origin{record.OriginWeb}}}})
	ctx := t.Context()
	note(t, s, "ann", "Ann lives in the mill by the river")
	note(t, s, "oat", "breakfast with oat milk")
	note(t, s, "tea", "green leaves at noon")
	note(t, s, "far", "two steps away")
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "web", Text: "printed elsewhere", Origin: loombridgev1.Origin_ORIGIN_WEB})
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "brief", Text: "gone soon", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Minute)}})
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "plan", Text: "a state of things", Kind: "state"})
	mustRelate(t, s, "ann prefers oat", "tea served_to ann", "oat from far", "ann saw web", "ann had brief", "ann made plan")

	ask := func(related *loombridgev1.RelatedOptions) *loombridgev1.MemoryQueryRequest {
		return &loombridgev1.MemoryQueryRequest{Query: "who lives in the mill", Related: related}
	}
	mustBe := func(when string, r *loombridgev1.MemoryQueryRequest, want ...string) *loombridgev1.QueryReceipt {
		t.Helper()
		got, receipt := throughs(t, s, r)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q; %v", when, got, want, receipt)
		}
		return receipt
	}
	mustBe("nothing asked", ask(nil), "ann")
	receipt := mustBe("both", ask(&loombridgev1.RelatedOptions{}), "ann", "brief<ann had", "plan<ann made", "oat<ann prefers", "tea>ann served_to")
	if receipt.GetLeftOut()["related_excluded"] != 1 {
		t.Errorf("held: %v", receipt)
	}
	mustBe("out", ask(&loombridgev1.RelatedOptions{Direction: loombridgev1.RelationDirection_RELATION_DIRECTION_OUT, Names: []string{"prefers", "served_to"}}), "ann", "oat<ann prefers")
	mustBe("in", ask(&loombridgev1.RelatedOptions{Direction: loombridgev1.RelationDirection_RELATION_DIRECTION_IN}), "ann", "tea>ann served_to")
	if receipt := mustBe("limit", ask(&loombridgev1.RelatedOptions{Limit: 1}), "ann", "brief<ann had"); receipt.GetLeftOut()["related_over_limit"] == 0 {
		t.Errorf("limit: %v", receipt)
	}
	filtered := ask(&loombridgev1.RelatedOptions{})
	filtered.Filter = `kind = "fact" AND id != "tea"`
	mustBe("filter", filtered, "ann", "brief<ann had", "oat<ann prefers")
	tight := ask(&loombridgev1.RelatedOptions{})
	tight.MaxTokens = 14
	got, _ := throughs(t, s, tight)
	if len(got) == 0 || len(got) == 5 || got[0] != "ann" {
		t.Errorf("14 tokens: %q", got)
	}
	two := ask(&loombridgev1.RelatedOptions{})
	two.Query = "who lives in the mill and has breakfast with oat milk"
	if got, _ := throughs(t, s, two); slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, "oat<") }) {
		t.Errorf("a hit came along with another: %q", got)
	}

	s.Clock.Advance(2 * time.Minute)
	_, err := s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "tea"}, Archived: proto.Bool(true)})
	must(t, err)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "soy", Text: "breakfast with soy milk", Supersedes: "oat"})
	if receipt := mustBe("later", ask(&loombridgev1.RelatedOptions{}), "ann", "plan<ann made", "soy<ann prefers for oat"); receipt.GetLeftOut()["related_excluded"] != 3 {
		t.Errorf("held, expired, archived: %v", receipt)
	}
	archived := ask(&loombridgev1.RelatedOptions{Direction: loombridgev1.RelationDirection_RELATION_DIRECTION_IN})
	archived.IncludeArchived = true
	mustBe("archive", archived, "ann", "tea>ann served_to")
	_, err = s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "web"}, Review: loombridgev1.Review_REVIEW_APPROVED})
	must(t, err)
	mustBe("approved", ask(&loombridgev1.RelatedOptions{Names: []string{"saw"}}), "ann", "web<ann saw")

	for _, bad := range []*loombridgev1.MemoryQueryRequest{
		{Query: "x", Related: &loombridgev1.RelatedOptions{Limit: 51}},
		{Query: "x", Related: &loombridgev1.RelatedOptions{Names: []string{"no good"}}},
		{Query: "x", Related: &loombridgev1.RelatedOptions{Direction: 7}},
	} {
		bad.AgentId = agent
		_, err := s.Bridge.MemoryQuery(ctx, bad)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	mustCheck(t, s)
}

// In a shared memory a relation goes out from a record of one's own, and what comes along
// comes from memories that the query names alone.
//
// Y22
func TestRelationsOfSharedMemories(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	mustCreate(t, s, "maker", "team")
	MustGrant(ctx, t, s, "maker", team, "writer", loombridgev1.Access_ACCESS_WRITE)
	first, err := saveTo(ctx, s, "maker", team, "the rose is red")
	must(t, err)
	second, err := saveTo(ctx, s, "writer", team, "water it on Fridays")
	must(t, err)
	relate := func(by string, m memoryOf, from, to string) error {
		_, err := s.Memory.RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: by, UserId: m.user, SpaceId: m.space, Relations: edges(from + " needs " + to)})
		return err
	}
	must(t, relate("writer", team, second.GetId(), first.GetId()))
	MustFail(t, relate("nobody", team, first.GetId(), second.GetId()), codes.PermissionDenied, "ACCESS_DENIED")
	MustFail(t, relate("maker", memoryOf{}, first.GetId(), second.GetId()), codes.NotFound, "RECORD_NOT_FOUND")
	answer, err := s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{
		AgentId: "maker", Query: "rose", Related: &loombridgev1.RelatedOptions{},
		Owners: []*loombridgev1.MemoryOwner{{Owner: &loombridgev1.MemoryOwner_AgentId{AgentId: "maker"}}, team.owner()},
	})
	must(t, err)
	if hits := answer.GetHits(); len(hits) != 2 || hits[1].GetThrough().GetHitId() != first.GetId() || hits[1].GetOwner().GetSpaceId() != "team" {
		t.Errorf("found %v", hits)
	}
	_, err = s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "nobody", SpaceId: "team", Query: "rose", Related: &loombridgev1.RelatedOptions{}})
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	_, err = s.Sharing.DeleteSpace(ctx, &loombridgev1.DeleteSpaceRequest{AgentId: "maker", SpaceId: "team"})
	must(t, err)
	mustCreate(t, s, "maker", "team")
	_, err = s.Memory.ListRelations(ctx, &loombridgev1.ListRelationsRequest{AgentId: "maker", SpaceId: "team", Name: &loombridgev1.ListRelationsRequest_Id{Id: first.GetId()}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
}
