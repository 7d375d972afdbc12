package embedtest_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
)

// corpus returns short texts on two things, each with words of its own.
func corpus() []string {
	topics := [][]string{
		strings.Fields("doctor nurse ward hospital patient fever surgery clinic medicine bandage"),
		strings.Fields("ship sailor storm waves harbour anchor mast captain compass deck"),
	}
	rng := rand.New(rand.NewPCG(1, 1))
	texts := make([]string, 300)
	for i := range texts {
		topic := topics[i%2]
		for range 4 {
			texts[i] += topic[rng.IntN(len(topic))] + " of the "
		}
	}
	return texts
}

func similarity(m *embedtest.LSA, a, b string) (sum float32) {
	v, w := m.Vector(a), m.Vector(b)
	for i, x := range v {
		sum += x * w[i]
	}
	return sum
}

// Words come near each other through those beside them, also where no text has
// both: that is what a model is for.
func TestLSA(t *testing.T) {
	texts := slices.DeleteFunc(corpus(), func(text string) bool {
		return strings.Contains(text, "doctor") && strings.Contains(text, "ward")
	})
	m := embedtest.TrainLSA(texts, &embedtest.LSAOptions{Dimensions: 2})
	if near, far := similarity(m, "doctor", "ward"), similarity(m, "doctor", "sailor"); near < 0.9 || far > 0.2 {
		t.Errorf("doctor is %.2f to ward and %.2f to sailor", near, far)
	}
	again := embedtest.TrainLSA(slices.Clone(texts), &embedtest.LSAOptions{Dimensions: 2})
	if diff := cmp.Diff(m.Vector("storm at sea"), again.Vector("storm at sea")); diff != "" {
		t.Errorf("the same corpus gives another model:\n%s", diff)
	}
	if v := m.Vector("zebra"); !cmp.Equal(v, make([]float32, 2)) {
		t.Errorf("unknown word has the vector %v", v)
	}
}

func TestLSASmallCorpus(t *testing.T) {
	m := embedtest.TrainLSA(corpus()[:3], &embedtest.LSAOptions{Dimensions: 16})
	vectors, err := m.Embed(t.Context(), []string{"the doctor", ""})
	if err != nil || len(vectors) != 2 || len(vectors[0]) != 16 {
		t.Errorf("got %v, %v", vectors, err)
	}
}
