package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// The folders that the steps, messages and tasks of an agent can be read in, by
// names such as workspace/history/step_012.json and task/t1. A task's name is also
// the key of its record in memory.
const (
	HistoryFolder = "workspace/history/"
	TaskFolder    = "task/"
)

// messagePrefix begins every message id.
const messagePrefix = "message_"

// MessageID returns the id of the message at a position of its session:
// "message_017", "message_1000".
func MessageID(position uint64) string { return fmt.Sprintf(messagePrefix+"%03d", position) }

// ParseMessageID returns the position of a message id, and false for anything
// that MessageID would not write. There is no message 0.
func ParseMessageID(id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, messagePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && step.IsPadded(digits)
}

// minRun is how many refs that follow one another are written as one.
const minRun = 3

// RefRuns writes three or more refs in a row whose numbers follow one another as
// one, so that what is said of a long history stays short: `step_001..step_040`.
// It leaves refs as they are.
func RefRuns(refs []string) []string {
	var out []string
	for len(refs) > 0 {
		n := runLength(refs)
		if n >= minRun {
			out = append(out, refs[0]+".."+refs[n-1])
		} else {
			out = append(out, refs[:n]...)
		}
		refs = refs[n:]
	}
	return out
}

// runLength is how many refs at the beginning are of one sort, each one more
// than that before it.
func runLength(refs []string) int {
	_, isStep := step.ParseID(refs[0])
	if _, isMessage := ParseMessageID(refs[0]); !isStep && !isMessage {
		return 1
	}
	var room [32]byte
	next, n := append(room[:0], refs[0]...), 1
	for ; n < len(refs); n++ {
		if next = increment(next); refs[n] != string(next) {
			break
		}
	}
	return n
}

// increment makes a ref that of the next number, where it stands: an answer may
// name thousands.
func increment(ref []byte) []byte {
	at := len(ref) - 1
	for ; ref[at] == '9'; at-- {
		ref[at] = '0'
	}
	if ref[at] < '0' || ref[at] > '9' { // they were all nines
		return slices.Insert(ref, at+1, '1')
	}
	ref[at]++
	return ref
}

// Defaults of Options.
const (
	DefaultCloseAfter = time.Hour
	DefaultEndAfter   = 7 * 24 * time.Hour
)

// IsOpen reports whether a session needs its blobs: it was not ended, and something was
// recorded in it within Options.EndAfter. An empty id is DefaultSession. What it reads by Get
// changes whenever the answer becomes true.
func (l *Log) IsOpen(ctx context.Context, from kv.Getter, scope kv.Scope, session string) (bool, error) {
	session = cmp.Or(session, DefaultSession)
	values, err := from.Get(ctx, kv.Log, headKey(scope, session))
	if err != nil {
		return false, fmt.Errorf("session: read head: %w", err)
	}
	h, err := decodeHead(values[0])
	if err != nil || h.ended {
		return false, err
	}
	last := kv.Prefix(entryPrefix(scope, session))
	last.Reverse, last.Limit = true, 1
	for pair, err := range from.Scan(ctx, kv.Log, last) {
		if err != nil {
			return false, fmt.Errorf("session: read last entry: %w", err)
		}
		for f, err := range wire.Fields(pair.Value) {
			if err != nil {
				return false, damaged(err)
			}
			if f.Number == fieldTime {
				return !l.idle(f.Time(), l.endAfter), nil
			}
		}
	}
	return false, nil
}

// Active reports whether something was recorded in a session since a moment. What it reads by
// Get changes whenever the answer becomes true.
func (l *Log) Active(ctx context.Context, from kv.Getter, scope kv.Scope, session string, since time.Time) (bool, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return false, err
	}
	values, err := from.Get(ctx, kv.Log, stateKeys(scope, session)...)
	if err != nil {
		return false, fmt.Errorf("session: read head: %w", err)
	}
	last, known, err := lastRecorded(ctx, from, scope, session, values)
	return !known || !last.Before(since), err
}

// stateKeys are the keys of what changes with a session: its head, tally, settings and working
// state.
func stateKeys(scope kv.Scope, session string) [][]byte {
	return [][]byte{headKey(scope, session), tallyKey(scope, session), configKey(scope, session), workingKey(scope, session)}
}

// lastRecorded is when something was recorded in a session last, or settings were given, or its
// working state changed; state are the values of stateKeys. Zero: there is nothing in it. It
// is not known where there are only settings and state of an older version.
func lastRecorded(ctx context.Context, from getter, scope kv.Scope, session string, state [][]byte) (last time.Time, known bool, err error) {
	h, err := decodeHead(state[0])
	if err != nil {
		return last, false, err
	}
	tally, err := decodeTally(state[1])
	if err != nil {
		return last, false, err
	}
	var c storev1.SessionSettings
	if err := wire.Unmarshal(state[2], &c); err != nil {
		return last, false, damaged(err)
	}
	changed, err := working.ChangeTime(state[3])
	if err != nil {
		return last, false, damaged(err)
	}
	values, err := from.Get(ctx, kv.Log, entryKey(scope, session, h.last), taskKey(scope, session, tally.Last))
	if err != nil {
		return last, false, fmt.Errorf("session: read times: %w", err)
	}
	var sum Summary
	for _, value := range values {
		if err := sum.see(value); err != nil {
			return last, false, err
		}
	}
	for _, t := range []time.Time{sum.Updated, wire.TimeOf(c.Time), changed} {
		if t.After(last) {
			last = t
		}
	}
	return last, !last.IsZero() || state[2] == nil && state[3] == nil, nil
}

// idle reports whether something was so long ago; a negative time is never over.
func (l *Log) idle(last time.Time, limit time.Duration) bool {
	return limit >= 0 && l.now().Sub(last) >= limit
}

// IsClosed reports whether a session is left out of listings (Summary.Closed). An empty id
// is DefaultSession.
func (l *Log) IsClosed(ctx context.Context, scope kv.Scope, session string) (bool, error) {
	sum, err := l.Summary(ctx, scope, session)
	return sum.Closed, err
}

// stageMentions stages the mentions of an entry, a task or an entry of the journal.
func stageMentions(tx *kv.Tx, scope kv.Scope, session string, value []byte) {
	mention.Stage(tx, kv.Ref{Keyspace: kv.Log, Scope: scope}, session, namesIn(value))
}

// namesIn returns the names of blobs in a stored value, all of which have their body
// in one field.
func namesIn(value []byte) []mention.Name {
	for f, err := range wire.Fields(value) {
		if err == nil && f.Number == fieldBody {
			return mention.In(f.Bytes)
		}
	}
	return nil
}

// Mentions are the sources of the mentions in the log.
func Mentions() []mention.Sort {
	session := func(rest []byte) (string, error) {
		id, _, err := kv.CutEscaped(rest)
		return id, err
	}
	return []mention.Sort{
		mention.Texts(kv.Log, tagEntry, namesIn, session),
		mention.Texts(kv.Log, tagJournal, namesIn, session),
		mention.Texts(kv.Log, tagTask, namesIn, session),
	}
}
