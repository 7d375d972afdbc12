package fold

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// presented is a conversation as a preset sees it: a part for each group.
type presented struct {
	presetReading
	groups []*pairing.Group
	parts  []history.Chunk
	// whole is what the conversation takes with nothing folded.
	whole int
}

// history is the conversation as the preset shows it.
func (p *presented) history(s *Material, d *Draft, budget int) ([]pairing.Item, error) {
	c := p.c
	l := c.compactor.Show(history.Conversation{
		Parts: slices.Clone(p.parts), Mark: s.State.Marks[c.Name], Literal: c.Literal, Budget: budget,
		Since: s.State.Since, ExpectedTurns: c.Turns,
	}, &c.options)
	if l.Tokens > budget {
		return nil, p.overflow(l, budget)
	}
	d.Saved = p.whole - l.Tokens
	if l.Reason != 0 {
		d.Mark, d.Moved = l.Mark, true
		d.Batch = &Batch{Reason: l.Reason, Refs: l.Refs, Before: l.Lines + l.Before - l.Tokens, After: l.Lines}
	}
	return p.items(l)
}

// items are the messages of a layout.
func (p *presented) items(l history.Layout) ([]pairing.Item, error) {
	var out []pairing.Item
	for _, shown := range l.Shown {
		if shown.Text != "" {
			out = append(out, pairing.Item{Label: pairing.LabelSteps, Message: session.Message{Role: session.User, Content: shown.Text}, Tokens: shown.Tokens})
			continue
		}
		items, err := p.form(p.groups[shown.Part], shown.Form)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
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
		if part := &p.parts[shown.Part]; part.Stays && len(part.Acts) > 0 {
			e.Pinned += shown.Tokens
		} else {
			e.Fixed += shown.Tokens
		}
		if shown.Tokens > e.LargestTokens {
			e.Largest, e.LargestTokens = p.groups[shown.Part].Turns[0].Label, shown.Tokens
		}
	}
	if steps > e.LargestTokens {
		e.Largest, e.LargestTokens = pairing.LabelSteps, steps
	}
	return e
}

// present makes parts of the groups. What is known of them from an earlier prompt
// is not made again.
func present(c *Folding, s *Material) error {
	p := &presented{
		presetReading: presetReading{calls: c.stage.calls, c: c},
		groups:        s.Groups, parts: make([]history.Chunk, len(s.Groups)),
	}
	for i, g := range s.Groups {
		part, known := c.stage.parts.Get(c.partKey(g))
		if !known {
			var err error
			if part, err = p.part(g); err != nil {
				return err
			}
			part = c.compactor.Brief(part, c.options.MessageTokens)
			if c.Err != nil {
				return c.Err
			}
			c.stage.parts.Put(c.partKey(g), part, 1)
		}
		part.Load = func() []history.Act { return p.acts(g) }
		p.parts[i] = part
		p.whole += part.Whole
	}
	s.presented = p
	return c.Err
}

// partKey is what a part depends on: entries never change, but more of them may
// join a group.
type partKey struct {
	scope         kv.Scope
	session       string
	model, preset string
	format        provider.Format
	results       history.Results
	style         history.Style
	resultTokens  int
	first, last   uint64
	members       int
	open, awaited bool
	// said is the length of a message of the user, which may be cut.
	said int
}

func (c *Folding) partKey(g *pairing.Group) partKey {
	last := g.Members[len(g.Members)-1].Entry.Position
	said := 0
	if first := g.Turns; len(first) > 0 && first[0].Said != nil {
		said = len(first[0].Said.Content) + len(first[0].Said.BlocksJSON)
	}
	return partKey{
		said: said, scope: c.moment.Scope, session: c.moment.SessionID, model: c.Model, preset: c.Name, format: c.Format, results: c.Preset.Results, style: c.Preset.Style,
		resultTokens: c.options.ResultTokens, first: g.First(), last: last, members: len(g.Members), open: g.Open, awaited: g.Awaited,
	}
}

// presetReading says what stands for groups in the words of a preset.
type presetReading struct {
	*calls
	c *Folding
	// marker is the line that stands for a result; nil for none.
	marker func(d *done) (line string, marked bool)
}

// part makes a part of a group.
func (r *presetReading) part(g *pairing.Group) (history.Chunk, error) {
	part := history.Chunk{Acts: r.acts(g), Stays: g.Open || g.Stays(), Awaited: g.Awaited, Position: g.First()}
	whole, err := r.form(g, history.AsItIs)
	if err != nil {
		return part, err
	}
	part.Whole = sizeOf(whole)
	switch {
	case len(part.Acts) == 0:
		part.Tokens, part.Bare = part.Whole, part.Whole
	case g.Steps():
		part.Text = true
	default:
		full, bare, err := r.forms(g)
		if err != nil {
			return part, err
		}
		part.Tokens, part.Bare = sizeOf(full), sizeOf(bare)
	}
	return part, nil
}

// acts are the calls of a group with what they gave.
func (r *presetReading) acts(g *pairing.Group) []history.Act {
	acts := actsOf(r.done(g, r.outputs(g)))
	for i := range acts {
		guardAct(&acts[i])
		if !g.Steps() {
			continue
		}
		if r.c.Preset.Results == history.ResultsCompressed {
			acts[i].Inline = r.compressed(&acts[i], acts[i].Inline)
		}
		r.limit(&acts[i])
	}
	return acts
}

// guardAct keeps what a call gave from passing for the words of the message of the user
// that the call stands in as text.
func guardAct(a *history.Act) {
	a.Inline, a.Observation, a.Error = guard.Text(a.Inline), guard.Text(a.Observation), guard.Text(a.Error)
}

// outputs is what a prompt shows of a group's outputs with nothing folded.
func (r *presetReading) outputs(g *pairing.Group) pairing.Output {
	entries := pairing.EntriesOf(g)
	pairing.Show(g, entries, r.c.stage.reference, r.c.reader)
	shown := make(map[uint64]string, len(entries))
	for i := range entries {
		shown[entries[i].Position] = r.c.ledger.Shown(&entries[i])
	}
	return func(position uint64) string { return shown[position] }
}

// sizeOf is the size of messages that were counted.
func sizeOf(items []pairing.Item) int {
	n := 0
	for i := range items {
		n += items[i].Tokens
	}
	return n
}

// limit bounds what is shown of the result of a step that is text.
func (r *presetReading) limit(a *history.Act) {
	if a.Pinned || r.c.compactor.Hides(a.Step) || len(a.Inline) <= r.c.options.ResultTokens {
		return
	}
	a.Inline = r.c.ledger.Shown(&history.Entry{Kind: history.Step, Output: a.Inline, Full: pairing.Reference(&a.Step), Failed: !a.Success()})
}
