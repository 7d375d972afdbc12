package memory

import "github.com/loom-bridge/loom-bridge/memory/lexical/rank"

// explanationOf says how the score of a hit came about.
func explanationOf(hit rank.Hit) *Explanation {
	e := &Explanation{MatchedWords: hit.Words, Signals: make([]SignalScore, len(hit.Signals))}
	for i, s := range hit.Signals {
		e.Signals[i] = SignalScore{Name: s.Name, Raw: s.Raw, Share: s.Share}
	}
	return e
}
