package assemble

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// partSteps is what a preset makes of steps, for people.
const partSteps = "steps"

// presented is a conversation as a preset sees it: a part for each group, and the
// messages that show it in full.
type presented struct {
	parts []history.Part
	full  []fullForm
	// whole is the conversation with nothing folded.
	whole history.View
}

// fullForm are the messages of a group in full, without its results, and as they
// are without a preset.
type fullForm struct{ items, bare, whole []item }

// presetHistory is the conversation as the preset shows it.
func (t *task) presetHistory(s *source, d *draft, budget int) ([]item, error) {
	if s.presented == nil {
		if err := t.present(s); err != nil {
			return nil, err
		}
	}
	p := s.presented
	l := history.NewCompactor(t.count, t.preset).Show(history.Conversation{
		Parts: slices.Clone(p.parts), Mark: s.state.Marks[t.name], Literal: t.literal, Budget: budget,
		Since: s.state.Since, ExpectedTurns: t.turns,
	}, &t.options)
	if l.Tokens > budget {
		return nil, p.overflow(l, budget)
	}
	d.saved = p.whole.Tokens - l.Tokens
	if l.Reason != 0 {
		d.mark, d.moved = l.Mark, true
		d.batch = &Batch{Reason: l.Reason, Refs: l.Refs, Before: l.Lines + l.Before - l.Tokens, After: l.Lines, BreakEven: finite(l.BreakEven)}
	}
	return p.items(l), nil
}

// items are the messages of a layout.
func (p *presented) items(l history.Layout) []item {
	var out []item
	for _, shown := range l.Shown {
		switch form := &p.full[shown.Part]; {
		case shown.Text != "":
			out = append(out, item{partSteps, session.Message{Role: session.User, Content: shown.Text}, shown.Tokens})
		case shown.Form == history.Bare:
			out = append(out, form.bare...)
		case shown.Form == history.AsItIs:
			out = append(out, form.whole...)
		default:
			out = append(out, form.items...)
		}
	}
	return out
}

// overflow says what takes most of a layout that does not fit.
func (p *presented) overflow(l history.Layout, budget int) error {
	e := &history.OverflowError{Tokens: l.Tokens, Budget: budget}
	steps := 0
	for _, shown := range l.Shown {
		if shown.Text != "" {
			steps += shown.Tokens
			continue
		}
		label := partSteps
		if whole := p.full[shown.Part].whole; len(whole) > 0 {
			label = whole[0].label
		}
		if part := &p.parts[shown.Part]; part.Stays && len(part.Acts) > 0 {
			e.Pinned += shown.Tokens
		} else {
			e.Fixed += shown.Tokens
		}
		if shown.Tokens > e.LargestTokens {
			e.Largest, e.LargestTokens = label, shown.Tokens
		}
	}
	if steps > e.LargestTokens {
		e.Largest, e.LargestTokens = partSteps, steps
	}
	return e
}

// present makes parts of the groups.
func (t *task) present(s *source) error {
	whole, err := t.ledger.Compact(history.History{Entries: s.entries})
	if err != nil {
		return err
	}
	p := &presented{whole: whole, parts: make([]history.Part, len(s.groups)), full: make([]fullForm, len(s.groups))}
	outputs := outputsOf(whole)
	r := reading{t: t, compactor: history.NewCompactor(t.count, t.preset), whole: func(position uint64) string { return outputs[position] }}
	for i, g := range s.groups {
		if p.parts[i], p.full[i], err = r.group(g); err != nil {
			return err
		}
	}
	s.presented = p
	return t.err
}

// outputsOf are the outputs that a view shows, by the positions of their entries.
func outputsOf(v history.View) map[uint64]string {
	outputs := make(map[uint64]string, len(v.Items))
	for i := range v.Items {
		if e := v.Items[i].Entry; e != nil {
			outputs[e.Position] = v.Items[i].Output
		}
	}
	return outputs
}

// reading makes parts of groups.
type reading struct {
	t         *task
	compactor *history.Compactor
	// whole is what a prompt shows of an entry's output with nothing folded.
	whole output
}

// group makes a part of a group.
func (r *reading) group(g *group) (history.Part, fullForm, error) {
	all := r.done(g)
	part := history.Part{Acts: actsOf(all), Stays: g.open || g.stays(), Awaited: g.awaited, Position: g.first()}
	whole, err := r.counted(g.items(r.whole))
	if err != nil {
		return part, fullForm{}, err
	}
	form := fullForm{whole, whole, whole}
	switch {
	case len(all) == 0:
	case g.steps():
		part.Text = true
		for i := range part.Acts {
			r.limit(&part.Acts[i])
		}
	default:
		if form.items, form.bare, err = r.form(g, all); err != nil {
			return part, form, err
		}
	}
	part.Tokens, part.Bare, part.Whole = sizeOf(form.items), sizeOf(form.bare), sizeOf(whole)
	return part, form, nil
}

// sizeOf is the size of messages that were counted.
func sizeOf(items []item) int {
	n := 0
	for i := range items {
		n += items[i].tokens
	}
	return n
}

// stays tells whether a group is never shown as lines: it is pinned, or somebody
// says something in it that no tool gave.
func (g *group) stays() bool {
	return slices.ContainsFunc(g.members, func(m member) bool {
		if m.entry.Step != nil {
			return m.entry.Step.Pinned
		}
		said := m.entry.Message
		return said.Pinned || m.use == spoken && said.Role != session.Assistant
	})
}

// limit bounds what is shown of the result of a step that is text.
func (r *reading) limit(a *history.Act) {
	if a.Pinned || r.compactor.Hides(a.Step) || r.t.count(a.Inline) <= r.t.options.ResultTokens {
		return
	}
	v, err := r.t.ledger.Compact(history.History{Entries: []history.Entry{{
		Position: 1, Kind: history.Step, Output: a.Inline, Full: reference(&a.Step), Failed: !a.Success(),
	}}})
	if err == nil {
		a.Inline = v.Items[0].Output
	}
}
