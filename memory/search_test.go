package memory_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// say saves what people say in turns, in one session.
func (r *rig) say(tb testing.TB, session string, turns ...string) {
	tb.Helper()
	for i, turn := range turns {
		author, text, _ := strings.Cut(turn, ": ")
		r.MustSave(tb, record.Record{ID: fmt.Sprint(session, ".", i), SessionID: session, Author: author, Text: text})
	}
}

// F06
func TestDefaultLimit(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.fill(t, 20)
	if n := len(r.MustQuery(t, question.Question{Text: "gardens"}).Hits); n != 5 {
		t.Errorf("%d hits of a query without a limit", n)
	}
}

// F12
func TestQueryCrossesSessions(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for _, session := range []string{"monday", "tuesday", ""} {
		r.MustSave(t, record.Record{ID: "in " + session, SessionID: session, Text: "The harbour was closed"})
	}
	got := ids(r.MustQuery(t, question.Question{Text: "harbour"}))
	slices.Sort(got)
	mustEqual(t, "all sessions", []string{"in ", "in monday", "in tuesday"}, got)
}

func TestNeighboursCount(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.fill(t, 30)
	r.say(
		t, "trip",
		"Ann: We drove all the way to the old lighthouse near Brighton",
		"Bob: Which hotel did you sleep in there?",
		"Ann: It was called the Golden Anchor, small but clean",
		"Bob: Lovely, I should go one day as well",
	)
	// The answer shares no word with the query but the question before it does.
	hits := r.MustQuery(t, question.Question{Text: "Which hotel did they sleep in near the lighthouse?"}).Hits
	if at := slices.IndexFunc(hits, func(h memory.Hit) bool { return h.Record.ID == "trip.2" }); at < 0 || at > 1 {
		t.Errorf("the answer stands at %d of %v", at, ids(memory.Answer{Hits: hits}))
	}
	// A neighbour in the order of arrival that is of another session is none.
	r.say(t, "other", "Eve: Nothing of interest here")
	for _, hit := range r.MustQuery(t, question.Question{Text: "lighthouse", Limit: 50}).Hits {
		if hit.Record.SessionID != "trip" {
			t.Errorf("found %s", hit.Record.ID)
		}
	}
}

func TestNamedAuthor(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{ID: "ann", Author: "Ann Lee", Text: "Pottery is what I love to do"})
	r.MustSave(t, record.Record{ID: "bob", Author: "Bob", Text: "Pottery is what I love to do"})
	r.MustSave(t, record.Record{ID: "hannah", Author: "Hannah", Text: "Gardens are what I love to see"})
	for query, want := range map[string]string{
		"what does Bob love, pottery?":             "bob",
		"what does ANN LEE's pottery look like":    "ann",
		"pottery of Ann Lee":                       "ann",
		"what do you know about Hannah's gardens?": "hannah",
	} {
		hits := r.MustQuery(t, question.Question{Text: query, Explain: true}).Hits
		if hits[0].Record.ID != want || !hasSignal(hits[0], "author") {
			t.Errorf("%q: %s first, %+v", query, hits[0].Record.ID, hits[0].Explanation)
		}
	}
	// Two names or a part of a word name nobody.
	for _, query := range []string{"do Bob and Ann Lee love pottery", "bobsled pottery"} {
		for _, hit := range r.MustQuery(t, question.Question{Text: query, Explain: true}).Hits {
			if hasSignal(hit, "author") {
				t.Errorf("%q names %s", query, hit.Record.Author)
			}
		}
	}
}

// A question of which nothing is known but whom it names finds what they said, with
// a low score.
func TestNameAlone(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{ID: "ann", Author: "Ann Lee", Text: "I moved to Berlin"})
	r.MustSave(t, record.Record{ID: "bob", Author: "Bob", Text: "I moved to Oslo"})
	hits := r.MustQuery(t, question.Question{Text: "Where does Ann Lee live?"}).Hits
	if len(hits) != 1 || hits[0].Record.ID != "ann" || hits[0].Score <= 0 || hits[0].Score > 0.15 {
		t.Errorf("hits %+v", hits)
	}
	if hits := r.MustQuery(t, question.Question{Text: "Where does Ann Lee live?", MinScore: 0.3}).Hits; len(hits) != 0 {
		t.Errorf("hits over .3: %+v", hits)
	}
}

func hasSignal(hit memory.Hit, name string) bool {
	return slices.ContainsFunc(hit.Explanation.Signals, func(s rank.Signal) bool { return s.Name == name })
}

