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

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// model is a plain memory: a list of records, ranked one by one by the recipe
// that the index follows.
type model struct {
	analyzer *analysis.Analyzer
	records  []record.Record
}

// scored is a record with its rank.
type scored struct {
	id   string
	rank float64
	at   int
}

// unheard is a word that no query has.
const unheard = "\x00"

// counts are words and how often each stands in a text.
type counts map[string]float64

func (c counts) length() (n float64) {
	for _, count := range c {
		n += count
	}
	return n
}

func (c counts) add(other counts, times float64) {
	for word, count := range other {
		c[word] += times * count
	}
}

func (m *model) terms(text string) counts {
	c := make(counts)
	aside := func(term string) {
		c[term]++
		c[unheard]-- // it makes the text no longer
	}
	for term := range m.analyzer.Indexed(text, aside) {
		c[term]++
	}
	return c
}

// asked are the words of a query.
func (m *model) asked(text string) counts {
	c := make(counts)
	for term := range m.analyzer.Asked(text, func(term string) { c[term]++ }) {
		c[term]++
	}
	return c
}

// lent is the part of a body that its neighbours have.
func lent(body counts) float64 { return min(1, 20/(body.length()+1)) }

// sections returns, for every record, the number of the part of its session that it stands
// in, or -1: each has twenty records.
func (m *model) sections() (numbers []int, count int) {
	sizes, current := make(map[string]int), make(map[string]int)
	for _, r := range m.records {
		if r.SessionID == "" {
			numbers = append(numbers, -1)
			continue
		}
		if sizes[r.SessionID]%20 == 0 {
			current[r.SessionID] = count
			count++
		}
		sizes[r.SessionID]++
		numbers = append(numbers, current[r.SessionID])
	}
	return numbers, count
}

// documents returns the words of every record: its own body, itself with its
// header and its window, and those of every section.
func (m *model) documents() (bodies, turns, windows, spoken []counts) {
	numbers, count := m.sections()
	for range count {
		spoken = append(spoken, make(counts))
	}
	for i, r := range m.records {
		body := m.terms(r.Text)
		turn := m.terms(r.Author)
		if head := turn.length(); head > 0 {
			turn[unheard] += 4 - head // whatever the head holds, it counts as four words
		}
		turn.add(body, 1)
		bodies, turns = append(bodies, body), append(turns, turn)
		if numbers[i] >= 0 {
			spoken[numbers[i]].add(turn, 1)
		}
	}
	df := make(counts)
	for _, turn := range turns {
		for word := range turn {
			df[word]++
		}
	}
	for i := range m.records {
		window := make(counts)
		window.add(turns[i], 1)
		for step, times := range map[int]float64{-1: 1, -2: 1, 1: 0.5, 2: 0.5} {
			if n := m.neighbour(i, step); n >= 0 {
				for word, count := range bodies[n] {
					if 4*df[word] > float64(len(m.records)) {
						word = unheard // not carried, but it makes the window longer
					}
					window[word] += times * count * lent(bodies[n])
				}
			}
		}
		windows = append(windows, window)
	}
	return bodies, turns, windows, spoken
}

// neighbour returns the record so many steps away in the session, or -1.
func (m *model) neighbour(i, step int) int {
	direction := 1
	if step < 0 {
		direction, step = -1, -step
	}
	for n := i + direction; n >= 0 && n < len(m.records) && m.records[i].SessionID != ""; n += direction {
		if m.records[n].SessionID == m.records[i].SessionID {
			if step--; step == 0 {
				return n
			}
		}
	}
	return -1
}

// lengths returns the average length of documents and how much a longer one is marked
// down: more where lengths are uneven.
func lengths(documents []counts) (average, part, uneven float64) {
	total, logs, n := 0.0, 0.0, float64(len(documents))
	for _, d := range documents {
		total += d.length()
		whole := math.Floor(d.length()) + 1
		power := math.Floor(math.Log2(whole))
		logs += power + whole/math.Exp2(power) - 1
	}
	mean, middle := max(1, total/max(1, n)), max(1, math.Exp2(logs/max(1, n)))
	uneven = min(1, max(0, (mean/middle-1.2)/0.6))
	return math.Pow(mean, 1-uneven) * math.Pow(middle, uneven), 0.6 + 0.3*uneven, uneven
}

