package evidence_test

import (
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// MustLoad saves turns in order, changed by change if it is not nil.
func MustLoad(tb testing.TB, s *servertest.Server, talk *sets.Talk, change func(place int, d *loombridgev1.MemorySaveRequest)) {
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
// per cent, by class, and logs what was missed if missed is set.
func recalls(tb testing.TB, s *servertest.Server, talk *sets.Talk, by *loombridgev1.MemoryQueryRequest, missed bool) map[string]float64 {
	tb.Helper()
	sums, counts := make(map[string]float64), make(map[string]float64)
	for _, q := range talk.Questions {
		by.AgentId, by.Query = talk.ID, q.Text
		found := MustFind(tb, s, by)
		for _, class := range []string{"", q.Class} {
			sums[class] += 100 * q.Recall(found)
			counts[class]++
		}
		if missed && q.Recall(found) < 1 {
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
	found := recalls(t, s, talk, &loombridgev1.MemoryQueryRequest{Limit: 5}, testing.Verbose())
	for class, floor := range map[string]float64{"": 78, sets.FactClass: 60, sets.QuestionClass: 90, sets.AnswerClass: 60, sets.InstructionClass: 80, sets.PreferenceClass: 75} {
		if found[class] < floor {
			t.Errorf("recall@5 of class %q is %.1f, the floor is %.1f", class, found[class], floor)
		}
	}
	for class, recall := range found {
		t.Logf("%-12s recall@5 %.1f", class, recall)
	}
}

// hintCosts are how many points of recall@5 a hint may cost at most: of the made-up assistant
// one question of 86.
var hintCosts = map[string]float64{"made-up talks": 0, "made-up assistant": 1.2}

// No hint finds less than none, whatever the length of sessions.
func TestHintsNeverHurt(t *testing.T) {
	made, err := sets.Quality("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*sets.Set{made, sets.Assistant(sets.SmallAssistant)} {
		t.Run(set.Name, func(t *testing.T) {
			none := 0.0
			for i, hint := range evidence.Hints() {
				if testing.Short() && i > 3 && i%2 == 1 {
					continue // sessions of another length are tried without authors
				}
				sum, questions := 0.0, 0
				for _, talk := range set.Talks {
					s := servertest.Start(t, nil)
					MustLoad(t, s, talk, hint.Change)
					sum += recalls(t, s, talk, &loombridgev1.MemoryQueryRequest{Limit: 5}, false)[""] * float64(len(talk.Questions))
					questions += len(talk.Questions)
				}
				recall := sum / float64(questions)
				t.Logf("%-24s recall@5 %.1f", hint.Name, recall)
				if i == 0 {
					none = recall
				}
				if recall < none-hintCosts[set.Name] {
					t.Errorf("recall@5 with %s is %.1f, with none %.1f", hint.Name, recall, none)
				}
			}
		})
	}
}

// Searching a second time with suggested words finds no less.
func TestExpandNeverHurts(t *testing.T) {
	made, err := sets.Quality("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*sets.Set{made, sets.Assistant(sets.SmallAssistant)} {
		t.Run(set.Name, func(t *testing.T) {
			var plain, expanded float64
			for _, talk := range set.Talks {
				s := servertest.Start(t, nil)
				MustLoad(t, s, talk, nil)
				questions := float64(len(talk.Questions))
				plain += questions * recalls(t, s, talk, &loombridgev1.MemoryQueryRequest{Limit: 5}, false)[""]
				expanded += questions * recalls(t, s, talk, &loombridgev1.MemoryQueryRequest{Limit: 5, Expand: true}, false)[""]
			}
			questions := float64(set.Questions())
			t.Logf("recall@5 %.1f, with expand %.1f", plain/questions, expanded/questions)
			if expanded < plain {
				t.Errorf("recall@5 with expand is %.1f, without %.1f", expanded/questions, plain/questions)
			}
		})
	}
}
