package memory_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embed/embedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// TestLocomoHybrid asks the questions of TestLocomo with vectors beside the
// words: those of a model made of the conversations themselves, from a server
// that is slow and fails now and then. Such a model knows no more than the words
// do, so vectors gain little here; they must not lose.
func TestLocomoHybrid(t *testing.T) {
	samples := MustReadLocomo(t)
	analyzer := analysis.New(nil)
	model := embedtest.TrainLSA(locomoTexts(t, samples), &embedtest.LSAOptions{Words: analyzer.Terms})
	server := &embedtest.Server{Embedder: model, Delay: time.Millisecond, Fail: func(n int64) int {
		if n%50 == 49 {
			return http.StatusServiceUnavailable
		}
		return 0
	}}
	web := httptest.NewServer(server)
	defer web.Close()
	client, err := embed.NewClient(embed.Options{BaseURL: web.URL + "/v1", Model: "lsa"})
	if err != nil {
		t.Fatal(err)
	}
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, &memory.Options{Embedder: client, EmbedTimeout: 10 * time.Second})
	defer writer.Close()
	defer store.Close()

	modes := map[memory.Mode]*locomoRun{memory.Lexical: {}, memory.Hybrid: {}, memory.Vector: {}}
	for _, sample := range samples {
		scope, known := MustSaveLocomo(t, store, sample)
		MustEmbedAll(t, store, scope)
		for _, question := range sample.Questions {
			evidence := question.evidence(known)
			if len(evidence) == 0 {
				continue
			}
			for mode, run := range modes {
				result, err := store.Query(t.Context(), scope, memory.Query{Text: question.Text, Limit: 50, Mode: mode})
				if err != nil {
					t.Fatal(err)
				}
				if mode == memory.Hybrid && (len(result.Receipt.Degraded) > 0 || result.Receipt.VectorsScanned != len(known)) {
					t.Fatalf("receipt of a hybrid query: %+v", result.Receipt)
				}
				run.add(sample.ID, question.Category, ids(result), evidence)
			}
		}
	}
	for mode, name := range map[memory.Mode]string{memory.Lexical: "lexical", memory.Hybrid: "hybrid", memory.Vector: "vector"} {
		t.Logf("%-8s%s", name, &modes[mode].all)
	}
	if words, both := modes[memory.Lexical].all.at(10), modes[memory.Hybrid].all.at(10); both < words-0.5 {
		t.Errorf("recall@10 is %.2f with vectors and %.2f without", both, words)
	}
}

// locomoTexts returns what the model learns from: every turn, with its speaker.
func locomoTexts(tb testing.TB, samples []locomoSample) (texts []string) {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, nil)
	defer writer.Close()
	defer store.Close()
	for _, sample := range samples {
		scope, known := MustSaveLocomo(tb, store, sample)
		for _, id := range slices.Sorted(maps.Keys(known)) {
			record, err := store.Get(tb.Context(), scope, id)
			if err != nil {
				tb.Fatal(err)
			}
			texts = append(texts, record.Author+": "+record.Text)
		}
	}
	return texts
}

// MustEmbedAll waits until no record of a scope waits for its vector.
func MustEmbedAll(tb testing.TB, store *memory.Store, scope kv.Scope) {
	tb.Helper()
	ctx, stop := context.WithTimeout(tb.Context(), time.Minute)
	defer stop()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		waiting, err := store.WaitingForVectors(ctx, scope)
		if err != nil {
			tb.Fatal(err)
		}
		if waiting == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("%d records still wait for a vector", waiting)
		}
	}
}
