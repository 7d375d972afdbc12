package decay

import (
	"math"
	"strings"
	"unicode"
)

const (
	// lambda is how fast age counts.
	lambda = 0.5
	// noGoal is the similarity of a text to an unset goal.
	noGoal = 0.5
)

// Of returns the worth of message i of n, counted from 0, the oldest, relative to the
// others and towards a goal.
func Of(goal string, i, n int, said *Said) float64 {
	return newScorer(goal, n).of(i, said)
}

// scorer weighs the messages of one range.
type scorer struct {
	goal map[string]bool
	n    int
}

func newScorer(goal string, n int) *scorer { return &scorer{wordsOf(goal), n} }

// of is the score of the message with an index from 0, the oldest: what it is by
// itself, how near it is to the goal, and how old it is.
func (s *scorer) of(i int, said *Said) float64 {
	if said.Failed || said.Goal {
		return math.Inf(1)
	}
	age := float64(s.n-i) / float64(s.n)
	return s.near(said.Words) * math.Exp(-lambda*age)
}

// near is the share of the goal's words that a text has.
func (s *scorer) near(words string) float64 {
	if len(s.goal) == 0 {
		return noGoal
	}
	shared := 0
	for word := range wordsOf(words) {
		if s.goal[word] {
			shared++
		}
	}
	return float64(shared) / float64(len(s.goal))
}

// wordsOf are the words of a text: lower case, split at white space, without
// punctuation around them.
func wordsOf(s string) map[string]bool {
	words := make(map[string]bool)
	for _, word := range strings.Fields(strings.ToLower(s)) {
		word = strings.TrimFunc(word, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) })
		if word != "" {
			words[word] = true
		}
	}
	return words
}
