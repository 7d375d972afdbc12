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

// Talk is what one memory holds, and what is asked of it.
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
	// Key and Supersedes are what the record of a fact says of its older ones.
	Key, Supersedes string
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
	// Evidence names the turns that answer it, or the sessions. It is never empty.
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

// Rank is where the first piece of evidence stands, from 1; zero: nowhere.
func (q Question) Rank(found []string) int {
	for i, id := range found {
		for _, wanted := range q.Evidence {
			if id == wanted {
				return i + 1
			}
		}
	}
	return 0
}

// oneLine joins the words of a text with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
