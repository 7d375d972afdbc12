package lexical

import (
	"fmt"
	"math"
)

// The constants of BM25, measured on conversations and on abstracts: how soon
// more of the same word stops counting, and how much a long document is marked
// down.
const (
	saturation = 0.9
	lengthPart = 0.6
)

// weighing is BM25 of one word in documents of an average length.
type weighing struct{ weight, fixed, perWord float32 }

func weigh(weight, average float64) weighing {
	return weighing{
		weight:  float32(weight * (saturation + 1)),
		fixed:   saturation * (1 - lengthPart),
		perWord: float32(saturation * lengthPart / average),
	}
}

// of is the word's share in a document that holds it so often.
func (w weighing) of(frequency, length float32) float32 {
	return w.weight * frequency / (frequency + w.fixed + w.perWord*length)
}

// rarity is the weight of a word that stands in so many of the documents.
func rarity(documents float64, with int) float64 {
	return math.Log1p((documents - float64(with) + 0.5) / (float64(with) + 0.5))
}

// workspace is the working memory of a query in one scope. Slices are indexed
// by slot, those of sessions by their numbers.
type workspace struct {
	turn, window, session []float32 // the signals
	// covered is the weight of the asked words that stand in a document.
	covered []float32
	// The word at hand: where it stands, with slots for ordinals, and how often in
	// windows and sessions, of which the touched are not zero. When all words are done, near becomes
	// answered: the turn signal with what questions hand over.
	postings    []posting
	near        []float32
	nearTouched []uint32
	spoken      []float32
	spokenIn    []uint32
}

// reset clears the memory for a frame.
func (w *workspace) reset(f *frame) {
	n, sessions := int(f.slots())+1, len(f.sessionWords)
	for _, s := range []*[]float32{&w.turn, &w.window, &w.covered, &w.near} {
		*s = cleared(*s, n)
	}
	for _, s := range []*[]float32{&w.session, &w.spoken} {
		*s = cleared(*s, sessions)
	}
}

func cleared(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/4)
	}
	s = s[:n]
	clear(s)
	return s
}

// read unpacks the living documents that hold a word.
func (w *workspace) read(f *frame, word wanted) (err error) {
	w.postings = w.postings[:0]
	for _, at := range word.blocks {
		if w.postings, err = at.frequencies(w.postings); err != nil {
			return err
		}
	}
	w.postings = append(w.postings, word.tail...)
	if n := len(w.postings); n > 0 && w.postings[n-1].ordinal > f.last {
		return fmt.Errorf("%w: document %d of %d", ErrDamaged, w.postings[n-1].ordinal, f.last)
	}
	w.postings = f.toSlots(w.postings)
	return nil
}

// frequencies is decode for the blocks of a word, quick where ordinals are close
// and frequencies small, as those of frequent words are.
func (b block) frequencies(dst []posting) ([]posting, error) {
	const wide = 0x80 // a byte that another one follows
	packed, ordinal, at := b.packed, b.first, 0
	from := len(dst)
	for i := range b.count {
		if i > 0 {
			if at+1 >= len(packed) || packed[at] >= wide || packed[at] == 0 {
				return b.decode(dst[:from])
			}
			ordinal += uint32(packed[at])
			at++
		}
		// An odd number is followed by the frequency in the header.
		if at >= len(packed) || packed[at] >= wide {
			return b.decode(dst[:from])
		}
		value := uint64(packed[at] >> 1)
		if packed[at]&1 != 0 {
			if at++; at >= len(packed) || packed[at] >= wide {
				return b.decode(dst[:from])
			}
			value |= uint64(packed[at]) << 32
		}
		at++
		dst = append(dst, posting{ordinal, value})
	}
	if at != len(packed) || ordinal != b.last {
		return b.decode(dst[:from])
	}
	return dst, nil
}

// tally counts the word at hand in windows and sessions; in windows of its
// neighbours only if it is to be spread.
func (w *workspace) tally(f *frame, spread bool) {
	w.nearTouched, w.spokenIn = w.nearTouched[:0], w.spokenIn[:0]
	for _, p := range w.postings {
		o := p.ordinal
		body, header := unpack(p.value)
		all := float32(body + header)
		w.hear(o, all)
		if f.lone(o) {
			continue
		}
		w.speak(f.session[o], all)
		if spread && body > 0 {
			w.carry(f, o, float32(body))
		}
	}
}

// carry brings a word to the documents around the one that it stands in.
func (w *workspace) carry(f *frame, o uint32, body float32) {
	if n := f.next[o]; n != 0 {
		w.hear(n, fromBefore*body)
		if n = f.next[n]; n != 0 {
			w.hear(n, fromBefore*body)
		}
	}
	if p := f.prev[o]; p != 0 {
		w.hear(p, fromBehind*body)
		if p = f.prev[p]; p != 0 {
			w.hear(p, fromBehind*body)
		}
	}
}

func (w *workspace) hear(o uint32, frequency float32) {
	if w.near[o] == 0 {
		w.nearTouched = append(w.nearTouched, o)
	}
	w.near[o] += frequency
}

func (w *workspace) speak(session uint32, frequency float32) {
	if w.spoken[session] == 0 {
		w.spokenIn = append(w.spokenIn, session)
	}
	w.spoken[session] += frequency
}

// addTurns adds the word at hand to the documents that hold it, and its asked
// weight to what they cover.
func (w *workspace) addTurns(f *frame, by weighing, asked float32) {
	for _, p := range w.postings {
		o := p.ordinal
		w.turn[o] += by.of(float32(total(p.value)), float32(f.length(o)))
		w.covered[o] += asked
	}
}

// addAlone adds the word at hand to windows of one document each.
func (w *workspace) addAlone(f *frame, by weighing) {
	for _, p := range w.postings {
		o := p.ordinal
		w.window[o] += by.of(float32(total(p.value)), float32(f.length(o)))
	}
}

// addWindows adds the word at hand to the windows that hold it.
func (w *workspace) addWindows(lengths []float32, by weighing) {
	for _, o := range w.nearTouched {
		w.window[o] += by.of(w.near[o], lengths[o])
		w.near[o] = 0
	}
}

// addSessions adds the word at hand to the sessions that hold it.
func (w *workspace) addSessions(f *frame, by weighing) {
	for _, s := range w.spokenIn {
		w.session[s] += by.of(w.spoken[s], float32(f.sessionWords[s]))
		w.spoken[s] = 0
	}
}
