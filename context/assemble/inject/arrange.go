package inject

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/guard"
)

// DefaultTotal bounds all injections together, in tokens.
const DefaultTotal = 12_000

// Options are how Arrange works.
type Options struct {
	// Count counts the tokens of a text. Required.
	Count func(string) int
	// Total bounds all injections together, except conversation; default DefaultTotal.
	Total int
}

// Arrange puts injections in the order of a prompt and makes them fit: each its cap,
// and all together the total.
//
// In every phase Stable texts stand first, then Session, then Dynamic ones; within these by
// higher priority, then in the given order. Texts marked Last end their phase.
//
// Time stamps are removed from Stable and Session texts, and listed in a separate injection
// in phase Runtime, because a changed stamp would cost the provider's cache of everything
// behind it.
//
// A text over its cap keeps its largest beginning of whole lines that fits; where not
// even the first line fits, a beginning of it and an ellipsis. When all are over the
// total, the one of the lowest priority is cut first, and of equal ones the last given.
// Whole and Last texts are never cut.
//
// all is not changed.
func Arrange(all []Injection, o Options) Arranged {
	o.Total = cmp.Or(o.Total, DefaultTotal)
	a := arranger{o: o, tags: tagsOf(all)}
	for i := range all {
		a.add(&all[i], i)
	}
	a.addStamps(len(all))
	a.fit()
	slices.SortStableFunc(a.pieces, inOrder)
	return Arranged{Pieces: a.pieces, Tokens: a.total(), Limit: o.Total}
}

// inOrder compares pieces by their place in a prompt.
func inOrder(a, b Piece) int {
	return cmp.Or(
		cmp.Compare(a.Phase, b.Phase),
		compareFlags(a.Last, b.Last),
		cmp.Compare(a.rank(), b.rank()),
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.given, b.given),
	)
}

// compareFlags puts what is not set first.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// arranger is one call of Arrange.
type arranger struct {
	o      Options
	tags   []string
	pieces []Piece
	// stamps are the ones removed from cached texts, each once.
	stamps []string
}

// add takes an injection in, cut to its cap.
func (a *arranger) add(in *Injection, given int) {
	p := Piece{Injection: *in, given: given}
	if len(p.Parts) > 0 {
		p.parts = slices.Clone(p.Parts)
	} else if len(p.Messages) == 0 {
		p.parts = []string{p.Text}
	}
	for i, text := range p.parts {
		p.parts[i] = a.clean(&p, text)
	}
	p.parts = slices.DeleteFunc(p.parts, blank)
	p.shown = p.Messages
	p.Before = a.size(&p)
	p.After = p.Before
	if len(p.parts) == 0 && len(p.shown) == 0 {
		p.Reason = Blank
	} else if p.MaxTokens > 0 && p.After > p.MaxTokens {
		a.overCap(&p)
	}
	a.close(&p)
	a.pieces = append(a.pieces, p)
}

func (a *arranger) overCap(p *Piece) {
	if p.kept() {
		p.Reason = KeptOverCap
		return
	}
	a.cut(p, p.MaxTokens)
	p.Reason = OverCap
}

// clean is a text without what may not stand in it.
func (a *arranger) clean(p *Piece, text string) string {
	if p.rank() != Dynamic {
		text = a.takeStamps(text)
	}
	switch {
	case p.Framed:
	case p.Whole:
		return text
	default:
		text = guard.Text(text)
	}
	return strings.Trim(guard.Tags(text, a.tags), "\r\n")
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// close writes a piece as it stands in the prompt.
func (a *arranger) close(p *Piece) {
	p.Shown = p.wrapped(strings.Join(p.parts, between))
	p.Tokens = p.After
	if p.Tag != "" && p.Shown != "" {
		p.Tokens = a.o.Count(p.Shown)
	}
}

// size is the tokens of what a piece shows, without its tag.
func (a *arranger) size(p *Piece) int {
	if len(p.parts) > 0 {
		return a.o.Count(strings.Join(p.parts, between))
	}
	n := 0
	for i := range p.shown {
		n += a.o.Count(p.shown[i].Content)
	}
	return n
}

// tagsOf are the tags of callers' injections, which no other text may open or close.
func tagsOf(all []Injection) []string {
	var tags []string
	for i := range all {
		if tag := strings.ToLower(all[i].Tag); tag != "" && !guard.BuiltIn(tag) && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}
