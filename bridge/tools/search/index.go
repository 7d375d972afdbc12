package search

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

// Limits of what is read of one tool.
const (
	maxTextBytes = 4 << 10
	maxArguments = 128
)

// Indexed is what the index knows a tool by.
type Indexed struct {
	Name, Description string
	// Schema is the JSON Schema of its arguments.
	Schema json.RawMessage
}

// FoundTool is a tool that was found: its place in the list that the index was made of, and how
// well it fits, above 0.
type FoundTool struct {
	At    int
	Score float64
}

// The weights of the fields of a tool, and of a word that stands for another one.
const (
	nameWeight        = 3.0
	descriptionWeight = 1.5
	argumentWeight    = 0.5

	relatedWeight = 0.6
	similarWeight = 0.5
	plainWeight   = 0.3
)

// The constants of BM25.
const (
	saturation = 1.2
	byLength   = 0.5
)

// Index is tools by their words. It does not change and may be used by many goroutines.
type Index struct {
	words    *analysis.Analyzer
	related  map[string][]string
	plain    map[string]bool
	postings map[string][]posting
	lengths  []float64
	mean     float64
	names    []string
}

// posting is a word in a tool.
type posting struct {
	tool   int
	weight float64
}

// New makes an index of tools.
func New(tools []Indexed) *Index {
	x := &Index{words: analysis.New(nil), postings: map[string][]posting{}}
	x.related, x.plain = relatedTerms(x.words), plainTerms(x.words)
	total := 0.0
	for at, t := range tools {
		counts := map[string]float64{}
		x.count(counts, spaced(t.Name), nameWeight)
		x.count(counts, t.Description, descriptionWeight)
		for _, text := range arguments(t.Schema) {
			x.count(counts, spaced(text), argumentWeight)
		}
		length := 0.0
		for term, weight := range counts {
			x.postings[term] = append(x.postings[term], posting{at, weight})
			length += weight
		}
		x.lengths = append(x.lengths, length)
		x.names = append(x.names, t.Name)
		total += length
	}
	x.mean = total / max(float64(len(tools)), 1)
	return x
}

// count adds the words of a text.
func (x *Index) count(counts map[string]float64, text string, weight float64) {
	for term := range x.words.Terms(text[:min(len(text), maxTextBytes)]) {
		counts[term] += weight
	}
}

// spaced parts the words of a name. Humps are parted with its words.
func spaced(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(":_./-", r) {
			return ' '
		}
		return r
	}, name)
}

// arguments are the names and descriptions of the arguments that a schema names.
func arguments(schema json.RawMessage) (out []string) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	for name, raw := range s.Properties {
		var property struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(raw, &property) // a non-object has no description
		if out = append(out, name, property.Description); len(out) >= 2*maxArguments {
			break
		}
	}
	return out
}

// Find returns the tools that fit a question, the best first, at most limit.
func (x *Index) Find(question string, limit int) []FoundTool {
	scores := map[int]float64{}
	asked := map[string]bool{}
	for term := range x.words.Terms(spaced(question[:min(len(question), maxTextBytes)])) {
		if asked[term] {
			continue
		}
		asked[term] = true
		for tool, score := range x.of(term) {
			scores[tool] += score
		}
	}
	hits := make([]FoundTool, 0, len(scores))
	for at, score := range scores {
		hits = append(hits, FoundTool{at, score})
	}
	slices.SortFunc(hits, func(a, b FoundTool) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(x.names[a.At], x.names[b.At]))
	})
	return hits[:min(len(hits), limit)]
}

// of is what tools are worth for one word: for each what fits it best.
func (x *Index) of(term string) map[int]float64 {
	factor := 1.0
	if x.plain[term] {
		factor = plainWeight
	}
	best := map[int]float64{}
	x.score(best, term, factor)
	for _, other := range x.related[term] {
		x.score(best, other, factor*relatedWeight)
	}
	for other := range x.postings {
		if similar(term, other) {
			x.score(best, other, factor*similarWeight)
		}
	}
	return best
}

// score raises the tools that have a word to what it is worth.
func (x *Index) score(best map[int]float64, term string, factor float64) {
	list := x.postings[term]
	rarity := math.Log(1 + (float64(len(x.lengths)-len(list))+0.5)/(float64(len(list))+0.5))
	for _, p := range list {
		norm := saturation * (1 - byLength + byLength*x.lengths[p.tool]/x.mean)
		best[p.tool] = max(best[p.tool], factor*rarity*p.weight*(saturation+1)/(p.weight+norm))
	}
}

// minPart and minSimilar are the lengths from which a word can be a part of another one,
// and a misspelled one.
const (
	minPart    = 4
	minSimilar = 5
)

// similar reports whether one word begins or ends with the other, or they differ by one
// letter.
func similar(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case len(a) < minPart || len(b)-len(a) > 4:
		return false
	case strings.HasPrefix(b, a), strings.HasSuffix(b, a):
		return true
	case len(b)-len(a) > 1 || len(a) < minSimilar:
		return false
	}
	at := 0
	for at < len(a) && a[at] == b[at] {
		at++
	}
	if len(a) == len(b) {
		return at == len(a) || a[at+1:] == b[at+1:]
	}
	return a[at:] == b[at+1:]
}
