package rank

import (
	"fmt"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// The constants of BM25, measured on conversations and on abstracts: how soon
// more of the same word stops counting, and how much a long document is marked
// down.
const (
	saturation = 0.9
	lengthPart = 0.6
)

// bm25 is BM25 of one word in documents of an average length.
type bm25 struct{ weight, fixed, perWord float32 }

func newBM25(weight, average float64) bm25 {
	return bm25{
		weight:  float32(weight * (saturation + 1)),
		fixed:   saturation * (1 - lengthPart),
		perWord: float32(saturation * lengthPart / average),
	}
}

// score is the word's share in a document that holds it so often.
func (w bm25) score(frequency, length float32) float32 {
	return w.weight * frequency / (frequency + w.fixed + w.perWord*length)
}

// idf is the weight of a word that stands in so many of the documents.
func idf(documents float64, with int) float64 {
	return math.Log1p((documents - float64(with) + 0.5) / (float64(with) + 0.5))
}

// workspace is the working memory of a query in one scope. Slices are indexed
// by slot, those of sessions by their numbers.
type workspace struct {
	turn, window, session []float32 // the signals
	// covered is the weight of the asked words that stand in a document.
	covered []float32
	// The word at hand: its postings, with slots in place of ordinals, and how often
	// it stands in every window and session. Only those in windowsTouched and
	// sessionsTouched are not zero. When all words are done, inWindow holds the turn
	// signal together with what questions give to their replies.
	postings        []segment.Posting
	inWindow        []float32
	windowsTouched  []uint32
	inSession       []float32
	sessionsTouched []uint32
}

// reset clears the memory for a frame.
func (w *workspace) reset(f *frame.Frame) {
	n, sessions := int(f.Slots())+1, len(f.SessionWords)
	for _, s := range []*[]float32{&w.turn, &w.window, &w.covered, &w.inWindow} {
		*s = cleared(*s, n)
	}
	for _, s := range []*[]float32{&w.session, &w.inSession} {
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

// read unpacks the live documents that hold a word.
func (w *workspace) read(f *frame.Frame, word lexical.TermPostings) (err error) {
	w.postings = w.postings[:0]
	for _, at := range word.Blocks {
		if w.postings, err = at.Frequencies(w.postings); err != nil {
			return err
		}
	}
	w.postings = append(w.postings, word.Tail...)
	if n := len(w.postings); n > 0 && w.postings[n-1].Ordinal > f.Last {
		return fmt.Errorf("%w: document %d of %d", segment.ErrDamaged, w.postings[n-1].Ordinal, f.Last)
	}
	w.postings = f.ToSlots(w.postings)
	return nil
}

// tally counts the word at hand in windows and sessions; in windows of its
// neighbours only if it is to be spread.
func (w *workspace) tally(f *frame.Frame, spread bool) {
	w.windowsTouched, w.sessionsTouched = w.windowsTouched[:0], w.sessionsTouched[:0]
	for _, p := range w.postings {
		o := p.Ordinal
		body, header := segment.UnpackFrequency(p.Value)
		all := float32(body + header)
		w.addToWindow(o, all)
		if f.HasNoSession(o) {
			continue
		}
		w.addToSession(f.Session[o], all)
		if spread && body > 0 {
			w.spread(f, o, float32(body))
		}
	}
}

// spread brings a word to the documents around the one that it stands in.
func (w *workspace) spread(f *frame.Frame, o uint32, body float32) {
	if n := f.Next[o]; n != 0 {
		w.addToWindow(n, fromBefore*body)
		if n = f.Next[n]; n != 0 {
			w.addToWindow(n, fromBefore*body)
		}
	}
	if p := f.Prev[o]; p != 0 {
		w.addToWindow(p, fromBehind*body)
		if p = f.Prev[p]; p != 0 {
			w.addToWindow(p, fromBehind*body)
		}
	}
}

func (w *workspace) addToWindow(o uint32, frequency float32) {
	if w.inWindow[o] == 0 {
		w.windowsTouched = append(w.windowsTouched, o)
	}
	w.inWindow[o] += frequency
}

func (w *workspace) addToSession(session uint32, frequency float32) {
	if w.inSession[session] == 0 {
		w.sessionsTouched = append(w.sessionsTouched, session)
	}
	w.inSession[session] += frequency
}

// addTurns adds the word at hand to the documents that hold it, and its asked
// weight to what they cover.
func (w *workspace) addTurns(f *frame.Frame, by bm25, asked float32) {
	for _, p := range w.postings {
		o := p.Ordinal
		w.turn[o] += by.score(float32(segment.TotalFrequency(p.Value)), float32(f.Length(o)))
		w.covered[o] += asked
	}
}

// addAlone adds the word at hand to windows of one document each.
func (w *workspace) addAlone(f *frame.Frame, by bm25) {
	for _, p := range w.postings {
		o := p.Ordinal
		w.window[o] += by.score(float32(segment.TotalFrequency(p.Value)), float32(f.Length(o)))
	}
}

// addWindows adds the word at hand to the windows that hold it.
func (w *workspace) addWindows(lengths []float32, by bm25) {
	for _, o := range w.windowsTouched {
		w.window[o] += by.score(w.inWindow[o], lengths[o])
		w.inWindow[o] = 0
	}
}

// addSessions adds the word at hand to the sessions that hold it.
func (w *workspace) addSessions(f *frame.Frame, by bm25) {
	for _, s := range w.sessionsTouched {
		w.session[s] += by.score(w.inSession[s], float32(f.SessionWords[s]))
		w.inSession[s] = 0
	}
}