func TestDateInQuery(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for _, date := range []string{"2025-06-09", "2026-01-20", "2026-02-27", "2026-02-28"} {
		at, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		r.MustSave(t, record.Record{ID: date, Text: "Walked around the lake", EventTime: at.Add(9 * time.Hour)})
	}
	for query, want := range map[string]string{
		"the lake on 2026-01-20":        "2026-01-20",
		"the lake in June 2025":         "2025-06-09",
		"the lake in June":              "2025-06-09",
		"what did I do two days ago":    "2026-02-27",
		"what did I do yesterday":       "2026-02-28",
		"the lake in January":           "2026-01-20",
		"was there a lake last month?":  "2026-02-28",
		"three weeks before 28 Feb 26?": "2026-02-28",
	} {
		hits := r.MustQuery(t, question.Question{Text: query}).Hits
		if len(hits) == 0 || hits[0].Record.ID != want {
			t.Errorf("%q: found %v", query, ids(memory.Answer{Hits: hits}))
		}
	}
}

func TestRecencyAndImportance(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{ID: "old", Text: "the meeting room is on the second floor, second door", Importance: 1})
	r.clock.Set(start.Add(60 * 24 * time.Hour))
	r.MustSave(t, record.Record{ID: "new", Text: "the meeting room is somewhere", Importance: 0.2})
	query := question.Question{Text: "meeting room second floor"}
	mustEqual(t, "plain", []string{"old", "new"}, ids(r.MustQuery(t, query)))
	recent := query
	recent.RecencyWeight, recent.RecencyHalfLife = 1, 24*time.Hour
	mustEqual(t, "recent", []string{"new", "old"}, ids(r.MustQuery(t, recent)))
	// The default half-life is 30 days, so of the older one a quarter is left.
	recent.RecencyHalfLife, recent.Explain = 0, true
	for _, hit := range r.MustQuery(t, recent).Hits {
		if hit.Record.ID != "old" {
			continue
		}
		sum, lost := 0.0, 0.0
		for _, s := range hit.Explanation.Signals {
			if s.Name == "recency" {
				lost = s.Share
			} else {
				sum += s.Share
			}
		}
		if math.Abs(lost/sum+0.75) > 1e-6 {
			t.Errorf("recency takes %v of %v", lost, sum)
		}
	}
	important := query
	important.Text, important.ImportanceWeight = "meeting room", 1
	mustEqual(t, "important", []string{"old", "new"}, ids(r.MustQuery(t, important)))
}

func TestExplain(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.fill(t, 10)
	r.say(t, "s", "Ann: I bought a telescope", "Bob: For watching planets?", "Ann: Yes, Saturn most of all")
	result := r.MustQuery(t, question.Question{Text: "Ann's telescope for Saturn", Explain: true})
	rank, first := 0.0, result.Hits[0]
	for _, s := range first.Explanation.Signals {
		rank += s.Share
	}
	for _, hit := range result.Hits {
		sum := 0.0
		for i, s := range hit.Explanation.Signals {
			sum += s.Share
			if i > 0 && math.Abs(s.Share) > math.Abs(hit.Explanation.Signals[i-1].Share) {
				t.Errorf("%s: signals are not the strongest first: %+v", hit.Record.ID, hit.Explanation.Signals)
			}
		}
		if math.Abs(max(0, sum)/rank-hit.Score/first.Score) > 1e-5 {
			t.Errorf("%s: signals add up to %v of %v, the score is %v of %v", hit.Record.ID, sum, rank, hit.Score, first.Score)
		}
	}
	words := func(id string) []string {
		i := slices.IndexFunc(result.Hits, func(h memory.Hit) bool { return h.Record.ID == id })
		return slices.Sorted(slices.Values(result.Hits[i].Explanation.MatchedWords))
	}
	mustEqual(t, "words of the first", []string{"ann", "telescop"}, words("s.0"))
	mustEqual(t, "words of the second, which stands between others that match", []string(nil), words("s.1"))
	if plain := r.MustQuery(t, question.Question{Text: "telescope"}); plain.Hits[0].Explanation != nil {
		t.Error("explained without being asked")
	}
}

func TestMaxTokens(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for i := range 4 {
		r.MustSave(t, record.Record{Text: fmt.Sprintf("forty bytes of text about the harbour %d.", i)}) // 10 tokens each
	}
	result := r.MustQuery(t, question.Question{Text: "harbour", MaxTokens: 25})
	if len(result.Hits) != 2 || result.Receipt.Tokens != 20 || result.Receipt.OverMaxTokens != 2 {
		t.Errorf("%d hits, receipt %+v", len(result.Hits), result.Receipt)
	}
	result = r.MustQuery(t, question.Question{Text: "harbour", MaxTokens: 9})
	if len(result.Hits) != 0 || result.Receipt.Empty != memory.AllOverMaxTokens {
		t.Errorf("%d hits, receipt %+v", len(result.Hits), result.Receipt)
	}
}

