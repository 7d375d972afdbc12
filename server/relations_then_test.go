package server_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// shownRelated is what came along with each word at a moment, and the relations there were.
type shownRelated struct {
	at    time.Time
	hits  map[string][]string
	edges map[string]bool // "a likes b"
}

// lookRelated asks for what comes along, as of a moment unless that is zero.
func lookRelated(t *testing.T, s *servertest.Server, words []string, at time.Time) map[string][]string {
	t.Helper()
	hits := make(map[string][]string)
	for _, word := range words {
		r := &loombridgev1.MemoryQueryRequest{Query: word, Related: &loombridgev1.RelatedOptions{Limit: 50}}
		if !at.IsZero() {
			r.AsOf = timestamppb.New(at)
		}
		hits[word], _ = throughs(t, s, r)
	}
	return hits
}

// Whatever came along with a hit at any moment, comes along as of that moment later, though
// relations were made and ended, and records changed and replaced since; and each record has
// the relations that a model says it had.
//
// Y22
func TestRelatedAsOfShowsWhatWas(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(17, 4))
	var ids, words []string
	for i := range 8 {
		ids, words = append(ids, fmt.Sprint("r", i)), append(words, fmt.Sprint("mark", i))
		note(t, s, ids[i], "a note of "+words[i])
	}
	texts := slices.Clone(words)
	stand := make(map[string]bool)
	var moments []shownRelated
	replaced := make(map[int]bool)
	for step := range 120 {
		s.Clock.Advance(time.Second)
		a, b := random.IntN(len(ids)), random.IntN(len(ids))
		edge := fmt.Sprintf("%s n%d %s", ids[a], random.IntN(2), ids[b])
		switch n := random.IntN(10); {
		case n < 4 && a != b:
			mustRelate(t, s, edge)
			stand[edge] = true
		case n < 8 && len(stand) > 0:
			all := slices.Sorted(maps.Keys(stand))
			edge = all[random.IntN(len(all))]
			_, err := s.Memory.UnrelateRecords(ctx, &loombridgev1.UnrelateRecordsRequest{AgentId: agent, Relations: edges(edge)})
			must(t, err)
			delete(stand, edge)
		case n == 8 && !replaced[a]:
			_, err := s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
				AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: ids[a]}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
				Record: &loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("another note of %s, number %d", texts[a], step)},
			})
			must(t, err)
		case n == 9 && len(replaced) < 4 && !replaced[a]:
			replaced[a] = true
			ids, texts = append(ids, fmt.Sprint("r", len(ids))), append(texts, texts[a])
			MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: ids[len(ids)-1], Text: "the last note of " + texts[a], Supersedes: ids[a]})
		default:
			continue
		}
		moments = append(moments, shownRelated{s.Clock.Now(), lookRelated(t, s, words, time.Time{}), maps.Clone(stand)})
	}
	s.Clock.Advance(time.Hour)
	came := 0
	for _, then := range moments {
		for word, hits := range lookRelated(t, s, words, then.at) {
			came += len(hits)
			if want := then.hits[word]; !slices.Equal(hits, want) {
				t.Errorf("%s as of %s: %q, it was %q", word, then.at, hits, want)
			}
		}
		for _, id := range ids[:8] {
			got, err := s.Memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}, AsOf: timestamppb.New(then.at)})
			must(t, err)
			var out, want []string
			for _, r := range got.GetRelations() {
				out = append(out, fmt.Sprintf("%s %s %s", id, r.GetName(), r.GetToId()))
			}
			for edge := range then.edges {
				if strings.HasPrefix(edge, id+" ") {
					want = append(want, edge)
				}
			}
			if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(out)), want) {
				t.Errorf("%s as of %s has %q, want %q", id, then.at, out, want)
			}
		}
	}
	if came < 10*len(moments) || len(replaced) < 4 {
		t.Errorf("of %d moments %d hits, %d replaced: too few to tell", len(moments), came, len(replaced))
	}
	mustCheck(t, s)
}

