package rank

import (
	"context"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// Part is one scope of a query.
type Part struct {
	Reader *lexical.Reader
	// Selection says which documents may be hits.
	Selection *selection.Selection
	// Vectors are the documents whose vectors are near that of the query, each
	// once, in any order. Ordinals that the Reader does not know are passed
	// over.
	Vectors []VectorHit
	// ReadVectors returns the vectors of documents, nil for each that has none; nil where
	// there are none.
	ReadVectors func(ctx context.Context, ordinals []uint32) ([][]float32, error)
	// Nearest returns the possible hits whose vectors are nearest to one; nil where
	// there are none.
	Nearest func(ctx context.Context, vector []float32, k int) ([]VectorHit, error)
}

// VectorHit is a document found by its vector.
type VectorHit struct {
	Ordinal uint32
	Cosine  float64
}

// Query is what Rank is asked.
type Query struct {
	// Words are what to look for, each once.
	Words []QueryWord
	// Names are the words of the query in their order, each as FoldName has it:
	// authors that it names are recognised by them.
	Names []string
	// Terms makes words of an author's name, as Words were made; with it, words that only
	// name an author are recognised. Nil: they are ordinary words.
	Terms func(name string) iter.Seq[string]
	// Spans are the moments that the query names.
	Spans []Span
	// Answers are the kinds of answer that the query asks for: any of
	// FlagTellsTime, FlagTellsNumber and FlagTellsName.
	Answers segment.Flags
	// List: the query asks for several things.
	List bool
	// Current: the query asks how things are now, so that of two documents which
	// say the same the newer comes first.
	Current bool
	// One: the query asks for one thing that is so, so that of two documents which state
	// the same of the same the older is out of date.
	One bool
	// Past: the query asks how things were, so that the newest statement is not preferred.
	Past bool
	// Vector is the query's; nil where Changes is.
	Vector []float32
	// Changes tells changes; nil if they are unknown, or the query asks how things were in words
	// that Past does not know. A nil Changes is the same.
	Changes func(ctx context.Context) *Changes
	// Instructs returns a function that says from 0 to 1 how surely the text of a vector is an
	// instruction that holds from then on; nil if that is unknown, or the query asks for no
	// work. A nil Instructs is the same. Foreign are the origins of documents that are none
	// whatever they say.
	Instructs func(ctx context.Context) func(vector []float32) float64
	Foreign   []string
	// Owned: the query asks for something of somebody's, such as "my address".
	Owned bool
	// Limit is how many hits at most; zero means none.
	Limit int
	// MinScore drops hits under this score, and hits that exceed it only because of their
	// neighbours or their author.
	MinScore float64
	// Judge asks for the Own of every hit, without a MinScore, too.
	Judge bool
	// Near is how much the nearest vector counts, the best document by words
	// counting 1.
	Near float64
	// Recency and Importance are the parts of a score, from 0 to 1, that an old
	// document and one of no importance lose.
	Recency, Importance float64
	// HalfLife is the age in microseconds at which half of Recency is lost. It
	// must be more than zero where Recency is.
	HalfLife int64
	// Now is the time that ages are counted from, in microseconds since 1970.
	Now int64
	// Explain asks for the signals of every hit.
	Explain bool
	// Without names signals that are left out: any of Signals.
	Without []string
}

// Changes tells statements of changes by their vectors.
type Changes struct {
	// States says from -1 to 1 whether the text of a vector states a change.
	States func(vector []float32) float64
	// Middle and Deviation are those of the cosines of texts that have nothing to do with each
	// other.
	Middle, Deviation float64
}

// Span is a stretch of time, in microseconds since 1970; To is not in it.
type Span struct {
	From, To int64
	// Yearly: the query names no year. The span is moved back by whole years
	// until it begins before the last event of all parts.
	Yearly bool
}

// QueryWord is a word of a query and how often it stands there.
type QueryWord struct {
	Text  string
	Count int
	// Other: it is another form of a word that is asked for, so that it lacks nowhere.
	Other bool
	// Named: it is written with a capital inside a sentence, as names are, or has a digit.
	Named bool
	// Weight is how much the word counts each time; zero means 1.
	Weight float64
}

func (w QueryWord) weight() float64 {
	if w.Weight == 0 {
		return float64(w.Count)
	}
	return float64(w.Count) * w.Weight
}

// Hit is a document found.
type Hit struct {
	// Part is the number of the part that it was found in.
	Part    int
	ID      string
	Ordinal uint32
	Score   float64
	// Own is the score without what stands around it and who said it, at most Score. It is
	// Score unless the query has a MinScore or says Judge.
	Own float64
	// Older are the ids of documents that stated the same of the same before, the newest
	// first: they are out of date.
	Older []string
	// Signals are what its rank is made of, the strongest first, and Words those
	// of the query that it holds; only where they were asked for.
	Signals []Signal
	Words   []string
}

// The names of signals.
const (
	SignalTurn       = "turn"       // a document's own words, and the words of the question that it answers
	SignalWindow     = "window"     // the words of what stands right before and behind it
	SignalSession    = "session"    // words of its section of the session
	SignalAuthor     = "author"     // the query names who said it
	SignalDate       = "date"       // the query names when it was
	SignalAnswer     = "answer"     // it has the kind of thing that is asked for, or says how to do the work
	SignalQuestion   = "question"   // it only asks
	SignalReply      = "reply"      // within turn: the share that a question passes to its answer
	SignalBrevity    = "brevity"    // within window and session: a few words say little by themselves
	SignalRepeated   = "repeated"   // much of its session was shown by better hits
	SignalVector     = "vector"     // its vector is near
	SignalNewer      = "newer"      // it says anew what another said
	SignalStale      = "stale"      // within newer: another says anew what it says
	SignalSeveral    = "several"    // within session and author: the query asks for several things
	SignalNow        = "now"        // within turn: words such as now count half in a query for how things are
	SignalRecency    = "recency"    // its age
	SignalImportance = "importance" // its lack of importance
	SignalAccess     = "access"     // how little it is read; package memory weighs it
)

// Signals returns the signals that a query can leave out. The others depend on the query
// itself.
func Signals() []string {
	return []string{
		SignalTurn, SignalWindow, SignalSession, SignalAuthor, SignalDate, SignalAnswer, SignalQuestion, SignalReply,
		SignalBrevity, SignalRepeated, SignalNewer, SignalSeveral, SignalNow,
	}
}

func (q Query) without(signal string) bool { return slices.Contains(q.Without, signal) }

// Signal is one signal's part of a hit's rank.
type Signal struct {
	// Name is one of the Signal constants.
	Name string
	// Raw is the measured value: a sum of BM25 weights, a cosine, an age in days,
	// an importance; 1 where there is nothing to measure.
	Raw float64
	// Share is what it added to the rank.
	Share float64
}

// Answer are what Rank found. Every candidate that is no hit is counted once,
// in the order of the fields.
type Answer struct {
	// Hits are best first, equal ranks newest first.
	Hits []Hit
	// Irrelevant: there are no hits because the candidates hold nothing of the
	// query but names of authors. They count as under the least score.
	Irrelevant bool
	// Uneven is how uneven the lengths of all documents are, from 0, as in talks of two
	// people, to 1, as in talks with an assistant.
	Uneven float64
	// LexicalCandidates counts the documents that hold a word of the query, or belong to a
	// session that does; VectorCandidates the ones found by their vectors.
	LexicalCandidates, VectorCandidates int
	// Weights are the weights of the query's words, in order, in the score of a hit: the
	// rarer the higher, zero for names of authors and for added words.
	Weights []float64
	// The candidates that the selection keeps out, that scored too low, and
	// that fell to the limit.
	Filtered, Expired, Superseded, Archived, UnderMinScore, OverLimit int
}
