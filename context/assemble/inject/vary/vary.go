package vary

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// The variants, the usual one first.
var (
	// separators stand between blank lines; the empty one is a blank line itself.
	separators = []string{"---", "===", "***", ""}
	lists      = []List{Numbered, Bulleted, Indented}
	labels     = []string{"Status:", "Progress:", "Current state:"}
	progresses = []Progress{Percentage, Fraction, Bar, Count}
)

// Forms are how the runtime sections of a turn are written.
type Forms struct {
	// Separator stands between the query and the runtime sections.
	Separator string
	// List marks the items of a plan.
	List List
	// Label stands before Progress.
	Label string
	// Progress is how progress is written.
	Progress Progress
}

// Usual are the forms of prompts that do not vary.
func Usual() Forms { return Forms{Separator: separators[0], List: Plain, Label: labels[0]} }

// Choose gives the forms of a turn. Each is a random variant with the probability level,
// and otherwise the first.
func Choose(session, turn string, level float64) Forms {
	// Nobody has anything from guessing it.
	sum := sha256.Sum256([]byte(session + "\n" + turn))
	random := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), 0)) //nolint:gosec // the same turn is to have the same forms
	return Forms{
		Separator: pick(random, level, separators),
		List:      pick(random, level, lists),
		Label:     pick(random, level, labels),
		Progress:  pick(random, level, progresses),
	}
}

// pick draws the same numbers whatever comes of them, so that a level changes one form
// and not those behind it.
func pick[T any](random *rand.Rand, level float64, variants []T) T {
	varied, at := random.Float64() < level, random.IntN(len(variants))
	if !varied {
		at = 0
	}
	return variants[at]
}

// Levels of variation.
const (
	DefaultLevel = 0.3
	MaxLevel     = 0.8

	// What the length of a prompt and repeated calls add at most, and from where on.
	lengthShare  = 0.3
	lengthTokens = 100_000
	repeatShare  = 0.2
	repeatCalls  = 10
)

// Adaptive is the level of a prompt of so many tokens, before which the same call was
// made so many times in a row.
func Adaptive(tokens, repeats int) float64 {
	level := DefaultLevel + lengthShare*share(tokens, lengthTokens) + repeatShare*share(repeats, repeatCalls)
	return min(level, MaxLevel)
}

// share is n of most, from 0 to 1.
func share(n, most int) float64 { return min(max(float64(n), 0)/float64(most), 1) }

// Join puts the runtime sections behind a query, or before it.
func (f Forms) Join(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	if f.Separator == "" {
		return first + "\n\n" + second
	}
	return first + "\n\n" + f.Separator + "\n\n" + second
}
