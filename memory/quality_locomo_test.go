package memory_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// locomoSample is a long conversation of two people with questions about it.
type locomoSample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []locomoQuestion           `json:"qa"`
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

type locomoQuestion struct {
	Text     string   `json:"question"`
	Evidence []string `json:"evidence"`
	Category int      `json:"category"`
}

var locomoCategories = map[int]string{1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}

// locomoDepths are how many hits are looked at.
var locomoDepths = []int{1, 5, 10, 25, 50}

// recall counts the share of a question's evidence among the first hits.
type recall struct {
	questions int
	sums      [5]float64 // by depth
}

func (r *recall) add(found, evidence []string) {
	r.questions++
	for i, depth := range locomoDepths {
		n := 0
		for _, id := range evidence {
			if slices.Contains(found[:min(depth, len(found))], id) {
				n++
			}
		}
		r.sums[i] += float64(n) / float64(len(evidence))
	}
}

// at is the mean recall at a depth, in per cent.
func (r *recall) at(depth int) float64 {
	return 100 * r.sums[slices.Index(locomoDepths, depth)] / float64(max(1, r.questions))
}

func (r *recall) String() string {
	var b strings.Builder
	for _, depth := range locomoDepths {
		fmt.Fprintf(&b, "  @%d %5.2f", depth, r.at(depth))
	}
	return fmt.Sprintf("%s  (%d questions)", b.String(), r.questions)
}

// locomoRun is what the questions of all conversations found.
type locomoRun struct {
	all        recall
	categories map[int]*recall
	samples    map[string]*recall
}

func (r *locomoRun) add(sample string, category int, found, evidence []string) {
	if r.categories == nil {
		r.categories, r.samples = make(map[int]*recall), make(map[string]*recall)
	}
	if r.categories[category] == nil {
		r.categories[category] = &recall{}
	}
	if r.samples[sample] == nil {
		r.samples[sample] = &recall{}
	}
	for _, to := range []*recall{&r.all, r.categories[category], r.samples[sample]} {
		to.add(found, evidence)
	}
}

func (r *locomoRun) log(t *testing.T) {
	t.Logf("%-12s%s", "all", &r.all)
	for category := 1; category <= 5; category++ {
		if c := r.categories[category]; c != nil {
			t.Logf("%-12s%s", locomoCategories[category], c)
		}
	}
	for sample, c := range r.samples {
		t.Logf("%-12s%s", sample, c)
	}
}

