package assemble

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of the text of entries that is held in memory.
const (
	// maxReadBytes bounds what one prompt is made of: more does not fit any model.
	maxReadBytes = 256 << 20
	// DefaultReadBytes is what a prompt reads at once if it can fold that before
	// it reads on: more than the window of any model.
	DefaultReadBytes = 16 << 20
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
	state, err := t.moment.log.Folds(ctx, t.r.Scope, t.r.SessionID)
	if err != nil {
		return nil, fmt.Errorf("assemble: read folds: %w", err)
	}
	for limit := t.a.readBytes; ; {
		s, err := t.readUpTo(ctx, state, limit)
		if err != nil || !s.more {
			return s, err
		}
		var folded bool
		if state, folded, err = t.foldRead(ctx, s); err != nil {
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
	var err error
	if s.groups, s.more, err = t.readGroups(ctx, s.folds, limit); err != nil {
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
	last := t.a.known.trail(t.r.Scope, sessionOf(t.r.SessionID))
	for i := range folds {
		size, known := last.Size(t.r.Model, i, folds[i].Text)
		if !known {
			size = t.count(folds[i].Text) + t.options.MessageTokens
		}
		folds[i].Tokens = size
	}
	return folds
}

// readGroups reads groups. more says that limit ended the reading: only what can
// be folded is read in parts.
func (t *task) readGroups(ctx context.Context, folds []history.Fold, limit int) (groups []*pairing.Group, more bool, err error) {
	places := history.Live(folds)
	next := 0
	p, read := &pairing.Pairer{Reader: t.reader()}, volume{}
	p.Earlier = func(position uint64) ([]*pairing.Group, error) { return t.asked(ctx, position) }
	for e, err := range t.moment.log.Unfolded(ctx, t.r.Scope, t.r.SessionID, folds) {
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
		if err := read.add(e, t.r.MaxBytes); err != nil {
			return nil, false, err
		}
		if err := t.holds(ctx, read.all); err != nil {
			return nil, false, err
		}
		if read.all > limit && t.policy == session.PolicyLedger {
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
func (t *task) asked(ctx context.Context, position uint64) ([]*pairing.Group, error) {
	if position <= 1 {
		return nil, nil
	}
	p := &pairing.Pairer{}
	// The steps, and the message that asked for them if one did.
	first := position - min(position-1, 2*pairing.MaxHeld)
	for e, err := range t.moment.log.Range(ctx, t.r.Scope, t.r.SessionID, first, position-1) {
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
	if e.Step != nil {
		v.all += stepBytes(e.Step)
	} else {
		n := render.TextBytes(*e.Message)
		v.all += n
		if e.Message.Role.Stays() && !e.Message.Observation {
			v.fixed += n
		}
	}
	switch {
	case maxBytes > 0 && v.fixed > maxBytes:
		return &render.TooLargeError{
			What: "messages of the user and of the system, which are never folded, have", Limit: maxBytes,
			Advice: "no policy makes them fit; go on in another session, hand long texts over as results of calls or as files, or let the server send larger answers",
		}
	case v.all > maxReadBytes:
		return &render.TooLargeError{
			What: "what is not folded yet has", Limit: maxReadBytes,
			Advice: "fold it with CompactHistory, use the policy ledger, or go on in another session",
		}
	}
	return nil
}

// stepBytes is the text of a step that is held in memory.
func stepBytes(s *step.Step) int {
	return len(s.Inline) + len(s.Args) + len(s.Thought) + len(s.Observation) + len(s.Evidence) + len(s.Error)
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

// originals reads folded entries again, for denser folds.
func (t *task) originals(ctx context.Context) func(first, last uint64) ([]history.Entry, error) {
	return func(first, last uint64) ([]history.Entry, error) {
		p := &pairing.Pairer{}
		for e, err := range t.moment.log.Range(ctx, t.r.Scope, t.r.SessionID, first, last) {
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

// Snapshots is an engine that can be read as of one moment.
type Snapshots interface {
	kv.Reader
	Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error)
}

// moment is what one prompt is read from: a snapshot, so that its parts belong together,
// or the engine itself where a snapshot would be too old before the prompt is done.
type moment struct {
	log  Log
	view kv.Reader
	// sequence is that of the agent's log; 0 where there is no snapshot.
	sequence uint64
	close    func()
}

// now opens the present moment. live reads from the engine itself.
func (a *Assembler) now(ctx context.Context, scope kv.Scope, sessionID string, live bool) (moment, error) {
	log, ok := a.log.(*session.Log)
	if a.engine == nil || !ok || live {
		if err := kv.PermitOf(ctx).Meet(ctx, a.engine); err != nil {
			return moment{}, err
		}
		return moment{log: a.log, view: a.engine, close: func() {}}, nil
	}
	permit := kv.PermitOf(ctx)
	view, err := kv.SnapshotWith(ctx, a.engine, []kv.Ref{log.Ref(scope)}, func(along *kv.Reads) {
		permit.Foresee(along)
		log.Foresee(along, scope, sessionID)
		if a.foresee != nil {
			a.foresee(along, scope, sessionOf(sessionID))
		}
	})
	if err != nil {
		return moment{}, fmt.Errorf("assemble: open a snapshot: %w", err)
	}
	if err := permit.Meet(ctx, view); err != nil {
		_ = view.Close() // nothing was written to it
		return moment{}, err
	}
	return moment{
		log: log.At(view), view: view, sequence: view.Sequences()[0],
		close: func() { _ = view.Close() }, // nothing was written to it
	}, nil
}

// renew reads on from the present moment, because the task itself wrote to the log.
func (t *task) renew(ctx context.Context) error {
	m, err := t.a.now(ctx, t.r.Scope, t.r.SessionID, t.live)
	if err != nil {
		return err
	}
	t.moment.close()
	t.moment = m
	return nil
}
