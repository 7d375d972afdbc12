package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

const (
	// newerAmong is how many of the best candidates are looked at.
	newerAmong = 100
	// coversAlike: a document covers as much of the query as another from this
	// part on, and from the second part on if it says that things have changed.
	coversAlike, coversChanged = 0.95, 0.4
	// ranksAlike and ranksChanged: the same for ranks.
	ranksAlike, ranksChanged = 0.95, 0.5
	// coversMuch is the part of the query that a document must cover to be
	// outdated by another.
	coversMuch = 0.4
	// coversForm is the part of a query that a document must cover to state the same about
	// the same subject. It takes at least two words: a subject and an attribute.
	coversForm = 0.75
	// maxHeldWords is how many of the query's words are looked at to see whether a document
	// holds all that another holds.
	maxHeldWords = 63
	// statementWords is the longest document that states one thing.
	statementWords = 20
	// staleKept is the remaining part of the rank of an outdated document: less than the
	// rank of documents that match a part of the query.
	staleKept = 0.1
)

// preferNewer puts what was said last before what was said before, for a query
// that asks how things are: where the same author covers as much of the query
// later on and does no worse, or says that something has changed. What states the same
// of the same as a later one is no longer so, for a query that asks for one thing.
func (r *ranking) preferNewer(best []candidate) {
	if !r.query.Current && !r.query.One || r.mass == 0 || r.query.without(SignalNewer) {
		return
	}
	first := best[:min(len(best), newerAmong)]
	byTime := make([]*candidate, len(first))
	for i := range first {
		byTime[i] = &first[i]
	}
	slices.SortStableFunc(byTime, r.compareTime)
	if r.query.Current {
		r.liftNewer(byTime)
	}
	r.markStale(byTime)
	r.putFirst(byTime)
	worse := func(c, d candidate) int { return d.compare(c) }
	if !slices.IsSortedFunc(best, worse) {
		slices.SortFunc(best, worse)
	}
}

// liftNewer lifts what outdates another above it. The candidates are in the order of time.
func (r *ranking) liftNewer(byTime []*candidate) {
	var before []*candidate // that can be outdated
	for _, newer := range byTime {
		for _, older := range before {
			if older.rank >= newer.rank && r.outdates(newer, older) {
				newer.rank = math.Nextafter32(older.rank, math.MaxFloat32)
			}
		}
		if float64(r.parts[newer.part].covered[newer.slot]) >= coversMuch*r.mass {
			before = append(before, newer)
		}
	}
}

// markStale takes most of the rank of what states the same of the same as a later one, and
// of what somebody else says right behind it with the same words. The candidates are in the
// order of time.
func (r *ranking) markStale(byTime []*candidate) {
	if r.query.List || r.foundWords == 0 {
		return
	}
	stale := make(map[documentSlot]bool) // and whether the author said anew what it says
	for i, older := range byTime {
		if !r.states(older) {
			continue
		}
		f := r.parts[older.part].frame
		if before := f.Prev[older.slot]; stale[documentSlot{older.part, before}] && f.Author[before] != f.Author[older.slot] {
			stale[documentSlot{older.part, older.slot}] = false
			continue
		}
		for _, newer := range slices.Backward(byTime[i+1:]) {
			if r.restates(newer, older) {
				if r.older == nil {
					r.older = make(map[documentSlot][]uint32)
				}
				stale[documentSlot{older.part, older.slot}] = true
				r.older[documentSlot{newer.part, newer.slot}] = append(r.older[documentSlot{newer.part, newer.slot}], older.slot)
				break
			}
		}
	}
	for _, c := range byTime {
		if _, ok := stale[documentSlot{c.part, c.slot}]; ok {
			c.stale = c.rank * (1 - staleKept)
			c.rank -= c.stale
		}
	}
}