// Of long records those come that fit, best first; the best one always does.
func TestMaxBytes(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	const records, size = 40, 1000
	for range records {
		r.MustSave(t, record.Record{Text: "harbour" + strings.Repeat(" ", size-9), Metadata: []byte("{}")})
	}
	best := r.MustQuery(t, question.Question{Text: "harbour", Limit: records}).Hits
	for bound, want := range map[int]int{1: 1, size - 1: 1, size: 1, 2*size - 1: 1, 2 * size: 2, 16 * size: 16, 17*size + 1: 17, records * size: records, records*size - 1: records - 1, 0: records} {
		result := r.MustQuery(t, question.Question{Text: "harbour", Limit: records, MaxBytes: bound})
		if len(result.Hits) != want || result.Receipt.OverMaxBytes != records-want {
			t.Fatalf("bound %d: %d hits, receipt %+v", bound, len(result.Hits), result.Receipt)
		}
		for i, hit := range result.Hits {
			if hit.Record.ID != best[i].Record.ID {
				t.Errorf("bound %d: hit %d is %s, want %s", bound, i, hit.Record.ID, best[i].Record.ID)
			}
		}
	}
	vectors := r.MustSave(t, record.Record{Text: "vectors", Embedding: make([]float32, 100), EmbeddingSpace: "zeros"})
	if got := vectors.Bytes(); got != len("vectors")+400 {
		t.Errorf("record has %d bytes", got)
	}
}

func TestEmptyReasons(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	check := func(what string, q question.Question, want memory.EmptyReason) {
		t.Helper()
		result := r.MustQuery(t, q)
		if result.Receipt.Empty != want {
			t.Errorf("%s: reason %d, want %d, receipt %+v", what, result.Receipt.Empty, want, result.Receipt)
		}
		if (want == 0) != (len(result.Hits) > 0) {
			t.Errorf("%s: %d hits", what, len(result.Hits))
		}
	}
	check("empty", question.Question{Text: "harbour"}, memory.NothingStored)
	r.MustSave(t, record.Record{Author: "Ann", Text: "The harbour was closed in the storm", Tags: []string{"sea"}})
	r.MustSave(t, record.Record{Author: "Ann", Text: "Breakfast was late"})
	check("found", question.Question{Text: "harbour"}, 0)
	check("other words", question.Question{Text: "xylophone concerts"}, memory.NothingRelevant)
	check("a name and other words", question.Question{Text: "Which xylophone does Ann play?"}, 0)
	check("a name and other words, to be sure", question.Question{Text: "Which xylophone does Ann play?", MinScore: 0.3}, memory.AllUnderMinScore)
	check("only a name", question.Question{Text: "Ann"}, 0)
	check("part of the words", question.Question{Text: "xylophone concerts piano trumpet harbour", MinScore: 0.6}, memory.AllUnderMinScore)
	check("filter", question.Question{Text: "harbour", Filter: "tags:mountain"}, memory.AllExcluded)
	r.MustSave(t, record.Record{Text: "A lighthouse", TTL: time.Second})
	r.clock.Set(start.Add(time.Minute))
	check("expired", question.Question{Text: "lighthouse"}, memory.AllExcluded)
}

// Every candidate is a hit or counted once.
func TestReceiptAddsUp(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for i := range 60 {
		record := record.Record{Text: strings.Repeat("gardens ", 1+i%7) + "and weather", Tags: []string{fmt.Sprint(i % 3)}}
		if i%5 == 0 {
			record.TTL = time.Second
		}
		r.MustSave(t, record)
	}
	r.clock.Set(start.Add(time.Minute))
	for _, q := range []question.Question{
		{},
		{Limit: 3},
		{Limit: 50},
		{MinScore: 0.9},
		{MinScore: 0.9, Limit: 1},
		{MinScore: 0.99, Limit: 50},
		{Filter: `tags:"1"`, MinScore: 0.5},
		{MaxTokens: 20},
	} {
		q.Text = "gardens in the rain"
		got := r.MustQuery(t, q)
		c := got.Receipt
		if sum := len(got.Hits) + c.Filtered + c.Expired + c.Superseded + c.UnderMinScore + c.OverLimit + c.OverMaxTokens; sum != c.LexicalCandidates || sum == 0 {
			t.Errorf("%+v: %d candidates, %d accounted for: %+v", q, c.LexicalCandidates, sum, c)
		}
	}
}

