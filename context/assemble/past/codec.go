package past

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// errDamaged: a record can't be read.
var errDamaged = errors.New("past: record is damaged")

// Fields of a record.
const (
	fieldID = iota + 1
	fieldModel
	fieldFormat
	fieldPosition
	fieldTokens
	fieldCounter
	fieldCertainty
	fieldSize
	fieldPrefix
	fieldTools
	fieldExtra
	fieldSum
	fieldGeneration
	fieldRecipe
)

// Fields of a size, and of a piece.
const (
	fieldName = iota + 1
	fieldAmount
)

func encodeRecord(p *Prompt, tools []byte) []byte {
	dst := wire.AppendText(nil, fieldID, p.ID)
	dst = wire.AppendText(dst, fieldModel, p.Model)
	dst = wire.AppendUint(dst, fieldFormat, uint64(p.Format))
	dst = wire.AppendUint(dst, fieldPosition, p.Position)
	dst = wire.AppendUint(dst, fieldTokens, uint64(p.Tokens))
	dst = wire.AppendText(dst, fieldCounter, p.Counter)
	dst = wire.AppendUint(dst, fieldCertainty, uint64(p.Certainty))
	for _, s := range p.Sizes {
		dst = wire.AppendItem(dst, fieldSize, appendNamed(nil, s.Section, s.Tokens))
	}
	dst = wire.AppendText(dst, fieldPrefix, p.Prefix)
	dst = wire.AppendText(dst, fieldTools, tools)
	dst = wire.AppendText(dst, fieldExtra, p.Extra)
	dst = wire.AppendText(dst, fieldSum, p.Sum[:])
	dst = wire.AppendUint(dst, fieldGeneration, p.generation)
	return wire.AppendText(dst, fieldRecipe, p.recipe)
}

func appendNamed(dst []byte, name string, amount int) []byte {
	dst = wire.AppendText(dst, fieldName, name)
	return wire.AppendUint(dst, fieldAmount, uint64(amount))
}

func decodeRecord(value []byte) (*Prompt, error) {
	p := &Prompt{}
	for f, err := range wire.Fields(value) {
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
		if err := p.set(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Prompt) set(f wire.Field) error {
	switch f.Number {
	case fieldID:
		p.ID = string(f.Bytes)
	case fieldModel:
		p.Model = string(f.Bytes)
	case fieldFormat:
		p.Format = uint8(f.Value)
	case fieldPosition:
		p.Position = f.Value
	case fieldTokens:
		p.Tokens = int(f.Value)
	case fieldCounter:
		p.Counter = string(f.Bytes)
	case fieldCertainty:
		p.Certainty = uint8(f.Value)
	case fieldSize:
		name, amount, err := decodeNamed(f.Bytes)
		p.Sizes = append(p.Sizes, Size{name, amount})
		return err
	case fieldPrefix:
		p.Prefix = string(f.Bytes)
	case fieldTools:
		p.Tools = append([]byte(nil), f.Bytes...)
	case fieldExtra:
		p.Extra = append([]byte(nil), f.Bytes...)
	case fieldSum:
		copy(p.Sum[:], f.Bytes)
	case fieldGeneration:
		p.generation = f.Value
	case fieldRecipe:
		p.recipe = append([]byte(nil), f.Bytes...)
	}
	return nil
}

func decodeNamed(value []byte) (name string, amount int, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return "", 0, fmt.Errorf("%w: %w", errDamaged, err)
		}
		switch f.Number {
		case fieldName:
			name = string(f.Bytes)
		case fieldAmount:
			amount = int(f.Value)
		}
	}
	return name, amount, nil
}

// Fields of a recipe: the parts of a list of messages, in order.
const (
	fieldChunk = iota + 1 // hash of a text that is a recipe itself
	fieldPart             // a message
)

// Fields of a message in a recipe.
const (
	fieldText = iota + 1 // hash of the message's own text
	fieldFrom
	fieldBatch
	fieldFirst
	fieldPiece
)

// appendPart appends a message; text is the hash of what it says itself, if it does.
func appendPart(dst []byte, m *Message, text []byte) []byte {
	part := wire.AppendText(nil, fieldText, text)
	part = wire.AppendUint(part, fieldFrom, m.From)
	part = wire.AppendUint(part, fieldBatch, m.Batch)
	part = wire.AppendUint(part, fieldFirst, m.First)
	for _, p := range m.Pieces {
		part = wire.AppendItem(part, fieldPiece, appendNamed(nil, p.Section, p.Bytes))
	}
	return wire.AppendItem(dst, fieldPart, part)
}

// part is a message as a recipe has it.
type part struct {
	Message
	text hash
}

func decodePart(value []byte) (part, error) {
	var p part
	for f, err := range wire.Fields(value) {
		if err != nil {
			return part{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
		switch f.Number {
		case fieldText:
			copy(p.text[:], f.Bytes)
		case fieldFrom:
			p.From = f.Value
		case fieldBatch:
			p.Batch = f.Value
		case fieldFirst:
			p.First = f.Value
		case fieldPiece:
			name, amount, err := decodeNamed(f.Bytes)
			if err != nil {
				return part{}, err
			}
			p.Pieces = append(p.Pieces, Piece{name, amount})
		}
	}
	return p, nil
}

// fieldEpoch is a generation in a session's state.
const fieldEpoch = 1

// Fields of a generation.
const (
	fieldGen = iota + 1
	fieldGenFirst
	fieldGenBytes
)

func encodeState(all []generation) []byte {
	var dst []byte
	for _, g := range all {
		one := wire.AppendNumber(nil, fieldGen, g.number)
		one = wire.AppendUint(one, fieldGenFirst, g.first)
		one = wire.AppendUint(one, fieldGenBytes, uint64(g.bytes))
		dst = wire.AppendItem(dst, fieldEpoch, one)
	}
	return dst
}

func decodeState(value []byte) ([]generation, error) {
	var all []generation
	for f, err := range wire.Fields(value) {
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
		if f.Number != fieldEpoch {
			continue
		}
		var g generation
		for f, err := range wire.Fields(f.Bytes) {
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errDamaged, err)
			}
			switch f.Number {
			case fieldGen:
				g.number = f.Value
			case fieldGenFirst:
				g.first = f.Value
			case fieldGenBytes:
				g.bytes = int(f.Value)
			}
		}
		all = append(all, g)
	}
	return all, nil
}