// putFirst puts what took the place of others before all that only stands near it, if nothing
// covers more of the query.
func (r *ranking) putFirst(byTime []*candidate) {
	if len(r.older) == 0 {
		return
	}
	var newest []*candidate
	first := float32(0)
	for _, c := range byTime {
		first = max(first, c.rank)
		if len(r.older[documentSlot{c.part, c.slot}]) > 0 && c.stale == 0 && r.parts[c.part].covered[c.slot] >= coversAlike*r.covered {
			newest = append(newest, c)
		}
	}
	slices.SortFunc(newest, func(c, d *candidate) int { return c.compare(*d) })
	for _, c := range newest {
		if c.rank < first {
			c.rank = math.Nextafter32(first, math.MaxFloat32)
		}
		first = max(first, c.rank)
	}
}

// holds reports whether a document holds all of the query's words that another holds: what
// lacks one of them is about something else.
func (r *ranking) holds(newer, older *candidate) bool {
	return r.wordsOf(older)&^r.wordsOf(newer) == 0
}

// wordsOf are the first of the query's words that a document holds, by their places.
func (r *ranking) wordsOf(c *candidate) uint64 {
	if c.words != 0 {
		return c.words
	}
	p := r.parts[c.part]
	for i, asked := range r.asked[:min(len(r.asked), maxHeldWords)] {
		if asked == 0 {
			continue
		}
		switch _, all, err := p.frequencyIn(p.words[i], c.slot); {
		case err != nil:
			r.failed = err
		case all > 0:
			c.words |= 2 << i
		}
	}
	c.words |= 1 // it is known
	return c.words
}

// states reports whether a document is short and covers the query, ignoring words found in
// no document. It takes two words, a subject and an attribute; an author that the query
// names counts as the subject.
func (r *ranking) states(c *candidate) bool {
	p := r.parts[c.part]
	if p.named == 0 && r.foundWords < 2 || p.named != 0 && p.frame.Author[c.slot] != p.named {
		return false
	}
	return c.rank > 0 && p.frame.Body[c.slot] <= statementWords && float64(p.covered[c.slot]) >= coversForm*r.found
}

// restates reports whether a newer document states the same of the same. Much of what people
// say one after the other of themselves stays true: unless the query names somebody that is
// talked about, it has to ask for something of somebody's, both documents have to cover all
// of it, and the newer one says that something has changed.
func (r *ranking) restates(newer, older *candidate) bool {
	p := r.parts[newer.part]
	flags := p.frame.Flags[newer.slot]
	switch {
	case newer.part != older.part, p.frame.Author[newer.slot] != p.frame.Author[older.slot], flags&segment.FlagAsks != 0, !r.states(newer):
		return false
	case r.query.One && p.named == 0:
	case !r.query.Owned, !r.query.One && r.foundWords < 2, flags&segment.FlagTellsChange == 0, float64(p.covered[older.slot]) < coversAlike*r.found:
		return false
	}
	return p.covered[newer.slot] >= coversAlike*p.covered[older.slot] && r.holds(newer, older)
}

// compareTime orders by the time of the event or of the document, then by the
// order of arrival.
func (r *ranking) compareTime(c, d *candidate) int {
	f, g := r.parts[c.part].frame, r.parts[d.part].frame
	at, other := since(f, c.slot, math.MaxInt64), since(g, d.slot, math.MaxInt64)
	switch {
	case at != other:
		return cmp.Compare(at, other)
	case c.created != d.created:
		return cmp.Compare(c.created, d.created)
	case c.part != d.part:
		return cmp.Compare(c.part, d.part)
	}
	return cmp.Compare(f.Place[c.slot], g.Place[d.slot])
}

// outdates reports whether the newer document takes the place of the older one, which covers
// coversMuch of the query at least.
func (r *ranking) outdates(newer, older *candidate) bool {
	p, q := r.parts[newer.part], r.parts[older.part]
	if p.frame.Authors[p.frame.Author[newer.slot]] != q.frame.Authors[q.frame.Author[older.slot]] {
		return false
	}
	now, before := p.covered[newer.slot], q.covered[older.slot]
	flags := p.frame.Flags[newer.slot]
	switch {
	case flags&segment.FlagAsks != 0:
		return false
	case flags&segment.FlagTellsChange != 0 && p.named != 0 && p.frame.Body[newer.slot] <= statementWords:
		return now >= coversChanged*before && newer.rank >= ranksChanged*older.rank
	}
	return now >= coversAlike*before && newer.rank >= ranksAlike*older.rank && r.holds(newer, older)
}