// bm25 returns the sum of the weights of the query's words in every document.
func bm25(query counts, documents []counts, average, part float64) []float64 {
	df := make(counts)
	for _, d := range documents {
		for word := range d {
			df[word]++
		}
	}
	n := float64(len(documents))
	sums := make([]float64, len(documents))
	for i, d := range documents {
		for word, times := range query {
			if tf := d[word]; tf > 0 {
				idf := math.Log(1 + (n-df[word]+0.5)/(df[word]+0.5))
				sums[i] += times * idf * tf * 1.9 / (tf + 0.9*(1-part+part*d.length()/average))
			}
		}
	}
	return sums
}

// believed is how far sessions are believed: less where the words of a query stand beside
// themselves no more often than chance has it.
func (m *model) believed(query counts, bodies, turns []counts) float64 {
	n, shared, expected := float64(len(m.records)), 0.0, 0.0
	for word := range query {
		with, times, windows := 0.0, 0.0, make(map[int]bool)
		for i, turn := range turns {
			if turn[word] == 0 {
				continue
			}
			with++
			times++
			windows[i] = true
			for _, step := range []int{-2, -1, 1, 2} {
				if at := m.neighbour(i, step); at >= 0 && bodies[i][word] > 0 {
					times++
					windows[at] = true
				}
			}
		}
		if with > 1 && with <= 0.25*n {
			by := n * (1 - math.Exp(-times/n))
			shared, expected = shared+by-float64(len(windows)), expected+by
		}
	}
	return min(1, max(0, (shared+30)/(expected+150)/0.06))
}

func largest(sums []float64) float64 { return max(1e-300, slices.Max(append([]float64{0}, sums...))) }

// rank returns the rank of every record; a negative one is none. believed says how far
// sessions are.
func (m *model) rank(text string) (ranks []float64, believed float64) {
	query := m.asked(text)
	bodies, turns, windows, spoken := m.documents()
	average, part, uneven := lengths(turns)
	own := bm25(query, turns, average, part)
	average, part, _ = lengths(windows)
	window := bm25(query, windows, average, part)
	average, _, _ = lengths(nil)
	if len(spoken) > 0 {
		total := 0.0
		for _, s := range spoken {
			total += s.length()
		}
		average = max(1, total/float64(len(spoken)))
	}
	section := bm25(query, spoken, average, 0.6)
	numbers, _ := m.sections()
	believed = m.believed(query, bodies, turns)
	answered := slices.Clone(own)
	for i, r := range m.records {
		if p := m.neighbour(i, -1); p >= 0 && m.asks(p) && m.records[p].Author != r.Author {
			part := min(1, 20/(bodies[i].length()+1))
			answered[i] += 0.8 * believed * part * part * own[p]
		}
	}
	ranks = make([]float64, len(m.records))
	for i := range m.records {
		turn, around := answered[i]/largest(answered), (1-0.6*uneven)*window[i]/largest(window)
		if numbers[i] < 0 {
			ranks[i] = m.weigh(text, i, turn, around, uneven)
			continue
		}
		around += 0.3 * uneven * max(0, (1-0.6*uneven)*turn-around)
		alone := believed * min(1, 30/(bodies[i].length()+1))
		around = alone * (around + 0.4*section[numbers[i]]/largest(section))
		brevity := 1 - (1-uneven)*2/(bodies[i].length()+3)
		ranks[i] = m.weigh(text, i, turn*(0.6+(1.4-0.6*uneven)*(1-alone)), around*brevity, uneven)
	}
	return ranks, believed
}

// weigh adds what does not come from words.
func (m *model) weigh(text string, i int, own, around, uneven float64) float64 {
	r := m.records[i]
	if own+around == 0 {
		return -1
	}
	rank := own + around
	switch {
	case r.SessionID == "" || !m.asks(i):
	case m.neighbour(i, 1) >= 0:
		rank -= 0.1 // all of it: what follows is short
	default:
		rank -= 0.1 * (1 - uneven)
	}
	if r.Author != "" && m.named(text) == r.Author {
		rank += 0.25
	}
	return rank
}

// named returns the author that a query names, if it is one.
func (m *model) named(text string) (name string) {
	text = " " + strings.ToLower(strings.ReplaceAll(text, "'", " ")) + " "
	for _, author := range []string{"Ann", "Bob Banana"} {
		known := slices.ContainsFunc(m.records, func(r record.Record) bool { return r.Author == author })
		if known && strings.Contains(text, " "+strings.ToLower(author)+" ") {
			if name != "" {
				return ""
			}
			name = author
		}
	}
	return name
}

