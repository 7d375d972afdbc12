package past

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// errDamaged: a record can't be read.
var errDamaged = errors.New("past: record is damaged")

func encodeRecord(p *Kept, tools []byte) []byte {
	m := &storev1.PromptRecord{
		Id: p.ID, Model: p.Model, Format: uint64(p.Format), Position: p.Position, Tokens: uint64(p.Tokens), Counter: p.Counter,
		Certainty: uint64(p.Certainty), StableHash: p.Prefix, ToolsHash: tools, Rest: p.Extra, Sha256: p.Sum[:],
		Generation: p.generation, Recipe: p.recipe,
	}
	for _, s := range p.Sizes {
		m.Sections = append(m.Sections, &storev1.SectionTokens{Name: s.Section, Tokens: uint64(s.Tokens)})
	}
	return wire.Marshal(m)
}

func decodeRecord(value []byte) (*Kept, error) {
	var m storev1.PromptRecord
	if err := read(value, &m); err != nil {
		return nil, err
	}
	p := &Kept{
		ID: m.Id, Model: m.Model, Format: uint8(m.Format), Position: m.Position, Tokens: int(m.Tokens), Counter: m.Counter,
		Certainty: uint8(m.Certainty), Prefix: m.StableHash, Tools: m.ToolsHash, Extra: m.Rest, generation: m.Generation, recipe: m.Recipe,
	}
	copy(p.Sum[:], m.Sha256)
	for _, s := range m.Sections {
		p.Sizes = append(p.Sizes, Size{s.Name, int(s.Tokens)})
	}
	return p, nil
}

func read(value []byte, m proto.Message) error {
	if err := wire.Unmarshal(value, m); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// partOf is a message in a recipe; text is the hash of what it says itself, if it does.
func partOf(m *Message, text []byte) *storev1.RecipeMessage {
	part := &storev1.RecipeMessage{Text: text, Position: m.From, Batch: m.Batch, First: m.First}
	for _, p := range m.Pieces {
		part.Parts = append(part.Parts, &storev1.SectionPart{Name: p.Section, Bytes: uint64(p.Bytes)})
	}
	return part
}

// part is a message as a recipe has it.
type part struct {
	Message
	text hash
}

func newPart(m *storev1.RecipeMessage) part {
	p := part{Message: Message{From: m.Position, Batch: m.Batch, First: m.First}}
	copy(p.text[:], m.Text)
	for _, piece := range m.Parts {
		p.Pieces = append(p.Pieces, Piece{piece.Name, int(piece.Bytes)})
	}
	return p
}

func encodeState(all []generation) []byte {
	m := &storev1.Generations{}
	for _, g := range all {
		m.Generations = append(m.Generations, &storev1.Generation{Number: &g.number, First: g.first, Bytes: uint64(g.bytes)})
	}
	return wire.Marshal(m)
}

func decodeState(value []byte) ([]generation, error) {
	var m storev1.Generations
	if err := read(value, &m); err != nil {
		return nil, err
	}
	var all []generation
	for _, g := range m.Generations {
		all = append(all, generation{number: g.GetNumber(), first: g.First, bytes: int(g.Bytes)})
	}
	return all, nil
}
