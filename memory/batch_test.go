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
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

func testBatch(t *testing.T, r *rig) {
	batch := []memory.Record{
		{ID: "a", Text: "Ann lives in Paris", Key: "city"},
		{Text: "The weather is fine", TTL: time.Minute},
		{ID: "b", Text: "Ann lives in Oslo", Key: "city", Supersedes: "a"},
		{Text: "Ann moved", DerivedFrom: []string{"a", "b"}},
	}
	for i := range 40 {
		batch = append(batch, memory.Record{Text: fmt.Sprintf("Filler note %d", i)})
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
	mustEqual(t, "found", []string{"b"}, ids(r.MustQuery(t, memory.Query{Text: "Paris Oslo"})))
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
	r.MustSave(t, memory.Record{ID: "taken", Text: "first", Key: "k", Embedding: []float32{1, 2}, EmbeddingSpace: "two"})
	good := memory.Record{Text: "good"}
	for name, tt := range map[string]struct {
		bad   memory.Record
		cause error
	}{
		"invalid":             {memory.Record{}, memory.ErrInvalid},
		"metadata":            {memory.Record{Text: "x", Metadata: []byte("[]")}, memory.ErrInvalid},
		"taken id":            {memory.Record{ID: "taken", Text: "x"}, memory.ErrExists},
		"taken key":           {memory.Record{Key: "k", Text: "x"}, memory.ErrExists},
		"id of the batch":     {memory.Record{ID: "mine", Text: "x"}, memory.ErrExists},
		"key of the batch":    {memory.Record{Key: "my key", Text: "x"}, memory.ErrExists},
		"missing source":      {memory.Record{Text: "x", DerivedFrom: []string{"nobody"}}, memory.ErrNotFound},
		"one that comes late": {memory.Record{Text: "x", Supersedes: "later"}, memory.ErrNotFound},
		"expired":             {memory.Record{Text: "x", ExpireTime: start}, memory.ErrInvalid},
		"another dimension":   {memory.Record{Text: "x", Embedding: []float32{1}, EmbeddingSpace: "two"}, vector.ErrDimension},
	} {
		batch := []memory.Record{{ID: "mine", Key: "my key", Text: "good"}, good, tt.bad, {ID: "later", Text: "good"}}
		var at *memory.BatchError
		if _, err := r.SaveBatch(t.Context(), agent, batch, "req"); !errors.As(err, &at) || at.Index != 2 || !errors.Is(err, tt.cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := memory.Record{Text: strings.Repeat("x ", memory.MaxTextBytes/2)}
	wide := memory.Record{Text: "x", Embedding: make([]float32, memory.MaxEmbedding), EmbeddingSpace: "s"}
	for name, batch := range map[string][]memory.Record{
		"empty":   nil,
		"many":    make([]memory.Record, memory.MaxBatchRecords+1),
		"texts":   times(long, memory.MaxBatchTextBytes/memory.MaxTextBytes+1),
		"vectors": times(wide, memory.MaxBatchVectorBytes/(4*memory.MaxEmbedding)+1),
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

func times(r memory.Record, n int) []memory.Record {
	all := make([]memory.Record, n)
	for i := range all {
		all[i] = r
	}
	return all
}

// testLargestBatch: a batch of the largest size goes into one commit.
func testLargestBatch(t *testing.T, r *rig) {
	batch := make([]memory.Record, memory.MaxBatchRecords)
	for i := range batch {
		const size = memory.MaxBatchTextBytes / memory.MaxBatchRecords
		batch[i] = memory.Record{Text: strings.Repeat(fmt.Sprintf("word%d ", i%50), size/8), Key: fmt.Sprint("key ", i)}
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
