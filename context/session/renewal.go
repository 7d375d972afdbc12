package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Renewal is a window that begins anew; without a snapshot only a boundary that moves.
type Renewal struct {
	// Made are folds appended with it, as by AppendFolds.
	Made []history.Fold
	// Snapshot is what the agent was at. Its Sprint is the one behind that of Sprint, and
	// its Working what Taken keeps of the session's.
	Snapshot working.Snapshot
	// Before is the working state that it was made from.
	Before working.Working
	// Swapped are the names of skills that stand in prompts by name only from then on.
	Swapped []string
	// Preset is whose boundary moves, and Mark where to.
	Preset string
	Mark   history.Mark
}

// Sprint is the number of a session's last renewal, undone ones included; 0 for none.
func (l *Log) Sprint(ctx context.Context, scope kv.Scope, session string) (int, error) {
	last, err := readOne(ctx, l, scope, session, "sprint", sprintKey, decodeCounter)
	return int(last), err
}

// Renew stores a renewal: its folds, its snapshot, the boundary of its preset and the working
// state that goes on, in one batch. ErrFoldsChanged says that the session is no longer as the
// renewal was made from: its folds, at version, its working state, or its sprint. A request
// id makes the call safe to repeat: the same id again changes nothing and gives the sprint
// of the first answer.
func (l *Log) Renew(ctx context.Context, scope kv.Scope, session string, version uint64, r *Renewal, requestID string) (sprint int, err error) {
	if session, err = sessionID(session); err != nil {
		return 0, err
	}
	if len(r.Mark.Window) > MaxWindowBytes {
		return 0, fmt.Errorf("session: renew: %w", &kv.LimitError{What: "state of levels", Size: len(r.Mark.Window), Limit: MaxWindowBytes})
	}
	if err := checkSizes(r.Made); err != nil {
		return 0, fmt.Errorf("session: renew: %w", err)
	}
	j := journal{scope, session}
	stage := func(ctx context.Context, tx *kv.Tx) ([]byte, error) {
		state, err := j.state(ctx, tx)
		if err != nil {
			return nil, err
		}
		values, err := tx.Get(ctx, kv.Log, workingKey(scope, session), sprintKey(scope, session))
		if err != nil {
			return nil, err
		}
		last, err := decodeCounter(values[1])
		if err != nil {
			return nil, err
		}
		before, err := decodeWorking(values[0])
		if err != nil {
			return nil, err
		}
		renews := r.Snapshot.Sprint > 0
		if state.version != version || renews && (int(last)+1 != r.Snapshot.Sprint || !bytes.Equal(working.Encode(before), working.Encode(r.Before))) {
			return nil, fmt.Errorf("%w: they, the working state or the sprint", ErrFoldsChanged)
		}
		if len(r.Made) > 0 {
			if err := l.appendFolds(ctx, j, tx, &state, r.Made); err != nil {
				return nil, err
			}
		}
		if err := j.moveMark(tx, &state, l.now(), r.Preset, r.Mark); err != nil {
			return nil, err
		}
		if !renews {
			return encodeCounter(last), j.put(tx, state)
		}
		answer := encodeCounter(last + 1)
		tx.Put(kv.Log, sprintKey(scope, session), answer)
		tx.Put(kv.Log, snapshotKey(scope, session, last+1), working.EncodeSnapshot(&r.Snapshot))
		tx.Put(kv.Log, workingKey(scope, session), working.EncodeChanged(r.Before.Taken().With(working.Change{Deactivate: r.Swapped}, l.now(), 0), l.now()))
		return answer, j.put(tx, state)
	}
	err = l.once(ctx, scope, requestID, requestDigest("renew", session, nil), stage, func(answer []byte) error {
		last, err := decodeCounter(answer)
		sprint = int(last)
		return err
	})
	return sprint, wrap("renew", err)
}

// Renewed reports whether a request id of Renew was answered, and with which sprint.
func (l *Log) Renewed(ctx context.Context, scope kv.Scope, session, requestID string) (sprint int, answered bool, err error) {
	if session, err = sessionID(session); err != nil || requestID == "" {
		return 0, false, err
	}
	err = l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		answer, replayed, err := kv.LookupOnce(ctx, tx, l.Ref(scope), requestID, requestDigest("renew", session, nil))
		if err != nil || !replayed {
			return err
		}
		last, err := decodeCounter(answer)
		sprint, answered = int(last), true
		return err
	}})
	return sprint, answered, wrap("renew", err)
}

// Snapshot returns the snapshot of a sprint; ErrSnapshotNotFound where there is none.
func (l *Log) Snapshot(ctx context.Context, scope kv.Scope, session string, sprint int) (working.Snapshot, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return working.Snapshot{}, err
	}
	value, err := l.get(ctx, snapshotKey(scope, session, uint64(max(sprint, 0))))
	if err != nil {
		return working.Snapshot{}, fmt.Errorf("session: read snapshot: %w", err)
	}
	if sprint <= 0 || value == nil {
		return working.Snapshot{}, fmt.Errorf("%w: sprint %d", ErrSnapshotNotFound, sprint)
	}
	return decodeSnapshot(value)
}

// MaxSnapshots bounds what one call of Snapshots returns.
const MaxSnapshots = 100

// Snapshots returns at most limit of a session's snapshots behind a sprint, in order. Zero
// and more than MaxSnapshots are that many.
func (l *Log) Snapshots(ctx context.Context, scope kv.Scope, session string, after, limit int) ([]working.Snapshot, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return nil, err
	}
	if limit <= 0 || limit > MaxSnapshots {
		limit = MaxSnapshots
	}
	var out []working.Snapshot
	for s, err := range l.eachSnapshot(ctx, scope, session, after) {
		if err != nil {
			return nil, err
		}
		if out = append(out, s); len(out) == limit {
			break
		}
	}
	return slices.Clip(out), nil
}

// AllSnapshots yields all snapshots of a session, in order. A damaged one is an ErrDamaged with
// its Sprint alone, and others follow it; any other error comes last.
func (l *Log) AllSnapshots(ctx context.Context, scope kv.Scope, session string) iter.Seq2[working.Snapshot, error] {
	session, err := scoped(scope, session)
	if err != nil {
		return func(yield func(working.Snapshot, error) bool) { yield(working.Snapshot{}, err) }
	}
	return l.eachSnapshot(ctx, scope, session, 0)
}

func (l *Log) eachSnapshot(ctx context.Context, scope kv.Scope, session string, after int) iter.Seq2[working.Snapshot, error] {
	reach := kv.Prefix(snapshotPrefix(scope, session))
	reach.Start = snapshotKey(scope, session, uint64(max(after, 0))+1)
	return func(yield func(working.Snapshot, error) bool) {
		for pair, err := range l.engine.Scan(ctx, kv.Log, reach) {
			if err != nil {
				yield(working.Snapshot{}, fmt.Errorf("session: read snapshots: %w", err))
				return
			}
			s, err := decodeSnapshot(pair.Value)
			if err != nil {
				s = working.Snapshot{Sprint: int(min(keyPosition(pair.Key), math.MaxInt32))}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func decodeSnapshot(value []byte) (working.Snapshot, error) {
	s, err := working.DecodeSnapshot(value)
	if err != nil {
		return working.Snapshot{}, damaged(err)
	}
	return s, nil
}

func snapshotPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagSnapshot), session)
}

func snapshotKey(scope kv.Scope, session string, sprint uint64) []byte {
	return binary.BigEndian.AppendUint64(snapshotPrefix(scope, session), sprint)
}

func sprintKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagSprint), session)
}
