package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
)

// How vectors count relative to words, where the best document by words counts 1. A vector
// that is nearer than the rest re-orders as much as the query says. One that stands out
// from all others, as for a document that says the same in other words, counts for the part
// that its words lack, and is lifted, see outliers.go. They were set on conversations, with
// models that know less than the words do and with such that know more.
const (
	// nearPower makes a vector half-way to the nearest count a quarter: a model
	// that is worth anything is right about the nearest.
	nearPower = 2
	// questionNear is what is left to a document that only asks, and is near
	// because it asks the same; replyShare of it goes to what somebody else says
	// next.
	questionNear = 0.5
	// crowdNear is what is left of how much vectors count where words are sure and the
	// nearest is one of a crowd: at most crowdedSpreads ahead of its middle, counted in
	// spreads, and not as many as aheadSpreads. It needs no knowledge of a model's scale.
	crowdNear                    = 0.3
	crowdedSpreads, aheadSpreads = 2.5, 4
	// leastAgreement and fullAgreement are how far words and vectors must rank alike what vectors
	// found, in deviations of a correlation by chance, so that vectors count in addition to words
	// that are sure: not at all up to the first, in full from the second. Random vectors stay
	// under 1.4 nine times of ten, a model that knows the language is above 2 every other time.
	leastAgreement, fullAgreement = 1, 2
	// outlierShare is more than any words, so that they can be beaten.
	outlierShare = 1.2
	// fullOutlier is how far a vector must stand out to count in full. Its power
	// makes half as far count little.
	fullOutlier  = 0.8
	outlierPower = 4
	// tenth and fiftieth are the places of the vectors that the nearest ones
	// are compared with.
	tenth, fiftieth = 10, 50
	// fewAlike times how many vectors are missing to fifty, as a share of them, is how far
	// anything stands out: in full from forty vectors down.
	fewAlike = 5
)

// nearness sums up the cosines of all parts.
type nearness struct {
	nearest, fiftieth float64
	// middle and spread describe the vectors behind the nearest: their median,
	// and how far the middle half of them reaches. Spread is zero where there
	// are too few.
	middle, spread float64
	// sure says from 0 to 1 how much the nearest stands out; of few, how near it is.
	sure float64
	// behind is what one must stand out from to beat words: the tenth, or the last of fewer.
	behind float64
	// few is how many vectors are missing to fifty, as a share of them: the tenth of a dozen is
	// one of the farthest, and from that every second one stands out.
	few float64
	// near is how much the nearest counts, however little it stands out.
	near float64
	// alone: the query has no words.
	alone bool
}

func (r *ranking) nearness() nearness {
	var cosines []float64
	for _, p := range r.parts {
		for _, hit := range p.Vectors {
			cosines = append(cosines, hit.Cosine)
		}
	}
	slices.SortFunc(cosines, func(a, b float64) int { return cmp.Compare(b, a) })
	at := func(place int) float64 {
		if place > len(cosines) {
			return 0
		}
		return max(0, cosines[place-1])
	}
	n := nearness{nearest: at(1), fiftieth: at(fiftieth), alone: len(r.query.Words) == 0, near: r.query.Near}
	if len(cosines) >= minCrowd {
		crowd := cosines[1:]
		quarter := len(crowd) / 4
		n.middle, n.spread = crowd[2*quarter], crowd[quarter]-crowd[3*quarter]
	}
	n.behind = at(max(1, min(tenth, len(cosines))))
	n.few = max(0, 1-float64(len(cosines))/fiftieth)
	n.sure = standsOut(n.nearest, at(tenth)) * n.meant(n.nearest)
	return n
}

// outlierScore says from 0 to 1 how much a vector stands out from the others.
func (n nearness) outlierScore(cosine float64) float64 {
	return standsOut(cosine, n.behind) * n.meant(cosine)
}

