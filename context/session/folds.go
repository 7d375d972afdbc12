package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of a session's folds.
const (
	// MaxFoldBytes bounds a fold in its stored form, so that it fits one value. It
	// is ten times what all folds of a prompt take by default.
	MaxFoldBytes = 1 << 20
	// MaxFoldsBytes bounds the folds of one batch, so that it fits one commit.
	MaxFoldsBytes = 8 << 20
	// MaxWindowBytes bounds what a mark keeps of levels of pressure.
	MaxWindowBytes = 256 << 10
	// MaxMarks bounds the presets of one session that have a mark.
	MaxMarks = 64
)

// Folds is what stands in a session's prompts in place of entries. Its folds are shared, and
// for reading only.
type Folds struct {
	// Live are the folds that stand there, in the order in which they were made:
	// without undone folds, and without folds that a later, denser one replaces.
	Live []history.Fold
	// Marks are the boundaries of presets, by name; nil when there are none.
	Marks map[string]history.Mark
	// Batch is the number of the last batch, whether or not it was undone, 0 for
	// none. The next one is given the number behind it: none is given twice.
	Batch uint64
	// Through is the last position that batches decided about.
	Through uint64
	// Since is where the log ended when a change was undone last, 0 for never.
	Since uint64
	// Version is how many entries the journal has. Every change makes it
	// greater.
	Version uint64
}

// Folds returns what stands in a session's prompts in place of entries. It is
// ErrNewer when a later version wrote what would be misread here.
func (l *Log) Folds(ctx context.Context, scope kv.Scope, session string) (Folds, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return Folds{}, err
	}
	j := journal{scope, session}
	state, err := j.state(ctx, l.engine)
	if err != nil {
		return Folds{}, fmt.Errorf("session: read folds: %w", err)
	}
	live, err := l.live(ctx, j, state.live)
	if err != nil {
		return Folds{}, fmt.Errorf("session: read folds: %w", err)
	}
	return Folds{
		Live: live, Marks: state.marks, Batch: state.given, Through: state.through,
		Since: state.since, Version: state.version,
	}, nil
}

