package embedtest

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

const (
	// DefaultDimensions is what small models of language have.
	DefaultDimensions = 384
	// DefaultMaxWords bounds the words of a model: the commonest. What is rarer
	// adds little to the first directions and much to the work.
	DefaultMaxWords = 8000
	// lsaRounds is how often the directions are refined; more changes little.
	lsaRounds = 3
)

// LSAOptions adjusts a model. Nil and zero fields mean the defaults.
type LSAOptions struct {
	// Dimensions is how many numbers a vector has. Default DefaultDimensions; with
	// a smaller corpus the rest are zero.
	Dimensions int
	// MaxWords bounds the words of the model. Default DefaultMaxWords.
	MaxWords int
	// Words splits a text. Default: runs of letters and digits in lower case.
	Words func(text string) iter.Seq[string]
	// Seed makes another model of the same corpus. Default 0.
	Seed uint64
}

// LSA is a model of latent semantic analysis: the vector of a text is its tf-idf
// weights along the directions in which the corpus's weights vary most. The same corpus and
// options give the same model. It is safe for concurrent use.
type LSA struct {
	dimensions int
	words      func(string) iter.Seq[string]
	numbers    map[string]int
	idf        []float32
	rows       [][]float32 // of each word: its part in each direction
}

// TrainLSA makes a model of a corpus.
func TrainLSA(corpus []string, opts *LSAOptions) *LSA {
	var o LSAOptions
	if opts != nil {
		o = *opts
	}
	m := &LSA{dimensions: o.Dimensions, words: o.Words}
	if m.dimensions <= 0 {
		m.dimensions = DefaultDimensions
	}
	if m.words == nil {
		m.words = plainWords
	}
	if o.MaxWords <= 0 {
		o.MaxWords = DefaultMaxWords
	}
	m.learnWords(corpus, o.MaxWords)
	documents := make([][]weight, len(corpus))
	for i, text := range corpus {
		documents[i] = m.weigh(text)
	}
	m.learnDirections(documents, rand.New(rand.NewPCG(o.Seed, 1)))
	return m
}

func plainWords(text string) iter.Seq[string] {
	return strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// learnWords takes the commonest words that stand in two texts or more.
func (m *LSA) learnWords(corpus []string, limit int) {
	counts := make(map[string]int)
	for _, text := range corpus {
		seen := make(map[string]bool)
		for word := range m.words(text) {
			if !seen[word] {
				seen[word] = true
				counts[word]++
			}
		}
	}
	var words []string
	for word, n := range counts {
		if n > 1 {
			words = append(words, word)
		}
	}
	slices.SortFunc(words, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	words = words[:min(len(words), limit)]
	m.numbers = make(map[string]int, len(words))
	for i, word := range words {
		m.numbers[word] = i
		m.idf = append(m.idf, float32(math.Log(1+float64(len(corpus))/float64(counts[word]))))
	}
}

// weight is a word of a text with its tf-idf.
type weight struct {
	word  int
	value float32
}

// weigh returns the words of a text, of length one together.
func (m *LSA) weigh(text string) []weight {
	counts := make(map[int]int)
	for word := range m.words(text) {
		if n, ok := m.numbers[word]; ok {
			counts[n]++
		}
	}
	var weights []weight
	sum := 0.0
	for n, count := range counts {
		value := float32(1+math.Log(float64(count))) * m.idf[n]
		weights = append(weights, weight{n, value})
		sum += float64(value) * float64(value)
	}
	slices.SortFunc(weights, func(a, b weight) int { return a.word - b.word })
	for i := range weights {
		weights[i].value /= float32(math.Sqrt(sum))
	}
	return weights
}

// learnDirections finds the directions by subspace iteration: random ones are
// put through the corpus again and again, and kept at right angles.
func (m *LSA) learnDirections(documents [][]weight, rng *rand.Rand) {
	k := min(m.dimensions, len(m.idf), len(documents))
	m.rows = make([][]float32, len(m.idf))
	for i := range m.rows {
		m.rows[i] = make([]float32, k)
		for j := range m.rows[i] {
			m.rows[i][j] = float32(rng.NormFloat64())
		}
	}
	orthogonalize(m.rows, k)
	for range lsaRounds {
		next := make([][]float32, len(m.rows))
		for i := range next {
			next[i] = make([]float32, k)
		}
		for _, d := range documents {
			along := m.project(d)
			for _, w := range d {
				addScaled(next[w.word], along[:k], w.value)
			}
		}
		m.rows = next
		orthogonalize(m.rows, k)
	}
}

// orthogonalize makes the k columns of rows orthonormal (Gram and Schmidt).
func orthogonalize(rows [][]float32, k int) {
	columns := make([][]float32, k)
	for j := range columns {
		columns[j] = make([]float32, len(rows))
		for i, row := range rows {
			columns[j][i] = row[j]
		}
		for _, before := range columns[:j] {
			addScaled(columns[j], before, -scalar(columns[j], before))
		}
		length := float32(math.Sqrt(float64(scalar(columns[j], columns[j]))))
		for i := range columns[j] {
			if length > 1e-6 {
				columns[j][i] /= length
			} else {
				columns[j][i] = 0
			}
		}
	}
	for j, column := range columns {
		for i, x := range column {
			rows[i][j] = x
		}
	}
}

func scalar(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return s0 + s1 + s2 + s3
}

func addScaled(to, from []float32, by float32) {
	to = to[:len(from)]
	for i, x := range from {
		to[i] += by * x
	}
}

// project returns the vector of weighed words.
func (m *LSA) project(weights []weight) []float32 {
	v := make([]float32, m.dimensions)
	for _, w := range weights {
		addScaled(v, m.rows[w.word], w.value)
	}
	return v
}

// Vector returns the vector of a text, of length one; zeros where no word of it
// is known.
func (m *LSA) Vector(text string) []float32 {
	v := m.project(m.weigh(text))
	length := float32(math.Sqrt(float64(scalar(v, v))))
	for i := range v {
		if length > 0 {
			v[i] /= length
		}
	}
	return v
}

// Space names the model.
func (m *LSA) Space() string { return "embedtest/lsa" }

// Embed returns the vector of each text.
func (m *LSA) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = m.Vector(text)
	}
	return vectors, ctx.Err()
}
