package decay

import (
	"cmp"
	"math"
	"strings"
	"unicode"
)

// Scoring says what a message is worth beside others. A zero field means its default.
type Scoring struct {
	// Lambda is how fast age counts. Default DefaultLambda.
	Lambda float64
	// ResultFactor is what results of tools count beside what was said. Default
	// DefaultResultFactor.
	ResultFactor float64
}

// Defaults of a Scoring.
const (
	DefaultLambda       = 0.5
	DefaultResultFactor = 1.0
	// noGoal is how near a text is to a goal that nobody named.
	noGoal = 0.5
)

// Of is what the message with an index of n is worth beside the others, from 0, the
// oldest, towards a goal.
func (s Scoring) Of(goal string, i, n int, said *Said) float64 {
	return newScorer(s, goal, n).of(i, said)
}

// scorer weighs the messages of one range.
type scorer struct {
	rules Scoring
	goal  map[string]bool
	n     int
}

func newScorer(rules Scoring, goal string, n int) *scorer {
	rules.Lambda = cmp.Or(rules.Lambda, DefaultLambda)
	rules.ResultFactor = cmp.Or(rules.ResultFactor, DefaultResultFactor)
	return &scorer{rules, wordsOf(goal), n}
}

// of is the score of the message with an index from 0, the oldest: what it is by
// itself, how near it is to the goal, and how old it is.
func (s *scorer) of(i int, said *Said) float64 {
	if said.Failed || said.Goal {
		return math.Inf(1)
	}
	k := 1.0
	if said.Result {
		k = s.rules.ResultFactor
	}
	age := float64(s.n-i) / float64(s.n)
	near := said.Near
	if !said.Compared {
		near = s.near(said.Words)
	}
	return k * near * math.Exp(-s.rules.Lambda*age)
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
