package rank

import "math"

// Records of a session stand near each other because they speak of the same. Where they
// share no more words with those next to them than with any others, as texts that were
// imported under one session do, what stands around a record says nothing of it.
const (
	// usualShared is the part of what windows hold that neighbours share in talks, measured
	// from .13 to .37; it counts as if usualWindows windows had been looked at. The words of
	// a question are in some 50 to 600 windows of a memory of 500 records, and in unrelated
	// sessions less than nothing is shared: what a usual memory shows outweighs this.
	usualShared, usualWindows = 0.2, 150
	// sharedByChance and sharedInTalks are the parts up to which neighbours are strangers,
	// and from which on they speak of the same, with what is usual. Neighbours help much more
	// in a talk than they harm elsewhere, so that little is enough.
	sharedByChance, sharedInTalks = 0, 0.06
)

// cohesion is how far neighbours share the words of a query.
type cohesion struct {
	expected float64 // windows that would hold the words if chance had placed them
	shared   float64 // how many fewer do
}

// add adds a word, which was brought to windows so many times, to so many different ones.
func (c *cohesion) add(documents float64, times, windows int) {
	expected := -documents * math.Expm1(-float64(times)/documents)
	c.expected += expected
	c.shared += expected - float64(windows)
}

// part is how much what stands around a document counts, from 0 to 1.
func (c cohesion) part() float32 {
	shared := (c.shared + usualShared*usualWindows) / (c.expected + usualWindows)
	return float32(min(1, max(0, (shared-sharedByChance)/(sharedInTalks-sharedByChance))))
}
