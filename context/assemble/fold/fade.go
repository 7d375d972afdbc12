package fold

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// shapes are the forms of groups in a preset of messages.
type shapes struct {
	presetReading
	// older is how many calls without a result leave each group.
	older map[*pairing.Group]int
}

// faded is a conversation as a preset of messages sees it: a unit for each group.
type faded struct {
	shapes
	groups []*pairing.Group
	units  []decay.Unit
	// whole is what the conversation takes with nothing folded.
	whole int
	// lostCalls counts the calls without a result.
	lostCalls int
}

// history is the conversation as a preset of messages shows it.
func (f *faded) history(s *Material, d *Draft, budget int) ([]pairing.Item, error) {
	c := f.c
	conv := decay.Conversation{
		Units: f.units, Mark: s.State.Marks[c.Name], Literal: c.Literal, Budget: budget, Since: s.State.Since,
		Lost: f.lostCalls, ExpectedTurns: c.Turns, Goal: f.goal(c.ask.Goal),
		Zoned: c.Preset.Style == history.StyleZones,
	}
	l := decay.Show(conv, c.Text, &c.options)
	if c.Err != nil {
		return nil, c.Err
	}
	if l.Tokens > budget {
		return nil, f.overflow(l, budget)
	}
	d.Saved = f.whole - l.Tokens
	d.Mark, d.Moved = l.Mark, l.Mark != conv.Mark
	if l.Reason != 0 {
		d.Batch = &Batch{Reason: l.Reason, Refs: append(l.Refs, f.lostRefs(l.Mark.Lost-conv.Mark.Lost)...), Before: l.Less + l.Before - l.Tokens, After: l.Less}
	}
	return f.items(l)
}

// goal is what the agent works towards: what the request says, or the user at last.
func (f *faded) goal(asked string) string {
	for i := len(f.units) - 1; i >= 0 && asked == ""; i-- {
		if f.units[i].Task {
			asked = pairing.Words(f.groups[i].Members[0].Entry.Message)
		}
	}
	return asked
}

