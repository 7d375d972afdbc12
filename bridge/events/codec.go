package events

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/memory/kv"
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
	b = appendText(b, fieldID, e.ID)
	b = appendText(b, fieldSource, e.Source)
	b = appendText(b, fieldSession, e.SessionID)
	b = appendTime(b, fieldTime, e.Time)
	b = appendUint(b, fieldKind, uint64(e.PayloadKind))
	if withPayload {
		b = appendBytes(b, fieldPayload, e.Payload)
	} else {
		b = appendUint(b, fieldElsewhere, 1)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Headers)) {
		header := appendText(nil, fieldHeaderKey, key)
		header = appendText(header, fieldHeaderValue, e.Headers[key])
		b = appendBytes(b, fieldHeader, header)
	}
	return b
}

// decodeEvent reads what encodeEvent wrote. Elsewhere says that the payload
// has a key of its own.
func decodeEvent(b []byte) (e Event, elsewhere bool, err error) {
	err = fields(b, func(number protowire.Number, f field) error {
		switch number {
		case fieldID:
			e.ID = string(f.bytes)
		case fieldSource:
			e.Source = string(f.bytes)
		case fieldSession:
			e.SessionID = string(f.bytes)
		case fieldTime:
			e.Time = f.time()
		case fieldKind:
			e.PayloadKind = Kind(f.number)
		case fieldPayload:
			e.Payload = slices.Clone(f.bytes)
		case fieldElsewhere:
			elsewhere = f.number != 0
		case fieldHeader:
			return e.decodeHeader(f.bytes)
		}
		return nil
	})
	return e, elsewhere, err
}

func (e *Event) decodeHeader(b []byte) error {
	var key, value string
	err := fields(b, func(number protowire.Number, f field) error {
		switch number {
		case fieldHeaderKey:
			key = string(f.bytes)
		case fieldHeaderValue:
			value = string(f.bytes)
		}
		return nil
	})
	if e.Headers == nil {
		e.Headers = make(map[string]string)
	}
	e.Headers[key] = value
	return err
}

func encodeTopic(last uint64) []byte { return appendUint(nil, fieldLast, last) }

// decodeTopic returns the last sequence of a topic; nil is a topic without
// events.
func decodeTopic(b []byte) (last uint64, err error) {
	err = fields(b, func(number protowire.Number, f field) error {
		if number == fieldLast {
			last = f.number
		}
		return nil
	})
	return last, err
}

// encodeAnswer writes what Emit answered.
func encodeAnswer(e Event) []byte {
	b := appendText(nil, fieldAnswerID, e.ID)
	b = appendUint(b, fieldAnswerSequence, e.Sequence)
	return appendTime(b, fieldAnswerTime, e.Time)
}

// decodeAnswer puts a kept answer into the event that was emitted again.
func decodeAnswer(b []byte, e *Event) error {
	return fields(b, func(number protowire.Number, f field) error {
		switch number {
		case fieldAnswerID:
			e.ID = string(f.bytes)
		case fieldAnswerSequence:
			e.Sequence = f.number
		case fieldAnswerTime:
			e.Time = f.time()
		}
		return nil
	})
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}

func appendBytes(b []byte, number protowire.Number, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

func appendUint(b []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), value)
}

func appendTime(b []byte, number protowire.Number, t time.Time) []byte {
	return appendUint(b, number, protowire.EncodeZigZag(t.UnixMicro()))
}

// field is a field's value: bytes, or a number.
type field struct {
	bytes  []byte
	number uint64
}

func (f field) time() time.Time {
	return time.UnixMicro(protowire.DecodeZigZag(f.number)).UTC()
}

// fields calls visit for each field of a message that is bytes or a varint.
// Others belong to later versions and are passed over.
func fields(b []byte, visit func(protowire.Number, field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrDamaged, protowire.ParseError(n))
		}
		b = b[n:]
		var f field
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrDamaged, protowire.ParseError(n))
		}
		b = b[n:]
		if kind != protowire.BytesType && kind != protowire.VarintType {
			continue
		}
		if err := visit(number, f); err != nil {
			return err
		}
	}
	return nil
}