// EveryFold yields the folds of a session in the order in which they were made, those that were
// undone and those that another one stands for, too. A damaged one is an ErrDamaged, and others
// follow it; any other error comes last.
func (l *Log) EveryFold(ctx context.Context, scope kv.Scope, session string) iter.Seq2[history.Fold, error] {
	return func(yield func(history.Fold, error) bool) {
		session, err := scoped(scope, session)
		if err != nil {
			yield(history.Fold{}, err)
			return
		}
		for pair, err := range l.engine.Scan(ctx, kv.Log, kv.Prefix(journalPrefix(scope, session))) {
			if err != nil {
				yield(history.Fold{}, fmt.Errorf("session: read journal: %w", err))
				return
			}
			var f history.Fold
			e, err := decodeJournalEntry(pair.Value)
			if err == nil {
				if e.kind != kindFold {
					continue
				}
				f, err = e.fold()
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// AppendFolds stores a batch: all of it, on disk, or nothing. The folds carry
// the number behind that of the last batch, undone ones included. version is that of the Folds they
// were made from; ErrFoldsChanged says that it is no longer the session's. A
// fold over MaxFoldBytes or a batch over MaxFoldsBytes is a *kv.LimitError, and
// what could not stand in the session's history is an *invalid.Error.
func (l *Log) AppendFolds(ctx context.Context, scope kv.Scope, session string, version uint64, made []history.Fold) error {
	if err := checkSizes(made); err != nil {
		return fmt.Errorf("session: append folds: %w", err)
	}
	err := l.changeFolds(ctx, scope, session, version, func(ctx context.Context, j journal, tx *kv.Tx, state *foldState) error {
		return l.appendFolds(ctx, j, tx, state, made)
	})
	return wrap("append folds", err)
}

// appendFolds adds a batch to a journal.
func (l *Log) appendFolds(ctx context.Context, j journal, tx *kv.Tx, state *foldState, made []history.Fold) error {
	end, err := j.end(ctx, tx)
	if err != nil {
		return err
	}
	if err := checkBatch(made, state.given+1, end); err != nil {
		return err
	}
	c := state.begin(len(made))
	if c.superseded, err = j.superseded(ctx, tx, state.live, made); err != nil {
		return err
	}
	for i := range made {
		j.add(tx, state, journalEntry{time: l.now(), kind: kindFold, body: history.AppendFold(nil, made[i]), change: c.first(i)})
		state.through = max(state.through, made[i].Through)
	}
	state.fold(c, made)
	return nil
}

// MoveMark moves the boundary of a preset. version is as with AppendFolds. A
// mark that stands there already is left, and counts as no change.
func (l *Log) MoveMark(ctx context.Context, scope kv.Scope, session string, version uint64, preset string, to history.Mark) error {
	switch {
	case preset == "" || len(preset) > MaxPresetBytes:
		return invalid.Field(ErrInvalid, "preset", "must be 1 to %d bytes", MaxPresetBytes)
	case !isCount(to.Older) || !isCount(to.Seen) || !isCount(to.Bare) || !isCount(to.Omitted) || !isCount(to.Whole):
		return invalid.Field(ErrInvalid, "mark", "is negative or too large")
	case len(to.Window) > MaxWindowBytes:
		return &kv.LimitError{What: "state of levels", Size: len(to.Window), Limit: MaxWindowBytes}
	case !isCount(to.Summary.Count) || !isCount(to.Left) || !isCount(to.Lost) || len(to.Summary.Text) > history.MaxSummaryBytes:
		return invalid.Field(ErrInvalid, "summary", "is longer than %d bytes", history.MaxSummaryBytes)
	}
	err := l.changeFolds(ctx, scope, session, version, func(_ context.Context, j journal, tx *kv.Tx, state *foldState) error {
		return j.moveMark(tx, state, l.now(), preset, to)
	})
	return wrap("move mark", err)
}

// moveMark moves a boundary in the journal.
func (j journal) moveMark(tx *kv.Tx, state *foldState, now time.Time, preset string, to history.Mark) error {
	before, marked := state.marks[preset]
	if marked && before == to {
		return nil
	}
	if !marked && len(state.marks) >= MaxMarks {
		return &kv.LimitError{What: "marks of a session", Size: len(state.marks) + 1, Limit: MaxMarks}
	}
	c := state.begin(1)
	if marked {
		c.mark = &before
	}
	j.add(tx, state, journalEntry{time: now, kind: kindMark, body: encodeMark(preset, to), change: c})
	state.mark(preset, to)
	return nil
}

// changeFolds commits what change does to a session's folds at a version.
func (l *Log) changeFolds(ctx context.Context, scope kv.Scope, session string, version uint64, change func(context.Context, journal, *kv.Tx, *foldState) error) error {
	session, err := sessionID(session)
	if err != nil {
		return err
	}
	j := journal{scope, session}
	return l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		state, err := j.state(ctx, tx)
		if err != nil {
			return err
		}
		if state.version != version {
			return fmt.Errorf("%w: they are at version %d, not %d", ErrFoldsChanged, state.version, version)
		}
		if err := change(ctx, j, tx, &state); err != nil || state.version == version {
			return err
		}
		return j.put(tx, state)
	}})
}

// Undone says what an Undo took back.
type Undone struct {
	// Batch is the number of the batch, or 0 when it was a mark.
	Batch uint64
	// Refs are what the batch's folds named, each once: they stand in full again,
	// or in older folds.
	Refs []string
}

// Undo takes the last batch back or, when a mark moved later, that. What stands
// in prompts is then what stood there before, byte for byte; only Since and
// Version of the Folds differ. A batch other than 0 must be the last change.
// ErrNothingToUndo says that it is not, or that there is none. Undo again goes
// one further back. A request id makes the call safe to repeat: the same id and
// batch again give the first answer and change nothing.
func (l *Log) Undo(ctx context.Context, scope kv.Scope, session string, batch uint64, requestID string) (Undone, error) {
	session, err := sessionID(session)
	if err != nil {
		return Undone{}, err
	}
	j := journal{scope, session}
	var undone Undone
	digest := requestDigest("undo", session, encodeCounter(batch))
	err = l.once(ctx, scope, requestID, digest, func(ctx context.Context, tx *kv.Tx) ([]byte, error) {
		u, err := l.stageUndo(ctx, tx, j, batch)
		return encodeUndone(u), err
	}, func(answer []byte) error {
		undone, err = decodeUndone(answer)
		return err
	})
	if errors.Is(err, ErrNothingToUndo) {
		return Undone{}, err // it names the request itself
	}
	return undone, wrap("undo", err)
}

func (l *Log) stageUndo(ctx context.Context, tx *kv.Tx, j journal, batch uint64) (Undone, error) {
	state, err := j.state(ctx, tx)
	if err != nil {
		return Undone{}, err
	}
	if state.change == 0 {
		return Undone{}, ErrNothingToUndo
	}
	entries, err := j.change(ctx, tx, state.change)
	if err != nil {
		return Undone{}, err
	}
	if batch != 0 && (entries[0].kind != kindFold || batch != state.batch) {
		return Undone{}, fmt.Errorf("%w: batch %d is not the last change", ErrNothingToUndo, batch)
	}
	u, err := state.undo(entries)
	if err != nil {
		return Undone{}, err
	}
	if state.since, err = j.end(ctx, tx); err != nil {
		return Undone{}, err
	}
	j.add(tx, &state, journalEntry{time: l.now(), kind: kindUndo, body: encodeCounter(entries[0].number)})
	return u, j.put(tx, state)
}
