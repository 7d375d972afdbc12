package past

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func (b *batch) put(key, value []byte) { b.puts = append(b.puts, kv.Pair{Key: key, Value: value}) }

// goesOn begins a part of a text that is not the last one.
const goesOn = 1

// text writes a text, unless the generation has it, and returns its hash.
func (b *batch) text(text []byte) ([]byte, error) {
	h := hashOf(text)
	if b.texts[h] {
		return h[:], nil
	}
	if len(text) > maxTextParts*maxPartBytes {
		return nil, &kv.LimitError{What: "text of a prompt", Size: len(text), Limit: maxTextParts * maxPartBytes}
	}
	b.texts[h] = true
	b.bytes += len(text)
	for part := 0; part == 0 || len(text) > 0; part++ {
		n := min(len(text), maxPartBytes)
		value := make([]byte, 1, n+1)
		if n < len(text) {
			value[0] = goesOn
		}
		b.put(textKey(b.scope, b.session, b.generation, h, part), append(value, text[:n]...))
		text = text[n:]
	}
	return h[:], nil
}

// recipe writes the record of a prompt and the texts that it needs.
func (b *batch) recipe(p *Kept, messages []Message) error {
	var tools []byte
	var err error
	if len(p.Tools) > 0 {
		if tools, err = b.text(p.Tools); err != nil {
			return err
		}
	}
	var all, run storev1.Recipe
	for i := range messages {
		m := &messages[i]
		var own []byte
		if m.From == 0 && m.Batch == 0 {
			if own, err = b.text(session.EncodeMessage(&m.Message)); err != nil {
				return err
			}
		}
		run.Messages = append(run.Messages, partOf(m, own))
		if (i+1)%chunkParts == 0 {
			if own, err = b.text(wire.Marshal(&run)); err != nil {
				return err
			}
			all.Recipes, run.Messages = append(all.Recipes, own), nil
		}
	}
	all.Messages = run.Messages
	p.recipe = wire.Marshal(&all)
	value := encodeRecord(p, tools)
	if len(value) > kv.MaxValueBytes {
		return &kv.LimitError{What: "record of a prompt", Size: len(value), Limit: kv.MaxValueBytes}
	}
	b.put(recordKey(b.scope, b.session, p.Number), value)
	return nil
}

// Messages makes the messages of a prompt again, in order. What is missing is a
// *GoneError.
func (s *Store) Messages(ctx context.Context, scope kv.Scope, sessionID string, p *Kept) ([]Message, error) {
	parts, err := s.parts(ctx, scope, sessionID, p, p.recipe)
	if err != nil {
		return nil, err
	}
	folds := make(map[FoldName]*history.Fold)
	for i := range parts {
		if m := &parts[i].Message; m.Batch > 0 {
			folds[m.fold()] = nil
		}
	}
	if err := s.Folds(ctx, scope, sessionID, folds); err != nil {
		return nil, err
	}
	messages := make([]Message, len(parts))
	for i := range parts {
		if err := s.fill(ctx, scope, sessionID, p, &parts[i], folds); err != nil {
			return nil, err
		}
		messages[i] = parts[i].Message
	}
	return messages, nil
}

// parts reads a recipe.
func (s *Store) parts(ctx context.Context, scope kv.Scope, sessionID string, p *Kept, recipe []byte) ([]part, error) {
	var m storev1.Recipe
	if err := read(recipe, &m); err != nil {
		return nil, err
	}
	var parts []part
	for _, h := range m.Recipes {
		if len(h) != len(hash{}) {
			return nil, fmt.Errorf("%w: a hash of %d bytes", errDamaged, len(h))
		}
		inner, err := s.read(ctx, scope, sessionID, p, hash(h))
		if err != nil {
			return nil, err
		}
		some, err := s.parts(ctx, scope, sessionID, p, inner)
		if err != nil {
			return nil, err
		}
		parts = append(parts, some...)
	}
	for _, one := range m.Messages {
		parts = append(parts, newPart(one))
	}
	return parts, nil
}

// Folds finds folds that stand in prompts of a session, by their names: those that wanted has.
// One that is no longer there, or is damaged, stays nil.
func (s *Store) Folds(ctx context.Context, scope kv.Scope, sessionID string, wanted map[FoldName]*history.Fold) error {
	if len(wanted) == 0 {
		return nil
	}
	for f, err := range s.log.EveryFold(ctx, scope, sessionID) {
		if errors.Is(err, session.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		if name := (FoldName{f.Batch, f.Spans[0].First}); wanted[name] == nil {
			if _, ok := wanted[name]; ok {
				wanted[name] = &f
			}
		}
	}
	return nil
}

// fill reads what a message says. folds are those of its prompt.
func (s *Store) fill(ctx context.Context, scope kv.Scope, sessionID string, p *Kept, m *part, folds map[FoldName]*history.Fold) error {
	switch {
	case m.From > 0:
		e, found, err := s.log.Entry(ctx, scope, sessionID, m.From)
		if err != nil {
			return err
		}
		if !found || e.Message == nil {
			return Gone("%s of the session's log", session.MessageID(m.From))
		}
		m.Message.Message = *e.Message
	case m.Batch > 0:
		f := folds[m.fold()]
		if f == nil {
			return Gone("the fold of batch %d at position %d", m.Batch, m.First)
		}
		m.Message.Message = session.Message{Role: session.User, Content: f.Text}
	default:
		text, err := s.read(ctx, scope, sessionID, p, m.text)
		if err != nil {
			return err
		}
		said, err := session.DecodeMessage(text)
		if err != nil {
			return err
		}
		m.Message.Message = *said
	}
	return nil
}

// read reads a text.
func (s *Store) read(ctx context.Context, scope kv.Scope, sessionID string, p *Kept, h hash) ([]byte, error) {
	var text []byte
	for part := range maxTextParts {
		values, err := s.engine.Get(ctx, kv.Log, textKey(scope, sessionID, p.generation, h, part))
		if err != nil {
			return nil, fmt.Errorf("past: read: %w", err)
		}
		if values[0] == nil {
			return nil, Gone("a text of prompt %d that is no part of the log", p.Number)
		}
		if len(values[0]) == 0 {
			return nil, fmt.Errorf("%w: a text of prompt %d is empty", errDamaged, p.Number)
		}
		text = append(text, values[0][1:]...)
		if values[0][0] != goesOn {
			break
		}
	}
	if hashOf(text) != h {
		return nil, fmt.Errorf("%w: a text of prompt %d has another hash", errDamaged, p.Number)
	}
	return text, nil
}
