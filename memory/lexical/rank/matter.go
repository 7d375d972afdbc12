package rank

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// A fact that changes is stated again, in other words each time: "I live at Linden Row", "we
// moved, it is Mill Lane now". In any language the vectors of such statements are nearer to
// each other than to anything else, while the question may be near to each by chance only and
// far from the newest. So the ranking first finds the statement that answers the question
// best, among the best candidates and by how they support each other; then the other
// statements of the same matter, among the candidates and what is nearest to the first. The
// newest of them comes first.
const (
	// matterAmong is how many candidates are compared with each other; matterNear is how many
	// neighbours of the best statement are examined.
	matterAmong, matterNear = 32, 16
	// Of up to fewest statements nothing is known of what is usually near, which the texts that
	// the axes are made of show then, and all from enough on. Of fewer than mostly in a large
	// memory nothing is compared: they are what a long talk has by the way.
	fewest, mostly, enough = 4, 8, 16
	// smallMemory and largeMemory are the numbers of documents up to which a link is believed
	// only as far as question and statements are near each other, and from which on by itself:
	// what stands out of hundreds does not by chance.
	smallMemory, largeMemory = 50, 400
	// matterWords is the length of the longest document that counts as a statement, and
	// matterAsked that of the longest question for one, in words.
	matterWords, matterAsked = 24, 16
	// crowdWords is the length of the longest document of the crowd, in words.
	crowdWords = 40
	// supports is how far two must stand out from all pairs, in deviations, so that one
	// supports the other, in full from supportsFully on; supportShare is what it gives,
	// and supporters are how many count.
	supports, supportsFully = 3, 5
	supportShare            = 0.7
	supporters              = 3
	// repeats is the cosine from which on two say the same, so that neither replaces the other.
	repeats = 0.97
	// Weights of the evidence that two statements are about one matter: how far their
	// nearness stands out, at most mostLink deviations; how near the other is to the question;
	// and whether the later one states a change. Against it count what it covers less of the
	// question, each kind of value, such as a number, that only one of the two has, and a name in
	// the question that only the best statement has. Among few statements one stands out by
	// chance: against it counts how many are missing to matterAmong, as a part of these.
	ownEvidence, changeEvidence, coverEvidence, kindEvidence, nameEvidence, fewEvidence = 3, 2, 0.4, 1.7, 3, 2
	// The same in a small and in a large memory: what is given before, and the weight of links.
	smallGiven, largeGiven, smallLink, largeLink = 2, 0.3, 0.6, 1.3
	mostLink, mostOwn                            = 5, 1.5
	// In a small memory two things count against it, too: how much less near it is to the question
	// and to the best statement together than fullTie times these are to each other, and how much
	// nearer it is to another earlier statement.
	tieEvidence, fullTie, rivalEvidence = 6, 1.5, 4
	// sameMatter is the least evidence for one matter; farMatter where one statement is not
	// near the question, that is under leastOwn, or is near another statement only.
	sameMatter, farMatter, leastOwn = 5.5, 6.5, 0.1
	// holdsMuch is the part, by rarity, of the query's words in the best statement that another
	// holds at least which states a change of it and holds some of them: who holds less, as
	// the verb without the name, states something of somebody else.
	holdsMuch = 0.25
	// fewDocs is the number of documents under which the rarity of a word says nothing. There one
	// holds enough from holdsSome on, and states no change under statesSame.
	fewDocs, holdsSome, statesSame = 12, 0.1, -0.5
	// sureMatter is the least evidence to say that one replaces the other, and, together with
	// how near the best statement is to the question, to put the newest first.
	sureMatter = 7
)

// valueKinds are the kinds of values that a text is known to have.
const valueKinds = segment.FlagTellsTime | segment.FlagTellsNumber | segment.FlagTellsName

// statement is a candidate that may state the fact that the query asks for.
type statement struct {
	*candidate
	vector []float32
	// own is how near it is to the question by its vector and its words, of which it covers
	// a part; worth is that with what others of its matter add.
	own, covers, worth float64
	// evidence says how surely it is about the same matter as the best statement, or as one
	// that led to it.
	evidence float64
}

