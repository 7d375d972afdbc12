package history

import (
	"cmp"
	"slices"
)

// Reason says why a batch was folded. The numbers are part of the stored
// format.
type Reason uint8

// The reasons.
const (
	// ByPrice: leaving the entries as they were had cost as much as folding
	// them, and the steps to come pay for it.
	ByPrice Reason = iota + 1
	// ByBudget: the history would not have fit.
	ByBudget
	// ByCaller: it was asked for.
	ByCaller
)

// String returns "price", "budget" or "caller".
func (r Reason) String() string {
	switch r {
	case ByPrice:
		return "price"
	case ByBudget:
		return "budget"
	case ByCaller:
		return "caller"
	}
	return "none"
}

// Levels of density.
const (
	// LevelLines has a line for each call, with all evidence.
	LevelLines = 1
	// LevelDense has short lines for the newer steps and one summary of all. It is made
	// when there are too many older folds, from the digests of their entries, never from
	// their text.
	LevelDense = 2
)

// Span is a run of positions, both ends included.
type Span struct{ First, Last uint64 }

// Fold stands for entries of a log. One that was made never changes.
type Fold struct {
	// Policy names the rules that made the text, with their version.
	Policy string
	// Batch counts the batches of a session, from 1. The folds of one batch are
	// made, stored and undone together.
	Batch uint64
	// Reason is why the batch was made.
	Reason Reason
	// Level is LevelLines or LevelDense.
	Level int
	// Spans are the positions it stands for, ascending. It stands in the place
	// of the first.
	Spans []Span
	// Through is the last position that its batch decided about: what stands up
	// to there and in no fold stays as it is.
	Through uint64
	// Seen is the last position of the log when the batch was made.
	Seen uint64
	// Text is what stands in the prompt, as one message of role user.
	Text string
	// Refs are the references that the text names, each once, in order; of a
	// dense fold the newest hundred.
	Refs []string
	// Tokens is the size of Text as a message, Before what its entries took in
	// the prompt until then, Original what they would take in one that shows
	// each of them whole, up to the limit of a result.
	Tokens, Before, Original int
	// Turns are the model's turns in it. Calls are their calls, Cuts those
	// whose arguments are not whole.
	Turns, Calls, Cuts int
	// Digest is what a denser fold is made of later, recorded from the entries,
	// in a form of this package's own. Without one the entries are read again.
	Digest string
}

// What folds take in bytes.
const (
	// weightBytes of text count as a token at least: rules and blanks have a
	// hundred bytes a token, but a store and a network count bytes.
	weightBytes = 16
	// maxFoldBytes of lines, references and positions end a run, so that its
	// fold can be stored with its digest: a store may refuse more than a
	// mebibyte.
	maxFoldBytes = 384 << 10
	// maxLineBytes bounds what one turn has in a fold.
	maxLineBytes = 128 << 10
	// maxStoredBytes and maxBatchBytes: a fold, or a batch, that takes more leaves
	// digests out.
	maxStoredBytes = 960 << 10
	maxBatchBytes  = 6 << 20
	// Beside texts, a reference and a run of positions take so many bytes.
	refBytes, spanBytes, fixedBytes = 4, 24, 512
)

// weight is what a fold counts as against a limit of tokens.
func (f *Fold) weight() int { return max(f.Tokens, len(f.Text)/weightBytes) }

// stored is at least what the stored form takes.
func (f *Fold) stored() int {
	n := fixedBytes + len(f.Policy) + len(f.Text) + len(f.Digest) + spanBytes*len(f.Spans)
	for _, ref := range f.Refs {
		n += len(ref) + refBytes
	}
	return n
}

// lighten leaves out the digests that would make folds too large to store;
// a user of them reads the entries again.
func lighten(made []Fold) {
	total := 0
	for i := range made {
		if made[i].stored() > maxStoredBytes {
			made[i].Digest = ""
		}
		total += made[i].stored()
	}
	for i := range made {
		if total <= maxBatchBytes {
			return
		}
		total -= len(made[i].Digest)
		made[i].Digest = ""
	}
}

// first is where the fold stands.
func (f *Fold) first() uint64 { return f.Spans[0].First }

// Holds reports whether a position is in the fold.
func (f *Fold) Holds(position uint64) bool {
	at, found := slices.BinarySearchFunc(f.Spans, position, func(s Span, p uint64) int {
		switch {
		case s.Last < p:
			return -1
		case s.First > p:
			return 1
		}
		return 0
	})
	return found && at < len(f.Spans)
}

// include adds a position, which is greater than all others.
func (f *Fold) include(position uint64) {
	f.cover([]Span{{position, position}})
}

// cover adds spans, which are greater than all others.
func (f *Fold) cover(spans []Span) {
	for _, s := range spans {
		if last := len(f.Spans) - 1; last >= 0 && f.Spans[last].Last+1 == s.First {
			f.Spans[last].Last = s.Last
			continue
		}
		f.Spans = append(f.Spans, s)
	}
}

// Live returns the folds that stand in a prompt, in the order of their places: the folds
// that no later, denser fold replaces. The argument is in the order in which they were made
// and stays as it is; where all of it stands in that order, too, it is the answer. Both are
// for reading only.
func Live(folds []Fold) []Fold {
	if standInOrder(folds) {
		return slices.Clip(folds)
	}
	order := make([]*Fold, 0, len(folds))
	for i := range folds {
		f := &folds[i]
		if f.Level > LevelLines {
			first, last := f.first(), f.last()
			order = slices.DeleteFunc(order, func(old *Fold) bool {
				return first <= old.first() && old.first() <= last && f.Holds(old.first())
			})
		}
		order = append(order, f)
	}
	slices.SortStableFunc(order, func(a, b *Fold) int { return cmp.Compare(a.first(), b.first()) })
	live := make([]Fold, len(order))
	for i, f := range order {
		live[i] = *f
	}
	return live
}

// standInOrder reports whether each fold stands behind the one before. Then none stands for
// another, which would stand at its place or before.
func standInOrder(folds []Fold) bool {
	for i := 1; i < len(folds); i++ {
		if folds[i].first() <= folds[i-1].first() {
			return false
		}
	}
	return true
}

// last is the last position that it stands for.
func (f *Fold) last() uint64 { return f.Spans[len(f.Spans)-1].Last }
