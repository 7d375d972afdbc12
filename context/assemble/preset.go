package assemble

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// partSteps is the text of a preset, for people.
const partSteps = "steps"

// takeSteps takes the steps out of the conversation. Those that a message asked
// for leave the place of their result.
func (s *source) takeSteps() {
	for _, g := range s.groups {
		for _, m := range g.members {
			if m.entry.Step != nil {
				s.steps = append(s.steps, *m.entry.Step)
			}
		}
		g.turns = slices.DeleteFunc(g.turns, func(t *turn) bool { return t.said == nil })
		g.members = slices.DeleteFunc(g.members, func(m member) bool { return m.use == alone })
	}
	s.groups = slices.DeleteFunc(s.groups, func(g *group) bool { return len(g.members) == 0 })
}

// pointToSteps puts a pointer into the place of results that stand in the text
// of the preset.
func pointToSteps(g *group, entries []history.Entry) {
	for i, m := range g.members {
		if m.entry.Step != nil {
			entries[i].Output = "See " + m.entry.Step.ID() + " below."
		}
	}
}

// presetHistory is the conversation, and behind it the steps as one text.
func (t *task) presetHistory(s *source, d *draft, budget int) ([]item, error) {
	talk, err := t.ledger.Compact(history.History{Entries: s.entries})
	if err != nil {
		return nil, err
	}
	items := s.items(talk)
	if len(s.steps) == 0 {
		return items, fits(talk, 0, budget)
	}
	text := t.presetText(s.steps, s.state.Marks[t.name], d, budget-talk.Tokens-t.options.MessageTokens)
	if err := fits(talk, t.count(text)+t.options.MessageTokens, budget); err != nil {
		return nil, err
	}
	return append(items, item{label: partSteps, message: session.Message{Role: session.User, Content: text}}), nil
}

// fits returns an overflow when a conversation and the text of the steps are
// over the budget.
func fits(talk history.View, steps, budget int) error {
	if talk.Tokens+steps <= budget {
		return nil
	}
	e := &history.OverflowError{Tokens: talk.Tokens + steps, Budget: budget}
	e.Largest, e.LargestTokens = partSteps, steps
	for i := range talk.Items {
		it := &talk.Items[i]
		if it.Entry.Pinned {
			e.Pinned += it.Tokens
		} else {
			e.Fixed += it.Tokens
		}
		if it.Tokens > e.LargestTokens {
			e.Largest, e.LargestTokens = it.Entry.Label, it.Tokens
		}
	}
	return e
}

// presetText lays out the steps in about budget tokens.
func (t *task) presetText(steps []step.Step, at history.Mark, d *draft, budget int) string {
	c := history.NewCompactor(t.count, t.preset)
	budget = max(budget, 1)
	if t.literal {
		return c.Fit(steps, c.Boundary(steps), budget)
	}
	d.mark = c.Sticky(steps, at, budget, &t.options)
	text := c.Fit(steps, d.mark.Older, budget)
	before := c.Render(steps, at.Older)
	if text == before {
		return text
	}
	d.moved = d.mark != at
	d.batch = &Batch{Reason: history.ByPrice, Before: t.count(before), After: t.count(text)}
	if d.batch.Before > budget {
		d.batch.Reason = history.ByBudget
	}
	for _, s := range steps[min(at.Older, len(steps)):min(d.mark.Older, len(steps))] {
		d.batch.Refs = append(d.batch.Refs, s.ID())
	}
	return text
}
