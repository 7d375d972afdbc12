package assemble

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// preset returns a preset by its name, with the lines that the options give.
func (a *Assembler) preset(name string) history.Preset {
	p, _ := history.Named(name)
	if p.Templates.Empty() {
		p.Templates = step.DesignTemplates()
	}
	p.Templates = a.templates.Over(p.Templates)
	return p
}

// inForce returns the preset that the prompts of a session go by, if one does.
func (a *Assembler) inForce(ctx context.Context, scope kv.Scope, sessionID string) (p history.Preset, ok bool, err error) {
	c, err := a.log.Config(ctx, scope, sessionID)
	if err == nil {
		p, ok = presetOf(c)
	}
	return p, ok, err
}

// presetOf is the preset of some settings, if they have one.
func presetOf(c session.Config) (p history.Preset, ok bool) {
	if c.Policy != "" && c.Policy != session.PolicyPreset {
		return history.Preset{}, false
	}
	return history.Named(c.Preset)
}

// NumbersKinds tells whether the offloaded results of a session are named by the
// number of each kind, as its preset says: search_001, search_002, read_001.
func (a *Assembler) NumbersKinds(ctx context.Context, scope kv.Scope, sessionID string) (bool, error) {
	p, ok, err := a.inForce(ctx, scope, sessionID)
	return ok && p.NumberKinds, err
}

// Forgets tells whether the short-term memory of a session ends with the server, as its
// preset says.
func (a *Assembler) Forgets(ctx context.Context, scope kv.Scope, sessionID string) (bool, error) {
	p, ok, err := a.inForce(ctx, scope, sessionID)
	return ok && p.Forgets, err
}

// Forgetful is Forgets for sessions that have these settings.
func (a *Assembler) Forgetful(c session.Config) bool {
	p, ok := presetOf(c)
	return ok && p.Forgets
}

// Reference is how the answers of a session refer to blobs: as its preset says, or
// without one as the options do.
func (a *Assembler) Reference(ctx context.Context, scope kv.Scope, sessionID string) step.ReferenceStyle {
	if p, ok, _ := a.inForce(ctx, scope, sessionID); ok {
		return p.Reference
	}
	return a.reference
}

// Observation is how much the observations of a session say: as its preset says, or 0
// without one.
func (a *Assembler) Observation(ctx context.Context, scope kv.Scope, sessionID string) step.ObservationStyle {
	if p, ok, _ := a.inForce(ctx, scope, sessionID); ok {
		return p.Observation
	}
	return 0
}

// presented is a conversation as a preset sees it: a part for each group.
type presented struct {
	reading
	groups []*pairing.Group
	parts  []history.Part
	// whole is what the conversation takes with nothing folded.
	whole int
}

// presetHistory is the conversation as the preset shows it.
func (t *task) presetHistory(ctx context.Context, s *source, d *draft, budget int) ([]pairing.Item, error) {
	if t.preset.Style == history.StyleLevels {
		if s.faded == nil {
			if err := t.fade(ctx, s); err != nil {
				return nil, err
			}
		}
		return t.pressedHistory(s, d, budget)
	}
	if t.preset.Style.Messages() {
		return t.fadedHistory(ctx, s, d, budget)
	}
	if s.presented == nil {
		if err := t.present(s); err != nil {
			return nil, err
		}
	}
	p := s.presented
	l := p.compactor.Show(history.Conversation{
		Parts: slices.Clone(p.parts), Mark: s.state.Marks[t.name], Literal: t.literal, Budget: budget,
		Since: s.state.Since, ExpectedTurns: t.turns,
	}, &t.options)
	if l.Tokens > budget {
		return nil, p.overflow(l, budget)
	}
	d.saved = p.whole - l.Tokens
	if l.Reason != 0 {
		d.mark, d.moved = l.Mark, true
		d.batch = &Batch{Reason: l.Reason, Refs: l.Refs, Before: l.Lines + l.Before - l.Tokens, After: l.Lines, BreakEven: finite(l.BreakEven)}
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
func (t *task) present(s *source) error {
	p := &presented{
		reading: reading{t: t, compactor: t.compactor()},
		groups:  s.groups, parts: make([]history.Part, len(s.groups)),
	}
	for i, g := range s.groups {
		part, known := t.a.known.part(t.partKey(g))
		if !known {
			var err error
			if part, err = p.part(g); err != nil {
				return err
			}
			part = p.compactor.Brief(part, t.options.MessageTokens)
			if t.err != nil {
				return t.err
			}
			t.a.known.keepPart(t.partKey(g), part)
		}
		part.Load = func() []history.Act { return p.acts(g) }
		p.parts[i] = part
		p.whole += part.Whole
	}
	s.presented = p
	return t.err
}

// partKey is what a part depends on: entries never change, but more of them may
// join a group.
type partKey struct {
	session       sessionKey
	model, preset string
	format        Format
	results       history.Results
	style         history.Style
	resultTokens  int
	first, last   uint64
	members       int
	open, awaited bool
	// said is the length of a message of the user, which may be cut.
	said int
}

func (t *task) partKey(g *pairing.Group) partKey {
	last := g.Members[len(g.Members)-1].Entry.Position
	said := 0
	if first := g.Turns; len(first) > 0 && first[0].Said != nil {
		said = len(first[0].Said.Content) + len(first[0].Said.BlocksJSON)
	}
	return partKey{
		said: said, session: sessionKey{t.r.Scope, t.r.SessionID}, model: t.r.Model, preset: t.name, format: t.r.Format, results: t.preset.Results, style: t.preset.Style,
		resultTokens: t.options.ResultTokens, first: g.First(), last: last, members: len(g.Members), open: g.Open, awaited: g.Awaited,
	}
}

// reading makes parts of groups.
type reading struct {
	t         *task
	compactor *history.Compactor
	// marker is the line that stands for a result; nil for none.
	marker func(d *done) (line string, marked bool)
	// older is how many calls without a result leave each group.
	older map[*pairing.Group]int
}

// part makes a part of a group.
func (r *reading) part(g *pairing.Group) (history.Part, error) {
	part := history.Part{Acts: r.acts(g), Stays: g.Open || g.Stays(), Awaited: g.Awaited, Position: g.First()}
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
func (r *reading) acts(g *pairing.Group) []history.Act {
	acts := actsOf(r.done(g, r.outputs(g)))
	for i := range acts {
		guardAct(&acts[i])
		if !g.Steps() {
			continue
		}
		if r.t.preset.Results == history.ResultsCompressed {
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
func (r *reading) outputs(g *pairing.Group) pairing.Output {
	entries := pairing.EntriesOf(g)
	pairing.Show(g, entries, r.t.a.reference, r.t.reader())
	shown := make(map[uint64]string, len(entries))
	for i := range entries {
		shown[entries[i].Position] = r.t.ledger.Shown(&entries[i])
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
func (r *reading) limit(a *history.Act) {
	if a.Pinned || r.compactor.Hides(a.Step) || len(a.Inline) <= r.t.options.ResultTokens {
		return
	}
	a.Inline = r.t.ledger.Shown(&history.Entry{Kind: history.Step, Output: a.Inline, Full: pairing.Reference(&a.Step), Failed: !a.Success()})
}
