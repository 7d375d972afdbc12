package memory_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// byChance is a model whose vectors have nothing to do with what a text says.
type byChance struct{}

func (byChance) Space() string { return "test/chance" }

func (byChance) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	for _, text := range texts {
		seed := fnv.New64a()
		_, _ = seed.Write([]byte(text))
		rng := rand.New(rand.NewPCG(seed.Sum64(), 1))
		v := make([]float32, 384)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		vectors = append(vectors, v)
	}
	return vectors, nil
}

// A bad model does little harm among few long records, too, where something always seems to
// stand out: sessions of conversations as one record each, about thirty of a memory.
//
// F08
func TestVectorsByChance(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	store := memory.New(engine, writer, &memory.Options{Embedder: byChance{}})
	defer store.Close()
	var words, both recall
	for _, sample := range MustReadLocomo(t)[:2] {
		scope, known := kv.AgentScope("default", sample.ID), make(map[string]bool)
		for n, turns := range sample.MustSessions(t) {
			id := fmt.Sprintf("session_%d", n)
			var text strings.Builder
			for _, turn := range turns {
				known[turn.ID] = true
				fmt.Fprintf(&text, "%s: %s\n%s\n", turn.Speaker, turn.Text, turn.Caption)
			}
			at := time.Date(2025, 1, n, 0, 0, 0, 0, time.UTC)
			if _, err := store.Save(t.Context(), scope, record.Record{ID: id, Text: text.String(), EventTime: at}, ""); err != nil {
				t.Fatal(err)
			}
		}
		MustEmbedAll(t, store, scope)
		for _, asked := range sample.Questions {
			var sessions []string
			for _, turn := range asked.evidence(known) {
				session, _, _ := strings.Cut(strings.TrimPrefix(turn, "D"), ":")
				sessions = append(sessions, "session_"+session)
			}
			if len(sessions) == 0 {
				continue
			}
			slices.Sort(sessions)
			sessions = slices.Compact(sessions)
			for mode, to := range map[question.Mode]*recall{question.Lexical: &words, question.Hybrid: &both} {
				result, err := store.Query(t.Context(), scope, question.Question{Text: asked.Text, Limit: 50, Mode: mode})
				if err != nil {
					t.Fatal(err)
				}
				to.add(ids(result), sessions)
			}
		}
	}
	t.Logf("words   %s", &words)
	t.Logf("both    %s", &both)
	for depth, less := range map[int]float64{1: 1.5, 5: 2, 10: 1.5} {
		atLeast(t, fmt.Sprintf("recall@%d with vectors by chance", depth), both.at(depth), words.at(depth)-less)
	}
}
