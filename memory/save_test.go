package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// F05
func testSaveAndGet(t *testing.T, r *rig) {
	source := r.MustSave(t, record.Record{ID: "source 1", Text: "Where it came from"})
	given := record.Record{
		ID:             "fact-1",
		Text:           "Bitcoin closed at 45,000",
		Key:            "btc.close",
		Kind:           "state",
		SessionID:      "s1",
		Author:         "Ann",
		EventTime:      time.Date(2026, 2, 28, 16, 0, 0, 123456789, time.FixedZone("CET", 3600)),
		ExpireTime:     start.Add(time.Hour + 7*time.Nanosecond),
		Metadata:       json.RawMessage(`{"source": "desk",  "big": 9007199254740993}`),
		Tags:           []string{"market", "btc", "market"},
		Importance:     0.75,
		DerivedFrom:    []string{source.ID},
		Origin:         record.OriginTool,
		Embedding:      []float32{0.25, -1, 3e30},
		EmbeddingSpace: "test/3",
	}
	want := given
	want.EventTime = time.Date(2026, 2, 28, 15, 0, 0, 123456000, time.UTC)
	want.ExpireTime = start.Add(time.Hour)
	want.CreateTime = start
	want.Tags = []string{"btc", "market"}
	want.Tier = record.LongTerm
	want.Version = 1
	mustEqual(t, "saved", want, r.MustSave(t, given))
	got, err := r.Get(t.Context(), agent, "fact-1")
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "record by id", want, got)
	if got, err = r.GetByKey(t.Context(), agent, "btc.close"); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "record by key", want, got)
}

func testDefaults(t *testing.T, r *rig) {
	first := r.MustSave(t, record.Record{Text: "one"})
	second := r.MustSave(t, record.Record{Text: "two", TTL: time.Minute, CreateTime: start.Add(-time.Hour), SupersededBy: "me", Version: 7})
	if first.ID == "" || first.ID >= second.ID {
		t.Errorf("ids %q and %q are not in the order of time", first.ID, second.ID)
	}
	want := record.Record{
		ID: second.ID, Text: "two", Kind: "fact", Origin: record.OriginAgent, Tier: 4,
		CreateTime: start, ExpireTime: start.Add(time.Minute), Version: 1,
	}
	mustEqual(t, "saved", want, second)
}

