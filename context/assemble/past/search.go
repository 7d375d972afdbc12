package past

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Limits of what a search returns.
const (
	// MaxPlaces of a text in one prompt are returned.
	MaxPlaces = 16
	// MaxOrigins of a text in a session are returned, the oldest.
	MaxOrigins = 32
)

// Place is where a text stands in a prompt.
type Place struct {
	// Section owns it.
	Section string
	// Message is the message, from 0; -1 is in the tools.
	Message int
	// From, Batch and First are as in [Message].
	From, Batch, First uint64
}

// Sighting is a prompt, without its tools, and where a text stands in it.
type Sighting struct {
	*Kept
	// Places are in order, at most MaxPlaces.
	Places []Place
	// Folds are the folds that stand in it, as Batch and First of a [Message].
	Folds [][2]uint64
}

// Origin is an entry of a session's log that has a text.
type Origin struct {
	session.Entry
	// Part is what of the entry has it: content, thought, arguments, result or error.
	Part string
}

// Search looks for a text in all prompts of a session, the oldest first. tools and history are
// the sections that own the tools, and messages of which no section is known. It makes no
// prompt again: each text that prompts were made of is read once, however many have it. What is
// no longer there is not found.
func (s *Store) Search(ctx context.Context, scope kv.Scope, sessionID, text, tools, history string) ([]Sighting, error) {
	search := &search{
		Store: s, scope: scope, session: sessionID, history: history, needle: newNeedle(text),
		chunks: make(map[textName][]part), seen: make(map[textName]hits),
	}
	var all []Sighting
	for p, err := range s.records(ctx, scope, sessionID) {
		if err != nil {
			return nil, err
		}
		found := Sighting{Kept: p}
		if text != "" {
			if err := search.prompt(ctx, &found, tools); err != nil {
				return nil, err
			}
		}
		all = append(all, found)
	}
	slices.Reverse(all)
	return all, nil
}

// Origins are the entries of a session's log that have a text, the oldest first, at most
// MaxOrigins.
func (s *Store) Origins(ctx context.Context, scope kv.Scope, sessionID, text string) ([]Origin, error) {
	n := newNeedle(text)
	var all []Origin
	for e, err := range s.log.Entries(ctx, scope, sessionID) {
		if err != nil {
			return nil, err
		}
		if part := n.partOf(&e); part != "" {
			if all = append(all, Origin{e, part}); len(all) == MaxOrigins {
				break
			}
		}
	}
	return all, nil
}

// Fold returns a fold that stands in a prompt.
func (s *Store) Fold(ctx context.Context, scope kv.Scope, sessionID string, batch, first uint64) (history.Fold, error) {
	return s.log.Fold(ctx, scope, sessionID, batch, first)
}

// needle is a text to look for, as it is and as JSON has it.
type needle struct{ plain, escaped string }

func newNeedle(text string) needle {
	var quoted strings.Builder
	w := json.NewEncoder(&quoted)
	w.SetEscapeHTML(false)
	_ = w.Encode(text) // a text
	line := strings.TrimSuffix(quoted.String(), "\n")
	return needle{text, line[1 : len(line)-1]}
}

// in reports whether JSON, or a text, has it.
func (n needle) in(s string) bool {
	return strings.Contains(s, n.escaped) || strings.Contains(s, n.plain)
}

// partOf is the part of an entry that has it; empty for none.
func (n needle) partOf(e *session.Entry) string {
	if m := e.Message; m != nil {
		switch {
		case n.in(m.Content) || n.in(string(m.BlocksJSON)):
			return "content"
		case n.called(m):
			return "arguments"
		}
	}
	if s := e.Step; s != nil {
		switch {
		case n.in(s.Inline) || n.in(s.Observation) || n.in(s.Evidence):
			return "result"
		case n.in(s.Error):
			return "error"
		case n.in(string(s.Args)) || n.in(string(s.MinimalArgs)):
			return "arguments"
		case n.in(s.Thought):
			return "thought"
		}
	}
	return ""
}

// called reports whether a call or a further field of a message has it.
func (n needle) called(m *session.Message) bool {
	return n.in(string(m.ExtraJSON)) || slices.ContainsFunc(m.ToolCalls, func(c session.ToolCall) bool { return n.in(c.Arguments) || n.in(c.Name) })
}

// hits are where a message has the text: the offsets in its content, and whether anything else
// of it has.
type hits struct {
	content []int
	beside  bool
}

