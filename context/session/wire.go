package session

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a stored value: a number or bytes, by its wire type.
type field struct {
	number protowire.Number
	varint uint64
	bytes  []byte // aliases the stored value
}

// eachField calls visit with every field of a stored value in order, until one
// fails. Bytes that are no fields are ErrDamaged.
func eachField(value []byte, visit func(field) error) error {
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrDamaged, protowire.ParseError(n))
		}
		value = value[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(value)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(value)
		default:
			n = protowire.ConsumeFieldValue(number, kind, value)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrDamaged, protowire.ParseError(n))
		}
		value = value[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// time reads the field as appendTime wrote it.
func (f field) time() time.Time {
	return time.UnixMicro(protowire.DecodeZigZag(f.varint)).UTC()
}

// appendTime appends a time in microseconds.
func appendTime(dst []byte, number protowire.Number, t time.Time) []byte {
	dst = protowire.AppendTag(dst, number, protowire.VarintType)
	return protowire.AppendVarint(dst, protowire.EncodeZigZag(t.UnixMicro()))
}

// appendVarint appends a number; zero is left out.
func appendVarint(dst []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), v)
}

// appendText appends a text; an empty one is left out.
func appendText(dst []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, number, protowire.BytesType), text)
}
