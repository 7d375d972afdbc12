package lexical

import "sync"

// A window is a document with the bodies of the two before it and the two behind
// it in its session. What was said before counts more, as one thing is said in
// answer to another.
const (
	fromBefore = 1.0
	fromBehind = 0.5
)

// surroundings is what ranking derives from a frame, once.
type surroundings struct {
	once sync.Once
	// windows are the lengths of the windows, by slot; nil if no document
	// has a session.
	windows     []float32
	windowWords float64 // of all living documents together
	// sessions counts those with a living document, and sessionWords their
	// words; documents without a session are in neither.
	sessions     float64
	sessionWords float64
	// lastEvent is the latest event, in microseconds since 1970; zero for none.
	lastEvent int64
	// asked are the documents that follow a question that somebody else asked,
	// with that question.
	asked []followed
	// names are the numbers of the authors of living documents by their names.
	names map[string]uint32
}

func (s *surroundings) derive(f *frame) {
	s.names = make(map[string]uint32, len(f.authors))
	for number, words := range f.sessionWords {
		if f.sessionDigest[number] != 0 && f.sessionSize[number] > 0 {
			s.sessions++
			s.sessionWords += float64(words)
		}
	}
	windows, authors := make([]float32, f.slots()+1), make([]bool, len(f.authors))
	for o := uint32(1); o <= f.slots(); o++ {
		if !f.dead.contains(o) {
			windows[o] = f.windowLength(o)
			authors[f.author[o]] = true
			s.windowWords += float64(windows[o])
			s.lastEvent = max(s.lastEvent, f.event[o])
			if q := f.afterQuestion(o); q != 0 {
				s.asked = append(s.asked, followed{o, q})
			}
		}
	}
	for number, name := range f.authors {
		if authors[number] && name != "" {
			s.names[name] = uint32(number)
		}
	}
	if s.sessions > 0 {
		s.windows = windows
	}
}

// followed is a document and the question that it follows.
type followed struct{ slot, question uint32 }

// lone tells whether the document has no session.
func (f *frame) lone(o uint32) bool { return f.sessionDigest[f.session[o]] == 0 }

func (f *frame) windowLength(o uint32) float32 {
	before, behind := f.prev[o], f.next[o]
	length := fromBefore * float32(f.body[before]+f.body[f.prev[before]])
	length += fromBehind * float32(f.body[behind]+f.body[f.next[behind]])
	return length + float32(f.length(o))
}

// afterQuestion returns the question that the document follows,
// if somebody else asked it; zero if none.
func (f *frame) afterQuestion(o uint32) uint32 {
	p := f.prev[o]
	if f.flags[p]&FlagAsks == 0 || f.author[p] == f.author[o] {
		return 0
	}
	return p
}

// surroundings returns what is derived from the frame.
func (f *frame) surroundings() *surroundings {
	s := f.around
	if s == nil {
		s = &surroundings{}
	}
	s.once.Do(func() { s.derive(f) })
	return s
}
