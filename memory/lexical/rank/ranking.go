package rank

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// ranking is a query under way.
type ranking struct {
	query  Query
	parts  []*rankedPart
	totals totals
	isName []bool // of each word: it belongs to the name of an author
	spans  []Span // with their years
	// asked are the rarities of the words that the score goes by, zero for the
	// others, found or not; mass is their sum.
	asked []float64
	mass  float64
	// found is the sum of the weights of words found in some document, and foundWords their
	// number.
	found      float64
	foundWords int
	shares     shares
	// The factors that scale the signals by words, and what they make of them.
	scale scale
	mix   mix
	// factor brings ranks by words to the scale of vectors.
	factor  float32
	vectors nearness
	// cohesion says how far sessions are believed.
	cohesion cohesion
	// The marks of length, by which words are weighed in documents, windows and sections.
	norms struct{ turn, window, section norm }
	// covered is the largest part of the mass that a candidate covers.
	covered float32
	// measured counts the candidates of words that may be hits, and the others.
	measured struct {
		allowed int
		Answer
	}
	picked  *topK // by words alone
	allowed int   // measured, and what only vectors found
	answer  Answer
	ranked  []candidate             // the hits
	ids     map[documentSlot]string // of hits of the answer before
	// older are the documents that others put out of date, oldest first.
	older map[documentSlot][]uint32
	// failed is what went wrong while the words of a document were read.
	failed error
}

// rankedPart is a part with what a query needs of it.
type rankedPart struct {
	Part
	*workspace
	frame   *frame.Frame
	derived *conversation
	words   []lexical.TermPostings
	named   uint32 // the only author that the query names; zero if none
}

// totals are the statistics of all parts together.
type totals struct {
	documents              float64
	turns, windows         lengths
	sections, sectionWords float64
}

// average is at least one word.
func average(words, documents float64) float64 {
	if documents == 0 {
		return 1
	}
	return max(1, words/documents)
}

// newRanking reads what the parts hold of the words. Release it.
func newRanking(ctx context.Context, parts []Part, q Query) (*ranking, error) {
	r := &ranking{query: q, shares: sharesOf(q), asked: make([]float64, len(q.Words))}
	terms := make([]string, len(q.Words))
	for i, w := range q.Words {
		terms[i] = string(byte(segment.Word)) + segment.Value(w.Text)
	}
	for _, part := range parts {
		words, err := part.Reader.Postings(ctx, terms)
		if err != nil {
			r.release()
			return nil, err
		}
		r.add(part, words, workspaces.Get().(*workspace))
	}
	r.norms.turn, r.norms.window = r.totals.turns.norm(), r.totals.windows.norm()
	r.norms.section = norm{average: average(r.totals.sectionWords, r.totals.sections), part: lengthPart}
	r.shares.window *= float32(1 - unevenWindow*r.norms.turn.uneven)
	r.findNamed()
	r.placeSpans()
	return r, nil
}

func (r *ranking) add(part Part, words []lexical.TermPostings, work *workspace) {
	f := part.Reader.Frame()
	p := &rankedPart{Part: part, workspace: work, frame: f, derived: frame.Derived(f, deriveConversation), words: words}
	p.reset(f, len(p.derived.sectionWords))
	r.parts = append(r.parts, p)
	r.totals.documents += float64(part.Reader.Statistics().Documents)
	r.totals.turns.join(p.derived.turnLengths)
	r.totals.windows.join(p.derived.windowLengths)
	r.totals.sections += p.derived.sections
	r.totals.sectionWords += p.derived.inSections
}

// workspaces are the unused workspaces.
var workspaces = sync.Pool{New: func() any { return &workspace{} }}

// release gives the working memory back.
func (r *ranking) release() {
	for _, p := range r.parts {
		workspaces.Put(p.workspace)
	}
	r.parts = nil
}

// maxNameWords is how many words of a query can be the name of an author.
const maxNameWords = 5

// findNamed finds the authors that the query names: their names say little about the
// question, and the records of a single named author count more.
func (r *ranking) findNamed() {
	words := r.query.Names
	var found []string
	for from := range words {
		for to := from + 1; to <= min(from+maxNameWords, len(words)); to++ {
			name := strings.Join(words[from:to], " ")
			if !slices.Contains(found, name) && r.isAuthor(name) {
				found = append(found, name)
			}
		}
	}
	if len(found) == 1 {
		for _, p := range r.parts {
			p.named = p.derived.names[found[0]]
		}
	}
	r.markNames(found)
}

