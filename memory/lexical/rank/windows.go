package rank

import (
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// A window is a document with the bodies of the two before it and the two behind
// it in its session. What was said before counts more, as one thing is said in
// answer to another.
const (
	fromBefore = 1.0
	fromBehind = 0.5
	// lentWords is how many words of a body its neighbours have at most: of a longer one
	// all words count less, as it speaks of much that is not theirs.
	lentWords = 20
	// sectionSize is how many documents of a session are ranked as one: what is far away
	// in a long session says nothing of a document.
	sectionSize = 20
	// replyWords is the length up to which the next document counts as the answer to a
	// question: a longer one repeats the question itself.
	replyWords = 20
)

// lends is the part of a body's words that its neighbours have.
func lends(words uint32) float32 { return min(1, lentWords/float32(words+1)) }

// conversation is what ranking derives from a frame, once.
type conversation struct {
	// section is the number, from 1, of the part of the session that a document stands
	// in, by slot; zero without a session. It is nil if no document has a session.
	section []uint32
	// windows are the lengths of the windows, by slot; nil if no document
	// has a session.
	windows []float32
	// alone is how much what stands around a document counts, by slot; nil as windows is.
	alone []float32
	// sectionWords are the words of sections by number, and sections counts them.
	sectionWords []float32
	sections     float64
	// The lengths of all documents, windows and sections.
	turnLengths, windowLengths lengths
	inSections                 float64
	// lastEvent is the latest event, in microseconds since 1970; zero for none.
	lastEvent int64
	// replies are the documents that follow a question that somebody else asked,
	// with that question.
	replies []reply
	// names are the numbers of the authors of live documents by their names.
	names map[string]uint32
}

// sectionOf is the number of the section that a document stands in; zero for none.
func (s *conversation) sectionOf(o uint32) uint32 {
	if s.section == nil {
		return 0
	}
	return s.section[o]
}

func deriveConversation(f *frame.Frame) *conversation {
	s := &conversation{names: make(map[string]uint32, len(f.Authors)), sectionWords: make([]float32, 1)}
	if f.LiveSessions > f.WithoutSession {
		s.section, s.windows, s.alone = make([]uint32, f.Slots()+1), make([]float32, f.Slots()+1), make([]float32, f.Slots()+1)
	}
	authors := make([]bool, len(f.Authors))
	for o := uint32(1); o <= f.Slots(); o++ {
		if f.Deleted.Contains(o) {
			continue
		}
		authors[f.Author[o]] = true
		s.lastEvent = max(s.lastEvent, f.Event[o])
		s.turnLengths.add(float32(lengthOf(f, o)))
		if s.windows == nil {
			continue
		}
		s.windows[o], s.alone[o] = windowLength(f, o), alone(f.Body[o])
		s.windowLengths.add(s.windows[o])
		if f.Prev[o] == 0 && !f.HasNoSession(o) {
			s.divide(f, o)
		}
		if q := afterQuestion(f, o); q != 0 {
			part := min(1, replyWords/float32(f.Body[o]+1))
			s.replies = append(s.replies, reply{o, q, part * part})
		}
	}
	for number, name := range f.Authors {
		if authors[number] && name != "" {
			s.names[name] = uint32(number)
		}
	}
	if s.windows == nil {
		s.windowLengths = s.turnLengths
	}
	return s
}

// divide makes sections of the session that begins with a document.
func (s *conversation) divide(f *frame.Frame, o uint32) {
	for n := 0; o != 0; n, o = n+1, f.Next[o] {
		if n%sectionSize == 0 {
			s.sections++
			s.sectionWords = append(s.sectionWords, 0)
		}
		number := len(s.sectionWords) - 1
		s.section[o] = uint32(number) //nolint:gosec // no more than documents
		s.sectionWords[number] += float32(lengthOf(f, o))
		s.inSections += float64(lengthOf(f, o))
	}
}

// reply is a document, the question that it follows, and how far it is taken for the
// answer.
type reply struct {
	slot, question uint32
	part           float32
}

func windowLength(f *frame.Frame, o uint32) float32 {
	before, behind := f.Prev[o], f.Next[o]
	length := fromBefore * (lent(f, before) + lent(f, f.Prev[before]))
	length += fromBehind * (lent(f, behind) + lent(f, f.Next[behind]))
	return length + float32(lengthOf(f, o))
}

// lent is how many words of a document its neighbours have.
func lent(f *frame.Frame, o uint32) float32 { return float32(f.Body[o]) * lends(f.Body[o]) }

// afterQuestion returns the question that the document follows,
// if somebody else asked it; zero if none.
func afterQuestion(f *frame.Frame, o uint32) uint32 {
	p := f.Prev[o]
	if f.Flags[p]&segment.FlagAsks == 0 || f.Author[p] == f.Author[o] {
		return 0
	}
	return p
}
