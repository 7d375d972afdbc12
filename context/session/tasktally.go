package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Tags of tasks in the log keyspace (memory/FORMAT.md).
const (
	tagTask   = 't' // session, number: a task
	tagTaskID = 'k' // task id: where the task stands
	tagTally  = 'm' // session: the outcome of its tasks
)

func taskPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagTask), session)
}

func taskKey(scope kv.Scope, session string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(taskPrefix(scope, session), number)
}

func taskIDKey(scope kv.Scope, id string) []byte { return scope.Key(tagTaskID, []byte(id)) }

func tallyKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagTally), session)
}

// Tally says how far the tasks of a session have moved up. The code that moves them keeps
// it; the log counts the tasks and notes the filled-in fields.
type Tally struct {
	// Last is the number of the session's last task.
	Last uint64
	// Through is the last task that was decided about: those important among the
	// tasks up to it are in the second tier or beyond.
	Through uint64
	// Filled are the numbers, ascending, of tasks up to Through that got their
	// result later, which the tiers above don't have yet.
	Filled []uint64
	// Second and Third are how many tasks are in those tiers, or more: deletions are not
	// subtracted.
	Second, Third int
	// Moved counts the tasks that ever entered the third tier.
	Moved uint64
	// Gone is the last task that Delete took.
	Gone uint64
}

// Tally returns the tally of a session; all zero when it has no tasks.
func (l *Log) Tally(ctx context.Context, scope kv.Scope, sessionID string) (Tally, error) {
	id, err := scoped(scope, sessionID)
	if err != nil {
		return Tally{}, err
	}
	value, err := l.get(ctx, tallyKey(scope, id))
	if err != nil {
		return Tally{}, fmt.Errorf("session: read tally: %w", err)
	}
	return decodeTally(value)
}

// StageTally changes the tally of a session. An error of change is returned as it
// is, and nothing is changed.
func (l *Log) StageTally(ctx context.Context, tx *kv.Tx, scope kv.Scope, sessionID string, change func(*Tally) error) error {
	id, err := scoped(scope, sessionID)
	if err != nil {
		return err
	}
	key := tallyKey(scope, id)
	values, err := tx.Get(ctx, kv.Log, key)
	if err != nil {
		return fmt.Errorf("session: read tally: %w", err)
	}
	tally, err := decodeTally(values[0])
	if err != nil {
		return err
	}
	if err := change(&tally); err != nil {
		return err
	}
	if next := encodeTally(tally); !bytes.Equal(next, values[0]) {
		tx.Put(kv.Log, key, next)
	}
	return nil
}

func encodeTally(t Tally) []byte {
	return wire.Marshal(&storev1.Tally{
		Last: &t.Last, Decided: t.Through, Late: appendNumbers(nil, t.Filled), Tier2: uint64(max(0, t.Second)),
		Tier3: uint64(max(0, t.Third)), Entered3: t.Moved, Deleted: t.Gone,
	})
}

func decodeTally(value []byte) (Tally, error) {
	var m storev1.Tally
	if err := wire.Unmarshal(value, &m); err != nil {
		return Tally{}, damaged(err)
	}
	late, err := decodeNumbers(m.Late)
	if err != nil {
		return Tally{}, err
	}
	return Tally{
		Last: m.GetLast(), Through: m.Decided, Filled: late, Second: count(m.Tier2), Third: count(m.Tier3), Moved: m.Entered3, Gone: m.Deleted,
	}, nil
}

// insertNumber puts a number into ascending ones, once.
func insertNumber(numbers []uint64, n uint64) []uint64 {
	at, found := slices.BinarySearch(numbers, n)
	if found {
		return numbers
	}
	return slices.Insert(numbers, at, n)
}