// What is true at a moment has the relations that had not ended by then, and those of a record
// that is gone are gone as of any moment.
//
// Y22
func TestRelatedThenHasItsBounds(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	for _, id := range []string{"ann", "oat", "tea"} {
		note(t, s, id, "this is about "+id)
	}
	mustRelate(t, s, "ann likes oat", "ann likes tea")
	s.Clock.Advance(time.Minute)
	then := s.Clock.Now()
	s.Clock.Advance(time.Minute)
	ask := func(asOf, validAt bool) []string {
		r := &loombridgev1.MemoryQueryRequest{Query: "ann", Limit: 1, Related: &loombridgev1.RelatedOptions{}}
		if asOf {
			r.AsOf = timestamppb.New(then)
		}
		if validAt {
			r.ValidAt = timestamppb.New(then)
		}
		got, _ := throughs(t, s, r)
		return got
	}
	end := func(all ...string) {
		t.Helper()
		_, err := s.Memory.UnrelateRecords(ctx, &loombridgev1.UnrelateRecordsRequest{AgentId: agent, Relations: edges(all...)})
		must(t, err)
	}
	mustShow := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	end("ann likes oat")
	mustShow("today", ask(false, false), "ann", "tea<ann likes")
	mustShow("then", ask(true, false), "ann", "oat<ann likes", "tea<ann likes")
	mustShow("true then, as known today", ask(false, true), "ann", "oat<ann likes", "tea<ann likes")
	mustShow("true then, as known then", ask(true, true), "ann", "oat<ann likes", "tea<ann likes")
	s.Clock.Advance(time.Minute)
	mustRelate(t, s, "ann drinks oat")
	between := &loombridgev1.MemoryQueryRequest{
		Query: "ann", Limit: 1, Related: &loombridgev1.RelatedOptions{Names: []string{"drinks"}}, ValidAt: timestamppb.New(then),
	}
	got, _ := throughs(t, s, between)
	mustShow("true then, though told later", got, "ann", "oat<ann drinks")
	between.AsOf = timestamppb.New(then)
	got, _ = throughs(t, s, between)
	mustShow("true then, but not known", got, "ann")
	end("ann drinks oat")
	between = &loombridgev1.MemoryQueryRequest{
		Query: "ann", Limit: 1, Related: &loombridgev1.RelatedOptions{Names: []string{"likes"}}, ValidAt: timestamppb.New(s.Clock.Now()),
	}
	got, _ = throughs(t, s, between)
	mustShow("true after the end", got, "ann", "tea<ann likes")

	_, err := s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: "oat"}})
	must(t, err)
	note(t, s, "oat", "another thing of that name")
	mustShow("then, without what is gone", ask(true, false), "ann", "tea<ann likes")
	mustCheck(t, s)

	// A record tells of the last 256 that ended, and the receipt says that others are missing.
	end("ann likes tea")
	then = s.Clock.Now()
	for range 3 {
		var some []string
		for i := range 90 {
			some = append(some, fmt.Sprintf("ann n%d tea", i))
		}
		mustRelate(t, s, some...)
		s.Clock.Advance(time.Second)
		end(some...)
		s.Clock.Advance(time.Second)
	}
	r := &loombridgev1.MemoryQueryRequest{Query: "ann", Limit: 1, Related: &loombridgev1.RelatedOptions{}, AsOf: timestamppb.New(then)}
	_, receipt := throughs(t, s, r)
	if !slices.ContainsFunc(receipt.GetDegraded(), func(text string) bool { return strings.Contains(text, "relations that have ended") }) {
		t.Errorf("too many have ended: %v", receipt)
	}
	r.AsOf = timestamppb.New(s.Clock.Now().Add(-time.Second))
	if _, receipt = throughs(t, s, r); slices.ContainsFunc(receipt.GetDegraded(), func(text string) bool { return strings.Contains(text, "relations that have ended") }) {
		t.Errorf("all of these are kept: %v", receipt)
	}
	r.AsOf = timestamppb.New(s.Clock.Now().Add(-1500 * time.Millisecond))
	if got, _ := throughs(t, s, r); len(got) != 2 || !strings.HasPrefix(got[1], "tea<ann n") {
		t.Errorf("as of the last: %q", got)
	}
	mustCheck(t, s)
}
