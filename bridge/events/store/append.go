package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Emission is a durable event on its way into its topic.
type Emission struct {
	Event Event
	// RequestID makes the emission safe to repeat; empty: it is not.
	RequestID string
	// Digest is that of the event as it came, where it has a request id.
	Digest [sha256.Size]byte

	// Fresh says that the event was stored now, not before under its request id.
	Fresh bool
	// Err is why the event is refused.
	Err error
}

// Digest is the same for the same content, whatever its topic and sequence.
func (e *Event) Digest() [sha256.Size]byte { return sha256.Sum256(encodeEvent(*e, true)) }

// Stage gives each event the next sequence of the topic, except those
// whose request was answered before.
func Stage(ctx context.Context, tx *kv.Tx, ref kv.Ref, group []Emission) error {
	record, err := RecordOf(ctx, tx, ref.Scope)
	if err != nil {
		return err
	}
	before := record.Last
	for i := range group {
		if err := group[i].stage(ctx, tx, ref, &record); err != nil {
			return err
		}
	}
	if record.Last > before {
		tx.Put(kv.Events, topicKey(ref.Scope), encodeTopic(record))
	}
	return nil
}

// Foresee adds what staging the event reads.
func (m *Emission) Foresee(along *kv.Reads, ref kv.Ref) {
	along.Get(kv.Events, topicKey(ref.Scope))
	kv.ForeseeOnceOf(along, ref, m.Event.Source, m.RequestID)
}

// stage adds one event to the topic. A refusal of the event is its own; an
// error is the end of the commit.
func (m *Emission) stage(ctx context.Context, tx *kv.Tx, ref kv.Ref, record *Record) error {
	answer, replayed, err := kv.LookupOnceOf(ctx, tx, ref, m.Event.Source, m.RequestID, m.Digest)
	switch {
	case errors.Is(err, kv.ErrRequestReused), errors.Is(err, kv.ErrLimit):
		m.Err = fmt.Errorf("events: emit on %q: %w", ref.Scope.Owner, err)
		return nil
	case err != nil:
		return err
	case replayed:
		return decodeAnswer(answer, &m.Event)
	}
	m.Fresh = true
	m.Event.Sequence = record.Last + 1
	if !m.Event.Time.After(record.LastTime) {
		// Others on this topic were faster, or another process has a faster clock.
		m.Event.Time = record.LastTime.Add(time.Microsecond)
	}
	size := stageEvent(tx, ref.Scope, m.Event, kv.OnceKey(m.Event.Source, m.RequestID))
	record.add(m.Event, size)
	kv.StageOnceOf(tx, ref, m.Event.Source, m.RequestID, m.Digest, encodeAnswer(m.Event), m.Event.Time)
	return nil
}

// add takes the next event in.
func (r *Record) add(e Event, size int64) {
	if r.Empty() {
		r.First, r.Bytes, r.Oldest = e.Sequence, 0, e.Time
	}
	r.Last, r.LastTime = e.Sequence, e.Time
	r.Bytes += size
}