func testInvalidRecords(t *testing.T, r *rig) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, s string) []string {
		return strings.Split(strings.TrimSuffix(strings.Repeat(s+" ", n), " "), " ")
	}
	deep := strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33)
	tests := []struct {
		field  string
		record record.Record
	}{
		{"text", record.Record{}},
		{"text", record.Record{Text: long(record.MaxTextBytes + 1)}},
		{"text", record.Record{Text: "a\xffb"}},
		{"id", record.Record{Text: "t", ID: long(record.MaxIDBytes + 1)}},
		{"id", record.Record{Text: "t", ID: "a\x00b"}},
		{"id", record.Record{Text: "t", ID: "a\nb"}},
		{"key", record.Record{Text: "t", Key: long(record.MaxKeyBytes + 1)}},
		{"key", record.Record{Text: "t", Key: "a\x00"}},
		{"kind", record.Record{Text: "t", Kind: long(record.MaxKindBytes + 1)}},
		{"session_id", record.Record{Text: "t", SessionID: long(record.MaxSessionBytes + 1)}},
		{"author", record.Record{Text: "t", Author: "\xff"}},
		{"tags", record.Record{Text: "t", Tags: many(record.MaxTags+1, "t")}},
		{"tags", record.Record{Text: "t", Tags: []string{""}}},
		{"tags", record.Record{Text: "t", Tags: []string{long(record.MaxTagBytes + 1)}}},
		{"ttl", record.Record{Text: "t", TTL: -1}},
		{"ttl", record.Record{Text: "t", TTL: 1, ExpireTime: start.Add(time.Hour)}},
		{"expire_time", record.Record{Text: "t", ExpireTime: start}},
		{"expire_time", record.Record{Text: "t", ExpireTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"event_time", record.Record{Text: "t", EventTime: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"ttl", record.Record{Text: "t", TTL: record.MaxTTL + 1}},
		{"sliding_ttl", record.Record{Text: "t", SlidingTTL: -1}},
		{"sliding_ttl", record.Record{Text: "t", SlidingTTL: 1, TTL: 1}},
		{"sliding_ttl", record.Record{Text: "t", SlidingTTL: 1, ExpireTime: start.Add(time.Hour)}},
		{"tier", record.Record{Text: "t", Tier: -1}},
		{"tier", record.Record{Text: "t", Tier: 5}},
		{"importance", record.Record{Text: "t", Importance: 1.01}},
		{"importance", record.Record{Text: "t", Importance: math.NaN()}},
		{"origin", record.Record{Text: "t", Origin: 5}},
		{"embedding", record.Record{Text: "t", Embedding: make([]float32, record.MaxEmbedding+1), EmbeddingSpace: "s"}},
		{"embedding", record.Record{Text: "t", Embedding: []float32{float32(math.Inf(1))}, EmbeddingSpace: "s"}},
		{"embedding", record.Record{Text: "t", EmbeddingSpace: "s"}},
		{"embedding_space", record.Record{Text: "t", Embedding: []float32{1}}},
		{"embedding_space", record.Record{Text: "t", Embedding: []float32{1}, EmbeddingSpace: long(record.MaxEmbeddingSpaceBytes + 1)}},
		{"supersedes", record.Record{Text: "t", Supersedes: "a\x00"}},
		{"derived_from", record.Record{Text: "t", DerivedFrom: []string{""}}},
		{"derived_from", record.Record{Text: "t", DerivedFrom: many(record.MaxDerivedFrom+1, "x")}},
		{"metadata", record.Record{Text: "t", Metadata: json.RawMessage(`[]`)}},
		{"metadata", record.Record{Text: "t", Metadata: json.RawMessage(`{"a":}`)}},
		{"metadata", record.Record{Text: "t", Metadata: json.RawMessage(`  `)}},
		{"metadata", record.Record{Text: "t", Metadata: json.RawMessage("{\"a\":\"\xff\"}")}},
		{"metadata", record.Record{Text: "t", Metadata: json.RawMessage(deep)}},
		{"metadata", record.Record{Text: "t", Metadata: json.RawMessage(`{"a":"` + long(record.MaxMetadataBytes) + `"}`)}},
	}
	for _, tt := range tests {
		_, err := r.Save(t.Context(), agent, tt.record, "")
		var bad *invalid.Error
		if !errors.As(err, &bad) || bad.Field != tt.field || !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("want an invalid %s, got %v", tt.field, err)
		}
	}
	if _, err := r.Save(t.Context(), agent, record.Record{Text: "t"}, long(memory.MaxRequestIDBytes+1)); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("long request id: got %v", err)
	}
	if _, err := r.Save(t.Context(), kv.Scope{}, record.Record{Text: "t"}, ""); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("no scope: got %v", err)
	}
	stats, err := r.Stats(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "scope after bad input", memory.Stats{}, stats)
}

func testTakenNames(t *testing.T, r *rig) {
	a := r.MustSave(t, record.Record{ID: "a", Key: "k", Text: "first", TTL: time.Hour})
	wantTaken := func(field string, record record.Record) {
		t.Helper()
		_, err := r.Save(t.Context(), agent, record, "")
		var exists *memory.ExistsError
		if !errors.As(err, &exists) || exists.Field != field || exists.ID != a.ID || !errors.Is(err, memory.ErrExists) {
			t.Errorf("want a taken %s, got %v", field, err)
		}
	}
	wantTaken("id", record.Record{ID: "a", Text: "second"})
	wantTaken("key", record.Record{Key: "k", Text: "second"})

	// The names of an expired record are free.
	r.clock.Set(start.Add(time.Hour))
	b := r.MustSave(t, record.Record{Key: "k", Text: "second"})
	if got, err := r.GetByKey(t.Context(), agent, "k"); err != nil || got.ID != b.ID {
		t.Errorf("key after it was taken over: %q, %v", got.ID, err)
	}
	r.MustSave(t, record.Record{ID: "a", Text: "third"})
	mustEqual(t, "record with the id", "third", r.MustGet(t, "a").Text)
}