// asks reports whether a record asks; no text of the player's states much beside.
func (m *model) asks(i int) bool {
	return strings.HasSuffix(strings.TrimSpace(m.records[i].Text), "?")
}

// units are the session of every record, or of a long one its section, and how large each
// counts.
func (m *model) units() (names []string, sizes map[string]float64) {
	numbers, _ := m.sections()
	sizes = make(map[string]float64)
	for _, r := range m.records {
		sizes[r.SessionID]++
	}
	for i, r := range m.records {
		name := r.SessionID
		if name != "" && sizes[name] > 40 {
			name = fmt.Sprint(name, " ", numbers[i])
			sizes[name] = 20
		}
		names = append(names, name)
	}
	return names, sizes
}

// spreadOut takes from each of the best what the better ones have shown of its session, but
// for the other side of an exchange that is no question. It returns those within the limit,
// and the others with what is left of their ranks. Of those too close to tell the one that
// got names for the place comes first: what it shows decides about the rest.
func (m *model) spreadOut(found []scored, limit int, believed float64, got []memory.Hit) (spread, rest []scored) {
	units, sizes := m.units()
	shown, kept := make(map[string]float64), make(map[int]float64)
	left := slices.Clone(found[:min(len(found), max(20, 2*limit+20))])
	for _, f := range left {
		kept[f.at] = 1
	}
	for len(left) > 0 && len(spread) < limit {
		best, rank := 0, math.Inf(-1)
		for i, f := range left {
			if f.rank *= kept[f.at]; f.rank > rank {
				best, rank = i, f.rank
			}
		}
		for i, f := range left {
			if n := len(spread); n < len(got) && got[n].Record.ID == f.id && f.rank*kept[f.at] > rank-1e-5 {
				best, rank = i, f.rank*kept[f.at]
			}
		}
		hit := left[best]
		left = slices.Delete(left, best, best+1)
		spread = append(spread, scored{hit.id, rank, hit.at})
		if len(spread) == limit || m.records[hit.at].SessionID == "" {
			continue
		}
		unit := units[hit.at]
		shown[unit] += min(1, (m.terms(m.records[hit.at].Text).length()+1)/60)
		for _, f := range left {
			if units[f.at] != unit {
				continue
			}
			beside := m.neighbour(hit.at, 1) == f.at || m.neighbour(hit.at, -1) == f.at
			brief := m.terms(m.records[f.at].Text).length() < 20
			if f.rank > 0 && !(beside && brief && !m.asks(f.at)) {
				kept[f.at] = 1 - min(0.5, 7*believed*math.Pow(shown[unit]/max(6, sizes[unit]), 1.5))
			}
		}
	}
	for _, f := range left {
		rest = append(rest, scored{f.id, f.rank * kept[f.at], f.at})
	}
	return spread, rest
}