func (n needle) hits(m *session.Message) hits {
	h := hits{beside: n.in(string(m.BlocksJSON)) || n.called(m)}
	for at := 0; len(h.content) < MaxPlaces; {
		i := strings.Index(m.Content[at:], n.plain)
		if i < 0 {
			break
		}
		h.content = append(h.content, at+i)
		at += i + len(n.plain)
	}
	if len(h.content) == 0 && strings.Contains(m.Content, n.escaped) { // a result is JSON
		h.beside = true
	}
	return h
}

// textName names what a message says: a text of a generation, an entry of the log, or a fold.
type textName struct {
	generation uint64
	text       hash
	from       uint64
	batch      uint64
	first      uint64
}

// search is one Search.
type search struct {
	*Store
	scope            kv.Scope
	session, history string
	needle           needle
	chunks           map[textName][]part
	seen             map[textName]hits
}

// prompt fills in where the text stands in a prompt.
func (s *search) prompt(ctx context.Context, found *Sighting, tools string) error {
	p := found.Kept
	if len(p.Tools) == len(hash{}) {
		inTools, err := s.known(textName{generation: p.generation, text: hash(p.Tools)}, func() (hits, error) {
			text, err := s.read(ctx, s.scope, s.session, p, hash(p.Tools))
			return hits{beside: s.needle.in(string(text))}, err
		})
		if err != nil {
			return err
		}
		if inTools.beside {
			found.Places = append(found.Places, Place{Section: tools, Message: -1})
		}
	}
	at := 0
	return s.each(ctx, p, p.recipe, func(m part) error {
		place := Place{Message: at, From: m.From, Batch: m.Batch, First: m.First}
		at++
		if m.Batch > 0 {
			found.Folds = append(found.Folds, [2]uint64{m.Batch, m.First})
		}
		name := textName{from: m.From, batch: m.Batch, first: m.First}
		if m.From == 0 && m.Batch == 0 {
			name = textName{generation: p.generation, text: m.text}
		}
		h, err := s.known(name, func() (hits, error) {
			if err := s.fill(ctx, s.scope, s.session, p, &m); err != nil {
				return hits{}, err
			}
			return s.needle.hits(&m.Message.Message), nil
		})
		if err != nil {
			return err
		}
		for _, section := range s.sections(&m, h) {
			if place.Section = section; len(found.Places) < MaxPlaces {
				found.Places = append(found.Places, place)
			}
		}
		return nil
	})
}

// known are the hits of a text, which are looked for once. What is no longer there has none.
func (s *search) known(name textName, look func() (hits, error)) (hits, error) {
	h, ok := s.seen[name]
	if ok {
		return h, nil
	}
	h, err := look()
	if err != nil && !errors.Is(err, ErrGone) {
		return h, err
	}
	s.seen[name] = h
	return h, nil
}

// each calls do with the parts of a recipe, in order. Each text of parts is read once.
func (s *search) each(ctx context.Context, p *Kept, recipe []byte, do func(part) error) error {
	var m storev1.Recipe
	if err := read(recipe, &m); err != nil {
		return err
	}
	for _, h := range m.Recipes {
		if len(h) != len(hash{}) {
			return errDamaged
		}
		name := textName{generation: p.generation, text: hash(h)}
		chunk, ok := s.chunks[name]
		if !ok {
			one := wire.Marshal(&storev1.Recipe{Recipes: [][]byte{h}})
			var err error
			if chunk, err = s.parts(ctx, s.scope, s.session, p, one); err != nil && !errors.Is(err, ErrGone) {
				return err
			}
			s.chunks[name] = chunk
		}
		for _, one := range chunk {
			if err := do(one); err != nil {
				return err
			}
		}
	}
	for _, one := range m.Messages {
		if err := do(newPart(one)); err != nil {
			return err
		}
	}
	return nil
}

// sections own what was found in a message, each once.
func (s *search) sections(m *part, h hits) []string {
	var all []string
	add := func(section string) {
		if !slices.Contains(all, section) {
			all = append(all, section)
		}
	}
	for _, at := range h.content {
		section := s.history
		for _, piece := range m.Pieces {
			section = piece.Section
			if at -= piece.Bytes; at < 0 {
				break
			}
		}
		add(section)
	}
	switch {
	case h.beside && len(m.Pieces) > 0:
		add(m.Pieces[0].Section)
	case h.beside:
		add(s.history)
	}
	return all
}

// Source is who said what an origin has: the role, or the name of the tool.
func (o *Origin) Source() string {
	if o.Step != nil {
		return o.Step.ToolName
	}
	return o.Message.Role.String()
}

// Ref is the name of the entry.
func (o *Origin) Ref() string {
	if o.Step != nil {
		return step.ID(o.Step.Number)
	}
	return session.MessageID(o.Position)
}