// meant says from 0 to 1 how sure it is that what stands out does so by its meaning. Anything
// stands out from few: there the cosine itself says it.
func (n nearness) meant(cosine float64) float64 { return 1 - min(1, fewAlike*n.few)*(1-cosine) }

// standsOut says from 0 to 1 how much a cosine stands out from another.
func standsOut(cosine, from float64) float64 {
	ahead := cosine - from
	if ahead <= 0 {
		return 0
	}
	out := max(ahead/cosine, ahead/max(1-from, ahead))
	return math.Pow(min(1, out/fullOutlier), outlierPower)
}

// crowded is one where the nearest is one of a crowd, and zero where it is ahead of it or
// there is none.
func (n nearness) crowded() float64 {
	if n.spread <= 0 {
		return 0
	}
	ahead := (n.nearest - n.middle) / n.spread
	return 1 - between(crowdedSpreads, aheadSpreads, ahead)
}

// signal is what a cosine says for itself, at most near.
func (n nearness) signal(cosine float64) float32 {
	if n.nearest <= n.fiftieth {
		return 0
	}
	way := max(0, cosine-n.fiftieth) / (n.nearest - n.fiftieth)
	return float32(n.near * math.Pow(way, nearPower))
}

// fuse adds what vectors say to the ranks by words, brought to the same scale,
// and adds the candidates that only vectors found.
func (r *ranking) fuse(best []candidate, sure float64) []candidate {
	f := fusion{ranking: r, best: best, places: make(map[documentSlot]int, len(best)), wordless: len(best) == 0 || r.vectors.alone}
	for i := range best {
		best[i].rank *= r.factor
		f.places[documentSlot{best[i].part, best[i].slot}] = i
	}
	f.join()
	if f.wordless {
		f.byCosine()
	} else {
		f.belief = f.believe(sure)
		f.addNear(sure)
		// Lets vectors that stand out count for what words don't say.
		// Among few, one stands out by chance: sure words are then worth more.
		share := outlierShare * float32(f.belief*(1-sureness(sure)*f.vectors.few))
		for _, i := range f.found {
			c := &f.best[i]
			left := 1 - min(1, max(0, c.byWords))
			f.give(c, share*float32(f.vectors.outlierScore(c.cosine))*left)
		}
		f.sort()
		f.lift(sure)
	}
	f.sort()
	return f.best
}

// fusion is the joining of words and vectors under way.
type fusion struct {
	*ranking
	best   []candidate
	places map[documentSlot]int // in best, until that is sorted
	found  []int                // what vectors found, as places in best
	// wordless: words found nothing, vectors decide alone.
	wordless bool
	// belief is what is left of how much vectors count, from 0 to 1.
	belief float64
}

// believe returns how far vectors are believed: less where words are sure and vectors do not
// agree with them, as those of a model that does not know the language, or that was fed with
// something else. Such vectors don't stand out of their crowd. Among few documents words say less
// often nothing, and are believed earlier.
func (f *fusion) believe(sure float64) float64 {
	weak, strong := wordsWeak*(1-f.vectors.few), wordsStrong-wordsWeak*f.vectors.few
	agree := between(leastAgreement, fullAgreement, f.agreement())
	if f.vectors.spread > 0 {
		agree = max(agree, 1-f.vectors.crowded())
	}
	return 1 - between(weak, strong, sure)*(1-agree)
}

// agreement is the correlation of ranks by words with cosines over what vectors found, times
// the root of their number: about what lies normal around zero with a deviation of one where
// they have nothing to do with each other (Student's t without its correction for few).
func (f *fusion) agreement() float64 {
	n := float64(len(f.found))
	var words, cosines, products, wordSquares, cosineSquares float64
	for _, i := range f.found {
		x, y := min(1, max(0, float64(f.best[i].byWords))), f.best[i].cosine
		words, cosines, products = words+x, cosines+y, products+x*y
		wordSquares, cosineSquares = wordSquares+x*x, cosineSquares+y*y
	}
	wordSpread, cosineSpread := n*wordSquares-words*words, n*cosineSquares-cosines*cosines
	if rounding := 1e-9 * n; wordSpread <= rounding*wordSquares || cosineSpread <= rounding*cosineSquares {
		return fullAgreement // one of them ranks nothing
	}
	return (n*products - words*cosines) / math.Sqrt(wordSpread*cosineSpread/n)
}