// markNames marks the words of names, unless there are no others.
func (r *ranking) markNames(names []string) {
	r.isName = make([]bool, len(r.query.Words))
	if r.query.Terms == nil {
		return
	}
	others := len(r.query.Words)
	for _, name := range names {
		for term := range r.query.Terms(name) {
			at := slices.IndexFunc(r.query.Words, func(w QueryWord) bool { return w.Text == term })
			if at >= 0 && !r.isName[at] {
				r.isName[at] = true
				others--
			}
		}
	}
	if others == 0 {
		clear(r.isName)
	}
}

func (r *ranking) isAuthor(name string) bool {
	for _, p := range r.parts {
		if _, ok := p.derived.names[name]; ok {
			return true
		}
	}
	return false
}

// addWords computes the signals of words.
func (r *ranking) addWords() error {
	for i, w := range r.query.Words {
		if err := r.addWord(i, w); err != nil {
			return err
		}
	}
	return nil
}

// counted is in how many documents, windows and sections a word stands.
type counted struct{ turns, windows, sections int }

// fewDocuments is how many documents there must be for half of what a word counts that
// stands in none of them: that few records do not have it says little of whether they
// answer the query.
const fewDocuments = 20

// addWord adds the word's share to every signal of every document.
func (r *ranking) addWord(i int, word QueryWord) error {
	n, err := r.count(i)
	if err != nil {
		return err
	}
	t, times := r.totals, word.weight()
	asked := 0.0
	if word.Weight == 0 && !r.isName[i] {
		asked = idf(t.documents, n.turns)
		switch {
		case n.turns == 0 && word.Other:
			asked = 0
		case n.turns == 0:
			asked *= float64(t.documents) / float64(t.documents+fewDocuments)
		}
	}
	r.asked[i] = asked
	r.mass += asked
	if asked > 0 && n.turns > 0 {
		r.found += asked
		if !word.Other {
			r.foundWords++
		}
	}
	turn := newBM25(times*idf(t.documents, n.turns), r.norms.turn)
	window := newBM25(times*idf(t.documents, n.windows), r.norms.window)
	section := newBM25(times*idf(t.sections, n.sections), r.norms.section)
	for _, p := range r.parts {
		p.addTurns(p.frame, turn, float32(asked))
		if p.derived.windows == nil {
			p.addAlone(p.frame, window)
			continue
		}
		p.addWindows(p.derived.windows, window)
		p.addSections(p.derived.sectionWords, section)
	}
	return nil
}

// commonPart is the part of all documents from which on a word that so many
// hold is not carried to their neighbours: it means nothing there.
const commonPart = 0.25

// count reads where a word stands and counts it in windows and sections.
func (r *ranking) count(i int) (n counted, err error) {
	for _, p := range r.parts {
		if err := p.read(p.frame, p.words[i]); err != nil {
			return n, err
		}
		n.turns += len(p.postings)
	}
	spread := float64(n.turns) <= commonPart*r.totals.documents
	var documents, with, times, windows int // of the parts that have windows
	for _, p := range r.parts {
		if p.derived.windows == nil {
			n.windows += len(p.postings)
			continue
		}
		p.tally(p.frame, p.derived, spread)
		documents += int(p.frame.Documents)
		with += len(p.postings)
		times += p.brought
		windows += len(p.windowsTouched)
		n.sections += len(p.sectionsTouched)
	}
	n.windows += windows
	if spread && with > 1 && r.query.Words[i].Weight == 0 {
		r.cohesion.add(float64(documents), times, windows)
	}
	return n, nil
}

// Rarity returns the weight of each word in all parts together: the inverse of
// how many documents hold it. It is zero for a word that fewer than two hold.
func Rarity(ctx context.Context, parts []Part, words []string) ([]float64, error) {
	terms := make([]string, len(words))
	for i, word := range words {
		terms[i] = string(byte(segment.Word)) + segment.Value(word)
	}
	documents, with := 0.0, make([]int, len(words))
	for _, part := range parts {
		documents += float64(part.Reader.Statistics().Documents)
		found, err := part.Reader.Postings(ctx, terms)
		if err != nil {
			return nil, err
		}
		for i, word := range found {
			if err := part.Reader.EachPosting(word, func(uint32, uint64) { with[i]++ }); err != nil {
				return nil, err
			}
		}
	}
	weights := make([]float64, len(words))
	for i := range words {
		if with[i] > 1 {
			weights[i] = idf(documents, with[i])
		}
	}
	return weights, nil
}
