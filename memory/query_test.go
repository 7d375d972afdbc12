package memory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

func testQueryRanks(t *testing.T, r *rig) {
	r.fill(t, 5)
	for _, record := range []record.Record{
		{ID: "both", Text: "The bitcoin price analysis is ready"},
		{ID: "one", Text: "Bitcoin is a currency"},
		{ID: "often", Text: "Bitcoin, bitcoin and bitcoin prices"},
		{ID: "none", Text: "The cat sat on the mat"},
		{ID: "author", Author: "Bitcoin Bob", Text: "I have a price for you"},
		{ID: "dated", Text: "We went hiking", EventTime: time.Date(2023, 7, 9, 0, 0, 0, 0, time.UTC)},
	} {
		r.MustSave(t, record)
	}
	for range 2 { // from the tail, then packed
		result := r.MustQuery(t, question.Question{Text: "bitcoin price analysis"})
		mustEqual(t, "order", []string{"both", "often", "author", "one"}, ids(result))
		last := 1.0
		for _, hit := range result.Hits {
			if hit.Score <= 0 || hit.Score > last {
				t.Errorf("score %v of %s after %v", hit.Score, hit.Record.ID, last)
			}
			last = hit.Score
		}
		mustEqual(t, "by date", []string{"dated"}, ids(r.MustQuery(t, question.Question{Text: "July 2023"})))
		r.MustPack(t)
	}

	// A record with exactly the words of the query scores high, one with a
	// common part of them low.
	all := r.MustQuery(t, question.Question{Text: "The cat sat on the mat"}).Hits[0].Score
	if all < 0.99 {
		t.Errorf("score of a full match: %v", all)
	}
	if part := r.MustQuery(t, question.Question{Text: "gardens on Jupiter xylophone"}).Hits[0].Score; part > 0.3 {
		t.Errorf("score of a weak match: %v", part)
	}

	// Equal scores: newest first.
	twins := []string{r.MustSave(t, record.Record{Text: "zebra twin"}).ID, r.MustSave(t, record.Record{Text: "zebra twin"}).ID}
	slices.Reverse(twins)
	mustEqual(t, "twins", twins, ids(r.MustQuery(t, question.Question{Text: "zebra"})))
}

func testQueryLimits(t *testing.T, r *rig) {
	r.fill(t, 120)
	for limit, want := range map[int]int{0: 5, 1: 1, 7: 7, 100: 100} {
		if got := len(r.MustQuery(t, question.Question{Text: "garden weather", Limit: limit}).Hits); got != want {
			t.Errorf("limit %d: %d hits, want %d", limit, got, want)
		}
	}
	for field, q := range map[string]question.Question{
		"query":     {},
		"limit":     {Text: "x", Limit: question.MaxLimit + 1},
		"min_score": {Text: "x", MinScore: math.NaN()},
		"filter":    {Text: "x", Filter: strings.Repeat(" ", filter.MaxBytes+1)},
		"mode":      {Text: "x", Mode: 3},
	} {
		_, err := r.Query(t.Context(), agent, q)
		var bad *invalid.Error
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("want an invalid %s, got %v", field, err)
		}
	}
	for _, q := range []question.Question{
		{Text: strings.Repeat("x", question.MaxTextBytes+1)}, {Text: "\xff"}, {Text: "x", Limit: -1}, {Text: "x", MinScore: -0.1},
	} {
		if _, err := r.Query(t.Context(), agent, q); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("want an invalid query, got %v", err)
		}
	}
}

func testQueryWordsOnly(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Text: "Bitcoin closed at 45,000", Embedding: []float32{1, 0}, EmbeddingSpace: "test/2"})
	result := r.MustQuery(t, question.Question{Text: "bitcoin"})
	mustEqual(t, "hybrid", []string{"a"}, ids(result))
	mustEqual(t, "degraded", []string{"no embedder, words only"}, result.Receipt.Degraded)
	result = r.MustQuery(t, question.Question{Text: "bitcoin", Mode: question.Lexical})
	mustEqual(t, "lexical", []string{"a"}, ids(result))
	mustEqual(t, "degraded", []string(nil), result.Receipt.Degraded)
	if _, err := r.Query(t.Context(), agent, question.Question{Text: "bitcoin", Mode: question.Vector}); !errors.Is(err, memory.ErrNoEmbedder) {
		t.Errorf("vector: %v", err)
	}
	result = r.MustQuery(t, question.Question{Text: "?!", Mode: question.Lexical})
	mustEqual(t, "nothing to search for", []string{"no words to search for in the query"}, result.Receipt.Degraded)
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "w%d ", i)
	}
	result = r.MustQuery(t, question.Question{Text: long.String() + "bitcoin", Mode: question.Lexical})
	mustEqual(t, "cut", []string{"only the first 256 words of the query were searched"}, result.Receipt.Degraded)
}