// newestOfMatter puts the newest statement of the matter that the query asks for first, if the
// evidence suffices, and names the statements that it replaces; with less evidence the newest
// comes right before the others. It returns the candidates in their new order, including
// neighbours that it found.
func (r *ranking) newestOfMatter(ctx context.Context, best []candidate) ([]candidate, error) {
	if r.vectors.nearest <= 0 || r.query.Changes == nil || r.query.Past || len(r.query.Words) > matterAsked || r.asksForThen() || len(r.older) > 0 || r.query.without(SignalNewer) {
		return best, nil
	}
	crowd, err := r.statements(ctx, best)
	if n := float64(len(crowd)); err != nil || n < 2 || n < mostly && 2*n < r.totals.documents {
		return best, err
	}
	m := matter{ranking: r, crowd: crowd, changes: r.query.Changes(ctx), asks: unit(slices.Clone(r.query.Vector))}
	if m.changes == nil {
		return best, nil
	}
	m.known = between(fewest, enough, float64(len(crowd)))
	m.large = m.known * between(math.Log(smallMemory), math.Log(largeMemory), math.Log(r.totals.documents))
	near := m.standings()
	support(crowd, near)
	m.first = r.best(crowd)
	for i, t := range crowd {
		if t.candidate == m.first.candidate {
			m.others = m.about(t, crowd, near[i])
		}
	}
	if err := m.findMore(ctx, best); err != nil || len(m.others) == 0 || !m.isStatement(&m.first) {
		return best, err
	}
	m.follow()
	return m.lead(best), nil
}

// asksForThen reports whether the query names moments that are over.
func (r *ranking) asksForThen() bool {
	return len(r.spans) > 0 && !slices.ContainsFunc(r.spans, func(s Span) bool { return s.From <= r.query.Now && r.query.Now < s.To })
}

// matter is what the query asks for, with the statements about it.
type matter struct {
	*ranking
	// crowd shows what is near by chance.
	crowd []statement
	// more are the nearest neighbours of first outside the crowd.
	more []statement
	// first is the best statement, and others are the rest.
	first   statement
	others  []statement
	changes *Changes
	// asks is the query's vector, of length one.
	asks []float32
	// known says from 0 to 1 how far the crowd shows what is usually near, and large how far a
	// link is believed by itself.
	known, large float64
}

// best returns the statement that answers the question best: the nearest one, or one that others
// support more, unless that has less of what is asked for.
func (r *ranking) best(crowd []statement) statement {
	nearest := slices.MaxFunc(crowd, func(a, b statement) int { return cmp.Compare(a.own, b.own) })
	asked, best := r.wordsOf(nearest.candidate)&^1, nearest
	for _, t := range crowd {
		if t.worth <= best.worth {
			continue
		}
		holds := r.wordsOf(t.candidate) &^ 1
		part := holds != 0 && holds != asked && holds&^asked == 0
		none := asked != 0 && holds&asked == 0 && t.cosine < nearest.cosine
		if !part && !none {
			best = t
		}
	}
	return best
}

// isStatement reports whether a candidate can be a statement about the matter.
func (m *matter) isStatement(t *statement) bool {
	f := m.parts[t.part].frame
	return f.Body[t.slot] <= matterWords && f.Flags[t.slot]&segment.FlagAsks == 0 && m.sameAuthor(t.candidate, m.first.candidate)
}

