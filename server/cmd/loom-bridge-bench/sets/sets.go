package sets

import (
	"strings"
	"time"
)

// Set is one collection.
type Set struct {
	Name  string
	Talks []*Talk
	// BySession: the evidence of its questions names sessions, not turns.
	BySession bool
}

// Questions is how many there are in all talks.
func (s *Set) Questions() (n int) {
	for _, t := range s.Talks {
		n += len(t.Questions)
	}
	return n
}

// Talk is the content of one memory, and the questions to it.
type Talk struct {
	ID    string
	Turns []Turn // in order
	// Questions are in the order in which they are asked.
	Questions []Question
}

// Turn is one message, or one document of a collection.
type Turn struct {
	ID, Session, Author, Text string
	// Time is when it was said; zero: unknown.
	Time time.Time
	// Tells are the pieces of evidence in it, where these are known; nil: it is one itself, or
	// its session is.
	Tells []Told
	// Key and Supersedes are what the record of a fact says of its older ones.
	Key, Supersedes string
}

// Told is a piece of evidence in a turn.
type Told struct {
	// ID is how questions name it.
	ID string
	// Text are the words of the turn that state it; empty: unknown.
	Text string
}

// Told are the pieces of evidence in a turn.
func (s *Set) Told(t Turn) []Told {
	switch {
	case t.Tells != nil:
		return t.Tells
	case s.BySession:
		return []Told{{ID: t.Session}}
	}
	return []Told{{ID: t.ID}}
}

// Line is the turn as one text for engines that know no authors.
func (t Turn) Line() string {
	if t.Author == "" {
		return t.Text
	}
	return t.Author + ": " + t.Text
}

// Question asks for turns.
type Question struct {
	Text string
	// Class groups questions of one kind; empty: the collection has no classes.
	Class string
	// Evidence names its answers: turns, sessions, or facts in turns. It is never empty.
	Evidence []string
	// Stale names turns that used to answer it.
	Stale []string
	// After is how many turns of the talk exist when it is asked.
	After int
}

// Recall is the share of the evidence among what was found.
func (q Question) Recall(found []string) float64 {
	n := 0
	for _, id := range q.Evidence {
		for _, other := range found {
			if id == other {
				n++
				break
			}
		}
	}
	return float64(n) / float64(len(q.Evidence))
}

// oneLine joins the words of a text with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
