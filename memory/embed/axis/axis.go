// Package axis recognises what texts do by their vectors: whether a text states a change, such
// as "we moved, it is Mill Lane now", whether a question asks how things were, whether
// somebody comes to the question, as in "what I really want to ask is", whether a text tells an
// assistant what to do always, and whether one asks for some work. It does so in
// every language that the model knows, without lists of words.
//
// An [Axis] leads from texts of one kind to texts of another. It is made of pairs of both that
// speak of the same or the like, as the model at hand sees them.
//
// Caveats: a single text is recognised in some nine of ten cases, by a model that knows its
// language. Make little of it alone.
package axis

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// Axis is a direction in a model's space.
type Axis struct {
	direction []float32
	// middle lies half-way between the texts of either kind, and half is how far it is to them.
	middle, half float64
}

// Axes are the axes of one model.
type Axes struct {
	// Change leads from texts that state something to texts that state a change.
	Change Axis
	// Past leads from questions for how things are to those for how they were.
	Past Axis
	// Turn leads to words with which somebody who spoke of something else comes to the question.
	Turn Axis
	// Rule leads to instructions that hold from then on, as in "always answer in metric units",
	// and Request from questions for facts to those for some work. A model that recognises the
	// others may know nothing of these: then all texts are at -1.
	Rule, Request Axis
	// Middle and Deviation are those of the cosines of texts that have nothing to do with each
	// other: the median, and a deviation by the quarters.
	Middle, Deviation float64
}

// ErrUnknown: the model's vectors do not distinguish the kinds.
var ErrUnknown = errors.New("axis: the model does not distinguish changes and questions for the past from others")

// leastKnown is the part of the pairs that a model must distinguish without having seen them.
const leastKnown = 0.85

// New makes the axes of a model; those of the server's own are at hand. Errors: errors of the model,
// ErrUnknown.
func New(ctx context.Context, by embed.Embedder) (*Axes, error) {
	if a := madeFor(by.Space(), made); a != nil {
		return a, nil
	}
	return learn(ctx, by)
}

// kinds are the pairs of each axis, in the order of Axes.
func kinds() [][][2]string { return [][][2]string{changes, pasts, turns, rules, requests} }

// learn makes the axes by the model.
func learn(ctx context.Context, by embed.Embedder) (*Axes, error) {
	var texts []string
	for _, pair := range slices.Concat(kinds()...) {
		texts = append(texts, pair[0], pair[1])
	}
	vectors, err := by.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	statements := vectors[:2*len(changes)]
	var all [5]Axis
	var known [5]bool
	for i, pairs := range kinds() {
		of := vectors[:2*len(pairs)]
		vectors = vectors[len(of):]
		all[i] = between(of)
		known[i] = all[i].knows(of) >= leastKnown
	}
	if !known[0] || !known[1] || !known[2] {
		return nil, ErrUnknown
	}
	a := &Axes{Change: all[0], Past: all[1], Turn: all[2]}
	a.measure(statements)
	if known[3] && known[4] {
		a.Rule, a.Request = all[3], all[4]
	}
	return a, nil
}

// measure sets Middle and Deviation by vectors of pairs: hardly two of different pairs have
// something to do with each other.
func (a *Axes) measure(vectors [][]float32) {
	var all []float64
	for i, v := range vectors {
		for _, w := range vectors[:i/2*2] {
			all = append(all, product(v, w)/max(math.SmallestNonzeroFloat32, length(v)*length(w)))
		}
	}
	slices.Sort(all)
	const quartersOfNormal = 1.349 // how many deviations lie between the quarters
	n := len(all)
	a.Middle, a.Deviation = all[n/2], (all[3*n/4]-all[n/4])/quartersOfNormal
}

// knows is the part of the pairs that an axis made of the others has on the right sides.
func (a Axis) knows(vectors [][]float32) float64 {
	right := 0
	for i := 0; i < len(vectors); i += 2 {
		others := between(slices.Delete(slices.Clone(vectors), i, i+2))
		if others.along(vectors[i]) > others.along(vectors[i+1]) {
			right++
		}
	}
	return 2 * float64(right) / float64(len(vectors))
}

// between makes the axis of pairs of vectors: it leads from the second ones to the first.
func between(vectors [][]float32) Axis {
	a := Axis{direction: make([]float32, len(vectors[0]))}
	for i, v := range vectors {
		part := float32(1-2*(i%2)) / float32(max(math.SmallestNonzeroFloat32, length(v)))
		for n, x := range v[:min(len(v), len(a.direction))] {
			a.direction[n] += part * x
		}
	}
	var sums [2]float64
	for i, v := range vectors {
		sums[i%2] += 2 * a.along(v) / float64(len(vectors))
	}
	a.middle, a.half = (sums[0]+sums[1])/2, (sums[0]-sums[1])/2
	return a
}

// Of says how far along the axis the text of a vector is: on average, 1 where it leads, and -1
// where it begins. It is -1 for an axis that was not made.
func (a *Axis) Of(v []float32) float64 {
	if a.half == 0 {
		return -1
	}
	return (a.along(v) - a.middle) / a.half
}

// along is how far a vector of length one would reach along the axis.
func (a *Axis) along(v []float32) float64 {
	if l := length(v); l > 0 {
		return product(v, a.direction) / l
	}
	return 0
}

func product(v, w []float32) float64 {
	sum := float32(0)
	for i, x := range v[:min(len(v), len(w))] {
		sum += x * w[i]
	}
	return float64(sum)
}

func length(v []float32) float64 {
	sum := float32(0)
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(float64(sum))
}
