package evidence_test

import (
	"slices"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
	"github.com/loom-bridge/loom-bridge/server/servertest"
)

// MustLoad saves turns in order, changed by change if it is not nil.
func MustLoad(tb testing.TB, s *servertest.Server, talk *sets.Talk, change func(place int, d *loombridgev1.RecordDraft)) {
	tb.Helper()
	records := evidence.Drafts(talk.Turns)
	for i, d := range records {
		if change != nil {
			change(i, d)
		}
	}
	for batch := range slices.Chunk(records, 100) {
		if _, err := s.Memory.BatchSave(tb.Context(), &loombridgev1.BatchSaveRequest{AgentId: talk.ID, Records: batch}); err != nil {
			tb.Fatal(err)
		}
	}
}

// MustFind returns the ids that a query finds.
func MustFind(tb testing.TB, s *servertest.Server, q *loombridgev1.MemoryQueryRequest) (ids []string) {
	tb.Helper()
	answer, err := s.Bridge.MemoryQuery(tb.Context(), q)
	if err != nil {
		tb.Fatal(err)
	}
	for _, hit := range answer.GetHits() {
		ids = append(ids, hit.GetRecord().GetId())
	}
	return ids
}

// recalls asks the questions of a talk and returns the mean recall among the first hits, in
// per cent, by class.
func recalls(tb testing.TB, s *servertest.Server, talk *sets.Talk, limit int32) map[string]float64 {
	tb.Helper()
	sums, counts := make(map[string]float64), make(map[string]float64)
	for _, q := range talk.Questions {
		found := MustFind(tb, s, &loombridgev1.MemoryQueryRequest{AgentId: talk.ID, Query: q.Text, Limit: limit})
		for _, class := range []string{"", q.Class} {
			sums[class] += 100 * q.Recall(found)
			counts[class]++
		}
		if testing.Verbose() && q.Recall(found) < 1 {
			tb.Logf("%s: %s wants %q, got %q", q.Class, q.Text, q.Evidence, found)
		}
	}
	for class := range sums {
		sums[class] /= counts[class]
	}
	return sums
}

// What a user told an assistant among its long answers is found.
func TestAssistantTalk(t *testing.T) {
	talk := sets.Assistant(sets.SmallAssistant).Talks[0]
	s := servertest.Start(t, nil)
	MustLoad(t, s, talk, nil)
	found := recalls(t, s, talk, 5)
	for class, floor := range map[string]float64{"": 55, sets.AnswerClass: 80, sets.InstructionClass: 80, sets.PreferenceClass: 65} {
		if found[class] < floor {
			t.Errorf("recall@5 of class %q is %.1f, the floor is %.1f", class, found[class], floor)
		}
	}
	for class, recall := range found {
		t.Logf("%-12s recall@5 %.1f", class, recall)
	}
}
