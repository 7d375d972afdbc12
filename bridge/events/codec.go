package events

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The tags of a topic's keys (memory/FORMAT.md, keyspace events).
const (
	eventTag   = 'e' // be64 sequence -> event
	payloadTag = 'p' // be64 sequence -> payload that did not fit the event
	topicTag   = 'm' // -> the topic itself
)

// The fields of a stored event.
const (
	fieldID        = 1
	fieldSource    = 2
	fieldSession   = 3
	fieldTime      = 4
	fieldKind      = 5
	fieldPayload   = 6
	fieldHeader    = 7
	fieldElsewhere = 8
)

// The fields of a header.
const (
	fieldHeaderKey   = 1
	fieldHeaderValue = 2
)

// fieldLast is the field of a stored topic: the last sequence given.
const fieldLast = 1

// The fields of the answer that is kept for a request id.
const (
	fieldAnswerID       = 1
	fieldAnswerSequence = 2
	fieldAnswerTime     = 3
)

// topicRef is the scope of a topic in the keyspace of events.
func topicRef(tenant, topic string) kv.Ref {
	return kv.Ref{Keyspace: kv.Events, Scope: kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: topic}}
}

// sequenceKey is a key of the topic that ends with a sequence.
func sequenceKey(scope kv.Scope, tag byte, sequence uint64) []byte {
	return scope.Key(tag, binary.BigEndian.AppendUint64(nil, sequence))
}

func topicKey(scope kv.Scope) []byte { return scope.Key(topicTag) }

// sequenceOf reads the sequence at the end of a key.
func sequenceOf(key []byte) (uint64, error) {
	_, rest, err := kv.SplitKey(key)
	if err != nil || len(rest) != 1+8 {
		return 0, fmt.Errorf("%w: key %q", ErrDamaged, key)
	}
	return binary.BigEndian.Uint64(rest[1:]), nil
}

// stageEvent writes an event. A payload that would not fit beside the rest of
// the event gets a key of its own.
func stageEvent(tx *kv.Tx, scope kv.Scope, e Event) {
	value := encodeEvent(e, true)
	if len(value) > kv.MaxValueBytes {
		value = encodeEvent(e, false)
		tx.Put(kv.Events, sequenceKey(scope, payloadTag, e.Sequence), e.Payload)
	}
	tx.Put(kv.Events, sequenceKey(scope, eventTag, e.Sequence), value)
	tx.Put(kv.Events, topicKey(scope), encodeTopic(e.Sequence))
}

// encodeEvent writes what the key does not say: all but topic and sequence.
func encodeEvent(e Event, withPayload bool) []byte {
	b := make([]byte, 0, 128+len(e.Payload))
	b = wire.AppendText(b, fieldID, e.ID)
	b = wire.AppendText(b, fieldSource, e.Source)
	b = wire.AppendText(b, fieldSession, e.SessionID)
	b = appendTime(b, fieldTime, e.Time)
	b = wire.AppendUint(b, fieldKind, uint64(e.PayloadKind))
	if withPayload {
		b = wire.AppendText(b, fieldPayload, e.Payload)
	} else {
		b = wire.AppendUint(b, fieldElsewhere, 1)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Headers)) {
		header := wire.AppendText(nil, fieldHeaderKey, key)
		header = wire.AppendText(header, fieldHeaderValue, e.Headers[key])
		b = wire.AppendText(b, fieldHeader, header)
	}
	return b
}

// decodeEvent reads what encodeEvent wrote. Elsewhere says that the payload
// has a key of its own.
func decodeEvent(b []byte) (e Event, elsewhere bool, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Event{}, false, damaged(err)
		}
		switch f.Number {
		case fieldID:
			e.ID = string(f.Bytes)
		case fieldSource:
			e.Source = string(f.Bytes)
		case fieldSession:
			e.SessionID = string(f.Bytes)
		case fieldTime:
			e.Time = f.Time()
		case fieldKind:
			e.PayloadKind = Kind(f.Value)
		case fieldPayload:
			e.Payload = slices.Clone(f.Bytes)
		case fieldElsewhere:
			elsewhere = f.Value != 0
		case fieldHeader:
			if err := e.decodeHeader(f.Bytes); err != nil {
				return Event{}, false, err
			}
		}
	}
	return e, elsewhere, nil
}

func (e *Event) decodeHeader(b []byte) error {
	var key, value string
	for f, err := range wire.Fields(b) {
		if err != nil {
			return damaged(err)
		}
		switch f.Number {
		case fieldHeaderKey:
			key = string(f.Bytes)
		case fieldHeaderValue:
			value = string(f.Bytes)
		}
	}
	if e.Headers == nil {
		e.Headers = make(map[string]string)
	}
	e.Headers[key] = value
	return nil
}

func encodeTopic(last uint64) []byte { return wire.AppendUint(nil, fieldLast, last) }

// decodeTopic returns the last sequence of a topic; nil is a topic without
// events.
func decodeTopic(b []byte) (last uint64, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return 0, damaged(err)
		}
		if f.Number == fieldLast {
			last = f.Value
		}
	}
	return last, nil
}

// encodeAnswer writes what Emit answered.
func encodeAnswer(e Event) []byte {
	b := wire.AppendText(nil, fieldAnswerID, e.ID)
	b = wire.AppendUint(b, fieldAnswerSequence, e.Sequence)
	return appendTime(b, fieldAnswerTime, e.Time)
}

// decodeAnswer puts a kept answer into the event that was emitted again.
func decodeAnswer(b []byte, e *Event) error {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return damaged(err)
		}
		switch f.Number {
		case fieldAnswerID:
			e.ID = string(f.Bytes)
		case fieldAnswerSequence:
			e.Sequence = f.Value
		case fieldAnswerTime:
			e.Time = f.Time()
		}
	}
	return nil
}

// appendTime writes an unset time and leaves out the very start of 1970, which
// wire.AppendTime does the other way around.
func appendTime(b []byte, number int, t time.Time) []byte {
	return wire.AppendInt(b, number, t.UnixMicro())
}
