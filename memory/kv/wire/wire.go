package wire

import (
	"errors"
	"iter"
	"time"

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
	// Bytes is the content of a bytes field, not nil even if empty, else nil. It
	// aliases the message.
	Bytes []byte
}

// Int is the number that AppendInt wrote.
func (f Field) Int() int64 { return protowire.DecodeZigZag(f.Value) }

// Time is the time that AppendTime wrote, in UTC.
func (f Field) Time() time.Time { return time.UnixMicro(f.Int()).UTC() }

// Fields yields the fields of a message in order. ErrMalformed comes last, with a zero
// Field, behind the fields that could be read.
func Fields(message []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		for rest := message; len(rest) > 0; {
			var f Field
			size := f.read(rest)
			if size < 0 {
				yield(Field{}, ErrMalformed)
				return
			}
			rest = rest[size:]
			if isGroup := f.Number == 0; !isGroup && !yield(f, nil) {
				return
			}
		}
	}
}

// read reads the first field of a message and returns its size, negative when
// there is none. A group gets no number.
func (f *Field) read(message []byte) int {
	number, kind, tag := protowire.ConsumeTag(message)
	if tag < 0 {
		return tag
	}
	f.Number = int(number)
	var size int
	switch kind {
	case protowire.VarintType:
		f.Value, size = protowire.ConsumeVarint(message[tag:])
	case protowire.BytesType:
		f.Bytes, size = protowire.ConsumeBytes(message[tag:])
	case protowire.Fixed64Type:
		f.Value, size = protowire.ConsumeFixed64(message[tag:])
	case protowire.Fixed32Type:
		var value uint32
		value, size = protowire.ConsumeFixed32(message[tag:])
		f.Value = uint64(value)
	default:
		f.Number = 0
		size = protowire.ConsumeFieldValue(number, kind, message[tag:])
	}
	if size < 0 {
		return size
	}
	return tag + size
}

// AppendUint appends a varint field; a zero is left out.
func AppendUint(dst []byte, number int, value uint64) []byte {
	if value == 0 {
		return dst
	}
	return AppendNumber(dst, number, value)
}

// AppendNumber appends a varint field, zero or not.
func AppendNumber(dst []byte, number int, value uint64) []byte {
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.VarintType)
	return protowire.AppendVarint(dst, value)
}

// AppendInt appends a zigzag varint field; a zero is left out. Int reads it.
func AppendInt(dst []byte, number int, value int64) []byte {
	return AppendUint(dst, number, protowire.EncodeZigZag(value))
}

// AppendTime appends a time as whole microseconds since 1970, in zigzag; an
// unset one is left out. Time reads it.
func AppendTime(dst []byte, number int, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return AppendNumber(dst, number, protowire.EncodeZigZag(t.UnixMicro()))
}

// AppendFixed64 appends a field of eight bytes, zero or not.
func AppendFixed64(dst []byte, number int, value uint64) []byte {
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.Fixed64Type)
	return protowire.AppendFixed64(dst, value)
}

// AppendText appends a bytes field; an empty one is left out.
func AppendText[T ~string | ~[]byte](dst []byte, number int, value T) []byte {
	if len(value) == 0 {
		return dst
	}
	return AppendItem(dst, number, value)
}

// AppendItem appends a bytes field even when it is empty.
func AppendItem[T ~string | ~[]byte](dst []byte, number int, value T) []byte {
	return append(AppendSize(dst, number, len(value)), value...)
}

// AppendSize begins a bytes field whose content the caller appends: size bytes
// of it, not negative and to the byte, or what follows can't be read.
func AppendSize(dst []byte, number, size int) []byte {
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(size))
}