func testQueryReceipt(t *testing.T, r *rig) {
	empty := r.MustQuery(t, question.Question{Text: "apple"})
	mustEqual(t, "empty scope", memory.Receipt{Degraded: []string{"no embedder, words only"}, Empty: memory.NothingStored}, empty.Receipt)
	old := r.MustSave(t, record.Record{Text: "apple tree", Tags: []string{"in"}})
	r.MustSave(t, record.Record{Text: "apple pie", Tags: []string{"in"}, Supersedes: old.ID})
	r.MustSave(t, record.Record{Text: "apple juice", Tags: []string{"in"}, TTL: time.Second})
	r.MustSave(t, record.Record{Text: "apple sauce"})
	r.MustSave(t, record.Record{Text: "An apple a day keeps the doctor away, they say in many places where people eat fruit", Tags: []string{"in"}})
	r.MustSave(t, record.Record{Text: "pear", Tags: []string{"in"}})
	r.clock.Set(start.Add(time.Second))
	all := r.MustQuery(t, question.Question{Text: "apple pie", Filter: `tags:"in"`})
	if len(all.Hits) != 2 {
		t.Fatalf("%d hits", len(all.Hits))
	}
	cut := (all.Hits[0].Score + all.Hits[1].Score) / 2
	got := r.MustQuery(t, question.Question{Text: "apple pie", Filter: `tags:"in"`, MinScore: cut})
	got.Receipt.IndexSequence = 0
	mustEqual(t, "receipt", memory.Receipt{
		LexicalCandidates: 5, Filtered: 1, Expired: 1, Superseded: 1, UnderMinScore: 1, Records: 6,
		Degraded: []string{"no embedder, words only"},
	}, got.Receipt)
	if len(got.Hits) != 1 || got.Hits[0].Record.Text != "apple pie" {
		t.Errorf("hits: %v", got.Hits)
	}
	if all.Receipt.IndexSequence < 6 {
		t.Errorf("index sequence %d after 6 saves", all.Receipt.IndexSequence)
	}
}

func testLanguages(t *testing.T, r *rig) {
	texts := map[string]string{
		"zh": "我喜欢比特币和区块链技术", "ja": "明日、東京で会いましょう", "ko": "한국어는 아름다운 언어입니다",
		"ru": "Москва — столица России", "de": "Die Straße ist schön", "code": "call getUserName in src/app.py of v1.2.3",
	}
	for id, text := range texts {
		r.MustSave(t, record.Record{ID: id, Text: text})
	}
	for query, want := range map[string]string{
		"比特币": "zh", "東京": "ja", "한국어": "ko", "столица": "ru", "STRASSE": "de",
		"user name": "code", "getusername": "code", "app.py": "code", "V1.2.3": "code",
	} {
		mustEqual(t, query, []string{want}, ids(r.MustQuery(t, question.Question{Text: query})))
	}
}

func testReadYourWrites(t *testing.T, r *rig) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 25 {
				word := fmt.Sprintf("unique%dx%d", g, i)
				saved, err := r.Save(t.Context(), agent, record.Record{Text: "a note with " + word}, "")
				if err != nil {
					t.Error(err)
					return
				}
				result, err := r.Query(t.Context(), agent, question.Question{Text: word})
				if err != nil || len(result.Hits) != 1 || result.Hits[0].Record.ID != saved.ID {
					t.Errorf("%s: %v, %v", word, ids(result), err)
				}
			}
		})
	}
	wg.Wait()
	if stats, err := r.Stats(t.Context(), agent); err != nil || stats.Records != 200 {
		t.Errorf("stats %+v, %v", stats, err)
	}
}

