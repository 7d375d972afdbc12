package session

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Intent says that a tool with side effects is about to run.
type Intent struct {
	// Scope is the agent's; WriteIntent fills it in. ID distinguishes the agent's intents
	// apart; the caller chooses it.
	Scope kv.Scope
	ID    string
	// SessionID, Tool, CalledAs, MinimalArgs, Thought, TurnID and CallID are
	// what the step will have.
	SessionID, Tool, CalledAs string
	MinimalArgs               json.RawMessage
	Thought, TurnID, CallID   string
	// RequestID is the one under which the answer will be kept, and Digest that of the
	// whole request, so that a repetition after a crash gets an answer instead of a second
	// run.
	RequestID string
	Digest    [32]byte
	// Time is when it was written.
	Time time.Time
	// Bridge names the server that runs the tool, as it was registered with a store that
	// several share; empty on any other.
	Bridge string
}

// ErrIntentTaken: there is an intent of the same id, or its request has its answer.
var ErrIntentTaken = errors.New("session: the request is being carried out or was")

// MaxIntentIDBytes bounds an intent's id.
const MaxIntentIDBytes = 128

// intents is where intents stand.
const intents kv.List = "intents"

// Tag in the scopes of the intents (memory/FORMAT.md).
const tagIntent = 'i' // agent, id: an intent

// IntentRef is what a request that stages the end of an intent of this process
// (StageIntentDone) must name in Blind.
func (l *Log) IntentRef(scope kv.Scope) kv.Ref { return intents.Ref(scope) }

// LeftIntentRefs is what one must name that stages the end of an intent that was left
// behind (StageIntentSettled).
func (l *Log) LeftIntentRefs(scope kv.Scope) []kv.Ref {
	return []kv.Ref{intents.Ref(scope), intents.WholeRef(scope.Tenant)}
}

// intentKey is the key of an intent in one of the list's scopes.
func intentKey(list, scope kv.Scope, id string) []byte {
	key := append(list.Key(tagIntent), byte(scope.Kind))
	return append(kv.AppendEscaped(key, scope.Owner), id...)
}

// intentKeys are the keys under which an intent may stand: where it is written, and
// where stores before format 4 have it.
func intentKeys(scope kv.Scope, id string) [][]byte {
	return [][]byte{intentKey(intents.Part(scope), scope, id), intentKey(intents.Whole(scope.Tenant), scope, id)}
}

// WriteIntent stores an intent before its tool runs. It survives the death of
// the process but is not synced: a machine that dies takes the tool's effect
// down with it more often than not, and a sync here would double the cost of
// every such call.
func (l *Log) WriteIntent(ctx context.Context, scope kv.Scope, in Intent) error {
	return l.writeIntent(ctx, scope, in, []kv.Ref{l.IntentRef(scope)}, nil)
}

// ClaimIntent is WriteIntent for a request that other servers may get, too: it is
// ErrIntentTaken for all but one of them.
func (l *Log) ClaimIntent(ctx context.Context, scope kv.Scope, in Intent) error {
	return l.writeIntent(ctx, scope, in, []kv.Ref{l.IntentRef(scope), l.Ref(scope)}, func(ctx context.Context, tx *kv.Tx) error {
		before, err := tx.Watch(ctx, kv.System, intentKey(intents.Part(scope), scope, in.ID))
		if err == nil && before == nil {
			before, err = tx.Watch(ctx, kv.Log, kv.AnswerKey(l.Ref(scope), in.RequestID))
		}
		if err == nil && before != nil {
			err = ErrIntentTaken
		}
		return err
	})
}

func (l *Log) writeIntent(ctx context.Context, scope kv.Scope, in Intent, refs []kv.Ref, check kv.Stage) error {
	if in.ID == "" || len(in.ID) > MaxIntentIDBytes {
		return invalid.Field(ErrInvalid, "intent id", "must be 1 to %d bytes", MaxIntentIDBytes)
	}
	if in.Time.IsZero() {
		in.Time = l.now()
	}
	err := l.writer.Do(ctx, kv.Request{
		Blind: refs,
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			if check != nil {
				if err := check(ctx, tx); err != nil {
					return err
				}
			}
			tx.Put(kv.System, intentKey(intents.Part(scope), scope, in.ID), encodeIntent(in))
			return nil
		},
		Lazy: true,
	})
	return wrap("write intent", err)
}

// StageIntentDone deletes an intent that this process wrote, in the commit of its
// step. One that is not there is fine.
func (l *Log) StageIntentDone(tx *kv.Tx, scope kv.Scope, id string) {
	tx.Delete(kv.System, intentKey(intents.Part(scope), scope, id))
}

// StageIntentSettled deletes an intent that was left behind, wherever it stands.
func (l *Log) StageIntentSettled(tx *kv.Tx, scope kv.Scope, id string) {
	for _, key := range intentKeys(scope, id) {
		tx.Delete(kv.System, key)
	}
}

