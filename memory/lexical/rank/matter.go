package rank

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// What changes is told anew, in other words each time: "I live at Linden Row", "we moved, it
// is Mill Lane now". The vectors of such tellings are nearer to each other than to anything
// else, whatever the language, though each may be near the question by chance only. So of the
// best candidates those are looked for that are near the question and near each other: they
// tell of one matter, and its newest telling comes first.
const (
	// matterAmong is how many candidates are compared with each other, and matterLeast how
	// many there must be to know what is near.
	matterAmong, matterLeast = 32, 8
	// matterWords is the longest document that tells one thing.
	matterWords = 40
	// supports is how far two must stand out from all pairs, in deviations, so that one
	// supports the other, in full from supportsFully on; supportShare is what it gives,
	// and supporters are how many count.
	supports, supportsFully = 3, 5
	supportShare            = 0.7
	supporters              = 3
	// sameMatter is how far two must stand out to tell of one matter, and sureMatter to say
	// that one replaces the other.
	sameMatter, sureMatter = 1.5, 2
	// repeats is the cosine from which on two say the same, so that neither replaces the other.
	repeats = 0.97
	// asNear is the part of the best one's worth that others of its matter have.
	asNear = 0.3
	// How much each of what speaks for a matter that has changed counts, beside how far the
	// two stand out: what the best and the newest are worth by themselves, what others of the
	// matter add to the newest, and whether it tells of a change. Together they must reach
	// leastEvidence.
	worthEvidence, supportEvidence, changeEvidence = 5, 3, 5
	mostWorth, mostGained                          = 1.5, 2
	leastEvidence                                  = 9.5
)

// telling is a candidate that may tell of the matter that is asked for.
type telling struct {
	*candidate
	vector []float32
	// own is how near it is to the question by its vector and its words, of which it covers
	// a part; worth is that with what others of its matter add.
	own, covers, worth float64
}

// newestOfMatter puts the newest telling of the matter that is asked for first, where it is sure
// enough that there is one, and names those that it replaces.
func (r *ranking) newestOfMatter(ctx context.Context, best []candidate) error {
	if r.vectors.nearest <= 0 || r.query.Changes == nil || r.query.Past || r.asksForThen() || len(r.older) > 0 || r.query.without(SignalNewer) {
		return nil
	}
	tellings, err := r.tellings(ctx, best)
	if err != nil || len(tellings) < matterLeast {
		return err
	}
	changed := r.query.Changes(ctx)
	if changed == nil {
		return nil
	}
	near := standings(tellings)
	support(tellings, near)
	first := 0
	for i, t := range tellings {
		if t.worth > tellings[first].worth {
			first = i
		}
	}
	newest, told := first, []int{first}
	for i, t := range tellings {
		if i == first || near[first][i] < sameMatter || t.worth < asNear*tellings[first].worth || !r.sameAuthor(t.candidate, tellings[first].candidate) {
			continue
		}
		told = append(told, i)
		if r.compareTime(t.candidate, tellings[newest].candidate) > 0 {
			newest = i
		}
	}
	if len(told) == 1 || evidence(tellings, near, told, first, newest)+changeEvidence*changed(tellings[newest].vector) < leastEvidence {
		return nil
	}
	r.replace(tellings, near, told, newest)
	if n := tellings[newest]; n.rank < best[0].rank {
		n.rank = math.Nextafter32(best[0].rank, math.MaxFloat32)
		slices.SortFunc(best, func(c, d candidate) int { return d.compare(c) })
	}
	return nil
}

// asksForThen reports whether the query names moments that are over.
func (r *ranking) asksForThen() bool {
	return len(r.spans) > 0 && !slices.ContainsFunc(r.spans, func(s Span) bool { return s.From <= r.query.Now && r.query.Now < s.To })
}

// evidence is what speaks for it that those told tell of one matter, of which the first is worth
// most, and that the newest belongs to it.
func evidence(all []telling, near [][]float64, told []int, first, newest int) float64 {
	link := near[first][newest]
	if newest == first {
		for _, i := range told {
			link = max(link, near[first][i])
		}
	}
	a, b := all[first], all[newest]
	sum := link + worthEvidence*(min(mostWorth, a.own)+min(mostWorth, b.own))/2 + supportEvidence*min(mostGained, b.worth-b.own)
	sum -= max(0, a.covers-b.covers)
	return sum
}