// MustSaveLocomo saves every turn of a conversation as a record whose id is the
// turn's, one scope for each conversation.
func MustSaveLocomo(tb testing.TB, store *memory.Store, sample locomoSample) (scope kv.Scope, ids map[string]bool) {
	tb.Helper()
	scope, ids = kv.AgentScope("default", sample.ID), make(map[string]bool)
	for n, turns := range sample.MustSessions(tb) {
		session := fmt.Sprintf("session_%d", n)
		var date string
		if err := json.Unmarshal(sample.Conversation[session+"_date_time"], &date); err != nil {
			tb.Fatal(err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			tb.Fatal(err)
		}
		for _, turn := range turns {
			text := turn.Text
			if turn.Caption != "" {
				text += "\n" + turn.Caption
			}
			ids[turn.ID] = true
			record := record.Record{ID: turn.ID, Text: text, Author: turn.Speaker, SessionID: session, EventTime: at}
			if _, err := store.Save(tb.Context(), scope, record, ""); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return scope, ids
}

// MustSessions are the turns of each session of a conversation, by its number.
func (s locomoSample) MustSessions(tb testing.TB) iter.Seq2[int, []locomoTurn] {
	return func(yield func(int, []locomoTurn) bool) {
		for n := 1; ; n++ {
			raw, ok := s.Conversation[fmt.Sprintf("session_%d", n)]
			if !ok {
				return
			}
			var turns []locomoTurn
			if err := json.Unmarshal(raw, &turns); err != nil {
				tb.Fatal(err)
			}
			if !yield(n, turns) {
				return
			}
		}
	}
}

var locomoEvidence = regexp.MustCompile(`D:?(\d+):(\d+)`)

// evidence returns the ids that a question names, its slips repaired.
func (q locomoQuestion) evidence(known map[string]bool) (ids []string) {
	for _, text := range q.Evidence {
		for _, match := range locomoEvidence.FindAllStringSubmatch(text, -1) {
			session, _ := strconv.Atoi(match[1])
			turn, _ := strconv.Atoi(match[2])
			id := fmt.Sprintf("D%d:%d", session, turn)
			if known[id] && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// MustReadLocomo returns the conversations that the weights of the ranking were
// set on.
func MustReadLocomo(tb testing.TB) (samples []locomoSample) {
	tb.Helper()
	raw, err := os.ReadFile(MustEvalFile(tb, "locomo", "locomo_dev.json"))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, &samples); err != nil {
		tb.Fatal(err)
	}
	return samples
}

// TestLocomo finds the turns that questions about long conversations need, by
// words alone. Recall is the share of a question's evidence among the first
// hits, on average over the questions that have any.
func TestLocomo(t *testing.T) {
	samples := MustReadLocomo(t)
	store := MustStore(t)
	var plain, expanded locomoRun
	for _, sample := range samples {
		scope, known := MustSaveLocomo(t, store, sample)
		for _, asked := range sample.Questions {
			evidence := asked.evidence(known)
			if len(evidence) == 0 {
				continue
			}
			for _, run := range []struct {
				*locomoRun
				expand bool
			}{{&plain, false}, {&expanded, true}} {
				q := question.Question{Text: asked.Text, Limit: 50, Mode: question.Lexical, Expand: run.expand}
				result, err := store.Query(t.Context(), scope, q)
				if err != nil {
					t.Fatal(err)
				}
				run.add(sample.ID, asked.Category, ids(result), evidence)
			}
		}
	}
	plain.log(t)
	t.Log("with expand:")
	expanded.log(t)
	atLeast(t, "recall@5", plain.all.at(5), 78)
	atLeast(t, "recall@10", plain.all.at(10), 84.5)
	atLeast(t, "recall@25", plain.all.at(25), 89.5)
	atLeast(t, "recall@50", plain.all.at(50), 91)
	atLeast(t, "recall@10 of multi-hop", plain.categories[1].at(10), 50)
	for _, depth := range locomoDepths {
		atLeast(t, fmt.Sprintf("recall@%d with expand", depth), expanded.all.at(depth), plain.all.at(depth))
	}
}

// speakers are the two people of a conversation.
func (s locomoSample) speakers(tb testing.TB) (names [2]string) {
	for i, field := range []string{"speaker_a", "speaker_b"} {
		if err := json.Unmarshal(s.Conversation[field], &names[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return names
}

// TestLocomoScores asks every conversation its own questions and, with its
// people's names in them, those of the others, most of which it can't answer.
// The score of the first hit must tell them apart: AUC is how often an own
// question scores higher than a foreign one.
func TestLocomoScores(t *testing.T) {
	const everyForeign = 4
	samples := MustReadLocomo(t)
	store := MustStore(t)
	var own, foreign []float64
	for _, sample := range samples {
		scope, known := MustSaveLocomo(t, store, sample)
		score := func(text string) float64 {
			result, err := store.Query(t.Context(), scope, question.Question{Text: text, Limit: 1, Mode: question.Lexical})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Hits) == 0 {
				return 0
			}
			return result.Hits[0].Score
		}
		here := sample.speakers(t)
		for _, other := range samples {
			there := other.speakers(t)
			swap := strings.NewReplacer(there[0], here[0], there[1], here[1])
			for i, asked := range other.Questions {
				switch {
				case other.ID == sample.ID && len(asked.evidence(known)) > 0:
					own = append(own, score(asked.Text))
				case other.ID != sample.ID && i%everyForeign == 0:
					foreign = append(foreign, score(swap.Replace(asked.Text)))
				}
			}
		}
	}
	auc := 100 * areaUnderCurve(own, foreign)
	t.Logf("AUC %.2f  (%d own questions, %d foreign)", auc, len(own), len(foreign))
	for _, least := range []float64{0.2, 0.3, 0.4, 0.5} {
		t.Logf("score of at least %.1f: %.1f %% of the own, %.1f %% of the foreign", least, atLeastShare(own, least), atLeastShare(foreign, least))
	}
	atLeast(t, "AUC", auc, 90)
}

// areaUnderCurve is how often one of the first is larger than one of the
// second, half of the ties included.
func areaUnderCurve(first, second []float64) float64 {
	wins := 0.0
	for _, a := range first {
		for _, b := range second {
			switch {
			case a > b:
				wins++
			case a == b:
				wins += 0.5
			}
		}
	}
	return wins / float64(len(first)*len(second))
}

func atLeastShare(scores []float64, least float64) float64 {
	n := 0
	for _, score := range scores {
		if score >= least {
			n++
		}
	}
	return 100 * float64(n) / float64(len(scores))
}
