package rank

import (
	"math"
	"math/bits"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// How much each signal counts, the largest of a signal being 1. They were set on
// conversations of two people and of a user with an assistant; on texts without sessions
// the first two are one and the same.
const (
	turnShare   = 0.6
	windowShare = 1.0
	// unevenWindow is the part that a window loses where lengths are uneven: between long
	// answers every message has to speak for itself.
	unevenWindow = 0.6
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
	// answerShare is for each kind of answer that is asked for and present.
	answerShare = 0.25
	// questionShare is what a document of a session loses that only asks.
	questionShare = 0.1
	// askedWords is the length of the answer up to which the question loses all of it: a
	// longer one speaks of more than was asked, and its speaker may have said more than
	// the question.
	askedWords = 60
	// ownWindow is the part of what its own words lack in its window that a document is given
	// where lengths are uneven: a long answer next to it takes no more than the rest away.
	ownWindow = 0.3
	// replyShare is the part of a question's own words that goes over to what
	// somebody else says next: it is the answer.
	replyShare = 0.8
	// aloneWords is the length up to which what stands around a document counts in full.
	// The longer it is, the more it speaks for itself: its own words take the place.
	aloneWords = 30
	// tellsWords is the length up to which a document with an answer counts in full
	// for a query that asks for it: a long text has something of everything.
	tellsWords = 40
)

// shares are what the signals of a query count.
type shares struct {
	turn, window, session, author, date, answer, question, reply, repeated float32
	brief                                                                  bool
}

// sharesOf returns the shares of the signals of a query, zero for the ones that it leaves
// out.
func sharesOf(q Query) shares {
	s := shares{
		turn: turnShare, window: windowShare, session: sessionShare, author: authorShare, date: dateShare,
		answer: answerShare, question: questionShare, reply: replyShare, repeated: repeatedShare, brief: true,
	}
	if q.List {
		s.session, s.author = listSessionShare, listAuthorShare
	}
	if len(q.Without) == 0 {
		return s
	}
	for name, share := range map[string]*float32{
		SignalTurn: &s.turn, SignalWindow: &s.window, SignalSession: &s.session, SignalAuthor: &s.author, SignalDate: &s.date,
		SignalAnswer: &s.answer, SignalQuestion: &s.question, SignalReply: &s.reply, SignalRepeated: &s.repeated,
	} {
		if q.without(name) {
			*share = 0
		}
	}
	s.brief = !q.without(SignalBrevity)
	return s
}

// scale holds the factors that make the largest of each signal 1; zero for a signal that
// nothing has.
type scale struct{ turn, window, session float32 }

// finish completes the signals when all words are added, and scales them.
func (r *ranking) finish() {
	var turn, window, section float32
	believed := r.cohesion.part()
	r.shares.reply, r.shares.repeated = believed*r.shares.reply, believed*r.shares.repeated
	for _, p := range r.parts {
		copy(p.inWindow, p.turn)
		for _, f := range p.derived.replies {
			p.inWindow[f.slot] += r.shares.reply * f.part * p.turn[f.question]
		}
		turn = max(turn, largest(p.inWindow))
		window = max(window, largest(p.window))
		section = max(section, largest(p.section))
	}
	r.scale = scale{factor(turn), factor(window), factor(section)}
	r.mix = r.mixed(believed)
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

// factor makes the largest value 1.
func factor(largest float32) float32 {
	if largest == 0 {
		return 0
	}
	return 1 / largest
}

// words is what the words of the query say about a document: by its own, and by those
// around it in its window and section.
type words struct{ turn, window, section float32 }

func (w words) sum() float32 { return w.turn + w.window + w.section }

// mix holds the weights of the signals by words, computed once for all documents: the
// factors that scale them, and their shares. around are the shares of window and session;
// lone the shares of a document that is its own session. own is the share of the window
// score added to documents whose own words score less.
type mix struct {
	byTurn, byWindow, bySection         float32
	turn, window, session, around, lone float32
	own                                 float32
	believed                            float32 // of what stands around, see cohesion
}

func (r *ranking) mixed(believed float32) mix {
	s := r.shares
	return mix{
		byTurn: r.scale.turn, byWindow: s.window * r.scale.window, bySection: r.scale.session,
		turn: s.turn, window: s.window, session: s.session, around: s.window + s.session, lone: s.turn + s.session,
		own: ownWindow * float32(r.norms.turn.uneven), believed: believed,
	}
}

// alone is of a document without a session.
func (m *mix) alone(turn, window float32) words {
	return words{m.lone * (m.byTurn * turn), m.byWindow * window, 0}
}

// within is of a document of a session in which what stands around it counts that part.
func (m *mix) within(part, turn, window, section float32) words {
	part, turn, window = m.believed*part, m.byTurn*turn, m.byWindow*window
	if m.own > 0 {
		window += m.own * max(0, m.window*turn-window)
	}
	return words{(m.turn + (1-part)*m.around) * turn, part * window, part * m.session * m.bySection * section}
}

// byWords is what the words of the query say about a document.
func (r *ranking) byWords(p *rankedPart, o uint32) words {
	if section := p.derived.sectionOf(o); section != 0 {
		return r.mix.within(p.derived.alone[o], p.inWindow[o], p.window[o], p.section[section])
	}
	return r.mix.alone(p.inWindow[o], p.window[o])
}

// sumWords sums up what words say of the documents from first to last, as byWords has it.
func (r *ranking) sumWords(p *rankedPart, first, last uint32) {
	sums, turn, window := p.sums[:last+1], p.inWindow[:last+1], p.window[:last+1]
	mix := r.mix
	if p.derived.section == nil {
		for o := first; o <= last; o++ {
			sums[o] = mix.alone(turn[o], window[o]).sum()
		}
		return
	}
	sections, alone := p.derived.section[:last+1], p.derived.alone[:last+1]
	for o := first; o <= last; o++ {
		if sections[o] != 0 {
			sums[o] = mix.within(alone[o], turn[o], window[o], p.section[sections[o]]).sum()
		} else {
			sums[o] = mix.alone(turn[o], window[o]).sum()
		}
	}
}

// alone is how much what stands around a document counts.
func alone(words uint32) float32 {
	if words < aloneWords {
		return 1
	}
	return aloneWords / float32(words+1)
}

// signals are what a document is ranked by, each scaled.
type signals struct {
	words                          words
	brevity                        float32 // a factor for the words around it
	author, date, answer, question float32
	kept                           float32 // a factor for all: what age and importance leave
}

func (s signals) rank() float32 {
	return s.kept * (s.words.turn + (s.words.window+s.words.section)*s.brevity + s.author + s.date + s.answer + s.question)
}

// signalsOf returns the signals of a candidate.
func (r *ranking) signalsOf(p *rankedPart, o uint32, w words) signals {
	f := p.frame
	s := signals{words: w, brevity: 1, kept: r.kept(f, o), date: r.shares.date * r.closeness(f.Event[o])}
	if p.named != 0 && f.Author[o] == p.named {
		s.author = r.shares.author
	}
	if told := f.Flags[o] & r.query.Answers; told != 0 {
		part := min(1, tellsWords/float32(f.Body[o]+1))
		s.answer = r.shares.answer * part * float32(bits.OnesCount8(uint8(told)))
	}
	if f.HasNoSession(o) {
		return s
	}
	if r.shares.brief {
		s.brevity = 1 - (1-brevity(f.Body[o]))*float32(1-r.norms.turn.uneven)
	}
	if f.Flags[o]&segment.FlagAsks != 0 {
		s.question = -r.shares.question * r.answered(f, o)
	}
	return s
}

// answered is how far what a question asks is taken for said by what follows it. What would
// have followed the last one of a session is as long as answers are there.
func (r *ranking) answered(f *frame.Frame, o uint32) float32 {
	next := f.Next[o]
	if next == 0 {
		return float32(1 - r.norms.turn.uneven)
	}
	if f.Author[o] != 0 && f.Author[next] == f.Author[o] {
		return 1
	}
	return min(1, askedWords/float32(f.Body[next]+1))
}

// most is an upper bound of the sum of a candidate's signals other than its words, and of
// how sums of these differ that are rounded in another order.
func (r *ranking) most(p *rankedPart) float32 {
	const rounding = 1e-5
	most := rounding + r.shares.answer*float32(bits.OnesCount8(uint8(r.query.Answers)))
	if p.named != 0 {
		most += r.shares.author
	}
	if len(r.spans) > 0 {
		most += r.shares.date
	}
	return most
}

// brevity marks down the window of a document of few words, which says little itself. Among
// long answers, short documents are the user's statements: where lengths are uneven, they
// are not marked down.
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