func testSupersede(t *testing.T, r *rig) {
	old := r.MustSave(t, record.Record{Key: "city", Text: "Ann lives in Paris"})
	r.fill(t, 7)
	with := r.MustSave(t, record.Record{Key: "city", Text: "Ann lives in Oslo", Supersedes: old.ID})
	result := r.MustQuery(t, question.Question{Text: "Where does Ann live? Paris or Oslo?"})
	mustEqual(t, "found", []string{with.ID}, ids(result))
	if result.Receipt.Superseded != 1 {
		t.Errorf("receipt: %+v", result.Receipt)
	}
	got, err := r.Get(t.Context(), agent, old.ID)
	if err != nil || got.SupersededBy != with.ID {
		t.Errorf("old record: superseded by %q, %v", got.SupersededBy, err)
	}
	if got, err := r.GetByKey(t.Context(), agent, "city"); err != nil || got.ID != with.ID || got.Supersedes != old.ID {
		t.Errorf("record by key: %+v, %v", got, err)
	}
	// Only one can replace it: the second to try learns who did.
	_, err = r.Save(t.Context(), agent, record.Record{Text: "Ann lives in Rome", Supersedes: old.ID}, "")
	if !errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), with.ID) {
		t.Errorf("second successor: %v", err)
	}
}

func testMissingSources(t *testing.T, r *rig) {
	gone := r.MustSave(t, record.Record{Text: "gone soon", TTL: time.Second})
	r.clock.Set(start.Add(time.Second))
	for _, id := range []string{"nobody", gone.ID} {
		for field, record := range map[string]record.Record{
			"supersedes":   {Text: "t", Supersedes: id},
			"derived_from": {Text: "t", DerivedFrom: []string{id}},
		} {
			_, err := r.Save(t.Context(), agent, record, "")
			var missing *memory.NotFoundError
			if !errors.As(err, &missing) || missing.Field != field || missing.Name != id || !errors.Is(err, memory.ErrNotFound) {
				t.Errorf("%s %q: got %v", field, id, err)
			}
		}
	}
	for _, err := range []error{
		second(r.Get(t.Context(), agent, "nobody")),
		second(r.GetByKey(t.Context(), agent, "nobody")),
	} {
		if !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("get: %v", err)
		}
	}
	for _, err := range []error{
		second(r.Get(t.Context(), agent, "")),
		second(r.GetByKey(t.Context(), agent, "")),
		second(r.GetByKey(t.Context(), agent, strings.Repeat("k", record.MaxKeyBytes+1))),
	} {
		if !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("get without a name: %v", err)
		}
	}
}

func second(_ record.Record, err error) error { return err }

func testRequestID(t *testing.T, r *rig) {
	draft := record.Record{Text: "say it once", Key: "once", Tags: []string{"b", "a"}, TTL: time.Minute}
	first, err := r.Save(t.Context(), agent, draft, "req-1")
	if err != nil {
		t.Fatal(err)
	}
	// Long after, even when the record has expired, the answer is the same.
	for _, later := range []time.Duration{time.Second, time.Hour} {
		r.clock.Set(start.Add(later))
		again, err := r.Save(t.Context(), agent, draft, "req-1")
		if err != nil {
			t.Fatal(err)
		}
		mustEqual(t, "repeated answer", first, again)
	}
	other := draft
	other.TTL = 2 * time.Minute
	if _, err := r.Save(t.Context(), agent, other, "req-1"); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("other content: got %v", err)
	}
	// A request that failed may be made again.
	r.clock.Set(start)
	if _, err := r.Save(t.Context(), agent, record.Record{Text: "x", Supersedes: "later"}, "req-2"); !errors.Is(err, memory.ErrNotFound) {
		t.Fatal(err)
	}
	r.MustSave(t, record.Record{ID: "later", Text: "now it is there"})
	if _, err := r.Save(t.Context(), agent, record.Record{Text: "x", Supersedes: "later"}, "req-2"); err != nil {
		t.Error(err)
	}
	if stats, _ := r.Stats(t.Context(), agent); stats.Records != 3 {
		t.Errorf("%d records, want 3", stats.Records)
	}
}

func testExpiry(t *testing.T, r *rig) {
	end := start.Add(90 * time.Second)
	byTTL := r.MustSave(t, record.Record{Text: "meeting moved to noon", TTL: 90 * time.Second})
	byTime := r.MustSave(t, record.Record{Text: "meeting room is blue", ExpireTime: end})
	kept := r.MustSave(t, record.Record{Text: "meeting notes exist"})
	for range 2 { // from the tail, then packed
		r.clock.Set(end.Add(-time.Microsecond))
		mustEqual(t, "before", []string{kept.ID, byTime.ID, byTTL.ID}, ids(r.MustQuery(t, question.Question{Text: "meeting"})))
		r.clock.Set(end)
		result := r.MustQuery(t, question.Question{Text: "meeting"})
		mustEqual(t, "at the moment", []string{kept.ID}, ids(result))
		if result.Receipt.Expired != 2 {
			t.Errorf("receipt: %+v", result.Receipt)
		}
		for _, id := range []string{byTTL.ID, byTime.ID} {
			if _, err := r.Get(t.Context(), agent, id); !errors.Is(err, memory.ErrNotFound) {
				t.Errorf("get an expired record: %v", err)
			}
		}
		r.clock.Set(start)
		r.MustPack(t)
	}
}

