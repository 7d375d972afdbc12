package record

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxLosses of a text are returned, the newest.
const maxLosses = 64

// Found is where a text stood in the prompts of a session.
type Found struct {
	// Prompts are all prompts that are kept, the oldest first.
	Prompts []past.Sighting
	// Origins are the entries of the log that have it.
	Origins []past.Origin
	// Losses say what took it out of prompts, in their order.
	Losses []Loss
	// Unread is what was passed over because it is damaged.
	Unread past.Unread
}

// Loss is a prompt that no longer shows a text.
type Loss struct {
	// Prompt is the first that shows it nowhere.
	Prompt *past.Kept
	// Section is where it stood in the prompt before; empty where it was never shown.
	Section string
	// Cause is what took it.
	Cause Cause
	// Batch is what folded it, nil for nothing.
	Batch *fold.Batch
	// Reason says it in words, where the account of the prompt does.
	Reason string
}

// Cause is what takes a text out of a prompt.
type Cause uint8

// The causes.
const (
	// ByFold: a fold stands in its place.
	ByFold Cause = iota + 1
	// ByLevel: a level of pressure shortened the history.
	ByLevel
	// ByRenewal: the window was renewed.
	ByRenewal
	// ByCap: the section had no room for it, or the result is shown shortened.
	ByCap
	// BySource: what the section is made of says it no longer.
	BySource
)

// account is what a record keeps of a prompt's receipt to say later what took a text out.
type account struct {
	// Sprint is how often the window had been renewed.
	Sprint int `json:"sprint,omitempty"`
	// Batch is what was folded without a stored fold.
	Batch *fold.Batch `json:"batch,omitempty"`
	// Missing are the sections that were not shown whole, by name.
	Missing map[string]missing `json:"missing,omitempty"`
}

// missing is the account of a section that was not shown whole.
type missing struct {
	Outcome   Outcome  `json:"outcome"`
	Reason    string   `json:"reason,omitempty"`
	Before    int      `json:"before,omitempty"`
	MaxTokens int      `json:"max,omitempty"`
	LeftOut   []string `json:"left_out,omitempty"`
}

// maxLeftOut of a section are kept in a record.
const maxLeftOut = 16

func accountFor(r *Receipt) account {
	a := account{Sprint: r.Sprint}
	if b := r.Batch; b != nil && b.Number == 0 {
		a.Batch = &fold.Batch{Reason: b.Reason, Level: b.Level, Before: b.Before, After: b.After}
	}
	for i := range r.Sections {
		if s := &r.Sections[i]; s.Outcome != Shown && s.Outcome != Empty {
			if a.Missing == nil {
				a.Missing = make(map[string]missing)
			}
			a.Missing[s.Name] = missing{s.Outcome, s.Reason, s.Before, s.MaxTokens, s.LeftOut[:min(len(s.LeftOut), maxLeftOut)]}
		}
	}
	return a
}

// sections are those of a prompt by their sizes, then the ones that had no place in it.
func (a *account) sections(sizes []past.Size) []Section {
	var all []Section
	add := func(name string, tokens int) {
		s := Section{Name: name, Tokens: tokens, Before: tokens, Outcome: Shown}
		if m, ok := a.Missing[name]; ok {
			s.Outcome, s.Reason, s.Before, s.MaxTokens, s.LeftOut = m.Outcome, m.Reason, m.Before, m.MaxTokens, m.LeftOut
		}
		all = append(all, s)
	}
	for _, size := range sizes {
		if _, short := a.Missing[size.Section]; size.Tokens > 0 || short {
			add(size.Section, size.Tokens)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Missing)) {
		if !slices.ContainsFunc(sizes, func(s past.Size) bool { return s.Section == name }) {
			add(name, 0)
		}
	}
	return all
}

// Find says in which prompts of a session a text stood, where from, and what took it out. With
// an empty text it lists the prompts alone.
func (a *Recorder) Find(ctx context.Context, scope kv.Scope, sessionID, text string) (Found, error) {
	if a.past == nil {
		return Found{}, past.Gone("no prompts are recorded here")
	}
	id := sessionOf(sessionID)
	var f Found
	var err error
	if f.Prompts, err = a.past.Search(ctx, scope, id, text, settings.ToolList, settings.History, &f.Unread); err != nil || text == "" {
		return f, err
	}
	if f.Origins, err = a.past.Origins(ctx, scope, id, text, &f.Unread); err != nil {
		return f, err
	}
	b := blame{past: a.past, scope: scope, session: id, prompts: f.Prompts, origins: f.Origins}
	before := &past.Sighting{}
	for i := range f.Prompts {
		now := &f.Prompts[i]
		losses, err := b.lost(ctx, before, now, i)
		if err != nil {
			return f, err
		}
		f.Losses = append(f.Losses, losses...)
		before = now
	}
	f.Losses = f.Losses[max(0, len(f.Losses)-maxLosses):]
	return f, nil
}

