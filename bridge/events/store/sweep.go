package store

import (
	"context"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MaxSweptBytes bounds what one sweep looks at, so that emitters wait for a moment
// only.
const MaxSweptBytes = 4 << 20

// Rule says which of a topic's oldest events go.
type Rule struct {
	Events   int       // so many at most
	Before   time.Time // those taken before it
	MaxBytes int64     // so many that the rest takes no more; not positive: none
	Free     int64     // so many as to free this much
}

// MayHit reports whether there may be something to delete.
func (r Rule) MayHit(t Record) bool {
	return !t.Empty() && (r.MaxBytes > 0 && t.Bytes > r.MaxBytes || t.Oldest.Before(r.Before))
}

// hits reports whether the oldest event goes, after so much was freed.
func (r Rule) hits(e *storedEvent, t Record, freed int64) bool {
	return e.Time.Before(r.Before) || r.MaxBytes > 0 && t.Bytes > r.MaxBytes || freed < r.Free
}

// Swept is what a commit of a sweep did.
type Swept struct {
	Record Record
	Bytes  int64
	More   bool // it ended because it looked at enough
}

// Sweep deletes the first events of a topic as far as a rule hits them.
func Sweep(ctx context.Context, tx *kv.Tx, scope kv.Scope, rule Rule) (Swept, error) {
	before, err := RecordOf(ctx, tx, scope)
	if err != nil || before.Empty() {
		return Swept{Record: before}, err
	}
	done := Swept{Record: before}
	seen, size := 0, 0
	r := kv.Range{Start: sequenceKey(scope, eventTag, before.First), End: kv.After(scope.Key(eventTag))}
	for pair, err := range tx.Scan(ctx, kv.Events, r) {
		if err != nil {
			return Swept{}, err
		}
		sequence, e, err := decodePair(pair)
		if err != nil {
			return Swept{}, err
		}
		done.Record.Oldest = e.Time
		if done.More = seen == rule.Events || size > MaxSweptBytes; done.More || !rule.hits(&e, done.Record, done.Bytes) {
			break
		}
		seen, size = seen+1, size+len(pair.Value)
		freed := stageDelete(tx, scope, sequence, &e) + int64(len(pair.Value))
		done.Bytes += freed
		done.Record.Bytes = max(done.Record.Bytes-freed, 0)
		done.Record.First = sequence + 1
	}
	if done.Record.Empty() {
		done.Record.Bytes, done.Record.Oldest = 0, time.Time{}
	}
	if done.Record != before {
		tx.Put(kv.Events, topicKey(scope), encodeTopic(done.Record))
	}
	return done, nil
}

func decodePair(pair kv.Pair) (uint64, storedEvent, error) {
	sequence, err := sequenceOf(pair.Key)
	if err != nil {
		return 0, storedEvent{}, err
	}
	e, err := decodeEvent(pair.Value)
	return sequence, e, err
}

// stageDelete deletes an event and what belongs to it. It returns the bytes stored outside
// the event's own value.
func stageDelete(tx *kv.Tx, scope kv.Scope, sequence uint64, e *storedEvent) int64 {
	tx.Delete(kv.Events, sequenceKey(scope, eventTag, sequence))
	if e.elsewhere {
		tx.Delete(kv.Events, sequenceKey(scope, payloadTag, sequence))
	}
	for part := range min(e.parts, maxParts) {
		tx.Delete(kv.Events, partKey(scope, sequence, part))
	}
	if e.requestID != "" {
		tx.Delete(kv.Events, scope.Key(answerTag, []byte(e.requestID)))
	}
	return e.beside
}