// What is asked for less than the whole list is its beginning.
func TestLimitCutsTheList(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	p := newProse(3)
	for i := range 300 {
		r.MustSave(t, record.Record{Text: p.text(80), SessionID: fmt.Sprint("s", i/15), Author: []string{"Ann", "Bob"}[i%2]})
	}
	for range 20 {
		q := question.Question{Text: p.text(60) + " Ann", Limit: question.MaxLimit}
		all := r.MustQuery(t, q)
		for _, limit := range []int{1, 5, 20} {
			q.Limit = limit
			mustEqual(t, "hits", all.Hits[:limit], r.MustQuery(t, q).Hits)
		}
		under := all.Hits[7].Score
		q.Limit, q.MinScore = question.MaxLimit, under
		if got := r.MustQuery(t, q); len(got.Hits) == 0 || len(got.Hits) > len(all.Hits) || got.Hits[len(got.Hits)-1].Score < under {
			t.Errorf("%d hits from %v up", len(got.Hits), under)
		}
	}
}

// Several scopes answer as one that holds the records of all.
func TestScopesAnswerAsOne(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	one, p := kv.AgentScope("default", "one"), newProse(4)
	scopes := []kv.Scope{agent, {Tenant: "default", Kind: kv.OwnerUser, Owner: "u"}, {Tenant: "default", Kind: kv.OwnerSpace, Owner: "s"}}
	for i := range 240 {
		session := i / 8
		record := record.Record{ID: fmt.Sprint(i), Text: p.text(60), SessionID: fmt.Sprint("s", session), Author: []string{"Ann", "Bob"}[i%2]}
		r.clock.Set(r.clock.Now().Add(time.Second))
		for _, scope := range []kv.Scope{scopes[session%len(scopes)], one} {
			if _, err := r.Save(t.Context(), scope, record, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 {
		q := question.Question{Text: p.text(40) + " Bob", Limit: 30}
		want, err := r.Query(t.Context(), one, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.QueryScopes(t.Context(), scopes, q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Receipt.Records != 240 || got.Receipt.LexicalCandidates != want.Receipt.LexicalCandidates {
			t.Fatalf("receipt %+v, want %+v", got.Receipt, want.Receipt)
		}
		for i, hit := range got.Hits {
			if math.Abs(hit.Score-want.Hits[i].Score) > 1e-5 {
				t.Fatalf("hit %d: %s %v, want %s %v", i, hit.Record.ID, hit.Score, want.Hits[i].Record.ID, want.Hits[i].Score)
			}
			if found, err := r.Get(t.Context(), hit.Scope, hit.Record.ID); err != nil || found.Text != hit.Record.Text {
				t.Fatalf("hit %d is not in %s: %v", i, hit.Scope, err)
			}
		}
	}
	for _, wrong := range [][]kv.Scope{nil, {agent, agent}, make([]kv.Scope, memory.MaxScopes+1)} {
		if _, err := r.QueryScopes(t.Context(), wrong, question.Question{Text: "x"}); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%d scopes: %v", len(wrong), err)
		}
	}
}

func TestExpand(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.fill(t, 40)
	for _, text := range []string{
		"The velociraptor was a dinosaur with feathers and claws",
		"A dinosaur with feathers, the velociraptor, hunted in packs",
		"Claws and feathers of some dinosaur from the Gobi desert",
		"Feathers were found in the Gobi desert",
	} {
		r.MustSave(t, record.Record{Text: text})
	}
	q := question.Question{Text: "velociraptor", Limit: 10}
	plain := r.MustQuery(t, q)
	q.Expand = true
	more := r.MustQuery(t, q)
	if len(plain.Hits) != 2 || len(more.Hits) != 4 {
		t.Errorf("%d hits, %d with more words", len(plain.Hits), len(more.Hits))
	}
	mustEqual(t, "first hits", ids(plain), ids(more)[:2])
	if len(plain.Receipt.ExpandedWords) > 0 || !slices.Contains(more.Receipt.ExpandedWords, "feather") {
		t.Errorf("words %q and %q", plain.Receipt.ExpandedWords, more.Receipt.ExpandedWords)
	}
	q.Text = "xylophone"
	if got := r.MustQuery(t, q); len(got.Receipt.ExpandedWords) > 0 {
		t.Errorf("words %q from nothing", got.Receipt.ExpandedWords)
	}
}

// F08
func TestVectorsAndWordsUnite(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	vector := func(x, y float32) []float32 { return []float32{x, y, 0, 1} }
	r.MustSave(t, record.Record{ID: "words", Text: "Payment terms are thirty days", Embedding: vector(-1, 0), EmbeddingSpace: "test"})
	r.MustSave(t, record.Record{ID: "meaning", Text: "Invoices fall due after a month", Embedding: vector(9, 9), EmbeddingSpace: "test"})
	r.MustSave(t, record.Record{ID: "bare", Text: "No vector, but payment is in it"})
	for i := range 40 {
		r.MustSave(t, record.Record{Text: fmt.Sprintf("Filler %d about gardens", i), Embedding: vector(-float32(i), -5), EmbeddingSpace: "test"})
	}
	q := question.Question{Text: "payment terms", Embedding: vector(8, 9), EmbeddingSpace: "test", Explain: true}
	result := r.MustQuery(t, q)
	first := ids(result)[:3]
	slices.Sort(first)
	mustEqual(t, "hybrid", []string{"bare", "meaning", "words"}, first)
	at := slices.IndexFunc(result.Hits, func(h memory.Hit) bool { return h.Record.ID == "meaning" })
	if !hasSignal(result.Hits[at], "vector") {
		t.Errorf("explanation %+v", result.Hits[at].Explanation)
	}
	if c := result.Receipt; c.VectorCandidates == 0 || c.VectorsScanned != 42 || len(c.Degraded) > 0 {
		t.Errorf("receipt %+v", c)
	}
	mustEqual(t, "spaces", []string{"test"}, result.Receipt.EmbeddingSpaces)
	q.Mode = question.Lexical
	if slices.Contains(ids(r.MustQuery(t, q)), "meaning") {
		t.Error("words alone find what shares none")
	}
	q.Mode, q.Text = question.Vector, ""
	result = r.MustQuery(t, q)
	if result.Hits[0].Record.ID != "meaning" || result.Hits[0].Score < 0.9 || result.Receipt.LexicalCandidates != 0 {
		t.Errorf("vectors alone: %v, %+v", ids(result), result.Receipt)
	}
	q.Filter = `id = "meaning" OR id = "words"`
	mustEqual(t, "filtered", "meaning", ids(r.MustQuery(t, q))[0])
}

func TestInvalidQueries(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for field, q := range map[string]question.Question{
		"query":             {Mode: question.Vector},
		"max_tokens":        {Text: "x", MaxTokens: -1},
		"recency_weight":    {Text: "x", RecencyWeight: 1.1},
		"recency_half_life": {Text: "x", RecencyHalfLife: -time.Second},
		"importance_weight": {Text: "x", ImportanceWeight: math.NaN()},
		"tiers":             {Text: "x", Tiers: []int{4, 5}},
	} {
		_, err := r.Query(t.Context(), agent, q)
		var bad *invalid.Error
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("want an invalid %s, got %v", field, err)
		}
	}
}

// Of two records that say the same, the newer comes first where the query asks
// how things are, and nowhere else.
func TestNewerFirst(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.fill(t, 20)
	r.MustSave(t, record.Record{ID: "old", SessionID: "s", Author: "Ann", Text: "My address is the flat above the bakery"})
	r.clock.Set(start.Add(time.Hour))
	r.MustSave(t, record.Record{ID: "new", SessionID: "t", Author: "Ann", Text: "We moved! The address is now the houseboat on the long canal near the old mill"})
	r.MustSave(t, record.Record{ID: "else", SessionID: "t", Author: "Bob", Text: "My address changed as well"})
	r.MustSave(t, record.Record{ID: "asks", SessionID: "u", Author: "Ann", Text: "Has your address changed?"})
	before := func(query, first, second string) {
		t.Helper()
		found := ids(r.MustQuery(t, question.Question{Text: query}))
		if a, b := slices.Index(found, first), slices.Index(found, second); a < 0 || b < 0 || a > b {
			t.Errorf("%q: %v", query, found)
		}
	}
	before("What is the address of Ann?", "new", "old")
	before("What was the address of Ann, the flat?", "old", "new")
	before("What is the address of Ann?", "old", "else")
	before("What is the address of Ann?", "old", "asks")
	explained := r.MustQuery(t, question.Question{Text: "What is the address of Ann?", Limit: 1, Explain: true})
	mustEqual(t, "a limit of one", []string{"new"}, ids(explained))
	if !hasSignal(explained.Hits[0], "newer") {
		t.Errorf("explanation %+v", explained.Hits[0].Explanation)
	}
}
