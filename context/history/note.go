package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// DefaultSummaryTokens bounds a caller's summary.
const DefaultSummaryTokens = 500

// summaryMark begins the line of a caller's summary in a fold.
const summaryMark = "Summary: "

// summary is the line of the caller's summary, or nothing.
func (p *pass) summary() string {
	line, _ := p.checkedSummary()
	return line
}

// checkedSummary is the line of the caller's summary, or why there is none.
func (p *pass) checkedSummary() (line, problem string) {
	if !p.h.Now || p.h.Summary == "" {
		return "", ""
	}
	s := text.OneLine(p.h.Summary)
	switch {
	case s == "":
		return "", "it is blank"
	case len(s) > DefaultSummaryTokens*weightBytes || p.l.count(s) > DefaultSummaryTokens:
		return "", fmt.Sprintf("it is longer than %d tokens", DefaultSummaryTokens)
	}
	return summaryMark + s, ""
}

// summaryProblem is why the caller's summary stands in none of the folds that were
// made; empty where it does, or where there is none.
func (p *pass) summaryProblem() string {
	line, problem := p.checkedSummary()
	has := func(f Fold) bool { return strings.Contains(f.Text, "\n"+line+"\n") }
	switch {
	case line == "" || slices.ContainsFunc(p.made, has):
		return problem
	case len(p.made) == 0:
		return "nothing was folded"
	}
	return "a fold with it would not be shorter than what it stands for"
}

// summaryOf is the line of the caller's summary where a fold of a group has it.
func (p *pass) summaryOf(group []Fold) []string {
	text := p.summary()
	if text == "" {
		return nil
	}
	for i := range group {
		if group[i].Batch > p.h.Batch && strings.Contains(group[i].Text, "\n"+text+"\n") {
			return []string{text}
		}
	}
	return nil
}

// PolicySubtask names the rules of the folds that stand for finished sub-tasks.
const PolicySubtask = "subtask/1"

// Subtask is a piece of work that is done, and what one line says of it from then on.
type Subtask struct {
	// ID names it, Conclusion is what came of it.
	ID, Conclusion string
	// Holds reports whether an entry is a part of it. A call with its results is, when all
	// of its entries are.
	Holds func(e *Entry) bool
	// Covers reports whether all that a fold stands for is a part of it.
	Covers func(f *Fold) bool
	// Name writes references so that a reader finds the entries.
	Name func(refs []string) string
}

// subtaskHead begins the fold of a sub-task.
func subtaskHead(id string) string { return "[Subtask " + id + "] " }

// IsSubtask reports whether a fold stands for the sub-task of an id.
func (f *Fold) IsSubtask(id string) bool {
	return f.Policy == PolicySubtask && strings.HasPrefix(f.Text, subtaskHead(id))
}

// Conclude returns the history with one fold in place of what is left of a sub-task, be it
// entries or folds. What never folds, and calls that wait for a result, stay. A fold that
// would not be shorter is not made. The only errors are of Originals.
func (l *Ledger) Conclude(h History, s Subtask) (View, error) {
	p := &pass{l: l, h: h, folds: h.Folds}
	p.render()
	p.decision.Tokens = p.total
	if err := p.conclude(s); err != nil {
		return View{}, fmt.Errorf("history: conclude: %w", err)
	}
	lighten(p.made)
	return View{Items: p.items, Folds: p.live, Tokens: p.total, Original: p.original, Made: p.made, Decision: p.decision}, nil
}

func (p *pass) conclude(s Subtask) error {
	own := slices.DeleteFunc(slices.Clone(p.atoms), func(a atom) bool {
		return a.fixed || a.open || slices.ContainsFunc(a.members, func(i int) bool { return !s.Holds(&p.entries[i]) })
	})
	folds := slices.DeleteFunc(slices.Clone(p.live), func(f Fold) bool { return !s.Covers(&f) })
	if len(own)+len(folds) == 0 {
		return nil
	}
	f, d := Fold{}, newDigest()
	p.fill(&f, own)
	for i := range folds {
		old := &folds[i]
		one, err := p.digestOf(old)
		if err != nil {
			return err
		}
		d.join(one)
		f.take(old)
	}
	for _, a := range own {
		d.add(p.entries, a, excerpt.Identifiers)
		f.Before += p.atomSize(a)
	}
	slices.SortFunc(f.Refs, func(a, b string) int { // their numbers may have any length
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	f.Refs = distinctRefs(f.Refs)
	text := text.Valid(subtaskHead(s.ID) + s.Conclusion + ResultMark + " " + s.Name(f.Refs))
	made := p.newFold(LevelLines, laterHeader, nil)
	f.Policy, f.Batch, f.Level, f.Seen, f.Reason = PolicySubtask, made.Batch, LevelLines, made.Seen, ByCaller
	if len(folds) > 0 {
		f.Level = LevelDense // it stands for folds, too
	}
	f.Text, f.Tokens = text, p.l.count(text)+p.l.opts.MessageTokens
	if f.Tokens >= f.Before {
		return nil
	}
	d.conclude(s)
	f.Digest = string(d.encode())
	p.decision.Reason = ByCaller
	p.add([]Fold{f})
	return nil
}

// take adds what an older fold stands for.
func (f *Fold) take(old *Fold) {
	f.Spans = append(f.Spans, old.Spans...)
	slices.SortFunc(f.Spans, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	all := f.Spans
	f.Spans = nil
	f.cover(all)
	f.Refs = append(f.Refs, old.Refs...)
	f.Turns += old.Turns
	f.Calls += old.Calls
	f.Cuts += old.Cuts
	f.Before += old.Tokens
	f.Original += max(old.Original, old.Before)
}

// conclude leaves of the steps what is said of them: a denser fold has that.
func (d *digest) conclude(s Subtask) {
	d.steps = []digestStep{{ref: d.first, words: text.Cut(subtaskHead(s.ID)+s.Conclusion, digestCallBytes, text.Ellipsis), failed: d.failed > 0}}
	d.said = nil
	d.names.AddBest(excerpt.Identifiers(s.Conclusion), resultNames, resultNames*pathFactor)
	d.bound()
}
