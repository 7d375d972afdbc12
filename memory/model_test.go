package memory_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

// model is a plain memory: a list of records, searched one by one.
type model struct {
	analyzer *analysis.Analyzer
	records  []memory.Record
}

// scored is a record with its score.
type scored struct {
	id    string
	score float64
	at    int
}

func (m *model) terms(r memory.Record) map[string]float64 {
	counts := make(map[string]float64)
	for term := range m.analyzer.Terms(r.Text) {
		counts[term]++
	}
	for term := range m.analyzer.Terms(r.Author) {
		counts[term]++
	}
	return counts
}

func sum(counts map[string]float64) (n float64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// search ranks all live records that match, best first, and counts candidates.
func (m *model) search(query string, match func(memory.Record) bool, now time.Time) (found []scored, candidates int) {
	docs := make([]map[string]float64, len(m.records))
	df, total := make(map[string]float64), 0.0
	for i, r := range m.records {
		docs[i] = m.terms(r)
		total += sum(docs[i])
		for term := range docs[i] {
			df[term]++
		}
	}
	n := float64(len(m.records))
	average := max(1, total/n)
	for i, r := range m.records {
		score, mass := 0.0, 0.0
		for term := range m.analyzer.Terms(query) {
			idf := math.Log(1 + (n-df[term]+0.5)/(df[term]+0.5))
			mass += idf
			if tf := docs[i][term]; tf > 0 {
				score += idf * tf * 1.9 / (tf + 0.9*(1-0.4+0.4*sum(docs[i])/average))
			}
		}
		if score == 0 {
			continue
		}
		candidates++
		expired := !r.ExpireTime.IsZero() && !r.ExpireTime.After(now)
		if !match(r) || expired || r.SupersededBy != "" {
			continue
		}
		share := 1 - score/(1.9*mass)
		found = append(found, scored{r.ID, 1 - share*share, i})
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(round(b.score), round(a.score)), cmp.Compare(b.at, a.at))
	})
	return found, candidates
}

func round(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// player makes random moves on the store and on the model.
type player struct {
	*rig
	model *model
	rng   *rand.Rand
}

var vocabulary = strings.Fields("apple banana cherry the of running runs house houses getUserName v1.2.3 東京タワー Ann's price prices 45,000 market tree über")

func (p *player) words(n int) string {
	var b strings.Builder
	for range n {
		// Low words come often, so that some terms have long lists.
		b.WriteString(vocabulary[min(p.rng.IntN(len(vocabulary)), p.rng.IntN(len(vocabulary)))])
		b.WriteByte(' ')
	}
	return b.String()
}

func (p *player) save(t *testing.T) {
	r := memory.Record{
		Text:     p.words(1 + p.rng.IntN(12)),
		Metadata: json.RawMessage(fmt.Sprintf(`{"n":%d}`, p.rng.IntN(4))),
	}
	if p.rng.IntN(2) == 0 {
		r.Tags = []string{fmt.Sprint("t", p.rng.IntN(3))}
	}
	if p.rng.IntN(3) == 0 {
		r.Author = []string{"Ann", "Bob Banana"}[p.rng.IntN(2)]
	}
	if p.rng.IntN(6) == 0 {
		r.TTL = time.Duration(1+p.rng.IntN(100)) * time.Second
	}
	if n := len(p.model.records); n > 0 && p.rng.IntN(4) == 0 {
		r.Supersedes = p.model.records[p.rng.IntN(n)].ID
	}
	saved, err := p.Save(t.Context(), agent, r, "")
	if err != nil {
		// The one that it would have replaced is gone or replaced already.
		r.Supersedes = ""
		saved = p.MustSave(t, r)
	}
	for i := range p.model.records {
		if saved.Supersedes == p.model.records[i].ID {
			p.model.records[i].SupersededBy = saved.ID
		}
	}
	p.model.records = append(p.model.records, saved)
}

func (p *player) query(t *testing.T) {
	text := p.words(1 + p.rng.IntN(5))
	tag, number := fmt.Sprint("t", p.rng.IntN(4)), p.rng.IntN(5)
	filters := []struct {
		filter string
		match  func(memory.Record) bool
	}{
		{"", func(memory.Record) bool { return true }},
		{"tags:" + tag, func(r memory.Record) bool { return slices.Contains(r.Tags, tag) }},
		{fmt.Sprintf("metadata.n = %d", number), func(r memory.Record) bool { return string(r.Metadata) == fmt.Sprintf(`{"n":%d}`, number) }},
		{fmt.Sprintf("tags:%s AND metadata.n = %d", tag, number), func(r memory.Record) bool {
			return slices.Contains(r.Tags, tag) && string(r.Metadata) == fmt.Sprintf(`{"n":%d}`, number)
		}},
		{`author = "Ann"`, func(r memory.Record) bool { return r.Author == "Ann" }},
	}
	f := filters[p.rng.IntN(len(filters))]
	limit := 1 + p.rng.IntN(20)
	want, candidates := p.model.search(text, f.match, p.clock.Now())
	got := p.MustQuery(t, memory.Query{Text: text, Filter: f.filter, Limit: limit})
	if got.Receipt.LexicalCandidates != candidates || got.Receipt.Records != int64(len(p.model.records)) {
		t.Fatalf("query %q: %d candidates of %d, receipt %+v", text, candidates, len(p.model.records), got.Receipt)
	}
	if rest := candidates - got.Receipt.Filtered - got.Receipt.Expired - got.Receipt.Superseded; rest != len(want) {
		t.Fatalf("query %q: %d remain, want %d, receipt %+v", text, rest, len(want), got.Receipt)
	}
	want = want[:min(limit, len(want))]
	if len(got.Hits) != len(want) {
		t.Fatalf("query %q filter %q: %d hits, want %d", text, f.filter, len(got.Hits), len(want))
	}
	for i, hit := range got.Hits {
		if hit.Record.ID != want[i].id || math.Abs(hit.Score-want[i].score) > 1e-9 {
			t.Fatalf("query %q filter %q, hit %d: %s %v, want %+v", text, f.filter, i, hit.Record.ID, hit.Score, want[i])
		}
	}
}

func testAgreesWithModel(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &player{rig: r, model: &model{analyzer: analysis.New()}, rng: rand.New(rand.NewPCG(seed, 0))}
	for step := range 400 {
		switch p.rng.IntN(20) {
		case 0:
			p.Reopen()
		case 1:
			p.clock.Set(p.clock.Now().Add(time.Duration(p.rng.IntN(20)) * time.Second))
		case 2:
			p.MustPack(t)
		case 3, 4, 5, 6, 7:
			p.query(t)
		default:
			p.save(t)
		}
		if step%100 == 99 {
			p.MustCheck(t, agent)
		}
	}
}
