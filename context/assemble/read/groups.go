package read

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Limits of the text of entries that is held in memory.
const (
	// maxReadBytes bounds what one prompt is made of: more does not fit any model.
	maxReadBytes = 256 << 20
	// DefaultBytes is what a prompt reads at once if it can fold that before
	// it reads on: more than the window of any model.
	DefaultBytes = 16 << 20
)

// Groups reads what is in none of the folds. Where limit is not 0, more says that the reading
// ended behind so much text: what was read is to be folded first. maxBytes bounds what is
// never folded; 0 is no bound. reader is what the prompt calls fs:read_file.
func (m *Moment) Groups(ctx context.Context, folds []history.Fold, limit, maxBytes int, reader string) (groups []*pairing.Group, more bool, err error) {
	places := history.Live(folds)
	next := 0
	p, read := &pairing.Pairer{Reader: reader}, volume{}
	p.Earlier = func(position uint64) ([]*pairing.Group, error) { return m.asked(ctx, position) }
	for e, err := range m.log.Unfolded(ctx, m.Scope, m.SessionID, folds) {
		if err == nil {
			err = ctx.Err()
		}
		for ; err == nil && next < len(places) && places[next].Spans[0].First < e.Position; next++ {
			p.Cut()
		}
		if err == nil {
			err = p.Add(e)
		}
		if err != nil {
			return nil, false, fmt.Errorf("assemble: read history: %w", err)
		}
		if err := read.add(e, maxBytes); err != nil {
			return nil, false, err
		}
		if err := m.holds(ctx, read.all); err != nil {
			return nil, false, err
		}
		if limit > 0 && read.all > limit {
			return p.Done(), true, nil
		}
	}
	if next < len(places) {
		p.Cut()
	}
	return p.Done(), false, nil
}

// asked returns the groups of steps right before a position that a message there
// may ask for, with nothing but their names and ids.
func (m *Moment) asked(ctx context.Context, position uint64) ([]*pairing.Group, error) {
	if position <= 1 {
		return nil, nil
	}
	p := &pairing.Pairer{}
	// The steps, and the message that asked for them if one did.
	first := position - min(position-1, 2*pairing.MaxHeld)
	for e, err := range m.log.Range(ctx, m.Scope, m.SessionID, first, position-1) {
		if err == nil {
			err = p.Add(named(e))
		}
		if err != nil {
			return nil, err
		}
	}
	return p.Asked(), nil
}

// named is an entry without its texts.
func named(e session.Entry) session.Entry {
	switch {
	case e.Step != nil:
		e.Step = &step.Step{Number: e.Step.Number, ToolName: e.Step.ToolName, TurnID: e.Step.TurnID, CallID: e.Step.CallID}
	case e.Message != nil:
		m := *e.Message
		m.Content = ""
		e.Message = &m
	}
	return e
}

// volume is how much text was read.
type volume struct{ all, fixed int }

// add adds an entry. What is certainly too much ends the reading: what does not
// fold, or everything together.
func (v *volume) add(e session.Entry, maxBytes int) error {
	n := Bytes(e)
	v.all += n
	if e.Step == nil && e.Message.Role.Stays() && !e.Message.Observation {
		v.fixed += n
	}
	switch {
	case maxBytes > 0 && v.fixed > maxBytes:
		return &render.TooLargeError{
			What: "messages of the user and of the system, which are never folded, have", Limit: maxBytes,
			Advice: "no policy makes them fit; go on in another session, hand long texts over as results of calls or as files, or let the server send larger answers",
		}
	case v.all > maxReadBytes:
		return &render.TooLargeError{
			What: "the unfolded history has", Limit: maxReadBytes,
			Advice: "fold it with CompactHistory, use the policy ledger, or go on in another session",
		}
	}
	return nil
}

// Bytes is how much text an entry has.
func Bytes(e session.Entry) int {
	if e.Step != nil {
		return stepBytes(e.Step)
	}
	return render.TextBytes(*e.Message)
}

// stepBytes is the text of a step that is held in memory.
func stepBytes(s *step.Step) int {
	return len(s.Inline) + len(s.Args) + len(s.Thought) + len(s.Observation) + len(s.Evidence) + len(s.Error)
}

// Originals reads folded entries again, for denser folds.
func (m *Moment) Originals(ctx context.Context) func(first, last uint64) ([]history.Entry, error) {
	return func(first, last uint64) ([]history.Entry, error) {
		p := &pairing.Pairer{}
		for e, err := range m.log.Range(ctx, m.Scope, m.SessionID, first, last) {
			if err == nil {
				err = p.Add(e)
			}
			if err != nil {
				return nil, err
			}
		}
		var entries []history.Entry
		for _, g := range p.Groups {
			entries = append(entries, pairing.EntriesOf(g)...)
		}
		return entries, nil
	}
}

// Steps returns the steps with some numbers, or all of the session where none is given, in
// the order of the log.
func (m *Moment) Steps(ctx context.Context, numbers []uint64) ([]step.Step, error) {
	asked := map[uint64]bool{}
	for _, number := range numbers {
		asked[number] = true
	}
	var steps []step.Step
	read := volume{}
	for e, err := range m.log.Unfolded(ctx, m.Scope, m.SessionID, nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("assemble: read steps: %w", err)
		}
		if e.Step == nil || len(numbers) > 0 && !asked[e.Step.Number] {
			continue
		}
		delete(asked, e.Step.Number)
		if err := read.add(e, 0); err != nil {
			return nil, err
		}
		if err := m.holds(ctx, read.all); err != nil {
			return nil, err
		}
		steps = append(steps, *e.Step)
	}
	if len(asked) > 0 {
		missing := slices.Min(slices.Collect(maps.Keys(asked)))
		return nil, fmt.Errorf("assemble: read %s: %w", step.ID(missing), session.ErrStepNotFound)
	}
	return steps, nil
}