// about returns the statements about the same matter as one; link says how far each stands out.
func (m *matter) about(of statement, all []statement, link []float64) (others []statement) {
	given := smallGiven + (largeGiven-smallGiven)*m.large - fewEvidence*(1-float64(len(m.crowd))/matterAmong)
	linkEvidence := smallLink + (largeLink-smallLink)*m.large
	for i, t := range all {
		if t.candidate == of.candidate || link[i] == 0 || !m.isStatement(&t) {
			continue
		}
		earlier, later := of, t
		if m.compareTime(t.candidate, of.candidate) < 0 {
			earlier, later = t, of
		}
		change := m.changes.States(later.vector)
		t.evidence = given + linkEvidence*min(mostLink, link[i]) + ownEvidence*min(mostOwn, t.own) + changeEvidence*change -
			coverEvidence*max(0, of.covers-t.covers) - kindEvidence*float64(m.otherKinds(earlier, later, change)) -
			(1-m.large)*tieEvidence*max(0, fullTie-m.tie(of, t))
		if m.lacksName(&t) {
			t.evidence -= nameEvidence
		}
		if t.evidence >= sameMatter && m.large < 1 {
			t.evidence -= (1 - m.large) * rivalEvidence * max(0, m.rival(of, t)-product(of.vector, t.vector))
		}
		if (t.evidence >= farMatter || t.evidence >= sameMatter && t.own >= leastOwn) && !m.isOther(&t, change) {
			others = append(others, t)
		}
	}
	return others
}

// isOther reports whether a statement is about another subject than the best one, of whose words
// of the query it lacks some: one about the same says, in other words, that something changed.
func (m *matter) isOther(t *statement, change float64) bool {
	asked, holds := m.wordsOf(m.first.candidate)&^1, m.wordsOf(t.candidate)
	held, lacks := 0.0, 0.0
	for ; asked != 0; asked &= asked - 1 {
		switch i := bits.TrailingZeros64(asked) - 1; {
		case holds&(2<<i) != 0:
			held += m.asked[i]
		case !m.query.Words[i].Other:
			lacks += m.asked[i]
		}
	}
	enough, states := holdsMuch, 0.0
	if m.totals.documents < fewDocs {
		enough, states = holdsSome, statesSame
	}
	return lacks > 0 && (change < states || held > 0 && held < enough*(held+lacks))
}

// tie says how near a statement is to the question and to another one together, as a part of how
// near the best statement is to the question.
func (m *matter) tie(of, t statement) float64 {
	part := func(v, w []float32) float64 { return max(0, product(v, w)-m.changes.Middle) }
	return (part(m.asks, t.vector) + part(of.vector, t.vector)) / max(m.changes.Deviation/2, part(m.asks, m.first.vector))
}

// rival is the cosine of a statement and the nearest one before it other than one.
func (m *matter) rival(of, t statement) (nearest float64) {
	for _, all := range [][]statement{m.crowd, m.more} {
		for _, u := range all {
			if u.candidate != t.candidate && u.candidate != of.candidate && m.compareTime(u.candidate, t.candidate) < 0 {
				nearest = max(nearest, product(u.vector, t.vector))
			}
		}
	}
	return nearest
}

// lacksName reports whether a statement lacks a name in the question that the best one has.
func (m *matter) lacksName(t *statement) bool {
	for lacks := m.wordsOf(m.first.candidate) &^ m.wordsOf(t.candidate); lacks != 0; lacks &= lacks - 1 {
		if m.query.Words[bits.TrailingZeros64(lacks)-1].Named {
			return true
		}
	}
	return false
}

// otherKinds counts the kinds of values that only one of two has. The time of a change is not
// counted.
func (m *matter) otherKinds(earlier, later statement, change float64) int {
	before, after := m.flags(earlier), m.flags(later)
	kinds := before ^ after
	if change > 0 {
		kinds &^= after & segment.FlagTellsTime
	}
	return bits.OnesCount8(uint8(kinds & valueKinds))
}

func (m *matter) flags(t statement) segment.Flags { return m.parts[t.part].frame.Flags[t.slot] }

// follow adds later statements about the matter, which may be nearer to the latest known one
// than to the first.
func (m *matter) follow() {
	last := m.newest()
	for _, all := range [][]statement{m.crowd, m.more} {
		for _, t := range m.about(last, all, m.links(last, all)) {
			if m.compareTime(t.candidate, last.candidate) > 0 && t.evidence >= farMatter {
				t.evidence = min(t.evidence, last.evidence)
				m.others = append(m.others, t)
			}
		}
	}
}

