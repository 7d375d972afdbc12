package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
)

// explain gives every hit its signals and its matching own words.
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
	w := r.byWords(p, o)
	s := r.signalsOf(p, o, w)
	section := float32(0)
	if w.section > 0 {
		section = p.section[p.derived.section[o]]
	}
	signal := func(name string, raw, share float32) Signal {
		return Signal{name, float64(raw), float64(share * r.factor)}
	}
	list := []Signal{
		signal(SignalTurn, p.inWindow[o], w.turn),
		signal(SignalWindow, p.window[o], w.window*s.brevity),
		signal(SignalSession, section, w.section*s.brevity),
		signal(SignalAuthor, 1, s.author),
		signal(SignalDate, s.date/dateShare, s.date),
		signal(SignalAnswer, s.answer/answerShare, s.answer),
		signal(SignalQuestion, 1, s.question),
		{SignalVector, c.cosine, float64(c.byVector)},
	}
	list = append(list, r.lost(f, o, list)...)
	if c.heeded > 0 {
		list = append(list, Signal{SignalAnswer, 1, float64(c.heeded)})
	}
	// What is left was given to the newer of two that say the same.
	const rounding = 1e-4
	if gained := float64(c.rank+c.repeated+c.stale) - sumOf(list); gained > rounding {
		list = append(list, Signal{SignalNewer, 1, gained})
	}
	list = append(list, Signal{SignalRepeated, 1, -float64(c.repeated)}, Signal{SignalStale, 1, -float64(c.stale)})
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
		{SignalRecency, float64(r.query.Now-since(f, o, r.query.Now)) / day, sum * (recency - 1)},
		{SignalImportance, float64(f.Importance[o]), sum * recency * (importance - 1)},
	}
}

func sumOf(signals []Signal) (sum float64) {
	for _, s := range signals {
		sum += s.Share
	}
	return sum
}
