package rank

import (
	"math"
	"slices"
)

// A hit of a session of which much has been shown has less to add: those of other sessions
// come before it. What is shown of a long session with one short statement is next to
// nothing; one long answer of a short session is much of it.
const (
	// repeatedShare is how much a hit loses of whose session all has been shown, before
	// the bound.
	repeatedShare = 7
	// repeatedPower makes a little that was shown count for hardly anything.
	repeatedPower = 1.5
	// mostRepeated bounds what is lost.
	mostRepeated = 0.5
	// leastSession is how many documents a session counts as that has fewer: of one exchange
	// both sides may be wanted.
	leastSession = 6
	// shownWords is the length from which a document shows its whole share of a session.
	shownWords = 60
	// repeatedAmong is how many candidates are looked at for each hit, and more.
	repeatedAmong, repeatedMore = 2, 20
)

// pool is how many of the best candidates may change places.
func (r *ranking) pool() int {
	least := repeatedAmong*r.query.Limit + repeatedMore
	if r.shares.repeated == 0 {
		least = r.query.Limit
	}
	if r.query.Current || r.query.One {
		return max(newerAmong, least)
	}
	return least
}

// sessionOf is a session of a part.
type sessionOf struct {
	part    int
	session uint32
}

// spreadOut takes from each candidate what the better ones of its session have shown. The
// candidates are sorted, and so they are afterwards.
func (r *ranking) spreadOut(best []candidate) {
	if r.shares.repeated == 0 || len(best) < 2 || best[0].rank <= 0 {
		return
	}
	shown := make(map[sessionOf]float64)
	left := slices.Clone(best)
	kept := make([]float32, len(left)) // what is left of the rank of each
	for i := range kept {
		kept[i] = 1
	}
	for place := range min(len(best), r.query.Limit) {
		at := place
		for i := place; i < len(left) && left[i].rank > left[at].rank*kept[at]; i++ {
			if left[i].rank*kept[i] > left[at].rank*kept[at] {
				at = i
			}
		}
		r.take(left, kept, place, at)
		r.show(left[place], left[place+1:], kept[place+1:], shown)
	}
	for i, c := range left {
		c.repeated = c.rank * (1 - kept[i])
		c.rank -= c.repeated
		best[i] = c
	}
	slices.SortStableFunc(best[min(len(best), r.query.Limit):], func(c, d candidate) int { return d.compare(c) })
}

// take moves a candidate to a place before it.
func (r *ranking) take(left []candidate, kept []float32, place, at int) {
	c, k := left[at], kept[at]
	copy(left[place+1:at+1], left[place:at])
	copy(kept[place+1:at+1], kept[place:at])
	left[place], kept[place] = c, k
}

// show notes what a hit shows of its session, and what that leaves of the others.
func (r *ranking) show(hit candidate, others []candidate, kept []float32, shown map[sessionOf]float64) {
	f := r.parts[hit.part].frame
	if f.HasNoSession(hit.slot) {
		return
	}
	session := sessionOf{hit.part, f.Session[hit.slot]}
	shown[session] += min(1, float64(f.Body[hit.slot]+1)/shownWords)
	part := shown[session] / float64(max(leastSession, f.SessionSize[session.session]))
	loss := min(mostRepeated, float64(r.shares.repeated)*math.Pow(part, repeatedPower))
	for i, c := range others {
		if c.part == session.part && c.rank > 0 && f.Session[c.slot] == session.session {
			kept[i] = float32(1 - loss)
		}
	}
}
