package wire

import (
	"errors"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMalformed: bytes are not a message.
var ErrMalformed = errors.New("wire: malformed message")

// Field is one field of a message.
type Field struct {
	// Number is the field's number, from 1.
	Number int
	// Value is the number of a varint, fixed64 or fixed32 field, else zero.
	Value uint64
	// Bytes is the content of a bytes field, else nil. It aliases the message.
	Bytes []byte
}

// Fields yields the fields of a message in order. ErrMalformed comes last.
func Fields(message []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		for len(message) > 0 {
			f, size := field(message)
			if size < 0 {
				yield(Field{}, ErrMalformed)
				return
			}
			if !yield(f, nil) {
				return
			}
			message = message[size:]
		}
	}
}

// field reads the first field and returns its size, negative when there is
// none.
func field(message []byte) (Field, int) {
	number, kind, tag := protowire.ConsumeTag(message)
	if tag < 0 {
		return Field{}, tag
	}
	f := Field{Number: int(number)}
	var size int
	switch kind {
	case protowire.VarintType:
		f.Value, size = protowire.ConsumeVarint(message[tag:])
	case protowire.Fixed64Type:
		f.Value, size = protowire.ConsumeFixed64(message[tag:])
	case protowire.Fixed32Type:
		var value uint32
		value, size = protowire.ConsumeFixed32(message[tag:])
		f.Value = uint64(value)
	case protowire.BytesType:
		f.Bytes, size = protowire.ConsumeBytes(message[tag:])
	default:
		return Field{}, -1
	}
	if size < 0 {
		return Field{}, size
	}
	return f, tag + size
}

// AppendUint appends a varint field; a zero is left out.
func AppendUint(dst []byte, number int, value uint64) []byte {
	if value == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.VarintType)
	return protowire.AppendVarint(dst, value)
}

// AppendInt appends a zigzag varint field; a zero is left out. Int reads it.
func AppendInt(dst []byte, number int, value int64) []byte {
	return AppendUint(dst, number, protowire.EncodeZigZag(value))
}

// Int is the number that AppendInt wrote.
func (f Field) Int() int64 { return protowire.DecodeZigZag(f.Value) }

// AppendFixed64 appends a field of eight bytes, zero or not.
func AppendFixed64(dst []byte, number int, value uint64) []byte {
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.Fixed64Type)
	return protowire.AppendFixed64(dst, value)
}

// AppendText appends a bytes field; an empty one is left out.
func AppendText[T string | []byte](dst []byte, number int, value T) []byte {
	if len(value) == 0 {
		return dst
	}
	return AppendItem(dst, number, value)
}

// AppendItem appends a bytes field even when it is empty: an item of a list.
func AppendItem[T string | []byte](dst []byte, number int, value T) []byte {
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(value)))
	return append(dst, value...)
}
