package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const chanceDimension = 256

// direction returns a direction of chance.
func direction(rng *rand.Rand) []float32 {
	v := make([]float32, chanceDimension)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// mixed returns a vector near v: the noise is as long as v times its part.
func mixed(rng *rand.Rand, v []float32, noise float32) []float32 {
	near := slices.Clone(v)
	for i, x := range direction(rng) {
		near[i] += noise * x
	}
	return near
}

// lifted returns vectors of a model that finds all texts alike: they share a
// long common part.
func lifted(v []float32) []float32 {
	const common = 3
	high := slices.Clone(v)
	for i := range high {
		high[i] += common
	}
	return high
}

// Records that share no word with the query are found by the vectors that their
// caller gave them, though a thousand others hold all the words of the query.
//
// F08
func TestPlantedVectors(t *testing.T) {
	for _, tt := range []struct {
		what  string
		noise float32
		model func([]float32) []float32
	}{
		{"near", 0.5, slices.Clone[[]float32]},
		{"less near", 0.75, slices.Clone[[]float32]},
		{"less near, of a model that finds all alike", 1.5, lifted},
	} {
		t.Run(tt.what, func(t *testing.T) { testPlanted(t, tt.noise, tt.model) })
	}
}

func testPlanted(t *testing.T, noise float32, model func([]float32) []float32) {
	const planted, fillers, space = 100, 900, "test/256"
	rng := rand.New(rand.NewPCG(1, 1))
	r := MustRig(t, memkv.New(nil))
	var drafts []record.Record
	for i := range fillers {
		text := fmt.Sprintf("Which note says something about topic %d, and when", i)
		drafts = append(drafts, record.Record{Text: text, Embedding: model(direction(rng)), EmbeddingSpace: space})
	}
	var secrets [][]float32
	for i := range planted {
		secrets = append(secrets, direction(rng))
		drafts = append(drafts, record.Record{
			ID: fmt.Sprintf("planted-%d", i), Text: fmt.Sprintf("Xyzzy%d", i), Embedding: model(secrets[i]), EmbeddingSpace: space,
		})
	}
	rng.Shuffle(len(drafts), func(i, j int) { drafts[i], drafts[j] = drafts[j], drafts[i] })
	for chunk := range slices.Chunk(drafts, 250) {
		if _, err := r.SaveBatch(t.Context(), agent, chunk, ""); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for i, secret := range secrets {
		result := r.MustQuery(t, question.Question{
			Text: "which note says what about topic", Embedding: model(mixed(rng, secret, noise)), EmbeddingSpace: space,
		})
		if slices.Contains(ids(result), fmt.Sprintf("planted-%d", i)) {
			found++
		}
		if result.Receipt.VectorCandidates == 0 || result.Receipt.VectorsScanned == 0 || result.Receipt.VectorsRescored == 0 {
			t.Fatalf("receipt says nothing of vectors: %+v", result.Receipt)
		}
		mustEqual(t, "spaces searched", []string{space}, result.Receipt.EmbeddingSpaces)
	}
	if found < planted*99/100 {
		t.Errorf("%d of %d records known by their vector alone are found", found, planted)
	}
}

// MustCrowd saves records with vectors of chance that share no word with any
// query here.
func MustCrowd(tb testing.TB, r *rig, rng *rand.Rand) {
	tb.Helper()
	for i := range 60 {
		r.MustSave(tb, record.Record{Text: fmt.Sprintf("Filler %d about gardens", i), Embedding: lifted(direction(rng)), EmbeddingSpace: "test"})
	}
}

// What stands out by its vector comes first where words find little, and leaves
// the first places to what words are sure of. It must stand out, though.
//
// F08
func TestStandOutPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	r := MustRig(t, memkv.New(nil))
	MustCrowd(t, r, rng)
	secret, weak := direction(rng), direction(rng)
	near := func(noise float32) []float32 { return lifted(mixed(rng, secret, noise)) }
	for i, text := range []string{"Jones serviced the boiler before winter", "The boiler of Jones before winter", "Jones likes winter", "Winter is near", "Boilers of other people, all of them new and green"} {
		r.MustSave(t, record.Record{ID: fmt.Sprint("words-", i), Text: text})
	}
	r.MustSave(t, record.Record{ID: "secret", Text: "Xyzzy", Embedding: lifted(secret), EmbeddingSpace: "test"})
	r.MustSave(t, record.Record{ID: "weak", Text: "Plugh", Embedding: lifted(weak), EmbeddingSpace: "test"})
	for _, tt := range []struct {
		what, text, id string
		vector         []float32
		first, last    int // places, counted from zero; first -1: none
	}{
		{"words that stand nowhere", "quux", "secret", near(0.5), 0, 0},
		{"one word of many", "boiler quux quuux corge grault", "secret", near(1), 0, 0},
		{"all words, the very vector", "Jones boiler serviced winter", "secret", near(0), 0, 0},
		{"all words, a vector that is less near", "Jones boiler serviced winter", "secret", near(1), 1, 2},
		{"all words, vectors of chance", "Jones boiler serviced winter", "weak", lifted(direction(rng)), 5, -1},
	} {
		q := question.Question{Text: tt.text, Embedding: tt.vector, EmbeddingSpace: "test", Limit: 100, Explain: true}
		result := r.MustQuery(t, q)
		at := slices.Index(ids(result), tt.id)
		if at >= 0 && (at < tt.first || at > tt.last && tt.last >= 0) {
			t.Errorf("%s: at place %d of %v, want %d to %d", tt.what, at, ids(result), tt.first, tt.last)
		}
		if at < 0 && tt.last >= 0 {
			t.Errorf("%s: not found", tt.what)
		}
		mustShareTheirRank(t, result)
	}
}

// mustShareTheirRank fails the test unless the shares of each hit's signals add
// up to a rank that is no more than that of the hit before.
func mustShareTheirRank(tb testing.TB, result memory.Answer) {
	tb.Helper()
	const rounding = 1e-4
	last := 0.0
	for i, hit := range result.Hits {
		sum := 0.0
		for _, signal := range hit.Explanation.Signals {
			sum += signal.Share
		}
		if i > 0 && sum > last+rounding {
			tb.Errorf("hit %d (%s) has rank %v after %v", i, hit.Record.ID, sum, last)
		}
		last = sum
	}
}

// A question is near to the same question. What somebody else said next is what
// was asked for.
//
// F08
func TestNearQuestionHandsOver(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	r := MustRig(t, memkv.New(nil))
	MustCrowd(t, r, rng)
	asked := direction(rng)
	r.MustSave(t, record.Record{ID: "question", Text: "What did Maria say of her kitten?", Author: "Tom", SessionID: "s", Embedding: lifted(mixed(rng, asked, 1)), EmbeddingSpace: "test"})
	r.MustSave(t, record.Record{ID: "answer", Text: "It sleeps on the piano", Author: "Maria", SessionID: "s"})
	r.MustSave(t, record.Record{ID: "later", Text: "We bought a kitten and a lamp", Author: "Maria", SessionID: "t", Embedding: lifted(direction(rng)), EmbeddingSpace: "test"})
	for mode, handed := range map[question.Mode]bool{question.Hybrid: true, question.Lexical: false} {
		q := question.Question{Text: "kitten", Mode: mode, Explain: true}
		if mode == question.Hybrid {
			q.Embedding, q.EmbeddingSpace = lifted(asked), "test"
		}
		result := r.MustQuery(t, q)
		at := slices.Index(ids(result), "answer")
		if at < 0 {
			t.Fatalf("mode %v: only %v", mode, ids(result))
		}
		if got := hasSignal(result.Hits[at], "vector"); got != handed {
			t.Errorf("mode %v: the answer counts by its question's vector: %v, want %v", mode, got, handed)
		}
		mustShareTheirRank(t, result)
	}
}

// What is nearest by far is among the first three, though a word of the question stands in another
// record and the rest says nothing.
func TestNearestBesideStrayWord(t *testing.T) {
	model := mustModel(t)
	r := MustRig(t, memkv.New(nil))
	r.opts.Embedder, r.opts.EmbedTimeout = model, time.Minute
	r.Reopen()
	const camera = "Uso una vieja cámara Nikon"
	for _, text := range []string{
		"Mi abuela es de Cuba", "Toco la batería en un grupo llamado Marea", "Estudio tercero de derecho", "El alquiler son 640 euros al mes",
		"Perdí las gafas en el tren", "Mi mejor amiga es Nuria", "Los fines de semana hago pan", "El examen de derecho fiscal es el día 14", "Soy zurdo",
		"Mis padres tienen una panadería", "No sé nadar", camera, "Soy voluntaria en un refugio de animales", "Mido 1,72",
		"Mi color favorito es el turquesa", "El lunes tengo una entrevista en una editorial", "Rompí con Javier en mayo", "Cojo el autobús 28",
		"Duermo mal con luna llena", "Dejé de fumar hace dos años",
	} {
		r.clock.Set(r.clock.Now().Add(time.Hour))
		r.MustSave(t, record.Record{Text: text})
	}
	MustEmbedAll(t, r.Store, agent)
	hits := r.MustQuery(t, question.Question{Text: "¿Con qué hago fotos?", Limit: 3}).Hits
	if !slices.ContainsFunc(hits, func(hit memory.Hit) bool { return hit.Record.Text == camera }) {
		for _, hit := range hits {
			t.Errorf("%.2f %q", hit.Score, hit.Record.Text)
		}
	}
}
