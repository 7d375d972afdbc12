package session

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Kinds of entries. A reader passes over kinds it does not know, so a form that
// an old reader must not misread takes a new kind.
const (
	kindMessage = 1
	kindStep    = 2
	// kindErased is what is left of an entry that was erased: when it was written. (3 is a
	// task.)
	kindErased = 4
)

// By hand: the generated Message takes 1.25 times as long to read (6.8 to 5.4 µs), before it is copied into ours.

// Fields of a stored entry.
const (
	fieldKind = iota + 1
	fieldTime
	fieldBody
)

// Fields of a stored message.
const (
	fieldRole = iota + 1
	fieldContent
	fieldBlocks
	fieldName
	fieldToolCall
	fieldToolCallID
	fieldPinned
	fieldObservation
	fieldExtra
	fieldDeveloper
)

// Fields of a stored tool call.
const (
	fieldCallID = iota + 1
	fieldCallName
	fieldCallArguments
	fieldCallExtra
)

// appendEntry appends the stored form of an entry, without its position, which
// stands in the key.
func appendEntry(dst []byte, e Entry) []byte {
	kind := uint64(kindMessage)
	var body []byte
	if e.Step != nil {
		kind, body = kindStep, step.Append(nil, *e.Step)
	} else {
		body = appendMessage(nil, e.Message)
	}
	const header = 32 // kind, time, tag and length of the body
	dst = slices.Grow(dst, header+len(body))
	dst = wire.AppendUint(dst, fieldKind, kind)
	dst = wire.AppendTime(dst, fieldTime, e.Time)
	return wire.AppendItem(dst, fieldBody, body)
}

// decodeEntry reads what appendEntry wrote; errUnknownKind for an entry of a
// later version.
func decodeEntry(value []byte) (Entry, error) {
	var e Entry
	var kind uint64
	var body []byte
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Entry{}, damaged(err)
		}
		switch f.Number {
		case fieldKind:
			kind = f.Value
		case fieldTime:
			e.Time = f.Time()
		case fieldBody:
			body = f.Bytes
		}
	}
	return e.withBody(kind, body)
}

// withBody reads the body, by the entry's kind.
func (e Entry) withBody(kind uint64, body []byte) (_ Entry, err error) {
	switch kind {
	case 0:
		return Entry{}, fmt.Errorf("%w: entry without a kind", ErrDamaged)
	case kindMessage:
		e.Message, err = decodeMessage(body)
	case kindStep:
		e.Step, err = decodeStep(body)
	default:
		return Entry{}, fmt.Errorf("%w: %d", errUnknownKind, kind)
	}
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

func decodeStep(body []byte) (*step.Step, error) {
	s, err := step.Decode(body)
	if err != nil {
		return nil, damaged(err)
	}
	return &s, nil
}

func appendMessage(dst []byte, m *Message) []byte {
	role := m.Role
	if role == Developer {
		role = System
	}
	dst = wire.AppendUint(dst, fieldRole, uint64(role))
	dst = wire.AppendText(dst, fieldContent, m.Content)
	dst = wire.AppendText(dst, fieldBlocks, m.BlocksJSON)
	dst = wire.AppendText(dst, fieldName, m.Name)
	for _, c := range m.ToolCalls {
		call := wire.AppendText(nil, fieldCallID, c.ID)
		call = wire.AppendText(call, fieldCallName, c.Name)
		call = wire.AppendText(call, fieldCallArguments, c.Arguments)
		call = wire.AppendText(call, fieldCallExtra, c.Extra)
		dst = wire.AppendItem(dst, fieldToolCall, call)
	}
	dst = wire.AppendText(dst, fieldToolCallID, m.ToolCallID)
	dst = wire.AppendUint(dst, fieldPinned, flag(m.Pinned))
	dst = wire.AppendUint(dst, fieldObservation, flag(m.Observation))
	dst = wire.AppendText(dst, fieldExtra, m.ExtraJSON)
	return wire.AppendUint(dst, fieldDeveloper, flag(m.Role == Developer))
}

// EncodeMessage is a message in its stored form.
func EncodeMessage(m *Message) []byte { return appendMessage(nil, m) }

// DecodeMessage reads what EncodeMessage wrote; ErrDamaged for anything else.
func DecodeMessage(stored []byte) (*Message, error) { return decodeMessage(stored) }

// flag is a truth as a number, which is left out when it is false.
func flag(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

func decodeMessage(body []byte) (*Message, error) {
	m := &Message{}
	for f, err := range wire.Fields(body) {
		if err != nil {
			return nil, damaged(err)
		}
		if err := m.set(f); err != nil {
			return nil, err
		}
	}
	if m.Role < System || m.Role > Developer {
		return nil, fmt.Errorf("%w: message with role %d", ErrDamaged, m.Role)
	}
	return m, nil
}

func (m *Message) set(f wire.Field) error {
	switch f.Number {
	case fieldRole:
		// A developer is stored as a system, which older readers know.
		m.Role = 0
		if f.Value <= uint64(Tool) {
			m.Role = Role(f.Value)
		}
	case fieldContent:
		m.Content = string(f.Bytes)
	case fieldBlocks:
		m.BlocksJSON = append([]byte(nil), f.Bytes...)
	case fieldName:
		m.Name = string(f.Bytes)
	case fieldToolCall:
		call, err := decodeToolCall(f.Bytes)
		if err != nil {
			return err
		}
		m.ToolCalls = append(m.ToolCalls, call)
	case fieldToolCallID:
		m.ToolCallID = string(f.Bytes)
	case fieldPinned:
		m.Pinned = f.Value != 0
	case fieldObservation:
		m.Observation = f.Value != 0
	case fieldExtra:
		m.ExtraJSON = append([]byte(nil), f.Bytes...)
	case fieldDeveloper:
		if f.Value != 0 && m.Role == System {
			m.Role = Developer
		}
	}
	return nil
}

func decodeToolCall(body []byte) (ToolCall, error) {
	var c ToolCall
	for f, err := range wire.Fields(body) {
		if err != nil {
			return ToolCall{}, damaged(err)
		}
		switch f.Number {
		case fieldCallID:
			c.ID = string(f.Bytes)
		case fieldCallName:
			c.Name = string(f.Bytes)
		case fieldCallArguments:
			c.Arguments = string(f.Bytes)
		case fieldCallExtra:
			c.Extra = string(f.Bytes)
		}
	}
	return c, nil
}

func encodePositions(positions []uint64) []byte {
	return wire.Marshal(&storev1.MessagesAnswer{Positions: positions})
}

func decodePositions(answer []byte) ([]uint64, error) {
	var m storev1.MessagesAnswer
	if err := wire.Unmarshal(answer, &m); err != nil {
		return nil, damaged(err)
	}
	return m.Positions, nil
}
