package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

func testBatch(t *testing.T, r *rig) {
	batch := []record.Record{
		{ID: "a", Text: "Ann lives in Paris", Key: "city"},
		{Text: "The weather is fine", TTL: time.Minute},
		{ID: "b", Text: "Ann lives in Oslo", Key: "city", Supersedes: "a"},
		{Text: "Ann moved", DerivedFrom: []string{"a", "b"}},
	}
	for i := range 40 {
		batch = append(batch, record.Record{Text: fmt.Sprintf("Filler note %d", i)})
	}
	saved, err := r.SaveBatch(t.Context(), agent, batch, "req")
	if err != nil || len(saved) != len(batch) {
		t.Fatalf("%d saved, %v", len(saved), err)
	}
	for i, s := range saved {
		if i > 4 && s.ID <= saved[i-1].ID {
			t.Errorf("ids %q and %q are not in order", saved[i-1].ID, s.ID)
		}
		got := s
		if s.ID != "a" {
			got = r.MustGet(t, s.ID)
		}
		mustEqual(t, "record", s, got)
	}
	if got := r.MustGet(t, "a"); got.SupersededBy != "b" {
		t.Errorf("replaced within the batch: %+v", got)
	}
	mustEqual(t, "found", []string{"b"}, ids(r.MustQuery(t, question.Question{Text: "Paris Oslo"})))
	again, err := r.SaveBatch(t.Context(), agent, batch, "req")
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "repeated answer", saved, again)
	batch[7].Text += "!"
	if _, err := r.SaveBatch(t.Context(), agent, batch, "req"); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("other content: %v", err)
	}
	if stats, err := r.Stats(t.Context(), agent); err != nil || stats.Records != 44 {
		t.Errorf("stats %+v, %v", stats, err)
	}
}

func testBatchErrors(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "taken", Text: "first", Key: "k", Embedding: []float32{1, 2}, EmbeddingSpace: "two"})
	good := record.Record{Text: "good"}
	for name, tt := range map[string]struct {
		bad   record.Record
		cause error
	}{
		"invalid":             {record.Record{}, memory.ErrInvalid},
		"metadata":            {record.Record{Text: "x", Metadata: []byte("[]")}, memory.ErrInvalid},
		"taken id":            {record.Record{ID: "taken", Text: "x"}, memory.ErrExists},
		"taken key":           {record.Record{Key: "k", Text: "x"}, memory.ErrExists},
		"id of the batch":     {record.Record{ID: "mine", Text: "x"}, memory.ErrExists},
		"key of the batch":    {record.Record{Key: "my key", Text: "x"}, memory.ErrExists},
		"missing source":      {record.Record{Text: "x", DerivedFrom: []string{"nobody"}}, memory.ErrNotFound},
		"one that comes late": {record.Record{Text: "x", Supersedes: "later"}, memory.ErrNotFound},
		"expired":             {record.Record{Text: "x", ExpireTime: start}, memory.ErrInvalid},
		"another dimension":   {record.Record{Text: "x", Embedding: []float32{1}, EmbeddingSpace: "two"}, vector.ErrDimension},
	} {
		batch := []record.Record{{ID: "mine", Key: "my key", Text: "good"}, good, tt.bad, {ID: "later", Text: "good"}}
		var at *memory.BatchError
		if _, err := r.SaveBatch(t.Context(), agent, batch, "req"); !errors.As(err, &at) || at.Index != 2 || !errors.Is(err, tt.cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := record.Record{Text: strings.Repeat("x ", record.MaxTextBytes/2)}
	wide := record.Record{Text: "x", Embedding: make([]float32, record.MaxEmbedding), EmbeddingSpace: "s"}
	for name, batch := range map[string][]record.Record{
		"empty":   nil,
		"many":    make([]record.Record, memory.MaxBatchRecords+1),
		"texts":   times(long, memory.MaxBatchTextBytes/record.MaxTextBytes+1),
		"vectors": times(wide, memory.MaxBatchVectorBytes/(4*record.MaxEmbedding)+1),
	} {
		var bad *invalid.Error
		if _, err := r.SaveBatch(t.Context(), agent, batch, ""); !errors.As(err, &bad) || bad.Field != "records" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if stats, err := r.Stats(t.Context(), agent); err != nil || stats.Records != 1 {
		t.Errorf("a part of a batch was saved: %+v, %v", stats, err)
	}
}

func times(r record.Record, n int) []record.Record {
	all := make([]record.Record, n)
	for i := range all {
		all[i] = r
	}
	return all
}

// testLargestBatch: a batch of the largest size goes into one commit.
func testLargestBatch(t *testing.T, r *rig) {
	batch := make([]record.Record, memory.MaxBatchRecords)
	for i := range batch {
		const size = memory.MaxBatchTextBytes / memory.MaxBatchRecords
		batch[i] = record.Record{Text: strings.Repeat(fmt.Sprintf("word%d ", i%50), size/8), Key: fmt.Sprint("key ", i)}
	}
	for range 2 {
		if saved, err := r.SaveBatch(t.Context(), agent, batch, "req"); err != nil || len(saved) != len(batch) {
			t.Fatalf("%d saved, %v", len(saved), err)
		}
	}
	if stats, err := r.Stats(t.Context(), agent); err != nil || stats.Records != memory.MaxBatchRecords {
		t.Errorf("stats %+v, %v", stats, err)
	}
}
