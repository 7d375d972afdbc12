package memory_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
)

// TestLocomoHybridSoak asks the questions of TestLocomo with vectors beside the
// words: those of a model made of the conversations themselves, from a server
// that is slow and fails now and then. Such a model knows less than the words do,
// so vectors gain little here; they must not lose much. A model that knows more
// is played by vectors of questions that were moved towards their evidence; it
// must gain.
//
// F08
func TestLocomoHybridSoak(t *testing.T) {
	samples := MustReadLocomo(t)
	model := embedtest.TrainLSA(locomoTexts(t, samples), &embedtest.LSAOptions{Words: analysis.New(nil).Terms})
	store := MustEmbeddingStore(t, model)
	rng := rand.New(rand.NewPCG(5, 5))
	var words, both, vectors, strong, strongVectors locomoRun
	for _, sample := range samples {
		scope, known := MustSaveLocomo(t, store.Store, sample)
		MustEmbedAll(t, store.Store, scope)
		for _, asked := range sample.Questions {
			evidence := asked.evidence(known)
			if len(evidence) == 0 {
				continue
			}
			knowing := towards(t, rng, store, scope, model.Vector(asked.Text), evidence)
			for _, run := range []struct {
				*locomoRun
				question.Question
			}{
				{&words, question.Question{Mode: question.Lexical}},
				{&both, question.Question{Mode: question.Hybrid}},
				{&vectors, question.Question{Mode: question.Vector}},
				{&strong, question.Question{Mode: question.Hybrid, Embedding: knowing, EmbeddingSpace: store.space}},
				{&strongVectors, question.Question{Mode: question.Vector, Embedding: knowing, EmbeddingSpace: store.space}},
			} {
				q := run.Question
				q.Text, q.Limit = asked.Text, 50
				result, err := store.Query(t.Context(), scope, q)
				if err != nil {
					t.Fatal(err)
				}
				if q.Mode != question.Lexical && (len(result.Receipt.Degraded) > 0 || result.Receipt.VectorsScanned != len(known)) {
					t.Fatalf("receipt of a query with vectors: %+v", result.Receipt)
				}
				run.add(sample.ID, asked.Category, ids(result), evidence)
			}
		}
	}
	for _, run := range []struct {
		what string
		*locomoRun
	}{{"words", &words}, {"weak vectors", &vectors}, {"words and weak", &both}, {"strong vectors", &strongVectors}, {"words and strong", &strong}} {
		t.Logf("%-17s%s", run.what, &run.all)
	}
	for _, least := range []struct {
		what                 string
		run                  *locomoRun
		at1, at5, at10, at25 float64 // more than words alone, at these depths
	}{
		{"weak", &both, 0.5, -1.6, -0.3, -0.4},
		{"strong", &strong, 10, 4.5, 3, 2.5},
	} {
		for depth, more := range map[int]float64{1: least.at1, 5: least.at5, 10: least.at10, 25: least.at25} {
			atLeast(t, fmt.Sprintf("recall@%d with %s vectors", depth, least.what), least.run.all.at(depth), words.all.at(depth)+more)
		}
	}
}

// embeddingStore is a store whose embedder is a server.
type embeddingStore struct {
	*memory.Store
	space string
}

// MustEmbeddingStore returns a store with vectors of a model, which a slow server
// makes that fails now and then.
func MustEmbeddingStore(tb testing.TB, model *embedtest.LSA) embeddingStore {
	tb.Helper()
	const everyFails = 50
	web := httptest.NewServer(&embedtest.Server{Embedder: model, Delay: time.Millisecond, Fail: func(n int64) int {
		if n%everyFails == everyFails-1 {
			return http.StatusServiceUnavailable
		}
		return 0
	}})
	tb.Cleanup(web.Close)
	client, err := embed.NewClient(embed.Options{BaseURL: web.URL + "/v1", Model: "lsa"})
	if err != nil {
		tb.Fatal(err)
	}
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, &memory.Options{Embedder: client, EmbedTimeout: 10 * time.Second})
	tb.Cleanup(func() {
		_ = store.Close()
		_ = writer.Close()
	})
	return embeddingStore{store, client.Space()}
}

// towards moves the vector of a question to the middle of its evidence's, and
// then somewhere by chance.
func towards(tb testing.TB, rng *rand.Rand, store embeddingStore, scope kv.Scope, v []float32, evidence []string) []float32 {
	tb.Helper()
	const moved, noise = 0.3, 0.5
	middle := make([]float32, len(v))
	for _, id := range evidence {
		record, err := store.Get(tb.Context(), scope, id)
		if err != nil {
			tb.Fatal(err)
		}
		for i, x := range record.Embedding {
			middle[i] += x
		}
	}
	away := make([]float32, len(v))
	for i := range away {
		away[i] = float32(rng.NormFloat64())
	}
	length := func(v []float32) float32 {
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		return float32(max(math.Sqrt(sum), 1e-9))
	}
	middleLength, awayLength := length(middle), length(away)
	to := make([]float32, len(v))
	for i, x := range v {
		to[i] = (1-moved)*x + moved*middle[i]/middleLength + noise*away[i]/awayLength
	}
	return to
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
	ctx, stop := context.WithTimeout(tb.Context(), 5*time.Minute)
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
