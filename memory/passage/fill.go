package passage

import (
	"container/heap"
	"context"
	"iter"
	"math"
	"slices"
)

const (
	// wholeBytes is the length up to which a text stays whole: a statement with what
	// stands around it.
	wholeBytes = 600
	// bytesPerToken is about what a token has, by which texts are compared before their
	// tokens are counted.
	bytesPerToken = 4
	// mostBytesPerToken is what a token hardly ever has: a longer text is not counted to
	// see that it does not fit.
	mostBytesPerToken = 12
)

// Text is one that was found.
type Text struct {
	Text string
	// Value is its worth relative to the other texts.
	Value float64
	// Beside is how many tokens stand with what is shown of it, once, such as its date.
	Beside int
}

// Excerpt is the part of a text that is shown.
type Excerpt struct {
	// Whole: all of it.
	Whole bool
	// Passages are the shown passages of a text that is not shown whole, in order; they do
	// not overlap.
	Passages []Passage
	// Tokens is how many are given, including its neighbours.
	Tokens int
}

// Given reports whether anything is.
func (p *Excerpt) Given() bool { return p.Whole || len(p.Passages) > 0 }

// Filler chooses what to give.
type Filler struct {
	// Terms yields the words of a text as Weights names them.
	Terms func(text string) iter.Seq[string]
	// Weights are the words that are asked for, and how much each counts.
	Weights map[string]float64
	// Count counts the tokens of a text.
	Count func(text string) int
	// Memo remembers what Terms gave for other fillers with the same. Default: none.
	Memo *Memo
}

// Fill returns what to show of each text; together it never exceeds budget tokens. It ends
// early with the error of the context.
func (f *Filler) Fill(ctx context.Context, texts []Text, budget int) ([]Excerpt, error) {
	if parts := f.all(texts, budget); parts != nil {
		return parts, nil
	}
	g := f.filling(texts, budget)
	for len(g.offers) > 0 && g.left > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g.next()
	}
	return g.parts(), nil
}

// worthwhile is the part of what its best passage is worth that others of a text need where
// the room may stay empty.
const worthwhile = 0.1

// Passages returns the passages of one text that fit a number of tokens and match the query,
// in order, even if the text is short. Where it fits whole, that is one passage.
func (f *Filler) Passages(text string, budget int) []Passage {
	texts := []Text{{Text: text, Value: 1}}
	if parts := f.all(texts, budget); parts != nil {
		return []Passage{{0, len(text)}}
	}
	g := f.filling(texts, budget)
	g.offers[0].long = true
	g.next()
	for least := worthwhile * g.offers.best(); g.left > 0 && g.offers.best() > least; {
		g.next()
	}
	return g.parts()[0].Passages
}

// all gives all texts whole, or nil where they do not fit.
func (f *Filler) all(texts []Text, budget int) []Excerpt {
	size := 0
	for _, t := range texts {
		size += len(t.Text)
	}
	if size/mostBytesPerToken > budget {
		return nil
	}
	parts := make([]Excerpt, len(texts))
	for i, t := range texts {
		parts[i] = Excerpt{Whole: true, Tokens: f.Count(t.Text) + t.Beside}
		if budget -= parts[i].Tokens; budget < 0 {
			return nil
		}
	}
	return parts
}

// filling is a budget being filled.
type filling struct {
	*Filler
	texts  []Text
	offers offers
	left   int
	// given holds the pairs of words of the chosen passages.
	given  map[uint64]struct{}
	chosen [][]offer // by text
}

// filling offers all texts.
func (f *Filler) filling(texts []Text, budget int) *filling {
	g := &filling{Filler: f, texts: texts, left: budget, given: make(map[uint64]struct{}), chosen: make([][]offer, len(texts))}
	for i, t := range texts {
		g.offers = append(g.offers, g.whole(i, t))
	}
	heap.Init(&g.offers)
	return g
}

// offer is something that may be given.
type offer struct {
	text int
	Passage
	// long: it is a whole text that is still to be cut, and worth says the most that a
	// piece of it can be.
	long bool
	// value is its worth alone; worth is per token and discounts what the chosen passages
	// already say.
	value, worth float64
	pairs        []uint64
	tokens       int
}

// whole offers a text.
func (g *filling) whole(i int, t Text) offer {
	o := offer{text: i, Passage: Passage{0, len(t.Text)}, value: t.Value}
	size := len(t.Text)
	if size > wholeBytes {
		o.long, size = true, minPiece
	}
	o.worth = worth(o.value, size)
	return o
}