// search ranks all live records that match, best first, and counts candidates.
func (m *model) search(query string, match func(record.Record) bool, now time.Time) (found []scored, candidates int, believed float64) {
	ranks, believed := m.rank(query)
	for i, rank := range ranks {
		r := m.records[i]
		if rank == -1 {
			continue
		}
		candidates++
		expired := !r.ExpireTime.IsZero() && !r.ExpireTime.After(now)
		if match(r) && !expired && r.SupersededBy == "" {
			found = append(found, scored{r.ID, rank, i})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.at, a.at))
	})
	return found, candidates, believed
}

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
	r := record.Record{
		Text:     p.words(1 + p.rng.IntN(12)),
		Metadata: json.RawMessage(fmt.Sprintf(`{"n":%d}`, p.rng.IntN(4))),
	}
	if p.rng.IntN(2) == 0 {
		r.Tags = []string{fmt.Sprint("t", p.rng.IntN(3))}
	}
	if p.rng.IntN(3) == 0 {
		r.Author = []string{"Ann", "Bob Banana"}[p.rng.IntN(2)]
	}
	if p.rng.IntN(2) == 0 {
		r.SessionID = fmt.Sprint("s", p.rng.IntN(3))
	}
	if p.rng.IntN(4) == 0 {
		r.Text += "?"
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

// read has a reader come upon what is to be restored.
func (p *player) read(t *testing.T) {
	p.MustList(t, memory.Listing{})
	for _, id := range restoring(p.model.records, p.clock.Now()) {
		at := slices.IndexFunc(p.model.records, func(r record.Record) bool { return r.ID == id })
		gone := p.model.records[at]
		p.model.records = slices.Delete(p.model.records, at, at+1)
		for i := range p.model.records {
			switch r := &p.model.records[i]; {
			case r.SupersededBy == id:
				r.SupersededBy = gone.SupersededBy
			case r.Supersedes == id:
				r.Supersedes = gone.Supersedes
			}
		}
	}
}

func (p *player) query(t *testing.T) {
	p.read(t)
	text := p.words(1 + p.rng.IntN(5))
	tag, number := fmt.Sprint("t", p.rng.IntN(4)), p.rng.IntN(5)
	filters := []struct {
		filter string
		match  func(record.Record) bool
	}{
		{"", func(record.Record) bool { return true }},
		{"tags:" + tag, func(r record.Record) bool { return slices.Contains(r.Tags, tag) }},
		{fmt.Sprintf("metadata.n = %d", number), func(r record.Record) bool { return string(r.Metadata) == fmt.Sprintf(`{"n":%d}`, number) }},
		{fmt.Sprintf("tags:%s AND metadata.n = %d", tag, number), func(r record.Record) bool {
			return slices.Contains(r.Tags, tag) && string(r.Metadata) == fmt.Sprintf(`{"n":%d}`, number)
		}},
		{`author = "Ann"`, func(r record.Record) bool { return r.Author == "Ann" }},
	}
	f := filters[p.rng.IntN(len(filters))]
	limit := 1 + p.rng.IntN(20)
	want, candidates, believed := p.model.search(text, f.match, p.clock.Now())
	got := p.MustQuery(t, question.Question{Text: text, Filter: f.filter, Limit: limit})
	if got.Receipt.LexicalCandidates != candidates || got.Receipt.Records != int64(len(p.model.records)) {
		t.Fatalf("query %q: %d candidates of %d, receipt %+v", text, candidates, len(p.model.records), got.Receipt)
	}
	if rest := candidates - got.Receipt.Filtered - got.Receipt.Expired - got.Receipt.Superseded; rest != len(want) {
		t.Fatalf("query %q: %d remain, want %d, receipt %+v", text, rest, len(want), got.Receipt)
	}
	ranks := make(map[string]float64)
	for _, w := range want {
		ranks[w.id] = w.rank
	}
	want, rest := p.model.spreadOut(want, limit, believed, got.Hits)
	for _, w := range slices.Concat(want, rest) {
		ranks[w.id] = w.rank
	}
	if got.Receipt.Empty == memory.NothingRelevant && len(got.Hits) == 0 {
		p.irrelevant(t, text, want)
		return
	}
	if len(got.Hits) != len(want) {
		t.Fatalf("query %q filter %q: %d hits, want %d", text, f.filter, len(got.Hits), len(want))
	}
	// Scores are in the proportion of the ranks; those too close to tell may
	// change places.
	for i, hit := range got.Hits {
		share := hit.Score / got.Hits[0].Score
		if math.Abs(share-max(0, want[i].rank)/want[0].rank) > 1e-4 || math.Abs(share-max(0, ranks[hit.Record.ID])/want[0].rank) > 1e-4 {
			t.Fatalf("query %q filter %q, hit %d: %s with %v of the first, want %+v", text, f.filter, i, hit.Record.ID, share, want[i])
		}
	}
}

// irrelevant checks that nothing but names of authors speaks for what was found.
func (p *player) irrelevant(t *testing.T, text string, found []scored) {
	asked, names := p.model.asked(text), p.model.terms("Ann Bob Banana")
	_, turns, _, _ := p.model.documents()
	for _, f := range found {
		for word := range turns[f.at] {
			if asked[word] > 0 && names[word] == 0 {
				t.Fatalf("query %q: record %s holds %q and was not found", text, f.id, word)
			}
		}
	}
}

func testAgreesWithModel(t *testing.T, r *rig) {
	seed := chance.Seed(t)
	p := &player{rig: r, model: &model{analyzer: analysis.New(nil)}, rng: rand.New(rand.NewPCG(seed, 0))}
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
