package rank

import (
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// A hit of a session of which much has been shown has less to add: hits of other sessions
// come before it. One short statement shows next to nothing of a long session; one long
// answer shows much of a short one.
const (
	// repeatedShare is how much a hit loses of whose session all has been shown, before
	// the bound.
	repeatedShare = 7
	// repeatedPower makes a little that was shown count for hardly anything.
	repeatedPower = 1.5
	// mostRepeated bounds what is lost.
	mostRepeated = 0.5
	// longSession is how many documents make a session many talks in one: each of its
	// sections counts by itself.
	longSession = 2 * sectionSize
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

// sessionOf is a session of a part, or a section of a long one.
type sessionOf struct {
	part             int
	session, section uint32
}

// sessionOf returns what a document of a session is shown of, and its size.
func (r *ranking) sessionOf(part int, o uint32) (of sessionOf, size uint32) {
	p := r.parts[part]
	of = sessionOf{part: part, session: p.frame.Session[o]}
	if size = p.frame.SessionSize[of.session]; size > longSession {
		of.section, size = p.derived.sectionOf(o), sectionSize
	}
	return of, max(leastSession, size)
}

// spreadOut takes from each candidate what the better ones of its session have shown. The
// candidates are sorted, and the hits are afterwards; the others, too, where MinScore asks.
func (r *ranking) spreadOut(best []candidate) {
	if r.shares.repeated == 0 || len(best) < 2 || best[0].rank <= 0 {
		return
	}
	hits := min(len(best), r.query.Limit)
	shown := make([]shownOf, 0, hits)
	kept := make([]float32, len(best)) // what is left of the rank of each
	for i := range kept {
		kept[i] = 1
	}
	for place := range hits {
		at := place
		for i := place; i < len(best) && best[i].rank > best[at].rank*kept[at]; i++ {
			if best[i].rank*kept[i] > best[at].rank*kept[at] {
				at = i
			}
		}
		take(best, place, at)
		take(kept, place, at)
		if place+1 < hits || r.query.MinScore > 0 {
			shown = r.show(best[place], best[place+1:], kept[place+1:], shown)
		}
	}
	for i := range best {
		best[i].repeated = best[i].rank * (1 - kept[i])
		best[i].rank -= best[i].repeated
	}
	if rest := best[hits:]; r.query.MinScore > 0 { // the worst is asked for
		slices.SortStableFunc(rest, func(c, d candidate) int { return d.compare(c) })
	}
}

// take moves what stands at a place to one before it.
func take[T any](all []T, place, at int) {
	taken := all[at]
	copy(all[place+1:at+1], all[place:at])
	all[place] = taken
}

// shownOf is how much of a session hits have shown.
type shownOf struct {
	session sessionOf
	words   float64 // in documents of shownWords
}

// show notes what a hit shows of its session, and what that leaves of the others.
func (r *ranking) show(hit candidate, others []candidate, kept []float32, shown []shownOf) []shownOf {
	f := r.parts[hit.part].frame
	if f.HasNoSession(hit.slot) {
		return shown
	}
	session, size := r.sessionOf(hit.part, hit.slot)
	known := slices.IndexFunc(shown, func(s shownOf) bool { return s.session == session })
	if known < 0 {
		known, shown = len(shown), append(shown, shownOf{session: session})
	}
	shown[known].words += min(1, float64(f.Body[hit.slot]+1)/shownWords)
	loss := min(mostRepeated, float64(r.shares.repeated)*math.Pow(shown[known].words/float64(size), repeatedPower))
	for i := range others {
		c := &others[i]
		if c.part != session.part || f.Session[c.slot] != session.session || c.rank <= 0 || isOtherSide(f, hit.slot, c.slot) {
			continue
		}
		if of, _ := r.sessionOf(c.part, c.slot); of == session {
			kept[i] = float32(1 - loss)
		}
	}
	return shown
}

// isOtherSide reports whether a document is the other side of an exchange with a hit, said in
// a few words: what a user states loses nothing to the long answer to it.
func isOtherSide(f *frame.Frame, hit, o uint32) bool {
	return (f.Next[o] == hit || f.Prev[o] == hit) && f.Body[o] < statementWords && f.Flags[o]&segment.FlagAsks == 0
}
