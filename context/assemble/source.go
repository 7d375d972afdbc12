package assemble

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// source is what a prompt is made of.
type source struct {
	state session.Folds
	// more: the log goes on behind what was read.
	more bool
	// firm: nothing is folded any more that waits for a message.
	firm bool
	// folds stand in the history, groups are the rest and entries what the
	// policy sees of it.
	folds   []history.Fold
	groups  []*pairing.Group
	entries []history.Entry
	// window is what levels of pressure did behind the ledger.
	window window.State
	// presented is what a preset sees of them, once it was asked for.
	presented *presented
	// faded is what a preset of messages sees of them, once it was asked for.
	faded *faded
}

// read reads what is not folded, and the folds. What is too much at once is
// folded first, as far as it was read.
func (t *task) read(ctx context.Context) (*source, error) {
	for limit := t.moment.Room(); ; {
		s, err := t.readUpTo(ctx, t.moment.Folds, limit)
		if err != nil || !s.more {
			return s, err
		}
		folded, err := t.foldRead(ctx, s)
		if err != nil {
			return nil, err
		}
		if !folded {
			limit *= 2
		}
	}
}

// readUpTo reads about limit bytes of what is not folded, and the folds.
func (t *task) readUpTo(ctx context.Context, state session.Folds, limit int) (*source, error) {
	s := &source{state: state}
	if t.policy == session.PolicyLedger {
		s.folds = t.recounted(state.Live)
	}
	if t.policy != session.PolicyLedger {
		limit = 0
	}
	var err error
	if s.groups, s.more, err = t.moment.Groups(ctx, s.folds, limit, t.r.MaxBytes, t.reader()); err != nil {
		return nil, err
	}
	if t.policy == session.PolicyPreset {
		return s, t.err
	}
	if t.policy == session.PolicyLedger {
		if s.window, err = window.Decode(state.Marks[t.name].Window); err != nil {
			return nil, fmt.Errorf("assemble: %w", err)
		}
	}
	if err := t.enterAll(s); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("assemble: read history: %w", err)
	}
	return s, t.err
}

// enterAll makes entries of the groups of a source.
func (t *task) enterAll(s *source) error {
	for _, g := range s.groups {
		entries := pairing.EntriesOf(g)
		pairing.Show(g, entries, t.a.reference, t.reader())
		if err := t.weigh(g, entries); err != nil {
			return err
		}
		if t.err != nil {
			return t.err
		}
		s.entries = append(s.entries, entries...)
	}
	return nil
}

// reader is what the prompt calls fs:read_file.
func (t *task) reader() string {
	called, _ := t.r.Format.ToolName(step.ToolReadFile)
	return called
}

// compactor applies the preset.
func (t *task) compactor() *history.Compactor {
	return history.NewCompactor(t.count, t.preset).ReadBy(t.reader())
}

// recounted returns folds with their sizes for the model of this prompt.
func (t *task) recounted(folds []history.Fold) []history.Fold {
	folds = slices.Clone(folds)
	last := t.a.known.trail(t.r.Scope, t.r.SessionID)
	for i := range folds {
		size, known := last.Size(t.r.Model, i, folds[i].Text)
		if !known {
			size = t.count(folds[i].Text) + t.options.MessageTokens
		}
		folds[i].Tokens = size
	}
	return folds
}

// weigh sets what the entries of a group take beside their texts, so that the
// sizes add up to those of the messages.
func (t *task) weigh(g *pairing.Group, entries []history.Entry) error {
	left := 0
	for _, it := range g.Items(func(uint64) string { return "" }) {
		n, err := render.CountMessage(t.a.counter, t.r.Model, render.Counted(t.r.Format.Renamed(it.Message)))
		if err != nil {
			return fmt.Errorf("assemble: count %s: %w", it.Label, err)
		}
		left += n.Tokens
	}
	for i := range entries {
		left -= t.ledger.Size(&entries[i])
	}
	entries[0].ExtraTokens = left
	return nil
}
