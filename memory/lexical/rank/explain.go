package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
)

// explain gives every hit its signals and the words of its own that matched.
func (r *ranking) explain() error {
	hits := make(map[documentSlot]*Hit, len(r.answer.Hits))
	for i := range r.answer.Hits {
		hit := &r.answer.Hits[i]
		hit.Signals = r.signalsNamed(r.parts[hit.Part], r.ranked[i])
		hits[documentSlot{hit.Part, r.ranked[i].slot}] = hit
	}
	for i, word := range r.query.Words {
		if err := r.explainWord(i, word.Text, hits); err != nil {
			return err
		}
	}
	return nil
}

// neighbours returns the document and those in its window.
func neighbours(f *frame.Frame, o uint32) []uint32 {
	near := []uint32{o, f.Prev[o], f.Prev[f.Prev[o]], f.Next[o], f.Next[f.Next[o]]}
	return slices.DeleteFunc(near, func(o uint32) bool { return o == 0 })
}

// explainWord names a word at every hit that holds it.
func (r *ranking) explainWord(i int, word string, hits map[documentSlot]*Hit) error {
	for n, p := range r.parts {
		if err := p.read(p.frame, p.words[i]); err != nil {
			return err
		}
		for _, posting := range p.postings {
			if hit := hits[documentSlot{n, posting.Ordinal}]; hit != nil {
				hit.Words = append(hit.Words, word)
			}
		}
	}
	return nil
}

// signalsNamed lists what the rank of a document is made of, the strongest
// first.
func (r *ranking) signalsNamed(p *rankedPart, c candidate) []Signal {
	f, o := p.frame, c.slot
	s := r.signalsOf(p, o, r.byWords(p, o))
	scaled := func(raw, scale float32) (float64, float64) {
		return float64(raw), float64(raw * scale * s.brevity * r.factor)
	}
	signal := func(name string, raw, share float64) Signal { return Signal{name, raw, share} }
	turn, turnRank := scaled(p.inWindow[o], r.scale.turn)
	window, windowRank := scaled(p.window[o], r.scale.window)
	session, sessionRank := scaled(p.inWindow[o], r.scale.alone)
	if !f.HasNoSession(o) {
		session, sessionRank = scaled(p.session[f.Session[o]], r.scale.session)
	}
	list := []Signal{
		signal("turn", turn, turnRank),
		signal("window", window, windowRank),
		signal("session", session, sessionRank),
		signal("author", 1, float64(s.author*r.factor)),
		signal("date", float64(s.date/dateShare), float64(s.date*r.factor)),
		signal("answer", float64(s.answer/answerShare), float64(s.answer*r.factor)),
		signal("question", 1, float64(s.question*r.factor)),
		signal("vector", c.cosine, float64(c.byVector)),
	}
	list = append(list, r.lost(f, o, list)...)
	// What is left was given to the newer of two that say the same.
	const rounding = 1e-4
	if gained := float64(c.rank) - sumOf(list); gained > rounding {
		list = append(list, signal("newer", 1, gained))
	}
	list = slices.DeleteFunc(list, func(s Signal) bool { return s.Share == 0 })
	slices.SortStableFunc(list, func(a, b Signal) int { return cmp.Compare(math.Abs(b.Share), math.Abs(a.Share)) })
	return list
}

// lost lists what age and lack of importance take off the sum of the signals.
func (r *ranking) lost(f *frame.Frame, o uint32, signals []Signal) []Signal {
	const day = 24 * 60 * 60 * 1e6
	sum := sumOf(signals)
	recency, importance := r.recency(f, o), r.importance(f, o)
	return []Signal{
		{"recency", float64(r.query.Now-since(f, o, r.query.Now)) / day, sum * (recency - 1)},
		{"importance", float64(f.Importance[o]), sum * recency * (importance - 1)},
	}
}

func sumOf(signals []Signal) (sum float64) {
	for _, s := range signals {
		sum += s.Share
	}
	return sum
}
