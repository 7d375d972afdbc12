package rank

import (
	"cmp"
	"slices"
)

// A document whose vector stands out is lifted to one of the first places,
// whatever its words say, so that it is found even where words seem to say
// enough. Where words say little it comes first; where they say much it comes
// third, as a weak model often takes like for same, and does little harm there.
// Where words can't distinguish the first ones, it comes before them.
const (
	// maxOutliers is how many are lifted at most.
	maxOutliers = 2
	// wordsWeak and wordsStrong are the parts of the query that words cover where
	// an outlier comes first and where it comes last; in between its place falls
	// evenly.
	wordsWeak, wordsStrong = 0.3, 0.7
	// lastPlace of an outlier, counted from zero.
	lastPlace = 2
	// minOutlier is how much a vector must stand out to be lifted, and minBelief how far
	// vectors must be believed then.
	minOutlier, minBelief = 0.2, 0.5
	// Where all cosines are high, as with many models, none stands out that far. Then the
	// number of spreads counts by which a vector is ahead of the middle: in a crowd of
	// chance hardly one is ahead by more than six. Weak models produce such vectors too,
	// but for documents that share many words with the query: words must leave it under
	// mostWords of the best.
	minSpreads, mostWords = 7, 0.6
	// minCrowd is how many vectors make a crowd.
	minCrowd = 20
	// liftStep is how much a rank is lifted above another.
	liftStep = 1e-4
)

// sureness is zero where words say little, and one where they say much.
func sureness(sure float64) float64 {
	return between(wordsWeak, wordsStrong, sure)
}

// lift lifts what stands out most. The best candidates are sorted.
func (f *fusion) lift(sure float64) {
	level := f.rankAt(lastPlace * sureness(sure))
	var out []*candidate
	for i := range f.best {
		if c := &f.best[i]; f.isOutlier(c) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(c, d *candidate) int { return cmp.Compare(d.cosine, c.cosine) })
	out = out[:min(len(out), maxOutliers)]
	for _, c := range slices.Backward(out) {
		level += liftStep
		kept := f.kept(f.parts[c.part].frame, c.slot)
		if lifted := level * kept; lifted > c.rank {
			f.give(c, (lifted-c.rank)/kept)
		}
	}
}

// isOutlier reports whether a candidate is to be lifted.
func (f *fusion) isOutlier(c *candidate) bool {
	n := f.vectors
	if c.cosine <= n.behind {
		return false
	}
	return f.belief >= minBelief && n.outlierScore(c.cosine) >= minOutlier ||
		n.spread > 0 && c.byWords < mostWords && c.cosine-n.middle >= minSpreads*n.spread
}

// rankAt is the rank at a place, counted from zero, of the sorted candidates; at
// a place between two it is between theirs.
func (f *fusion) rankAt(place float64) float32 {
	at := min(int(place), len(f.best)-1)
	rank := f.best[at].rank
	if next := at + 1; next < len(f.best) {
		rank += float32(place-float64(at)) * (f.best[next].rank - rank)
	}
	return rank
}