// worth is what something is worth for its length: less the longer it is, by the root, as
// something that is twice as long also says more.
func worth(value float64, size int) float64 {
	return value / math.Sqrt(max(1, float64(size)/bytesPerToken))
}

// next takes the best offer: cuts it, weighs it again, or gives it.
func (g *filling) next() {
	o := g.offers[0]
	switch {
	case o.long:
		heap.Pop(&g.offers)
		for _, piece := range g.cut(o) {
			heap.Push(&g.offers, piece)
		}
	case (o.To-o.From)/mostBytesPerToken > g.left:
		heap.Pop(&g.offers)
	case g.weigh(&o):
		g.offers[0] = o
		heap.Fix(&g.offers, 0)
	default:
		heap.Pop(&g.offers)
		g.give(o)
	}
}

// least is the part of its worth that what repeats others keeps: it comes when nothing else
// is left.
const least = 1e-6

// weigh weighs an offer against the chosen passages, and reports whether it became worth
// less.
func (g *filling) weigh(o *offer) bool {
	if o.pairs == nil {
		o.pairs = g.Memo.pairs(g.Terms, o.In(g.texts[o.text].Text))
	}
	if len(o.pairs) == 0 {
		return false
	}
	fresh := 0
	for _, pair := range o.pairs {
		if _, ok := g.given[pair]; !ok {
			fresh++
		}
	}
	now := worth(o.value, o.To-o.From) * max(least, float64(fresh)/float64(len(o.pairs)))
	less := now < o.worth
	o.worth = min(o.worth, now)
	return less
}

// give gives an offer if it fits.
func (g *filling) give(o offer) {
	text, beside := &g.texts[o.text], 0
	if len(g.chosen[o.text]) == 0 {
		beside = text.Beside
	}
	if o.tokens = g.Count(o.In(text.Text)); o.tokens+beside > g.left {
		return
	}
	g.left -= o.tokens + beside
	g.chosen[o.text] = append(g.chosen[o.text], o)
	for _, pair := range o.pairs {
		g.given[pair] = struct{}{}
	}
}

// parts returns the chosen part of each text.
func (g *filling) parts() []Excerpt {
	parts := make([]Excerpt, len(g.texts))
	for i, chosen := range g.chosen {
		slices.SortFunc(chosen, func(a, b offer) int { return a.From - b.From })
		parts[i] = g.part(g.texts[i], chosen)
	}
	return parts
}

// part joins the chosen passages of a text where that takes no more tokens.
func (g *filling) part(t Text, chosen []offer) (p Excerpt) {
	text := t.Text
	switch {
	case len(chosen) == 0:
		return p
	case len(chosen) == 1 && chosen[0].Passage == (Passage{0, len(text)}):
		return Excerpt{Whole: true, Tokens: chosen[0].tokens + t.Beside}
	}
	p.Tokens = t.Beside
	for _, o := range chosen {
		if n := len(p.Passages); n > 0 && skipSpace(text, p.Passages[n-1].To) == o.From {
			before, joined := p.Passages[n-1], Passage{p.Passages[n-1].From, o.To}
			tokens := g.Count(joined.In(text))
			if more := tokens - g.Count(before.In(text)); more <= o.tokens+g.left {
				g.left -= more - o.tokens
				p.Tokens += more
				p.Passages[n-1] = joined
				continue
			}
		}
		p.Tokens += o.tokens
		p.Passages = append(p.Passages, o.Passage)
	}
	if len(p.Passages) == 1 && p.Passages[0] == trimmed(text, Passage{0, len(text)}) {
		return g.wholePart(t, p)
	}
	return p
}

// wholePart makes a part that is all but the spaces at its ends the whole, if that fits.
func (g *filling) wholePart(t Text, p Excerpt) Excerpt {
	more := g.Count(t.Text) + t.Beside - p.Tokens
	if more > g.left {
		return p
	}
	g.left -= more
	return Excerpt{Whole: true, Tokens: p.Tokens + more}
}

// offers is a heap with the best first; of equals the one that was ranked first.
type offers []offer

// best is what the best offer is worth; zero without offers.
func (o offers) best() float64 {
	if len(o) == 0 {
		return 0
	}
	return o[0].worth
}

func (o offers) Len() int { return len(o) }
func (o offers) Less(i, k int) bool {
	if o[i].worth != o[k].worth {
		return o[i].worth > o[k].worth
	}
	if o[i].text != o[k].text {
		return o[i].text < o[k].text
	}
	return o[i].From < o[k].From
}
func (o offers) Swap(i, k int) { o[i], o[k] = o[k], o[i] }
func (o *offers) Push(x any)   { *o = append(*o, x.(offer)) }
func (o *offers) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