// testOneWinner has many writers replace the same record: one wins each round.
func testOneWinner(t *testing.T, r *rig) {
	current := r.MustSave(t, record.Record{Text: "round 0", Key: "state"})
	for round := range 5 {
		var wg sync.WaitGroup
		var wins atomic.Int32
		for i := range 16 {
			wg.Go(func() {
				_, err := r.Save(t.Context(), agent, record.Record{Text: fmt.Sprintf("round %d by %d", round, i), Key: "state", Supersedes: current.ID}, "")
				switch {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, memory.ErrInvalid) && !errors.Is(err, memory.ErrExists):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d winners", wins.Load())
		}
		old := current
		var err error
		if current, err = r.GetByKey(t.Context(), agent, "state"); err != nil || current.Supersedes != old.ID {
			t.Fatalf("after round %d: %+v, %v", round, current, err)
		}
	}
	mustEqual(t, "found", []string{current.ID}, ids(r.MustQuery(t, question.Question{Text: "round"})))
}

var errInjected = errors.New("injected")

// failing is an engine whose commits fail while it is told so.
type failing struct {
	kv.Engine
	fail atomic.Bool
}

func (f *failing) Commit(ctx context.Context, c kv.Commit) error {
	if f.fail.Load() {
		return errInjected
	}
	return f.Engine.Commit(ctx, c)
}

func testFailedCommit(t *testing.T, r *rig) {
	engine := &failing{Engine: r.engine}
	r.engine = engine
	r.Reopen()
	r.fill(t, 5)
	engine.fail.Store(true)
	for range 10 {
		if _, err := r.Save(t.Context(), agent, record.Record{Text: "lost", Key: "k"}, "req"); !errors.Is(err, errInjected) {
			t.Fatalf("got %v", err)
		}
	}
	if result := r.MustQuery(t, question.Question{Text: "lost"}); len(result.Hits) > 0 || result.Receipt.Records != 5 {
		t.Errorf("half a save: %+v", result)
	}
	r.MustCheck(t, agent)
	engine.fail.Store(false)
	if _, err := r.Save(t.Context(), agent, record.Record{Text: "found", Key: "k"}, "req"); err != nil {
		t.Error(err)
	}
	mustEqual(t, "hits", 1, len(r.MustQuery(t, question.Question{Text: "found"}).Hits))
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	// A bubble fails when a goroutine of it is still there at its end.
	synctest.Test(t, func(t *testing.T) {
		r := MustRig(t, memkv.New(nil))
		r.fill(t, 40)
	})
}

func TestDamageIsNamed(t *testing.T) {
	r := &rig{engine: memkv.New(nil), clock: &clock{now: start}}
	r.open()
	t.Cleanup(func() { r.close() })
	r.MustSave(t, record.Record{ID: "a", Text: "apple", Key: "k"})
	writer := kv.NewWriter(r.engine, nil)
	t.Cleanup(func() { _ = writer.Close() })
	for keyspace, key := range map[kv.Keyspace][]byte{kv.Records: agent.Key('r', []byte("a")), kv.Index: agent.Key('m')} {
		err := writer.Do(t.Context(), kv.Request{Blind: []kv.Ref{{Keyspace: keyspace, Scope: agent}}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(keyspace, key, []byte{0xff})
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(t.Context(), agent); !errors.Is(err, memory.ErrDamaged) {
			t.Errorf("check: %v", err)
		}
	}
	if _, err := r.Get(t.Context(), agent, "a"); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("get: %v", err)
	}
	if _, err := r.Query(t.Context(), agent, question.Question{Text: "apple"}); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("query: %v", err)
	}
	if _, err := r.Save(t.Context(), agent, record.Record{Text: "pear"}, ""); !errors.Is(err, memory.ErrDamaged) {
		t.Errorf("save: %v", err)
	}
}
