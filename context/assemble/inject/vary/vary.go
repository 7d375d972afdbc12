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

// DefaultLevel is how often something varies.
const DefaultLevel = 0.3

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