// newest returns the latest statement.
func (m *matter) newest() statement {
	newest := m.first
	for _, t := range m.others {
		if m.compareTime(t.candidate, newest.candidate) > 0 {
			newest = t
		}
	}
	return newest
}

// findMore looks among the neighbours of the first statement, which may be far from the question.
func (m *matter) findMore(ctx context.Context, best []candidate) error {
	p := m.parts[m.first.part]
	if p.Nearest == nil || !m.isStatement(&m.first) {
		return nil
	}
	found, err := p.Nearest(ctx, m.first.vector, matterNear)
	if err != nil {
		return err
	}
	var more []statement
	for _, hit := range found {
		slot := p.frame.Slot(hit.Ordinal)
		is := func(c *candidate) bool { return c.part == m.first.part && c.slot == slot }
		if !p.Selection.Has(hit.Ordinal) || slices.ContainsFunc(m.crowd, func(t statement) bool { return is(t.candidate) }) {
			continue
		}
		at := slices.IndexFunc(best, func(c candidate) bool { return is(&c) })
		c := &candidate{part: m.first.part, slot: slot, created: p.frame.Create[slot]}
		if at >= 0 {
			c = &best[at]
		}
		if t := (statement{candidate: c}); m.isStatement(&t) {
			m.weigh(&t)
			more = append(more, t)
		}
	}
	if m.more, err = m.withVectors(ctx, more); err != nil {
		return err
	}
	m.others = append(m.others, m.about(m.first, m.more, m.links(m.first, m.more))...)
	return nil
}

// links says of each how far its nearness to one stands out.
func (m *matter) links(of statement, all []statement) []float64 {
	usual, links := m.usual(of.vector), make([]float64, len(all))
	for i, t := range all {
		links[i] = m.link(product(t.vector, of.vector), usual, m.usual(t.vector))
	}
	return links
}

// link says how far a cosine stands out from those of either of two to the others.
func (m *matter) link(cosine float64, a, b spread) float64 {
	chance := spread{m.changes.Middle, m.changes.Deviation}
	return m.known*(a.standing(cosine)+b.standing(cosine))/2 + (1-m.known)*chance.standing(cosine)
}

// usual is how near a vector is to the crowd, but for itself.
func (m *matter) usual(v []float32) spread {
	row := make([]float64, 0, len(m.crowd))
	for _, t := range m.crowd {
		if &t.vector[0] != &v[0] {
			row = append(row, product(v, t.vector))
		}
	}
	return spreadOf(row)
}

// lead puts the newest before the others, and before all where it is sure.
func (m *matter) lead(best []candidate) []candidate {
	newest, level := m.newest(), m.first.rank
	evidence := newest.evidence
	for _, t := range m.others {
		level = max(level, t.rank)
		if newest.candidate == m.first.candidate {
			evidence = max(evidence, t.evidence)
		}
	}
	if evidence+min(mostOwn, m.first.own) >= sureMatter {
		level = max(level, best[0].rank)
	}
	m.replace(newest)
	isNewest := func(c candidate) bool { return c.part == newest.part && c.slot == newest.slot }
	at := slices.IndexFunc(best, isNewest)
	if at < 0 {
		at, best = len(best), append(best, m.byRest(newest.part, newest.slot))
		m.answer.VectorCandidates++
	}
	if n := &best[at]; slices.ContainsFunc(best, func(c candidate) bool { return c.rank >= n.rank && c.rank <= level && !isNewest(c) }) {
		n.gained = level - n.rank
		n.rank = math.Nextafter32(level, math.MaxFloat32)
		slices.SortFunc(best, func(c, d candidate) int { return d.compare(c) })
	}
	return best
}

// replace notes which statements the newest replaces: those with sure evidence.
func (m *matter) replace(newest statement) {
	var older []*candidate
	for _, t := range append(m.others, m.first) {
		evidence := t.evidence
		if t.candidate == m.first.candidate {
			evidence = newest.evidence
		}
		if t.candidate != newest.candidate && t.part == newest.part && evidence >= sureMatter {
			older = append(older, t.candidate)
		}
	}
	if len(older) == 0 {
		return
	}
	slices.SortStableFunc(older, m.compareTime)
	slots := make([]uint32, len(older))
	for i, c := range older {
		slots[i] = c.slot
	}
	m.older = map[documentSlot][]uint32{{newest.part, newest.slot}: slots}
}