// replace notes which of those told the newest replaces: those that are surely of its matter.
func (r *ranking) replace(all []telling, near [][]float64, told []int, newest int) {
	var older []*candidate
	for _, i := range told {
		if i != newest && all[i].part == all[newest].part && near[newest][i] >= sureMatter {
			older = append(older, all[i].candidate)
		}
	}
	if len(older) == 0 {
		return
	}
	slices.SortStableFunc(older, r.compareTime)
	slots := make([]uint32, len(older))
	for i, c := range older {
		slots[i] = c.slot
	}
	r.older = map[documentSlot][]uint32{{all[newest].part, all[newest].slot}: slots}
}

// sameAuthor reports whether two have the same author.
func (r *ranking) sameAuthor(c, d *candidate) bool {
	f, g := r.parts[c.part].frame, r.parts[d.part].frame
	return f.Authors[f.Author[c.slot]] == g.Authors[g.Author[d.slot]]
}

// tellings are the candidates that are nearest to the question by words or vectors, with
// their vectors.
func (r *ranking) tellings(ctx context.Context, best []candidate) ([]telling, error) {
	all := make([]telling, 0, len(best))
	for i := range best {
		c := &best[i]
		f := r.parts[c.part].frame
		if p := r.parts[c.part]; p.named != 0 && f.Author[c.slot] != p.named || f.Body[c.slot] > matterWords || f.Flags[c.slot]&segment.FlagAsks != 0 {
			continue
		}
		t := telling{candidate: c}
		if r.vectors.nearest > r.vectors.fiftieth {
			t.own = max(0, c.cosine-r.vectors.fiftieth) / (r.vectors.nearest - r.vectors.fiftieth)
		}
		if r.mass > 0 {
			t.covers = float64(r.parts[c.part].covered[c.slot]) / r.mass
		}
		t.own += t.covers
		t.worth = t.own
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b telling) int { return cmp.Compare(b.worth, a.worth) })
	all = all[:min(len(all), matterAmong)]
	for n, p := range r.parts {
		if p.ReadVectors == nil {
			continue
		}
		var ordinals []uint32
		var of []int
		for i, t := range all {
			if t.part == n {
				ordinals, of = append(ordinals, p.frame.Ordinal(t.slot)), append(of, i)
			}
		}
		vectors, err := p.ReadVectors(ctx, ordinals)
		if err != nil {
			return nil, err
		}
		for i, v := range vectors {
			all[of[i]].vector = v
		}
	}
	return slices.DeleteFunc(all, func(t telling) bool { return t.vector == nil }), nil
}

// standings says of each two how far their nearness stands out from that of either to the
// others, in deviations.
func standings(all []telling) [][]float64 {
	n := len(all)
	near, row := make([][]float64, n), make([]float64, 0, n)
	for i := range near {
		near[i] = make([]float64, n)
	}
	for i := range all {
		near[i][i] = math.Sqrt(product(all[i].vector, all[i].vector))
	}
	for i := range all {
		for k := range i {
			if length := near[i][i] * near[k][k]; length > 0 {
				near[i][k] = product(all[i].vector, all[k].vector) / length
			}
			near[k][i] = near[i][k]
		}
	}
	middle, deviation := make([]float64, n), make([]float64, n)
	for i := range all {
		row = append(append(row[:0], near[i][:i]...), near[i][i+1:]...)
		slices.Sort(row)
		const quartersOfNormal = 1.349 // how many deviations lie between the quarters
		middle[i], deviation[i] = row[len(row)/2], max(1e-6, (row[3*len(row)/4]-row[len(row)/4])/quartersOfNormal)
	}
	for i := range all {
		near[i][i] = 0
		for k := range i {
			c := near[i][k]
			if c > repeats {
				c = 0
			}
			near[i][k] = ((c-middle[i])/deviation[i] + (c-middle[k])/deviation[k]) / 2
			near[k][i] = near[i][k]
		}
	}
	return near
}

// support adds to the worth of each what others of its matter are worth.
func support(all []telling, near [][]float64) {
	given := make([]float64, len(all))
	gains := make([]float64, 0, len(all))
	for i := range all {
		gains = gains[:0]
		for k := range all {
			if part := min(1, (near[i][k]-supports)/(supportsFully-supports)); part > 0 {
				gains = append(gains, part*all[k].worth)
			}
		}
		slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
		for _, gain := range gains[:min(len(gains), supporters)] {
			given[i] += supportShare * gain
		}
	}
	for i := range all {
		all[i].worth += given[i]
	}
}

// product is the scalar product of two vectors, in sums of their own so that the processor
// need not wait for one to begin the next.
func product(a, b []float32) float64 {
	var s0, s1, s2, s3 float32
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	for ; len(a) >= 4 && len(b) >= 4; a, b = a[4:], b[4:] {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return float64(s0 + s1 + s2 + s3)
}
