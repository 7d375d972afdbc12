package provider

import "slices"

// What Anthropic's cache allows. Other providers find the longest prefix that they
// kept by themselves.
const (
	// MaxMarks is how many cache marks a request may have.
	MaxMarks = 4
	// LookBack is how many content blocks before a mark an entry is looked for, the
	// block of the mark being the first of them.
	LookBack = 20
)

// Edge is where a part of a prompt ends: its last block, and what stands up to there,
// tools and system included.
type Edge struct {
	BlockPlace
	// Blocks is how many content blocks those are, as Blocks counts them, and one for
	// each tool. Tokens is what they take.
	Blocks, Tokens int
}

// Layout is what a prompt is made of, as far as caches are concerned. A part that
// the prompt does not have is the zero Edge.
type Layout struct {
	// Tools, Stable, Session and History are the parts, in the order of the prompt.
	// What follows the settled history changes with every prompt.
	Tools, Stable, Session, History Edge
	// Folds is the end of the folds that the history begins with: folding the next steps
	// leaves everything before it unchanged.
	Folds Edge
	// Shared is how far the prompt is that of the session's call before, and Before
	// are its marks.
	Shared Edge
	Before []Mark
	// Minimum is the fewest tokens that the model's provider keeps.
	Minimum int
}

// Plan chooses the cache marks of a prompt, in order: the ends of the tools, of what
// is stable, of what stays for minutes, of the folds and of the settled history. An
// entry that is further from the end of the history than the look-back, as after a
// step of many parallel calls, gets a mark on its own place, where it is found
// without looking back. Where that makes too many, the tools go first: what is
// behind them has them, too.
func Plan(l Layout) []Mark {
	previous := l.previous()
	// The most valuable first.
	wanted := []struct {
		what string
		edge Edge
	}{
		{MarkHistory, l.History},
		{MarkHistory, previous},
		{MarkSession, l.Session},
		{MarkStable, l.Stable},
		{MarkHistory, l.Folds},
		{MarkTools, l.Tools},
	}
	var marks []Mark
	for _, w := range wanted {
		if len(marks) == MaxMarks || w.edge.Blocks == 0 || w.edge.Tokens < l.Minimum {
			continue
		}
		same := slices.IndexFunc(marks, func(m Mark) bool { return m.Blocks == w.edge.Blocks })
		if same >= 0 {
			// The part behind it is empty: the mark ends both.
			marks[same].What = w.what
			continue
		}
		marks = append(marks, Mark{What: w.what, BlockPlace: w.edge.BlockPlace, Blocks: w.edge.Blocks, Tokens: w.edge.Tokens})
	}
	slices.SortFunc(marks, func(a, b Mark) int { return a.Blocks - b.Blocks })
	for i := range marks {
		m := &marks[i]
		for _, b := range l.Before {
			if l.shares(b) && b.Blocks <= m.Blocks && m.Blocks-b.Blocks < LookBack {
				m.Expected = max(m.Expected, b.Tokens)
			}
		}
	}
	return marks
}

// shares reports whether the prompt begins with what a mark of the call before ends.
func (l *Layout) shares(m Mark) bool {
	return m.Blocks <= l.Shared.Blocks && m.Tokens <= l.Shared.Tokens
}

// previous is the last place of a mark of the call before that this prompt still has,
// if no mark of this prompt would look back that far.
func (l *Layout) previous() Edge {
	var last Mark
	for _, m := range l.Before {
		if l.shares(m) && m.Blocks <= l.History.Blocks && m.Blocks > last.Blocks {
			last = m
		}
	}
	for _, e := range []Edge{l.History, l.Folds, l.Session, l.Stable} {
		if e.Tokens >= l.Minimum && e.Blocks >= last.Blocks && e.Blocks-last.Blocks < LookBack {
			return Edge{}
		}
	}
	return Edge{BlockPlace: last.BlockPlace, Blocks: last.Blocks, Tokens: last.Tokens}
}