// Intent returns the agent's intent of an id, and false if there is none.
func (l *Log) Intent(ctx context.Context, scope kv.Scope, id string) (Intent, bool, error) {
	return l.IntentIn(ctx, l.engine, scope, id)
}

// IntentIn is Intent of what a transaction sees.
func (l *Log) IntentIn(ctx context.Context, from kv.Getter, scope kv.Scope, id string) (Intent, bool, error) {
	keys := intentKeys(scope, id)
	values, err := from.Get(ctx, kv.System, keys...)
	if err != nil {
		return Intent{}, false, fmt.Errorf("session: read intent: %w", err)
	}
	for i, value := range values {
		if value != nil {
			in, err := readIntent(kv.Pair{Key: keys[i], Value: value})
			return in, err == nil, err
		}
	}
	return Intent{}, false, nil
}

// Intents yields the intents of all agents of all tenants, ordered by tenant, and by id
// within an agent. An unreadable one yields an ErrDamaged in its place, and the others
// still come; any other error comes last. With an error the Intent is zero.
func (l *Log) Intents(ctx context.Context) iter.Seq2[Intent, error] {
	return func(yield func(Intent, error) bool) {
		for list, err := range intents.Scopes(ctx, l.engine) {
			if err != nil {
				yield(Intent{}, fmt.Errorf("session: read intents: %w", err))
				return
			}
			if !l.intentsIn(ctx, list, yield) {
				return
			}
		}
	}
}

// intentsIn yields the intents of one scope of the list and reports whether to go on.
func (l *Log) intentsIn(ctx context.Context, list kv.Scope, yield func(Intent, error) bool) bool {
	for pair, err := range l.engine.Scan(ctx, kv.System, kv.Prefix(list.Key(tagIntent))) {
		if err != nil {
			yield(Intent{}, fmt.Errorf("session: read intents: %w", err))
			return false
		}
		if !yield(readIntent(pair)) {
			return false
		}
	}
	return true
}

func encodeIntent(in Intent) []byte {
	return wire.Marshal(&storev1.Intent{
		Session: in.SessionID, Tool: in.Tool, Called: in.CalledAs, Arguments: in.MinimalArgs, Thought: in.Thought, TurnId: in.TurnID,
		CallId: in.CallID, RequestId: in.RequestID, Request: in.Digest[:], Time: wire.Micros(in.Time), Server: in.Bridge,
	})
}

// readIntent reads an intent of one of the list's scopes.
func readIntent(pair kv.Pair) (Intent, error) {
	list, key, err := kv.SplitKey(pair.Key)
	if err != nil || len(key) < 2 { // tag, kind
		return Intent{}, fmt.Errorf("%w: intent without an owner", ErrDamaged)
	}
	owner, id, err := kv.CutEscaped(key[2:])
	if err != nil {
		return Intent{}, fmt.Errorf("%w: intent: %w", ErrDamaged, err)
	}
	var m storev1.Intent
	if err := wire.Unmarshal(pair.Value, &m); err != nil {
		return Intent{}, damaged(err)
	}
	in := Intent{
		Scope: kv.Scope{Tenant: list.Tenant, Kind: kv.OwnerKind(key[1]), Owner: owner}, ID: string(id),
		SessionID: m.Session, Tool: m.Tool, CalledAs: m.Called, MinimalArgs: m.Arguments, Thought: m.Thought, TurnID: m.TurnId,
		CallID: m.CallId, RequestID: m.RequestId, Time: wire.TimeOf(m.Time), Bridge: m.Server,
	}
	if len(m.Request) == len(in.Digest) {
		copy(in.Digest[:], m.Request)
	}
	return in, nil
}

// WrittenHash returns the SHA-256, in hex, of what the agent last wrote to a
// path, and false if it wrote nothing there. Paths are compared byte by byte:
// give them in one form.
func (l *Log) WrittenHash(ctx context.Context, scope kv.Scope, path string) (string, bool, error) {
	if err := scope.Validate(); err != nil {
		return "", false, err
	}
	value, err := l.get(ctx, writtenKey(scope, path))
	if err != nil {
		return "", false, fmt.Errorf("session: read written hash: %w", err)
	}
	return hex.EncodeToString(value), len(value) > 0, nil
}

// StageWrittenHash notes the hash of the content written to a path; an empty hash, or one
// that is not hex, forgets it. The request names the log's Ref, in Refs or in Blind.
func (l *Log) StageWrittenHash(tx *kv.Tx, scope kv.Scope, path, sha string) {
	value, err := hex.DecodeString(sha)
	if err != nil || len(value) == 0 {
		tx.Delete(kv.Log, writtenKey(scope, path))
		return
	}
	tx.Put(kv.Log, writtenKey(scope, path), value)
}
