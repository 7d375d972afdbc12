package assemble

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// maxReadBytes bounds the text of the entries that one prompt is made of: more
// does not fit any model, and is held in memory.
const maxReadBytes = 256 << 20

// source is what a prompt is made of.
type source struct {
	state session.Folds
	// folds stand in the history, groups are the rest and entries what the
	// policy sees of it.
	folds   []history.Fold
	groups  []*group
	entries []history.Entry
	// steps are those of the whole session, for a preset.
	steps []step.Step
}

// read reads what is not folded, and the folds.
func (t *task) read(ctx context.Context) (*source, error) {
	s := &source{}
	var err error
	if s.state, err = t.a.log.Folds(ctx, t.r.Scope, t.r.SessionID); err != nil {
		return nil, fmt.Errorf("assemble: read folds: %w", err)
	}
	if t.policy == session.PolicyLedger {
		s.folds = t.recounted(s.state.Live)
	}
	if s.groups, err = t.readGroups(ctx, s.folds); err != nil {
		return nil, err
	}
	if t.policy == session.PolicyPreset {
		s.takeSteps()
	}
	for _, g := range s.groups {
		entries := entriesOf(g)
		if t.policy == session.PolicyPreset {
			pointToSteps(g, entries)
		} else {
			show(g, entries, t.a.reference)
		}
		if err := t.weigh(g, entries); err != nil {
			return nil, err
		}
		s.entries = append(s.entries, entries...)
	}
	return s, t.err
}

// recounted returns folds with their sizes for the model of this prompt.
func (t *task) recounted(folds []history.Fold) []history.Fold {
	for i := range folds {
		folds[i].Tokens = t.count(folds[i].Text) + t.options.MessageTokens
	}
	return folds
}

func (t *task) readGroups(ctx context.Context, folds []history.Fold) ([]*group, error) {
	places := history.Live(folds)
	next := 0
	p, read := &pairer{}, volume{}
	for e, err := range t.a.log.Unfolded(ctx, t.r.Scope, t.r.SessionID, folds) {
		if err == nil {
			err = ctx.Err()
		}
		for ; err == nil && next < len(places) && places[next].Spans[0].First < e.Position; next++ {
			p.cut()
		}
		if err == nil {
			err = p.entry(e)
		}
		if err != nil {
			return nil, fmt.Errorf("assemble: read history: %w", err)
		}
		if err := read.add(e, t.r.MaxBytes); err != nil {
			return nil, err
		}
	}
	if next < len(places) {
		p.cut()
	}
	return p.done(), nil
}

// volume is how much text was read.
type volume struct{ all, fixed int }

// add adds an entry. What is certainly too much ends the reading: what does not
// fold, or everything together.
func (v *volume) add(e session.Entry, maxBytes int) error {
	if e.Step != nil {
		v.all += len(e.Step.Inline) + len(e.Step.Args) + len(e.Step.Thought)
	} else {
		n := textBytes(*e.Message)
		v.all += n
		if e.Message.Role <= session.User && !e.Message.Observation {
			v.fixed += n
		}
	}
	switch {
	case maxBytes > 0 && v.fixed > maxBytes:
		return tooLarge("what is never folded has", maxBytes)
	case v.all > maxReadBytes:
		return tooLarge("what is not folded yet has", maxReadBytes)
	}
	return nil
}

// weigh sets what the entries of a group take beside their texts, so that the
// sizes add up to those of the messages.
func (t *task) weigh(g *group, entries []history.Entry) error {
	left := 0
	for _, it := range g.items(func(uint64) string { return "" }) {
		n, err := t.a.counter.Message(t.r.Model, counted(renamed(it.message, t.r.Format)))
		if err != nil {
			return fmt.Errorf("assemble: count %s: %w", it.label, err)
		}
		left += n.Tokens
	}
	for i := range entries {
		left -= t.ledger.Size(&entries[i])
	}
	entries[0].ExtraTokens = left
	return nil
}

// originals reads folded entries again, for denser folds.
func (t *task) originals(ctx context.Context) func(first, last uint64) ([]history.Entry, error) {
	return func(first, last uint64) ([]history.Entry, error) {
		p := &pairer{}
		for e, err := range t.a.log.Range(ctx, t.r.Scope, t.r.SessionID, first, last) {
			if err == nil {
				err = p.entry(e)
			}
			if err != nil {
				return nil, err
			}
		}
		var entries []history.Entry
		for _, g := range p.groups {
			entries = append(entries, entriesOf(g)...)
		}
		return entries, nil
	}
}