func testScopes(t *testing.T, r *rig) {
	scopes := []kv.Scope{
		agent,
		kv.AgentScope("default", "researcher2"),
		kv.AgentScope("other", "researcher"),
		{Tenant: "default", Kind: kv.OwnerUser, Owner: "researcher"},
	}
	for i, scope := range scopes {
		for n := range 5 {
			if _, err := r.Save(t.Context(), scope, record.Record{ID: fmt.Sprint("id", n), Key: fmt.Sprint("key", n), Text: fmt.Sprintf("canary%d note", i)}, "req"+fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, scope := range scopes {
		result, err := r.Query(t.Context(), scope, question.Question{Text: "canary0 canary1 canary2 canary3 note", Limit: 100})
		if err != nil || len(result.Hits) != 5 || result.Receipt.Records != 5 {
			t.Fatalf("%s: %d hits, %+v, %v", scope, len(result.Hits), result.Receipt, err)
		}
		for _, hit := range result.Hits {
			if hit.Record.Text != fmt.Sprintf("canary%d note", i) {
				t.Errorf("%s sees %q", scope, hit.Record.Text)
			}
		}
		r.MustCheck(t, scope)
	}
}

func testReopen(t *testing.T, r *rig) {
	r.fill(t, 50)
	before := r.MustQuery(t, question.Question{Text: "filler 17 weather", Limit: 50})
	r.Reopen()
	after := r.MustQuery(t, question.Question{Text: "filler 17 weather", Limit: 50})
	mustEqual(t, "hits", before.Hits, after.Hits)
	r.fill(t, 5)
}

func testHostileMetadata(t *testing.T, r *rig) {
	var wide strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, `"%d":%d,`, i, i)
	}
	name := strings.Repeat("n", 30000)
	for i, metadata := range []string{
		`{` + wide.String() + `"end":true}`,
		`{"` + name + `":{"a":1,"b":{"c":"x"}}}`,
		`{"n":1e99999999999999999999999,"m":-0.000,"z":0}`,
		`{"a\u0000b":"c\u0000d","a":1,"a":2,"":"empty"}`,
		strings.Repeat(`{"a":`, 31) + `{"b":1}` + strings.Repeat("}", 31),
		`{"deep":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
	} {
		r.MustSave(t, record.Record{ID: fmt.Sprint(i), Text: "hostile", Metadata: json.RawMessage(metadata)})
	}
	for filter, want := range map[string]string{
		`metadata.4999 = 4999`:                           "0",
		`metadata.end = true`:                            "0",
		`metadata.m = 0`:                                 "2",
		`metadata.a = 2`:                                 "3",
		`metadata."" = "empty"`:                          "3",
		`metadata."a\x00b" = "c\x00d"`:                   "3",
		`metadata` + strings.Repeat(".a", 31) + `.b = 1`: "4",
	} {
		mustEqual(t, filter, []string{want}, ids(r.MustQuery(t, question.Question{Text: "hostile", Filter: filter})))
	}
}

func testLongTexts(t *testing.T, r *rig) {
	for i := range 5 {
		var text strings.Builder
		for n := 0; text.Len() < record.MaxTextBytes-20; n++ {
			fmt.Fprintf(&text, "w%x ", (i*7919+n)*2654435761%(1<<32))
		}
		fmt.Fprintf(&text, "needle%d", i)
		r.MustSave(t, record.Record{ID: fmt.Sprint(i), Text: text.String()})
	}
	for i := range 5 {
		mustEqual(t, "needle", []string{fmt.Sprint(i)}, ids(r.MustQuery(t, question.Question{Text: fmt.Sprint("needle", i)})))
	}
}

func testClosed(t *testing.T, r *rig) {
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Store.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := r.Save(t.Context(), agent, record.Record{Text: "x"}, ""); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("save: %v", err)
	}
	if _, err := r.Query(t.Context(), agent, question.Question{Text: "x"}); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("query: %v", err)
	}
	if _, err := r.Get(t.Context(), agent, "x"); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("get: %v", err)
	}
	r.Reopen()
}