// between is 0 up to low, 1 from high, and rises evenly in between.
func between(low, high, x float64) float64 { return min(1, max(0, (x-low)/(high-low))) }

// join makes candidates of what vectors found.
func (f *fusion) join() {
	for part, p := range f.parts {
		for _, hit := range p.Vectors {
			if !p.Selection.Has(hit.Ordinal) {
				continue
			}
			slot := p.frame.Slot(hit.Ordinal)
			f.answer.VectorCandidates++
			i, ok := f.places[documentSlot{part, slot}]
			if !ok {
				i = f.add(f.byRest(part, slot))
			}
			f.best[i].cosine, f.best[i].byWords = hit.Cosine, f.best[i].rank
			f.found = append(f.found, i)
		}
	}
}

func (f *fusion) add(c candidate) (place int) {
	f.places[documentSlot{c.part, c.slot}] = len(f.best)
	f.best = append(f.best, c)
	return len(f.best) - 1
}

// byRest returns a candidate that is not among the best by words.
func (r *ranking) byRest(part int, o uint32) candidate {
	p := r.parts[part]
	c := candidate{part: part, slot: o, created: p.frame.Create[o]}
	if words := r.byWords(p, o); words.sum() > 0 || r.onDate(p, o) {
		c.rank = r.factor * r.signalsOf(p, o, words).rank()
	} else {
		r.allowed++
	}
	return c
}

// byCosine ranks by vectors alone.
func (f *fusion) byCosine() {
	for _, i := range f.found {
		f.give(&f.best[i], float32(max(0, f.best[i].cosine)))
	}
}

// give adds a share to a rank, as far as age and importance leave it.
func (f *fusion) give(c *candidate, share float32) {
	c.byVector += share
	c.rank += share * f.kept(f.parts[c.part].frame, c.slot)
}

// addNear adds what cosines say for themselves: less where words are sure and the nearest
// is one of a crowd. A question hands it over to its answer, if that is a candidate.
func (f *fusion) addNear(sure float64) {
	share := float32(f.belief * (1 - (1-crowdNear)*sureness(sure)*f.vectors.crowded()))
	for _, i := range f.found {
		c := f.best[i]
		near := share * f.vectors.signal(c.cosine)
		if near == 0 {
			continue
		}
		if answer := answerTo(f.parts[c.part].frame, c.slot); answer != 0 {
			if place, ok := f.placeOf(c.part, answer); ok {
				f.give(&f.best[place], replyShare*near)
			}
			near *= questionNear
		}
		f.give(&f.best[i], near)
	}
}

// placeOf returns where a candidate stands, which is added if words found it.
func (f *fusion) placeOf(part int, o uint32) (int, bool) {
	if i, ok := f.places[documentSlot{part, o}]; ok {
		return i, true
	}
	p := f.parts[part]
	if !p.Selection.Allowed.Has(o) || f.byWords(p, o).sum() <= 0 {
		return 0, false
	}
	return f.add(f.byRest(part, o)), true
}

// answerTo returns what somebody else says next after a
// question; zero if there is none or it is no question.
func answerTo(f *frame.Frame, o uint32) uint32 {
	if next := f.Next[o]; next != 0 && afterQuestion(f, next) == o {
		return next
	}
	return 0
}

func (f *fusion) sort() {
	slices.SortFunc(f.best, func(c, d candidate) int { return d.compare(c) })
}

// documentSlot is one of a part.
type documentSlot struct {
	part int
	slot uint32
}