// items are the messages of a layout.
func (f *faded) items(l decay.ShownUnits) ([]pairing.Item, error) {
	var out []pairing.Item
	for _, shown := range l.Shown {
		if shown.Text != "" {
			out = append(out, pairing.Item{Label: pairing.LabelSummary, Message: session.Message{Role: session.User, Content: shown.Text}, Tokens: shown.Tokens})
			continue
		}
		items, err := f.show(shown)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
}

// show are the messages of a unit.
func (f *faded) show(shown decay.Shown) ([]pairing.Item, error) {
	g, turn := f.groups[shown.Unit], f.units[shown.Unit].Turn
	items, err := f.formed(g, turn, shown.Form)
	if err != nil || shown.Room == 0 || len(items) != 1 {
		return items, err
	}
	room := shown.Room - (items[0].Tokens - f.c.Text(items[0].Message.Content))
	items[0].Message.Content = decay.CutTask(items[0].Message.Content, session.MessageID(g.First()), room, f.c.Text)
	return f.c.Items(items)
}

// formed are the messages of a group in a form.
func (r *shapes) formed(g *pairing.Group, turn int, form decay.UnitForm) ([]pairing.Item, error) {
	own := g
	if !r.omits(g) {
		own = r.repaired(g)
	}
	if form != decay.InFull {
		own = own.Copied()
		for _, t := range own.Turns {
			t.Described = true
		}
	}
	items, _, err := r.forms(own)
	if err != nil || form == decay.InFull {
		return items, err
	}
	if form != decay.Aged {
		items = r.folded(own, turn, items)
	}
	for i := range items {
		m := &items[i].Message
		if form != decay.Folded {
			m.BlocksJSON = pairing.Aged(m.BlocksJSON, turn)
		}
		m.BlocksJSON = pairing.Undescribed(m.BlocksJSON)
	}
	return r.c.Items(items)
}

// overflow says what takes most of a layout that does not fit.
func (f *faded) overflow(l decay.ShownUnits, budget int) error {
	e := &history.OverflowError{Tokens: l.Tokens, Budget: budget}
	for _, shown := range l.Shown {
		if shown.Text == "" && f.units[shown.Unit].Stays && !f.units[shown.Unit].Task {
			e.Pinned += shown.Tokens
		} else {
			e.Fixed += shown.Tokens
		}
		if shown.Tokens > e.LargestTokens {
			e.Largest, e.LargestTokens = pairing.LabelSummary, shown.Tokens
			if shown.Text == "" {
				e.Largest = f.groups[shown.Unit].Turns[0].Label
			}
		}
	}
	return e
}

// fade makes units of the groups.
func fade(ctx context.Context, c *Folding, s *Material) error {
	f := &faded{
		shapes: shapes{presetReading: presetReading{calls: c.stage.calls, c: c}},
		groups: s.Groups, units: make([]decay.Unit, len(s.Groups)),
	}
	f.older = f.lost()
	turn, leading := 0, true
	for i, g := range s.Groups {
		if g.Begins() {
			turn++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		u, whole, err := f.known(g, max(turn, 1))
		if err != nil {
			return err
		}
		leading = leading && g.Instructs()
		u.Wish = g.Begins()
		u.Kept = g.Pinned() || g.Open || leading
		u.Stays = u.Kept || g.Awaited || g.Instructs()
		f.units[i] = u
		f.whole += whole
	}
	f.protect()
	s.faded = f
	return c.Err
}

// protect marks the current task, the first wish of the user and the newest failures. Where
// the newest messages stay and the prompt ends with the goal, that is the task: what the
// user said last leaves before the newest message does.
func (f *faded) protect() {
	task, first, failures := -1, -1, history.ProtectLast
	for i, g := range f.groups {
		if g.Begins() {
			task = i
			if first < 0 {
				first = i
			}
		}
	}
	asked := f.c.Preset.Style == history.StyleNewest && f.c.ask.AsTask && f.c.ask.Goal != ""
	if task >= 0 {
		u := &f.units[task]
		u.Yields = asked && task < len(f.groups)-1 && !u.Kept
		u.Stays, u.Kept = true, true
		only := len(f.groups[task].Members) == 1
		u.Task = only && len(f.groups[task].Members[0].Entry.Message.BlocksJSON) == 0
	}
	for i := range slices.Backward(f.units) {
		said := slices.Clone(f.units[i].Said)
		for k := range slices.Backward(said) {
			s := &said[k]
			s.Goal = i == first && s.Role == session.User.String()
			if s.Failed {
				s.Failed = failures > 0
				failures--
			}
		}
		f.units[i].Said = said
	}
}

// fadedUnit is the cached data of a group: its unit, without the parts that depend on other
// groups, and its size unchanged.
type fadedUnit struct {
	unit  decay.Unit
	whole int
}

// known is the unit of a group, and what that takes as it is.
func (r *shapes) known(g *pairing.Group, turn int) (decay.Unit, int, error) {
	key := r.c.partKey(g)
	if u, ok := r.c.stage.units.Get(key); ok && u.unit.Turn == turn && r.older[g] == 0 {
		return u.unit, u.whole, nil
	}
	u, err := r.unit(g, turn)
	if err != nil || r.c.Err != nil {
		return decay.Unit{}, 0, cmp.Or(err, r.c.Err)
	}
	whole, err := r.form(g, history.AsItIs)
	if err != nil {
		return decay.Unit{}, 0, err
	}
	if r.older[g] == 0 {
		r.c.stage.units.Put(key, fadedUnit{u, sizeOf(whole)}, 1)
	}
	return u, sizeOf(whole), nil
}

// unit makes a unit of a group.
func (r *shapes) unit(g *pairing.Group, turn int) (decay.Unit, error) {
	u := decay.Unit{Position: g.First(), Turn: turn, Asked: g.Answers(), Said: r.said(g), Refs: refsOf(g)}
	sizes := []*int{&u.Full, &u.Aged, &u.Folded, &u.FoldedAged}
	for i, form := range []decay.UnitForm{decay.InFull, decay.Aged, decay.Folded, decay.FoldedAged} {
		items, err := r.formed(g, turn, form)
		if err != nil {
			return u, err
		}
		if *sizes[i] = sizeOf(items); form == decay.InFull {
			u.Messages = len(items)
		}
	}
	return u, nil
}

// spokenItems are the messages of a group without the results of its calls, which
// are texts in none of them.
func spokenItems(g *pairing.Group) []pairing.Item {
	given := make(map[string]bool)
	for i := range g.Members {
		if m := &g.Members[i]; m.Use == pairing.Observed || m.Use == pairing.Stray || m.Use == pairing.Again {
			given[pairing.MessageLabel(m.Entry)] = true
		}
	}
	var out []pairing.Item
	for _, t := range g.Turns {
		switch {
		case t.Said == nil:
			if m := t.Message(nil); m.Content != "" {
				out = append(out, pairing.Item{Label: t.Label, Message: session.Message{Role: session.Assistant, Content: m.Content}})
			}
		case given[t.Label]:
		case len(t.Calls) > 0:
			if words := pairing.Words(t.Said); words != "" {
				out = append(out, pairing.Item{Label: t.Label, Message: session.Message{Role: t.Said.Role, Content: words, Name: t.Said.Name}})
			}
		default:
			m := *t.Said
			if m.BlocksJSON = withoutAnswers(m.BlocksJSON); len(m.BlocksJSON) > 0 || len(t.Said.BlocksJSON) == 0 {
				out = append(out, pairing.Item{Label: t.Label, Message: m})
			}
		}
	}
	return out
}

// withoutAnswers are blocks without the results of calls; nil where nothing is left.
func withoutAnswers(blocks json.RawMessage) json.RawMessage {
	return content.Without(blocks, func(p *content.Block) bool { return p.Kind == content.Result })
}

// folded are the messages of a group in the zone of folds: shortened texts, and a line
// for each call. full are those in full.
func (r *shapes) folded(g *pairing.Group, turn int, full []pairing.Item) []pairing.Item {
	var done []done
	if !r.omits(g) {
		done = r.answered(g)
	}
	items := full
	if len(done) > 0 {
		items = spokenItems(g)
	}
	out := make([]pairing.Item, 0, len(items)+1)
	for _, it := range items {
		out = append(out, pairing.Item{Label: it.Label, Message: shortened(it.Message)})
	}
	lines := make([]string, len(done))
	for i := range done {
		a := &done[i].act
		lines[i] = decay.CallLine(turn, calledAs(a), r.outcome(a))
	}
	if len(lines) > 0 {
		out = append(out, pairing.Item{Label: pairing.LabelSteps, Message: session.Message{Role: session.User, Content: strings.Join(lines, "\n")}})
	}
	return out
}

// answered are the calls of a group with their results, without results that no call
// waits for.
func (r *shapes) answered(g *pairing.Group) []done {
	return slices.DeleteFunc(r.done(g, r.outputs(g)), func(d done) bool { return d.call == nil && g.UseOf(d.result) == pairing.Stray })
}

// calledAs is the name of a tool as it was called.
func calledAs(a *history.Act) string { return cmp.Or(a.CalledAs, a.ToolName) }

// mostTitles of a search stand in its line.
const mostTitles = 3

// outcome returns the result of a call on one line: the first titles of a search, otherwise
// the observation, and the reference of the whole.
func (r *shapes) outcome(a *history.Act) string {
	kind := compress.StrategyOf(compress.Result{Tool: a.ToolName, Content: text.Head(a.Inline, 1)})
	if a.Success() && kind == compress.Search {
		if n, titles := compress.Titles(a.Inline, mostTitles); len(titles) > 0 {
			return decay.Found(n, titles)
		}
	}
	line := text.OneLine(a.ToObservation(step.ReferenceShort))
	for _, name := range []string{calledAs(a), a.ToolName} {
		line = strings.TrimPrefix(line, name+" → ")
	}
	return line
}

// shortened is a message with shortened texts.
func shortened(m session.Message) session.Message {
	m.Content = decay.Fold(m.Content)
	m.BlocksJSON = content.WithTexts(m.BlocksJSON, decay.Fold)
	return m
}

// refsOf name the entries of a group.
func refsOf(g *pairing.Group) []string {
	refs := make([]string, len(g.Members))
	for i := range g.Members {
		e := &g.Members[i].Entry
		if e.Step != nil {
			refs[i] = e.Step.ID()
		} else {
			refs[i] = session.MessageID(e.Position)
		}
	}
	return refs
}

// maxWeighed bounds what of a message is weighed against the goal, in bytes: units are
// remembered.
const maxWeighed = 1 << 10

// said is what a summary may say of a group: its messages, and for each call what
// came of it.
func (r *shapes) said(g *pairing.Group) []decay.Said {
	all := make([]decay.Said, 0, len(g.Members))
	for _, it := range spokenItems(g) {
		m := &it.Message
		words := pairing.Words(m)
		sentence := decay.Sentence(words)
		if sentence == "" && len(m.BlocksJSON) > 0 && len(pairing.CallsWithin(m)) == 0 {
			sentence = decay.Multimodal
		}
		all = append(all, decay.Said{Role: m.Role.String(), Sentence: sentence, Words: text.Head(words, maxWeighed)})
	}
	if r.omits(g) {
		return all
	}
	done := r.answered(g)
	for i := range done {
		a := &done[i].act
		line := decay.Sentence(calledAs(a) + " → " + r.outcome(a))
		all = append(all, decay.Said{
			Role: session.Tool.String(), Sentence: line, Words: text.Head(cmp.Or(a.Inline, a.Observation), maxWeighed), Failed: a.Outcome == step.Failed,
		})
	}
	return all
}
