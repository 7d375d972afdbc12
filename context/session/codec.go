package session

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// Kinds of entries. A reader passes over kinds it does not know, so a form that
// an old reader must not misread takes a new kind.
const (
	kindMessage = 1
	kindStep    = 2
)

// Fields of a stored entry.
const (
	fieldKind protowire.Number = iota + 1
	fieldTime
	fieldBody
)

// Fields of a stored message.
const (
	fieldRole protowire.Number = iota + 1
	fieldContent
	fieldBlocks
	fieldName
	fieldToolCall
	fieldToolCallID
)

// Fields of a stored tool call.
const (
	fieldCallID protowire.Number = iota + 1
	fieldCallName
	fieldCallArguments
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
	dst = appendVarint(dst, fieldKind, kind)
	if !e.Time.IsZero() {
		dst = appendTime(dst, fieldTime, e.Time)
	}
	dst = protowire.AppendTag(dst, fieldBody, protowire.BytesType)
	return protowire.AppendBytes(dst, body)
}

// decodeEntry reads what appendEntry wrote; errUnknownKind for an entry of a
// later version.
func decodeEntry(value []byte) (Entry, error) {
	var e Entry
	var kind uint64
	var body []byte
	err := eachField(value, func(f field) error {
		switch f.number {
		case fieldKind:
			kind = f.varint
		case fieldTime:
			e.Time = f.time()
		case fieldBody:
			body = f.bytes
		}
		return nil
	})
	if err != nil {
		return Entry{}, err
	}
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
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return &s, nil
}

func appendMessage(dst []byte, m *Message) []byte {
	dst = appendVarint(dst, fieldRole, uint64(m.Role))
	dst = appendText(dst, fieldContent, m.Content)
	dst = appendText(dst, fieldBlocks, string(m.BlocksJSON))
	dst = appendText(dst, fieldName, m.Name)
	for _, c := range m.ToolCalls {
		call := appendText(nil, fieldCallID, c.ID)
		call = appendText(call, fieldCallName, c.Name)
		call = appendText(call, fieldCallArguments, c.Arguments)
		dst = protowire.AppendTag(dst, fieldToolCall, protowire.BytesType)
		dst = protowire.AppendBytes(dst, call)
	}
	return appendText(dst, fieldToolCallID, m.ToolCallID)
}

func decodeMessage(body []byte) (*Message, error) {
	m := &Message{}
	err := eachField(body, func(f field) error {
		switch f.number {
		case fieldRole:
			m.Role = Role(min(f.varint, uint64(Tool)+1))
		case fieldContent:
			m.Content = string(f.bytes)
		case fieldBlocks:
			m.BlocksJSON = append([]byte(nil), f.bytes...)
		case fieldName:
			m.Name = string(f.bytes)
		case fieldToolCall:
			call, err := decodeToolCall(f.bytes)
			m.ToolCalls = append(m.ToolCalls, call)
			return err
		case fieldToolCallID:
			m.ToolCallID = string(f.bytes)
		}
		return nil
	})
	if err == nil && (m.Role < System || m.Role > Tool) {
		err = fmt.Errorf("%w: message with role %d", ErrDamaged, m.Role)
	}
	return m, err
}

func decodeToolCall(body []byte) (ToolCall, error) {
	var c ToolCall
	err := eachField(body, func(f field) error {
		switch f.number {
		case fieldCallID:
			c.ID = string(f.bytes)
		case fieldCallName:
			c.Name = string(f.bytes)
		case fieldCallArguments:
			c.Arguments = string(f.bytes)
		}
		return nil
	})
	return c, err
}

// fieldPosition repeats in the kept answer of an append.
const fieldPosition protowire.Number = 1

func encodePositions(positions []uint64) []byte {
	var dst []byte
	for _, p := range positions {
		dst = appendVarint(dst, fieldPosition, p)
	}
	return dst
}

func decodePositions(answer []byte) ([]uint64, error) {
	var positions []uint64
	err := eachField(answer, func(f field) error {
		if f.number == fieldPosition {
			positions = append(positions, f.varint)
		}
		return nil
	})
	return positions, err
}
