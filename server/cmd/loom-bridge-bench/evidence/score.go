package evidence

import (
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// countedAs is the model whose tokens are counted: those of o200k.
const countedAs = "gpt-4o"

var (
	// depths are how many hits are looked at.
	depths = [...]int{1, 5, 10, 25}
	// budgets are how many tokens of hits are looked at.
	budgets = [...]int{1000, 4000, 16_000}
)

// score is how much of the evidence a way of searching found, summed over questions.
type score struct {
	questions  int
	depths     [len(depths)]float64
	budgets    [len(budgets)]float64
	reciprocal float64
}

// hit is a turn that was found, and the tokens of what was returned of it.
type hit struct {
	id     string // as the evidence names it
	tokens int
}

// add judges the hits of a question.
func (s *score) add(q sets.Question, hits []hit) {
	s.questions++
	found := ids(hits)
	for i, depth := range depths {
		s.depths[i] += q.Recall(found[:min(depth, len(found))])
	}
	if place := q.Rank(found); place > 0 {
		s.reciprocal += 1 / float64(place)
	}
	for i, budget := range budgets {
		s.budgets[i] += q.Recall(within(hits, budget))
	}
}

// within returns the ids of the first hits that fit into a budget, up to the first that
// does not.
func within(hits []hit, budget int) []string {
	for i, h := range hits {
		if budget -= h.tokens; budget < 0 {
			return ids(hits[:i])
		}
	}
	return ids(hits)
}

func ids(hits []hit) []string {
	all := make([]string, len(hits))
	for i, h := range hits {
		all[i] = h.id
	}
	return all
}

// sizes knows the turns of a set as hits, and counts each text once.
type sizes struct {
	counter *tokens.Counter
	texts   map[string]int
	turns   map[string]map[string]hit // by talk and turn
}

func newSizes(counter *tokens.Counter, set *sets.Set) (*sizes, error) {
	s := &sizes{counter: counter, texts: make(map[string]int), turns: make(map[string]map[string]hit)}
	for _, talk := range set.Talks {
		turns := make(map[string]hit, len(talk.Turns))
		for _, turn := range talk.Turns {
			n, err := s.of(turn.Text)
			if err != nil {
				return nil, err
			}
			h := hit{turn.ID, n}
			if set.BySession {
				h.id = turn.Session
			}
			turns[turn.ID] = h
		}
		s.turns[talk.ID] = turns
	}
	return s, nil
}

func (s *sizes) of(text string) (int, error) {
	if n, ok := s.texts[text]; ok {
		return n, nil
	}
	n, err := s.counter.Count(countedAs, text)
	s.texts[text] = n.Tokens
	return n.Tokens, err
}
