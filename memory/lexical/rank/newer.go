package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

const (
	// newerAmong is how many of the best candidates are looked at.
	newerAmong = 20
	// coversAlike: a document covers as much of the query as another from this
	// part on, and from the second part on if it tells that things have changed.
	coversAlike, coversChanged = 0.95, 0.4
	// ranksAlike and ranksChanged: the same for ranks.
	ranksAlike, ranksChanged = 0.95, 0.5
	// coversMuch is the part of the query that a document must cover to be
	// outdated by another.
	coversMuch = 0.4
)

// preferNewer puts what was said last before what was said before, for a query
// that asks how things are: where the same author covers as much of the query
// later on and does no worse, or says that something has changed.
func (r *ranking) preferNewer(best []candidate) {
	if !r.query.Current || r.mass == 0 || r.query.without(SignalNewer) {
		return
	}
	first := best[:min(len(best), newerAmong)]
	byTime := make([]*candidate, len(first))
	for i := range first {
		byTime[i] = &first[i]
	}
	slices.SortStableFunc(byTime, r.compareTime)
	for i, newer := range byTime {
		for _, older := range byTime[:i] {
			if older.rank >= newer.rank && r.outdates(newer, older) {
				newer.rank = math.Nextafter32(older.rank, math.MaxFloat32)
			}
		}
	}
	slices.SortFunc(best, func(c, d candidate) int { return d.compare(c) })
}

// compareTime orders by the time of the event or of the document, then by the
// order of arrival.
func (r *ranking) compareTime(c, d *candidate) int {
	f, g := r.parts[c.part].frame, r.parts[d.part].frame
	return cmp.Or(cmp.Compare(since(f, c.slot, math.MaxInt64), since(g, d.slot, math.MaxInt64)), cmp.Compare(c.created, d.created),
		cmp.Compare(c.part, d.part), cmp.Compare(f.Place[c.slot], g.Place[d.slot]))
}

// outdates tells whether the newer document takes the place of the older one.
func (r *ranking) outdates(newer, older *candidate) bool {
	p, q := r.parts[newer.part], r.parts[older.part]
	if p.frame.Authors[p.frame.Author[newer.slot]] != q.frame.Authors[q.frame.Author[older.slot]] {
		return false
	}
	now, before := p.covered[newer.slot], q.covered[older.slot]
	flags := p.frame.Flags[newer.slot]
	switch {
	case float64(before) < coversMuch*r.mass || flags&segment.FlagAsks != 0:
		return false
	case flags&segment.FlagTellsChange != 0 && (p.named != 0 || p.frame.Author[newer.slot] == 0):
		return now >= coversChanged*before && newer.rank >= ranksChanged*older.rank
	}
	return now >= coversAlike*before && newer.rank >= ranksAlike*older.rank
}
