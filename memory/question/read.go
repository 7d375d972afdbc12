package question

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
)

// Read reads the text of a checked question, once, and returns what the index is
// asked: its terms, the moments it names, the words that can be names of authors and
// the kinds of answer it asks for. In mode Vector it has no words. Moments are
// counted from now. Whole is false where there are more than MaxWords terms, of which
// the first ones are taken. The text comes to its question at the byte from: what stands
// before it counts little.
func (q Question) Read(by *analysis.Analyzer, now time.Time, from int) (asked rank.Query, whole bool) {
	before, text := q.Text[:from], q.Text[from:]
	words := cut(nil, text)
	asked = rank.Query{
		Answers: asks(words), List: asksForSeveral(words) && !slices.Contains(q.Without, rank.SignalSeveral), Current: asksForCurrent(words), One: asksForOne(words), Owned: asksForOwned(words), Past: asksForPast(words),
		Limit: q.Most(), MinScore: q.MinScore, Explain: q.Explain,
		Recency: q.RecencyWeight, HalfLife: max(1, cmp.Or(q.RecencyHalfLife, DefaultRecencyHalfLife).Microseconds()),
		Importance: q.ImportanceWeight, Now: now.UnixMicro(), Without: q.Without,
	}
	if q.Mode == Vector {
		return asked, true
	}
	asked.Spans, asked.Names, asked.Terms = dates(words, now), names(text, words), by.Terms
	asked.Words, whole = terms(by, text)
	markNamed(asked.Words, words, by)
	if from > 0 {
		aside, _ := terms(by, before)
		asked.Words = addAside(asked.Words, aside)
	}
	if (asked.Current || asked.One) && !slices.Contains(q.Without, rank.SignalNow) {
		weakenNow(asked.Words)
	}
	return asked, whole
}

// markNamed marks the terms of words that are written as names are, and of numbers.
func markNamed(terms []rank.QueryWord, words []word, by *analysis.Analyzer) {
	for _, w := range words {
		if (!w.capital || w.begins) && !strings.ContainsFunc(w.lower, unicode.IsDigit) {
			continue
		}
		for term := range by.Terms(w.lower) {
			for i := range terms {
				terms[i].Named = terms[i].Named || terms[i].Text == term
			}
		}
	}
}

// nowWeight is how much a word such as now counts in a question for how things are: it is
// asked for, and the texts with the answer hardly have it.
const nowWeight = 0.5

// weakenNow takes words such as now for what they are.
func weakenNow(words []rank.QueryWord) {
	left := slices.ContainsFunc(words, func(w rank.QueryWord) bool { return !nowWords[w.Text] })
	for i := range words {
		if left && nowWords[words[i].Text] {
			words[i].Weight = nowWeight
		}
	}
}

// asideWeight is how much a word counts that stands before the question only.
const asideWeight = 0.1

// addAside adds words that stand before the question.
func addAside(words, aside []rank.QueryWord) []rank.QueryWord {
	for _, word := range aside[:min(len(aside), MaxWords-len(words))] {
		if !slices.ContainsFunc(words, func(w rank.QueryWord) bool { return w.Text == word.Text }) {
			word.Weight = asideWeight
			words = append(words, word)
		}
	}
	return words
}

// terms returns the different terms of a text in their order, with other forms of them.
func terms(by *analysis.Analyzer, text string) (words []rank.QueryWord, whole bool) {
	places := make(map[string]int)
	add := func(term string, other bool) bool {
		i, ok := places[term]
		if !ok {
			if len(words) == MaxWords {
				return false
			}
			i = len(words)
			places[term] = i
			words = append(words, rank.QueryWord{Text: term, Other: other})
		}
		words[i].Other = words[i].Other && other
		words[i].Count++
		return true
	}
	for term := range by.Asked(text, func(term string) { add(term, true) }) {
		if !add(term, false) {
			return words, false
		}
	}
	return words, true
}
