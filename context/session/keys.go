package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Tags of the log keyspace (memory/FORMAT.md). 'q' is the writer's, for
// answered requests.
const (
	tagEntry   = 'e' // session, position: an entry
	tagStep    = 'n' // number: where the step stands
	tagCounter = 'c' // the agent's last step number
	tagHead    = 's' // session: its last position
	tagWritten = 'w' // hash of a path: hash of the content written there
	tagJournal = 'f' // session, number: an entry of the journal of folds
	tagFolds   = 'h' // session: what its prompts show in place of entries
	tagConfig  = 'o' // session: its settings
	tagAnchor  = 'a' // session: what a provider counted last
	tagWorking = 'g' // session: goal, plan, skills, notes, events
	tagSprint  = 'u' // session: how often its window was renewed
	// session, sprint: what the agent was at when its window was renewed
	tagSnapshot = 'v'
)

func entryPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagEntry), session)
}

func entryKey(scope kv.Scope, session string, position uint64) []byte {
	return binary.BigEndian.AppendUint64(entryPrefix(scope, session), position)
}

// afterKey is where the entries behind a position begin.
func afterKey(scope kv.Scope, session string, position uint64) []byte {
	return append(entryKey(scope, session, position), 0)
}

// keyPosition is the position of an entry's key, or the number in a journal's.
func keyPosition(key []byte) uint64 {
	return binary.BigEndian.Uint64(key[len(key)-8:])
}

func stepKey(scope kv.Scope, number uint64) []byte {
	return binary.BigEndian.AppendUint64(scope.Key(tagStep), number)
}

func counterKey(scope kv.Scope) []byte { return scope.Key(tagCounter) }

func headKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagHead), session)
}

// numberedKeys are a prefix with each of some numbers behind it.
func numberedKeys(prefix []byte, numbers []uint64) [][]byte {
	size := len(prefix) + 8
	all := make([]byte, 0, size*len(numbers))
	keys := make([][]byte, len(numbers))
	for i, n := range numbers {
		all = binary.BigEndian.AppendUint64(append(all, prefix...), n)
		keys[i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return keys
}

func journalPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagJournal), session)
}

func journalKey(scope kv.Scope, session string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(journalPrefix(scope, session), number)
}

func foldsKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagFolds), session)
}

func configKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagConfig), session)
}

func workingKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagWorking), session)
}

func anchorKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagAnchor), session)
}

func writtenKey(scope kv.Scope, path string) []byte {
	// A path may be longer than a key, so its hash stands for it.
	sum := sha256.Sum256([]byte(path))
	return scope.Key(tagWritten, sum[:])
}

// Foresee adds what a prompt of a session reads of the log, at the least.
func (l *Log) Foresee(along *kv.Reads, scope kv.Scope, session string) {
	session, err := scoped(scope, session)
	if err != nil {
		return // the reader gets the error
	}
	along.Get(kv.Log, headKey(scope, session), foldsKey(scope, session), configKey(scope, session), workingKey(scope, session),
		sprintKey(scope, session), anchorKey(scope, session))
}

// ForeseeConfig adds what Config reads.
func (l *Log) ForeseeConfig(along *kv.Reads, scope kv.Scope, session string) {
	if session, err := scoped(scope, session); err == nil {
		along.Get(kv.Log, configKey(scope, session))
	}
}

// ForeseeStep adds what StageStep reads.
func (l *Log) ForeseeStep(along *kv.Reads, scope kv.Scope, session string) {
	if session, err := scoped(scope, session); err == nil {
		along.Get(kv.Log, counterKey(scope), headKey(scope, session))
	}
}

func encodeCounter(last uint64) []byte { return wire.Marshal(&storev1.Counter{Last: &last}) }

// readCounter returns a counter's value, zero when there is none yet.
func readCounter(ctx context.Context, tx *kv.Tx, key []byte) (uint64, error) {
	values, err := tx.Get(ctx, kv.Log, key)
	if err != nil {
		return 0, fmt.Errorf("session: read counter: %w", err)
	}
	return decodeCounter(values[0])
}

func decodeCounter(value []byte) (uint64, error) {
	var m storev1.Counter
	if err := wire.Unmarshal(value, &m); err != nil {
		return 0, damaged(err)
	}
	return m.GetLast(), nil
}

func encodePlace(session string, position uint64) []byte {
	return wire.Marshal(&storev1.Place{Session: session, Position: position})
}

func decodePlace(value []byte) (session string, position uint64, err error) {
	var m storev1.Place
	if err := wire.Unmarshal(value, &m); err != nil {
		return "", 0, damaged(err)
	}
	return m.Session, m.Position, nil
}
