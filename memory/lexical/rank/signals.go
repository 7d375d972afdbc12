package rank

import (
	"math"
	"math/bits"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// How much each signal counts, the largest of a signal being 1. They were set on
// conversations; on texts without sessions the first two are one and the same.
const (
	turnShare    = 0.6
	windowShare  = 1.0
	sessionShare = 0.4
	// listSessionShare takes its place for a query that asks for several things:
	// they stand in several sessions.
	listSessionShare = 0.2
	// authorShare is for a document by the author that the query names.
	authorShare = 0.25
	// listAuthorShare takes its place for a query that asks for several things.
	listAuthorShare = 0.4
	// dateShare is for an event at a moment that the query names.
	dateShare = 0.5
	// answerShare is for each kind of answer that is asked for and told.
	answerShare = 0.25
	// questionShare is what a document of a session loses that only asks.
	questionShare = 0.1
	// replyShare is the part of a question's own words that goes over to what
	// somebody else says next: it is the answer.
	replyShare = 0.8
)

// scale holds the factors that make the largest of each signal what the signal
// counts; zero for a signal that nothing has. A document without a session is
// alone: it is its own. Author is what a named author counts.
type scale struct{ turn, window, session, alone, author float32 }

// finish completes the signals when all words are added, and scales them.
func (r *ranking) finish() {
	var turn, window, session float32
	for _, p := range r.parts {
		copy(p.inWindow, p.turn)
		for _, f := range p.derived.replies {
			p.inWindow[f.slot] += replyShare * p.turn[f.question]
		}
		turn = max(turn, largest(p.inWindow))
		window = max(window, largest(p.window))
		session = max(session, largest(p.session))
	}
	bySession := sessionShare
	r.scale.author = authorShare
	if r.query.List {
		bySession, r.scale.author = listSessionShare, listAuthorShare
	}
	r.scale.turn, r.scale.window = factor(turnShare, turn), factor(windowShare, window)
	r.scale.session, r.scale.alone = factor(bySession, session), factor(bySession, turn)
}

// largest is slices.Max without its care for values that are no numbers, which
// takes most of its time.
func largest(values []float32) (most float32) {
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

// factor makes the largest value the share.
func factor(share float64, largest float32) float32 {
	if largest == 0 {
		return 0
	}
	return float32(share) / largest
}

// byWords is what the words of the query say about a document.
func (r *ranking) byWords(p *rankedPart, o uint32) float32 {
	turn := p.inWindow[o]
	sum := r.scale.turn*turn + r.scale.window*p.window[o]
	if p.frame.HasNoSession(o) {
		return sum + r.scale.alone*turn
	}
	return sum + r.scale.session*p.session[p.frame.Session[o]]
}

// signals are what a document is ranked by, each scaled.
type signals struct {
	words                          float32 // from byWords
	brevity                        float32 // a factor for words
	author, date, answer, question float32
	kept                           float32 // a factor for all: what age and importance leave
}

func (s signals) rank() float32 {
	return s.kept * (s.words*s.brevity + s.author + s.date + s.answer + s.question)
}

// signalsOf returns the signals of a candidate.
func (r *ranking) signalsOf(p *rankedPart, o uint32, words float32) signals {
	f := p.frame
	s := signals{words: words, brevity: 1, kept: r.kept(f, o), date: dateShare * r.closeness(f.Event[o])}
	if p.named != 0 && f.Author[o] == p.named {
		s.author = r.scale.author
	}
	if told := f.Flags[o] & r.query.Answers; told != 0 {
		s.answer = answerShare * float32(bits.OnesCount8(uint8(told)))
	}
	if f.HasNoSession(o) {
		return s
	}
	s.brevity = brevity(f.Body[o])
	if f.Flags[o]&segment.FlagAsks != 0 {
		s.question = -questionShare
	}
	return s
}

// most is more than any candidate's signals beside its words add up to.
func (r *ranking) most() float32 {
	most := r.scale.author + answerShare*float32(bits.OnesCount8(uint8(r.query.Answers)))
	if len(r.spans) > 0 {
		most += dateShare
	}
	return most
}

// brevity marks down what was said in a few words, which tells little of its
// own.
func brevity(words uint32) float32 { return float32(words+1) / float32(words+3) }

// kept is what age and lack of importance leave of a rank.
func (r *ranking) kept(f *frame.Frame, o uint32) float32 {
	if r.query.Recency == 0 && r.query.Importance == 0 {
		return 1
	}
	return float32(r.recency(f, o) * r.importance(f, o))
}

// recency is the factor for the age of a document: of its event, if that is
// known and over, else of the document itself.
func (r *ranking) recency(f *frame.Frame, o uint32) float64 {
	q := r.query
	if q.Recency == 0 {
		return 1
	}
	age := float64(max(0, q.Now-since(f, o, q.Now))) / float64(q.HalfLife)
	return 1 - q.Recency*(1-math.Exp2(-age))
}

// since is when the document's event was, if that is known and over, else when
// the document came.
func since(f *frame.Frame, o uint32, now int64) int64 {
	if at := f.Event[o]; at != 0 && at <= now {
		return at
	}
	return f.Create[o]
}

// importance is the factor for the importance of a document.
func (r *ranking) importance(f *frame.Frame, o uint32) float64 {
	return 1 - r.query.Importance*(1-float64(f.Importance[o]))
}
