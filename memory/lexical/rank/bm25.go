package rank

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// The constants of BM25, measured on conversations, on abstracts and on talks with
// assistants: how soon more of the same word stops counting, and how much a long document
// is marked down. Where lengths are uneven, as with short statements and long answers, a
// long one is marked down more, so that length alone decides nothing.
const (
	saturation       = 0.9
	lengthPart       = 0.6
	unevenLengthPart = 0.9
	// even and uneven are how many times the mean length is the geometric mean where
	// lengths are taken for even, and where for wholly uneven. Of what two people say to
	// each other it is 1.0, of abstracts 1.2, of talks with an assistant 1.8 to 2.2.
	even, uneven = 1.2, 1.8
)

// lengths are the summed lengths of all documents, or windows.
type lengths struct{ count, words, logs float64 }

// log2 is the logarithm of a length and one, to a tenth: an exact one would take most of
// the time.
func log2(words float32) float64 {
	n := uint32(words) + 1
	whole := bits.Len32(n) - 1
	return float64(whole) + float64(n)/float64(uint32(1)<<whole) - 1
}

func (l *lengths) add(words float32) {
	l.count++
	l.words += float64(words)
	l.logs += log2(words)
}

func (l *lengths) join(m lengths) {
	l.count, l.words, l.logs = l.count+m.count, l.words+m.words, l.logs+m.logs
}

// norm is how BM25 marks down long documents: the length that counts as average, at least
// one word, and the part.
type norm struct {
	average, part float64
	uneven        float64 // how uneven lengths are, from 0 to 1
}

func (l lengths) norm() norm {
	mean := average(l.words, l.count)
	if l.count == 0 {
		return norm{average: mean, part: lengthPart}
	}
	middle := max(1, math.Exp2(l.logs/l.count))
	how := min(1, max(0, (mean/middle-even)/(uneven-even)))
	return norm{math.Pow(mean, 1-how) * math.Pow(middle, how), lengthPart + how*(unevenLengthPart-lengthPart), how}
}

// bm25 is BM25 of one word in documents of an average length.
type bm25 struct{ weight, fixed, perWord float32 }

func newBM25(weight float64, by norm) bm25 {
	return bm25{
		weight:  float32(weight * (saturation + 1)),
		fixed:   float32(saturation * (1 - by.part)),
		perWord: float32(saturation * by.part / by.average),
	}
}

// headWords is how much longer a document counts whose head says who said it or when. It is
// the same whatever the head holds: one more hint is no reason to mark a document down.
const headWords = 4

// lengthOf is the length of a document.
func lengthOf(f *frame.Frame, o uint32) uint32 {
	if f.Header[o] == 0 {
		return f.Body[o]
	}
	return f.Body[o] + headWords
}

// score is the word's share in a document that holds it so often.
func (w bm25) score(frequency, length float32) float32 {
	return w.weight * frequency / (frequency + w.fixed + w.perWord*length)
}

// idf is the weight of a word that stands in so many of the documents.
func idf(documents float64, with int) float64 {
	return math.Log1p((documents - float64(with) + 0.5) / (float64(with) + 0.5))
}

// workspace is the working memory of a query in one scope. Slices are indexed by slot,
// slices of sections by section number.
type workspace struct {
	turn, window, section []float32 // the signals
	// covered is the weight of the asked words that stand in a document.
	covered []float32
	// The word at hand: its postings, with slots in place of ordinals, and how often
	// it stands in every window and section. Only those in windowsTouched and
	// sectionsTouched are not zero. When all words are done, inWindow holds the turn signal
	// plus the share that questions pass to their replies.
	postings        []segment.Posting
	inWindow        []float32
	windowsTouched  []uint32
	brought         int // how many times it was brought to a window
	inSection       []float32
	sectionsTouched []uint32
	// What words say of each candidate, and blocks of candidates, see measure.
	sums   []float32
	blocks []block
}

// reset clears the memory for a frame.
func (w *workspace) reset(f *frame.Frame, sections int) {
	n := int(f.Slots()) + 1
	for _, s := range []*[]float32{&w.turn, &w.window, &w.covered, &w.inWindow} {
		*s = cleared(*s, n)
	}
	for _, s := range []*[]float32{&w.section, &w.inSection} {
		*s = cleared(*s, sections)
	}
}

func cleared(s []float32, n int) []float32 {
	s = sized(s, n)
	clear(s)
	return s
}

// sized returns a slice of that length, with anything in it.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
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

// tally counts the word at hand in windows and sections; in windows of its
// neighbours only if it is to be spread.
func (w *workspace) tally(f *frame.Frame, c *conversation, spread bool) {
	const windowsEach = 5
	windows := touching{sums: w.inWindow, touched: sized(w.windowsTouched, windowsEach*len(w.postings))}
	sections := touching{sums: w.inSection, touched: sized(w.sectionsTouched, len(w.postings))}
	for _, p := range w.postings {
		o := p.Ordinal
		body, header := segment.UnpackFrequency(p.Value)
		all := float32(body + header)
		windows.add(o, all)
		section := c.section[o]
		if section == 0 {
			continue
		}
		sections.add(section, all)
		if spread && body > 0 {
			windows.spread(f, o, float32(body)*lends(f.Body[o]))
		}
	}
	w.windowsTouched, w.sectionsTouched = windows.touched[:windows.count], sections.touched[:sections.count]
	w.brought = windows.times
}

// touching is how often the word at hand stands in each window, or section, and which ones
// are no longer zero. There is room for all.
type touching struct {
	sums    []float32
	touched []uint32
	count   int
	times   int // how often something was added
}

func (t *touching) add(at uint32, frequency float32) {
	t.times++
	before := t.sums[at]
	if before == 0 {
		t.touched[t.count] = at
		t.count++
	}
	t.sums[at] = before + frequency
}

// spread brings a word to the documents around the one that it stands in.
func (t *touching) spread(f *frame.Frame, o uint32, body float32) {
	if n := f.Next[o]; n != 0 {
		t.add(n, fromBefore*body)
		if n = f.Next[n]; n != 0 {
			t.add(n, fromBefore*body)
		}
	}
	if p := f.Prev[o]; p != 0 {
		t.add(p, fromBehind*body)
		if p = f.Prev[p]; p != 0 {
			t.add(p, fromBehind*body)
		}
	}
}

// addTurns adds the word at hand to the documents that hold it, and its asked
// weight to what they cover.
func (w *workspace) addTurns(f *frame.Frame, by bm25, asked float32) {
	for _, p := range w.postings {
		o := p.Ordinal
		w.turn[o] += by.score(float32(segment.TotalFrequency(p.Value)), float32(lengthOf(f, o)))
		w.covered[o] += asked
	}
}

// addAlone adds the word at hand to windows of one document each.
func (w *workspace) addAlone(f *frame.Frame, by bm25) {
	for _, p := range w.postings {
		o := p.Ordinal
		w.window[o] += by.score(float32(segment.TotalFrequency(p.Value)), float32(lengthOf(f, o)))
	}
}

// addWindows adds the word at hand to the windows that hold it.
func (w *workspace) addWindows(lengths []float32, by bm25) {
	for _, o := range w.windowsTouched {
		w.window[o] += by.score(w.inWindow[o], lengths[o])
		w.inWindow[o] = 0
	}
}

// addSections adds the word at hand to the sections that hold it.
func (w *workspace) addSections(words []float32, by bm25) {
	for _, s := range w.sectionsTouched {
		w.section[s] += by.score(w.inSection[s], words[s])
		w.inSection[s] = 0
	}
}
