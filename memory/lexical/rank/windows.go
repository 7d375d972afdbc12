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
)

// conversation is what ranking derives from a frame, once.
type conversation struct {
	// windows are the lengths of the windows, by slot; nil if no document
	// has a session.
	windows     []float32
	windowWords float64 // of all live documents together
	// sessions counts those with a live document, and sessionWords their
	// words; documents without a session are in neither.
	sessions     float64
	sessionWords float64
	// lastEvent is the latest event, in microseconds since 1970; zero for none.
	lastEvent int64
	// replies are the documents that follow a question that somebody else asked,
	// with that question.
	replies []reply
	// names are the numbers of the authors of live documents by their names.
	names map[string]uint32
}

func deriveConversation(f *frame.Frame) *conversation {
	s := &conversation{names: make(map[string]uint32, len(f.Authors))}
	for number, words := range f.SessionWords {
		if f.SessionDigest[number] != 0 && f.SessionSize[number] > 0 {
			s.sessions++
			s.sessionWords += float64(words)
		}
	}
	windows, authors := make([]float32, f.Slots()+1), make([]bool, len(f.Authors))
	for o := uint32(1); o <= f.Slots(); o++ {
		if !f.Deleted.Contains(o) {
			windows[o] = windowLength(f, o)
			authors[f.Author[o]] = true
			s.windowWords += float64(windows[o])
			s.lastEvent = max(s.lastEvent, f.Event[o])
			if q := afterQuestion(f, o); q != 0 {
				s.replies = append(s.replies, reply{o, q})
			}
		}
	}
	for number, name := range f.Authors {
		if authors[number] && name != "" {
			s.names[name] = uint32(number)
		}
	}
	if s.sessions > 0 {
		s.windows = windows
	}
	return s
}

// reply is a document and the question that it follows.
type reply struct{ slot, question uint32 }

func windowLength(f *frame.Frame, o uint32) float32 {
	before, behind := f.Prev[o], f.Next[o]
	length := fromBefore * float32(f.Body[before]+f.Body[f.Prev[before]])
	length += fromBehind * float32(f.Body[behind]+f.Body[f.Next[behind]])
	return length + float32(f.Length(o))
}

// afterQuestion returns the question that the document follows,
// if somebody else asked it; zero if none.
func afterQuestion(f *frame.Frame, o uint32) uint32 {
	p := f.Prev[o]
	if f.Flags[p]&segment.FlagAsks == 0 || f.Author[p] == f.Author[o] {
		return 0
	}
	return p
}
