package segment

import (
	"slices"
	"strings"
)

// Inverter inverts documents: from terms by document to documents by term.
// It keeps the postings in one slice, in the order in which they come.
type Inverter struct {
	numbers map[string]int32 // of each term, in the order of first use
	terms   []string
	counts  []int32 // of the postings of each term
	all     []numberedPosting

	// What Each works with.
	order, next []int32
	sorted      []Posting
}

type numberedPosting struct {
	term int32
	Posting
}

// NewInverter returns an empty one with room for that much.
func NewInverter(terms, postings int) *Inverter {
	return &Inverter{numbers: make(map[string]int32, terms), all: make([]numberedPosting, 0, postings)}
}

// Reset empties it, and keeps its room.
func (v *Inverter) Reset() {
	clear(v.numbers)
	clear(v.terms)
	v.terms, v.counts, v.all = v.terms[:0], v.counts[:0], v.all[:0]
}

// Room is how many postings it has room for.
func (v *Inverter) Room() int { return cap(v.all) }

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

// Each calls do with every term, in order, and its postings, which do must not keep.
func (v *Inverter) Each(do func(term string, postings []Posting) error) error {
	sorted := slices.Grow(v.sorted[:0], len(v.all))[:len(v.all)]
	next := slices.Grow(v.next[:0], len(v.terms))[:len(v.terms)] // where its next posting goes
	order := slices.Grow(v.order[:0], len(v.terms))[:len(v.terms)]
	v.sorted, v.next, v.order = sorted, next, order
	start := int32(0)
	for n, count := range v.counts {
		next[n], order[n] = start, int32(n)
		start += count
	}
	for _, p := range v.all {
		sorted[next[p.term]] = p.Posting
		next[p.term]++
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(v.terms[a], v.terms[b]) })
	for _, n := range order {
		if err := do(v.terms[n], sorted[next[n]-v.counts[n]:next[n]]); err != nil {
			return err
		}
	}
	return nil
}
