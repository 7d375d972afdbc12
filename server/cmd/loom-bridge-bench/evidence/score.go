package evidence

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// countedAs is the model whose tokens are counted: it uses o200k.
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

// hit is a turn that was found: its facts, and the returned text.
type hit struct {
	tells  []sets.Told
	tokens int
	// passages are the returned passages of a hit that is not whole.
	passages []string
}

// how is what counts as evidence.
type how uint8

const (
	// wholeHits: only what comes whole counts.
	wholeHits how = iota
	// evidenceParts: a part counts, too, if it holds all words of the evidence, or if these are
	// unknown.
	evidenceParts
)

// add judges the hits of a question.
func (s *score) add(q sets.Question, hits []hit) {
	s.questions++
	for i, depth := range depths {
		s.depths[i] += q.Recall(ids(hits[:min(depth, len(hits))], evidenceParts))
	}
	for i := range hits {
		if q.Recall(ids(hits[i:i+1], evidenceParts)) > 0 {
			s.reciprocal += 1 / float64(i+1)
			break
		}
	}
	for i, budget := range budgets {
		s.budgets[i] += q.Recall(ids(within(hits, budget), wholeHits))
	}
}

// within returns the first hits that fit into a budget, up to the first that does not.
func within(hits []hit, budget int) []hit {
	for i, h := range hits {
		if budget -= h.tokens; budget < 0 {
			return hits[:i]
		}
	}
	return hits
}

// ids names the evidence among hits.
func ids(hits []hit, by how) (all []string) {
	for _, h := range hits {
		for _, t := range h.tells {
			holds := func(passage string) bool { return strings.Contains(passage, t.Text) }
			if h.passages == nil || by == evidenceParts && slices.ContainsFunc(h.passages, holds) {
				all = append(all, t.ID)
			}
		}
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
			turns[turn.ID] = hit{tells: set.Told(turn), tokens: n}
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
