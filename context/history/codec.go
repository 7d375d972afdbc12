package history

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Field numbers of a stored fold. They are final: a field that goes leaves its
// number unused.
const (
	fieldPolicy = iota + 1
	fieldBatch
	fieldReason
	fieldLevel
	fieldSpan
	fieldThrough
	fieldSeen
	fieldText
	fieldRef
	fieldTokens
	fieldBefore
	fieldTurns
	fieldCalls
	fieldCuts
	fieldOriginal
	fieldDigest
)

// Field numbers of a span.
const (
	fieldFirst = iota + 1
	fieldCount
)

// AppendFold appends the stored form of a fold to dst: numbered fields of
// protobuf's wire encoding, so that later versions may add some.
func AppendFold(dst []byte, f Fold) []byte {
	dst = wire.AppendText(dst, fieldPolicy, f.Policy)
	dst = wire.AppendUint(dst, fieldBatch, f.Batch)
	dst = wire.AppendUint(dst, fieldReason, uint64(f.Reason))
	dst = wire.AppendUint(dst, fieldLevel, uint64(f.Level))
	for _, s := range f.Spans {
		span := wire.AppendUint(nil, fieldFirst, s.First)
		dst = wire.AppendItem(dst, fieldSpan, wire.AppendUint(span, fieldCount, s.Last-s.First))
	}
	dst = wire.AppendUint(dst, fieldThrough, f.Through)
	dst = wire.AppendUint(dst, fieldSeen, f.Seen)
	dst = wire.AppendText(dst, fieldText, f.Text)
	for _, ref := range f.Refs {
		dst = wire.AppendItem(dst, fieldRef, ref)
	}
	for _, n := range f.numbers() {
		dst = wire.AppendUint(dst, n.field, uint64(*n.value))
	}
	return wire.AppendText(dst, fieldDigest, f.Digest)
}

type foldNumber struct {
	field int
	value *int
}

func (f *Fold) numbers() [6]foldNumber {
	return [...]foldNumber{
		{fieldTokens, &f.Tokens},
		{fieldBefore, &f.Before},
		{fieldTurns, &f.Turns},
		{fieldCalls, &f.Calls},
		{fieldCuts, &f.Cuts},
		{fieldOriginal, &f.Original},
	}
}

// DecodeFold reads what AppendFold wrote. Fields of later versions are skipped;
// bytes that are no fold are ErrDamaged. The fold shares no memory with stored.
func DecodeFold(stored []byte) (Fold, error) {
	var f Fold
	for field, err := range wire.Fields(stored) {
		if err == nil {
			err = f.set(field)
		}
		if err != nil {
			return Fold{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if err := f.check(); err != nil {
		return Fold{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return f, nil
}

func (f *Fold) set(field wire.Field) error {
	switch field.Number {
	case fieldPolicy:
		f.Policy = string(field.Bytes)
	case fieldBatch:
		f.Batch = field.Value
	case fieldReason:
		f.Reason = Reason(min(field.Value, 255))
	case fieldLevel:
		f.Level = int(min(field.Value, 255))
	case fieldSpan:
		return f.addSpan(field.Bytes)
	case fieldThrough:
		f.Through = field.Value
	case fieldSeen:
		f.Seen = field.Value
	case fieldText:
		f.Text = string(field.Bytes)
	case fieldRef:
		f.Refs = append(f.Refs, string(field.Bytes))
	case fieldDigest:
		f.Digest = string(field.Bytes)
	}
	for _, n := range f.numbers() {
		if n.field == field.Number {
			*n.value = count(field)
		}
	}
	return nil
}

func (f *Fold) addSpan(stored []byte) error {
	var first, count uint64
	for field, err := range wire.Fields(stored) {
		if err != nil {
			return err
		}
		switch field.Number {
		case fieldFirst:
			first = field.Value
		case fieldCount:
			count = field.Value
		}
	}
	f.Spans = append(f.Spans, Span{first, first + count})
	return nil
}

// check reports whether a fold can stand in a history.
func (f *Fold) check() error {
	before := uint64(0)
	for _, s := range f.Spans {
		if s.First <= before || s.Last < s.First {
			return errors.New("spans are out of order")
		}
		before = s.Last
	}
	switch {
	case before == 0:
		return errors.New("no spans")
	case f.Level < LevelLines || f.Text == "" || !utf8.ValidString(f.Text):
		return errors.New("no level or no text")
	}
	return nil
}
