package memory_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// synthetic is the set of testdata/quality, saved.
type synthetic struct {
	*memory.Store
	questions []labelled
}

// labelled is a line of questions.jsonl; generate.py there describes the fields.
type labelled struct {
	Scope, Class, Question string
	Evidence, Stale        []string
}

// conversation is a line of sessions.jsonl.
type conversation struct {
	Scope, Session string
	Time           time.Time
	Turns          [][]string // author, text, and the turn that it supersedes, if any
}

func mustLines[T any](tb testing.TB, name string) (all []T) {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "quality", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line T
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			tb.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func syntheticScope(name string) kv.Scope { return kv.AgentScope("default", name) }

func MustSynthetic(tb testing.TB) *synthetic {
	tb.Helper()
	s := &synthetic{Store: MustStore(tb), questions: mustLines[labelled](tb, "questions.jsonl")}
	for _, c := range mustLines[conversation](tb, "sessions.jsonl") {
		for i, turn := range c.Turns {
			r := record.Record{
				ID: fmt.Sprintf("%s-%d", c.Session, i+1), SessionID: c.Session,
				EventTime: c.Time, Author: turn[0], Text: turn[1], Importance: record.DefaultImportance,
			}
			if len(turn) > 2 {
				r.Supersedes = turn[2]
			}
			if _, err := s.Save(tb.Context(), syntheticScope(c.Scope), r, ""); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return s
}

// MustAsk returns the ids of the best hits and the score of the first.
func (s *synthetic) MustAsk(tb testing.TB, q labelled, limit int) (ids []string, score float64) {
	tb.Helper()
	result, err := s.Query(tb.Context(), syntheticScope(q.Scope), question.Question{Text: q.Question, Mode: question.Lexical, Limit: limit})
	if err != nil {
		tb.Fatal(err)
	}
	for _, hit := range result.Hits {
		ids = append(ids, hit.Record.ID)
		score = max(score, hit.Score)
	}
	return ids, score
}

// recall is the share of the evidence among ids.
func (q labelled) recall(ids []string) float64 {
	found := 0
	for _, id := range q.Evidence {
		if slices.Contains(ids, id) {
			found++
		}
	}
	return float64(found) / float64(len(q.Evidence))
}

// syntheticFloors are the least recall@5 of each class, in per cent.
var syntheticFloors = map[string]float64{
	"single": 97, "speaker": 97, "multi": 97, "temporal": 97, "reply": 95, "updated": 100, "restated": 95,
	"contradiction": 95, "cjk": 97, "code": 97,
}

func TestSyntheticQuality(t *testing.T) {
	s := MustSynthetic(t)
	sums, counts := make(map[string]float64), make(map[string]float64)
	var relevant, irrelevant []float64
	first := 0.0
	for _, q := range s.questions {
		ids, score := s.MustAsk(t, q, 5)
		if len(q.Evidence) == 0 {
			irrelevant = append(irrelevant, score)
			continue
		}
		relevant = append(relevant, score)
		if q.recall(ids[:min(1, len(ids))]) > 0 {
			first++
		}
		sums[q.Class] += q.recall(ids)
		counts[q.Class]++
		if testing.Verbose() && q.recall(ids) < 1 {
			t.Logf("%s: %s wants %v, got %v", q.Class, q.Question, q.Evidence, ids)
		}
	}
	for class, floor := range syntheticFloors {
		recall := 100 * sums[class] / counts[class]
		t.Logf("%-13s recall@5 %6.2f of %.0f questions", class, recall, counts[class])
		atLeast(t, class, recall, floor)
	}
	first *= 100 / float64(len(relevant))
	t.Logf("the first hit is evidence in %.2f per cent", first)
	atLeast(t, "the share of first hits that are evidence", first, 93)
	auc := 100 * separation(relevant, irrelevant)
	t.Logf("scores of %d answered and %d unanswerable questions: AUC %.2f", len(relevant), len(irrelevant), auc)
	atLeast(t, "the AUC", auc, 95)
}

// separation is the chance that a number of the first list is above one of the
// second (the area under the ROC curve).
func separation(above, below []float64) float64 {
	sum := 0.0
	for _, a := range above {
		for _, b := range below {
			switch {
			case a > b:
				sum++
			case a == b:
				sum += 0.5
			}
		}
	}
	return sum / float64(len(above)*len(below))
}

// TestSyntheticNewestWins asks for facts that changed: what was said last
// stands before what was said before, whether the record names the one that it
// replaces or just says something else.
func TestSyntheticNewestWins(t *testing.T) {
	s := MustSynthetic(t)
	asked := make(map[string]int)
	for _, q := range s.questions {
		if len(q.Stale) == 0 {
			continue
		}
		asked[q.Class]++
		ids, _ := s.MustAsk(t, q, 20)
		newest := slices.Index(ids, q.Evidence[0])
		stale := slices.Index(ids, q.Stale[0])
		switch {
		case newest < 0:
			t.Errorf("%s: %s: %s is not found", q.Class, q.Question, q.Evidence[0])
		case stale >= 0 && (stale < newest || q.Class == "updated"):
			t.Errorf("%s: %s: %s stands at %d, %s at %d", q.Class, q.Question, q.Evidence[0], newest+1, q.Stale[0], stale+1)
		}
	}
	if asked["updated"] < 20 || asked["restated"] < 20 {
		t.Errorf("asked %v", asked)
	}
}
