package store

import (
	"bytes"
	"context"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// TypeErased is the type of what stands in the place of an event that was erased: the
// sequences of a topic have no gaps.
const TypeErased = "loom.erased"

// Erasure is what becomes of events when a subject is erased. own reports whether a topic is
// named after an agent: it goes with it.
func Erasure(own func(agent, topic string) bool) erase.Owner {
	const others = "what others emitted"
	sort := func(tags, counted string) erase.Sort {
		return erase.Sort{Keyspace: kv.Events, Kinds: "t", Tags: tags, Counted: counted, Phase: erase.Elsewhere, Texts: others}
	}
	ofSubject := func(s erase.Subject) func(topic string) bool {
		return func(topic string) bool { return s.Kind == erase.Agent && !s.Narrowed() && own(s.ID, topic) }
	}
	return erase.Owner{
		Name:  "bridge/events",
		Sorts: []erase.Sort{sort(string(rune(eventTag)), "events"), sort(string([]byte{payloadTag, topicTag, answerTag}), "")},
		Whole: func(s erase.Subject, scope kv.Scope) bool {
			return scope.Kind == kv.OwnerTopic && ofSubject(s)(scope.Owner)
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			x := &Erasing{From: r.From, Source: r.Subject.ID, Session: r.Subject.Session, Own: ofSubject(r.Subject)}
			if r.Subject.Step != 0 {
				x.Session, x.Quotes = r.Place.Session, r.Words.In
			}
			return func(ctx context.Context, e erase.Entry) ([]byte, bool, error) {
				if r.Subject.Kind != erase.Agent || r.Subject.Filter != "" {
					return e.Stays()
				}
				return x.Change(ctx, e.Scope, e.Pair)
			}, nil
		},
	}
}

// Erasing takes the events of a source out of topics, while their entries are copied in the
// order of their keys.
type Erasing struct {
	// From is the source to copy. Required.
	From Scanner
	// Source is whose events go. Required.
	Source string
	// Session limits them to one session. Default: all go.
	Session string
	// Quotes narrows them to those whose payload it is true of. Nil: all go.
	Quotes func(payload []byte) bool
	// Own reports whether all events of a topic go, from any emitter. Nil: of none.
	Own func(topic string) bool

	scope    kv.Scope
	freed    int64
	gone     map[uint64]bool
	requests map[string]bool
}

// Change says what becomes of an entry of a topic: its value, and whether it stays.
func (x *Erasing) Change(ctx context.Context, scope kv.Scope, p kv.Pair) (value []byte, keep bool, err error) {
	if scope != x.scope || x.gone == nil {
		x.scope, x.freed, x.gone, x.requests = scope, 0, make(map[uint64]bool), make(map[string]bool)
	}
	_, rest, err := kv.SplitKey(p.Key)
	if err != nil || len(rest) == 0 {
		return p.Value, true, err
	}
	switch rest[0] {
	case eventTag:
		return x.event(ctx, p)
	case topicTag:
		if x.freed == 0 {
			return p.Value, true, nil
		}
		record, err := decodeTopic(p.Value)
		record.Bytes = max(0, record.Bytes-x.freed)
		return encodeTopic(record), true, err
	case payloadTag:
		const tagAndSequence = 1 + 8
		if len(rest) < tagAndSequence {
			return p.Value, true, nil
		}
		sequence, err := sequenceOf(p.Key[:len(p.Key)-len(rest)+tagAndSequence])
		return p.Value, !x.gone[sequence], err
	case answerTag:
		return p.Value, !x.requests[string(rest[1:])], nil
	}
	return p.Value, true, nil
}

// Stage takes some events out of their topic in one commit, with what belongs to them, if
// they are still the source's, and returns the sequences it removed. From is the source it
// reads.
func (x *Erasing) Stage(ctx context.Context, tx *kv.Tx, scope kv.Scope, sequences []uint64) (gone []uint64, err error) {
	stage := *x
	stage.From, stage.gone = tx, nil
	change := func(keys ...[]byte) (changed bool, err error) {
		values, err := tx.Get(ctx, kv.Events, keys...)
		for i := 0; i < len(values) && err == nil; i++ {
			if values[i] == nil {
				continue
			}
			var value []byte
			var keep bool
			value, keep, err = stage.Change(ctx, scope, kv.Pair{Key: keys[i], Value: values[i]})
			switch {
			case err != nil:
			case !keep:
				tx.Delete(kv.Events, keys[i])
				changed = true
			case !bytes.Equal(value, values[i]):
				tx.Put(kv.Events, keys[i], value)
				changed = true
			}
		}
		return changed, err
	}
	for _, sequence := range sequences {
		changed, err := change(sequenceKey(scope, eventTag, sequence))
		if err != nil {
			return nil, err
		}
		if changed {
			gone = append(gone, sequence)
		}
	}
	var beside [][]byte
	for sequence := range stage.gone {
		for p, err := range tx.Scan(ctx, kv.Events, kv.Prefix(sequenceKey(scope, payloadTag, sequence))) {
			if err != nil {
				return nil, err
			}
			beside = append(beside, p.Key)
		}
	}
	for id := range stage.requests {
		beside = append(beside, scope.Key(answerTag, []byte(id)))
	}
	_, err = change(append(beside, topicKey(scope))...)
	return gone, err
}

// Of finds the events of the source in a topic, by their sequences.
func (x *Erasing) Of(ctx context.Context, scope kv.Scope) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		x.scope, x.gone, x.requests = scope, make(map[uint64]bool), make(map[string]bool)
		for p, err := range x.From.Scan(ctx, kv.Events, kv.Prefix(scope.Key(eventTag))) {
			if err == nil {
				var value []byte
				if value, _, err = x.event(ctx, p); err == nil && bytes.Equal(value, p.Value) {
					continue
				}
			}
			sequence := uint64(0)
			if err == nil {
				sequence, err = sequenceOf(p.Key)
			}
			if !yield(sequence, err) || err != nil {
				return
			}
		}
	}
}

// event puts an empty event into the place of one of the source's.
func (x *Erasing) event(ctx context.Context, p kv.Pair) ([]byte, bool, error) {
	sequence, stored, err := decodePair(p)
	if err != nil {
		return nil, false, err
	}
	e := stored.Event
	if stored.parts > 0 {
		whole, err := readParts(ctx, x.From, x.scope, sequence, stored.parts)
		if err != nil {
			return nil, false, err
		}
		e = whole.Event
	}
	own := x.Own != nil && e.Type != TypeErased && x.Own(x.scope.Owner)
	if !own && (e.Source != x.Source || x.Session != "" && e.SessionID != x.Session || x.Quotes != nil && !x.Quotes(e.Payload)) {
		return p.Value, true, nil
	}
	value := encodeEvent(Event{Time: stored.Time, Type: TypeErased, Payload: []byte("null")}, true)
	x.freed += int64(len(p.Value)) + stored.beside - int64(len(value))
	if stored.elsewhere || stored.parts > 0 {
		x.gone[sequence] = true
	}
	if stored.requestID != "" {
		x.requests[stored.requestID] = true
	}
	return value, true, nil
}