// sameAuthor reports whether two have the same author.
func (r *ranking) sameAuthor(c, d *candidate) bool {
	f, g := r.parts[c.part].frame, r.parts[d.part].frame
	return f.Authors[f.Author[c.slot]] == g.Authors[g.Author[d.slot]]
}

// statements are the candidates that are nearest to the question by words or vectors, with
// their vectors.
func (r *ranking) statements(ctx context.Context, best []candidate) ([]statement, error) {
	all := make([]statement, 0, len(best))
	for i := range best {
		c := &best[i]
		f := r.parts[c.part].frame
		if p := r.parts[c.part]; p.named != 0 && f.Author[c.slot] != p.named || f.Body[c.slot] > crowdWords || f.Flags[c.slot]&segment.FlagAsks != 0 {
			continue
		}
		t := statement{candidate: c}
		r.weigh(&t)
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b statement) int { return cmp.Compare(b.worth, a.worth) })
	return r.withVectors(ctx, all[:min(len(all), matterAmong)])
}

// weigh says how near a candidate is to the question.
func (r *ranking) weigh(t *statement) {
	if r.vectors.nearest > r.vectors.fiftieth {
		t.own = max(0, t.cosine-r.vectors.fiftieth) / (r.vectors.nearest - r.vectors.fiftieth)
	}
	if r.mass > 0 {
		t.covers = float64(r.parts[t.part].covered[t.slot]) / r.mass
	}
	t.own += t.covers
	t.worth = t.own
}

// withVectors reads the vectors, brought to the length one, and leaves out what has none.
func (r *ranking) withVectors(ctx context.Context, all []statement) ([]statement, error) {
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
			all[of[i]].vector = unit(v)
		}
	}
	return slices.DeleteFunc(all, func(t statement) bool { return t.vector == nil }), nil
}

// unit brings a vector to the length one, and returns it; nil for one without a direction.
func unit(v []float32) []float32 {
	length := float32(math.Sqrt(product(v, v)))
	if length == 0 {
		return nil
	}
	for i := range v {
		v[i] /= length
	}
	return v
}

// spread is what is usual of how near one is to the others.
type spread struct{ middle, deviation float64 }

// spreadOf sorts how near one is to the others.
func spreadOf(near []float64) spread {
	slices.Sort(near)
	n := len(near)
	const quartersOfNormal = 1.349 // how many deviations lie between the quarters
	return spread{near[n/2], max(1e-6, (near[3*n/4]-near[n/4])/quartersOfNormal)}
}

// standing is how far one of the others stands out, in deviations. What says the same does not.
func (s spread) standing(cosine float64) float64 {
	if cosine > repeats {
		cosine = 0
	}
	return (cosine - s.middle) / s.deviation
}

// standings says of each two of the crowd how far their nearness stands out.
func (m *matter) standings() [][]float64 {
	all, n := m.crowd, len(m.crowd)
	near, row, usual := make([][]float64, n), make([]float64, 0, n), make([]spread, n)
	for i := range near {
		near[i] = make([]float64, n)
		for k := range i {
			near[i][k] = product(all[i].vector, all[k].vector)
			near[k][i] = near[i][k]
		}
	}
	for i := range all {
		usual[i] = spreadOf(append(append(row[:0], near[i][:i]...), near[i][i+1:]...))
	}
	for i := range all {
		for k := range i {
			near[i][k] = m.link(near[i][k], usual[i], usual[k])
			near[k][i] = near[i][k]
		}
	}
	return near
}

// support adds to the worth of each what others of its matter are worth.
func support(all []statement, near [][]float64) {
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

// product is the scalar product of two vectors. Four separate sums let the processor overlap
// the additions.
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
