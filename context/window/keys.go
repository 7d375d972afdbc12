package window

import (
	"cmp"
	"fmt"
	"math"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
)

// Limits of Keys.
const (
	// MaxChars bounds the characters that a text may be cut at.
	MaxChars = 10_000_000
	// MaxScore bounds what weighs messages: more makes no difference.
	MaxScore = 100
)

// Keys are rules of levels that somebody sets one by one. A nil or zero field leaves what
// holds otherwise.
type Keys struct {
	// Thresholds are all four or none.
	Thresholds                [4]float64
	Renew                     float64
	Inclusive, SameContent    *bool
	PreviewChars              *int
	SnipChars, ReactiveChars  int
	ScoreLambda, ResultFactor float64
	// Nearness is how texts are compared with the goal.
	Nearness Nearness
}

// Nearness is how near a text is to a goal; the zero Nearness leaves what holds otherwise.
type Nearness uint8

// The ways to tell.
const (
	// Lexical is by shared words.
	Lexical Nearness = iota + 1
	// Embedding is by the cosine of their vectors.
	Embedding
)

// Over returns base with the keys that k sets.
func (k Keys) Over(base Keys) Keys {
	return Keys{
		Thresholds: cmp.Or(thresholds(k.Thresholds), thresholds(base.Thresholds)).array(), Renew: cmp.Or(k.Renew, base.Renew),
		Inclusive: cmp.Or(k.Inclusive, base.Inclusive), SameContent: cmp.Or(k.SameContent, base.SameContent),
		PreviewChars: cmp.Or(k.PreviewChars, base.PreviewChars), SnipChars: cmp.Or(k.SnipChars, base.SnipChars),
		ReactiveChars: cmp.Or(k.ReactiveChars, base.ReactiveChars), ScoreLambda: cmp.Or(k.ScoreLambda, base.ScoreLambda),
		ResultFactor: cmp.Or(k.ResultFactor, base.ResultFactor), Nearness: cmp.Or(k.Nearness, base.Nearness),
	}
}

// thresholds can be compared as one value.
type thresholds [4]float64

func (t thresholds) array() [4]float64 { return t }

// Rules are the rules that the keys make, with the defaults for the others.
func (k Keys) Rules() Rules {
	r := Rules{
		Thresholds: k.Thresholds, Renew: k.Renew, SnipChars: k.SnipChars, ReactiveChars: k.ReactiveChars,
		Inclusive: k.Inclusive != nil && *k.Inclusive, OtherIDs: k.SameContent == nil || *k.SameContent, Nearness: cmp.Or(k.Nearness, Lexical),
	}
	if k.PreviewChars != nil {
		r.PreviewChars = *k.PreviewChars
	}
	return r.WithDefaults()
}

// Scoring is base with the weights that the keys set.
func (k Keys) Scoring(base decay.Scoring) decay.Scoring {
	base.Lambda, base.ResultFactor = cmp.Or(k.ScoreLambda, base.Lambda), cmp.Or(k.ResultFactor, base.ResultFactor)
	return base
}

// Check returns the first field that breaks a rule, and what is wrong with it.
func (k Keys) Check() (field, problem string) {
	last := 0.0
	for i, threshold := range k.Thresholds {
		switch {
		case !(threshold >= 0 && threshold <= 1):
			return "thresholds", fmt.Sprintf("[%d] is %v, it must be from 0 to 1", i, threshold)
		case threshold < last:
			return "thresholds", fmt.Sprintf("[%d] is %v, less than the one before", i, threshold)
		}
		last = threshold
	}
	for _, f := range []struct {
		name string
		x    float64
		most float64
	}{{"renew", k.Renew, 1}, {"score_lambda", k.ScoreLambda, MaxScore}, {"score_tool_result_factor", k.ResultFactor, MaxScore}} {
		if !(f.x >= 0 && f.x <= f.most) || math.IsNaN(f.x) {
			return f.name, fmt.Sprintf("is %v, it must be from 0 to %v", f.x, f.most)
		}
	}
	if k.Renew > 0 && k.Renew < last {
		return "renew", fmt.Sprintf("is %v, less than the last threshold", k.Renew)
	}
	preview := 0
	if k.PreviewChars != nil {
		preview = *k.PreviewChars
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"preview_chars", preview}, {"snip_chars", k.SnipChars}, {"reactive_chars", k.ReactiveChars}} {
		if f.n < 0 || f.n > MaxChars {
			return f.name, fmt.Sprintf("is %d, it must be from 0 to %d", f.n, MaxChars)
		}
	}
	if k.Nearness > Embedding {
		return "score_rel", "is unknown"
	}
	return "", ""
}