// blame finds what took a text out of prompts.
type blame struct {
	past    *past.Store
	scope   kv.Scope
	session string
	prompts []past.Sighting
	origins []past.Origin
	folds   map[past.FoldName]*history.Fold // nil: not read yet
}

// lost are the places of a text in a prompt that the next prompt shows nowhere, each section
// once. A text that the log had before any prompt showed it is lost in the first that could.
func (b *blame) lost(ctx context.Context, before, now *past.Sighting, at int) ([]Loss, error) {
	if len(now.Places) > 0 {
		return nil, nil
	}
	places := before.Places
	if len(places) == 0 {
		for i := range b.origins {
			if p := b.origins[i].Position; p <= now.Position && (at == 0 || p > before.Position) {
				places = []past.Place{{From: p}}
				break
			}
		}
	}
	var all []Loss
	known := make(map[string]bool)
	for i := range places {
		if known[places[i].Section] {
			continue
		}
		known[places[i].Section] = true
		loss, err := b.loss(ctx, before, now, &places[i])
		if err != nil {
			return nil, err
		}
		all = append(all, loss)
	}
	return all, nil
}

// loss says what took a place.
func (b *blame) loss(ctx context.Context, before, now *past.Sighting, p *past.Place) (Loss, error) {
	l := Loss{Prompt: now.Kept, Section: p.Section, Cause: BySource}
	was, is := accountOfRecord(before), accountOfRecord(now)
	f, err := b.folded(ctx, now, p)
	if err != nil {
		return l, err
	}
	cut, short := is.Missing[p.Section]
	switch {
	case f != nil:
		l.Cause = ByFold
		l.Batch = &fold.Batch{Number: f.Batch, Reason: f.Reason, Refs: f.Refs, Before: f.Before, After: f.Tokens}
	case is.Batch != nil && (p.Section == settings.History || p.Section == ""):
		l.Cause, l.Batch = ByFold, is.Batch
		if is.Batch.Level > 0 {
			l.Cause = ByLevel
		}
	case short:
		l.Cause, l.Reason = ByCap, cut.Reason
	case p.Section == "":
		l.Cause, l.Reason = ByCap, "the result is shown shortened, and the text stands in the rest"
	}
	if is.Sprint > was.Sprint && before.Kept != nil {
		l.Cause = ByRenewal
	}
	return l, nil
}

// folded is the fold of a prompt that stands for a place: of the log, of an older fold, or,
// where neither is known, for an origin.
func (b *blame) folded(ctx context.Context, now *past.Sighting, p *past.Place) (*history.Fold, error) {
	if p.Section != settings.History && p.Section != "" {
		return nil, nil
	}
	var positions []uint64
	switch {
	case p.From > 0:
		positions = []uint64{p.From}
	case p.Batch > 0:
		positions = []uint64{p.First}
	default:
		for i := range b.origins {
			positions = append(positions, b.origins[i].Position)
		}
	}
	if err := b.readFolds(ctx); err != nil {
		return nil, err
	}
	for _, name := range now.Folds {
		f := b.folds[name]
		if f == nil {
			continue
		}
		if slices.ContainsFunc(positions, f.Holds) {
			return f, nil
		}
	}
	return nil, nil
}

// readFolds reads the folds that stand in prompts.
func (b *blame) readFolds(ctx context.Context) error {
	if b.folds != nil {
		return nil
	}
	b.folds = make(map[past.FoldName]*history.Fold)
	for i := range b.prompts {
		for _, name := range b.prompts[i].Folds {
			b.folds[name] = nil
		}
	}
	return b.past.Folds(ctx, b.scope, b.session, b.folds)
}

// accountOfRecord is what the record of a prompt keeps; nothing for those of older versions.
func accountOfRecord(s *past.Sighting) account {
	var extra sentExtra
	if s.Kept != nil {
		_ = json.Unmarshal(s.Extra, &extra) // of an older version: nothing
	}
	return extra.account
}
