package segment

import (
	"maps"
	"slices"
)

// Inverter inverts documents: from terms by document to documents by term.
// It keeps the postings in one slice, in the order in which they come.
type Inverter struct {
	numbers map[string]int32 // of each term, in the order of first use
	terms   []string
	counts  []int32 // of the postings of each term
	all     []numberedPosting
}

type numberedPosting struct {
	term int32
	Posting
}

// NewInverter returns an empty one with room for that much.
func NewInverter(terms, postings int) *Inverter {
	return &Inverter{numbers: make(map[string]int32, terms), all: make([]numberedPosting, 0, postings)}
}

// Add adds a posting of a term, whose ordinals ascend.
func (v *Inverter) Add(term []byte, p Posting) {
	n, ok := v.numbers[string(term)]
	if !ok {
		n = int32(len(v.terms))
		v.terms = append(v.terms, string(term))
		v.counts = append(v.counts, 0)
		v.numbers[v.terms[n]] = n
	}
	v.counts[n]++
	v.all = append(v.all, numberedPosting{n, p})
}

// Each calls do with every term, in order, and its postings.
func (v *Inverter) Each(do func(term string, postings []Posting) error) error {
	sorted := make([]Posting, len(v.all))
	starts := make([]int32, len(v.terms)+1)
	for n, count := range v.counts {
		starts[n+1] = starts[n] + count
	}
	next := slices.Clone(starts)
	for _, p := range v.all {
		sorted[next[p.term]] = p.Posting
		next[p.term]++
	}
	order := slices.Sorted(maps.Keys(v.numbers))
	for _, term := range order {
		n := v.numbers[term]
		if err := do(term, sorted[starts[n]:starts[n+1]]); err != nil {
			return err
		}
	}
	return nil
}
