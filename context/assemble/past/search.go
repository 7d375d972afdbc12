package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Limits of what a search returns.
const (
	// MaxPlaces of a text in one prompt are returned.
	MaxPlaces = 16
	// MaxOrigins of a text in a session are returned, the oldest.
	MaxOrigins = 32
	// MaxUnread of what is damaged are named.
	MaxUnread = 64
)

// Unread names what a search passed over because it is damaged, each once, at most MaxUnread.
type Unread []string

// pass notes what err says is damaged, and returns every other error.
func (u *Unread) pass(err error, format string, args ...any) error {
	if !errors.Is(err, errDamaged) && !errors.Is(err, session.ErrDamaged) {
		return err
	}
	if what := fmt.Sprintf(format, args...); len(*u) < MaxUnread && !slices.Contains(*u, what) {
		*u = append(*u, what)
	}
	return nil
}

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
	// Folds are the folds that stand in it.
	Folds []FoldName
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
// no longer there is not found; what is damaged is named in unread.
func (s *Store) Search(ctx context.Context, scope kv.Scope, sessionID, text, tools, history string, unread *Unread) ([]Sighting, error) {
	search := &search{
		Store: s, scope: scope, session: sessionID, history: history, needle: needle(text), unread: unread,
		chunks: make(map[textName]stretch), seen: make(map[textName]hits),
	}
	var all []Sighting
	for p, err := range s.records(ctx, scope, sessionID) {
		if err != nil {
			if p == nil {
				return nil, err
			}
			if err := unread.pass(err, "prompt %d", p.Number); err != nil {
				return nil, err
			}
			continue
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
// MaxOrigins. Entries that are damaged are named in unread.
func (s *Store) Origins(ctx context.Context, scope kv.Scope, sessionID, text string, unread *Unread) ([]Origin, error) {
	n := needle(text)
	var all []Origin
	for e, err := range s.log.Entries(ctx, scope, sessionID) {
		if err != nil {
			if err := unread.pass(err, entryUnread, e.Position); err != nil {
				return nil, err
			}
			continue
		}
		if part := n.partOf(&e); part != "" {
			if all = append(all, Origin{e, part}); len(all) == MaxOrigins {
				break
			}
		}
	}
	return all, nil
}

// needle is a text to look for.
type needle string

// in reports whether a text has it, or JSON, however that escapes it.
func (n needle) in(s string) bool {
	return strings.Contains(s, string(n)) || strings.IndexByte(s, '\\') >= 0 && strings.Contains(unescaped(s), string(n))
}

// unescaped is a text with the characters that its escapes stand for, where it is JSON.
func unescaped(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 || at+1 == len(s) {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:at])
		escape, size := s[at+1], 2
		switch i := strings.IndexByte(`"\/bfnrt`, escape); {
		case i >= 0:
			out.WriteByte("\"\\/\b\f\n\r\t"[i])
		case escape == 'u':
			c := unit(s[at:])
			if size = 6; utf16.IsSurrogate(c) {
				if pair := utf16.DecodeRune(c, unit(s[min(at+6, len(s)):])); pair != utf8.RuneError {
					c, size = pair, 12
				}
			}
			size = min(size, len(s)-at)
			out.WriteRune(c)
		default:
			out.WriteString(s[at : at+2])
		}
		s = s[at+size:]
	}
}

// unit is the code unit that a text begins with, as \u00e9; utf8.RuneError for none.
func unit(s string) rune {
	if len(s) < 6 || s[:2] != `\u` {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
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
		i := strings.Index(m.Content[at:], string(n))
		if i < 0 {
			break
		}
		h.content = append(h.content, at+i)
		at += i + len(n)
	}
	h.beside = h.beside || len(h.content) == 0 && n.in(m.Content) // a result is JSON
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
	chunks           map[textName]stretch
	seen             map[textName]hits
	folds            bool // they are read
	unread           *Unread
}

// How damaged parts of a session are named.
const (
	entryUnread = "entry %d of the session's log"
	textUnread  = "a text of prompt %d"
	foldUnread  = "a fold of the session"
)

// stretch is what a search found in messages in a row, which counts them: it is kept for every
// chunk, the messages are not.
type stretch struct {
	messages int
	places   []Place // at most MaxPlaces
	folds    []FoldName
}

// add adds what stands behind it.
func (s *stretch) add(next *stretch) {
	for _, p := range next.places[:min(len(next.places), MaxPlaces-len(s.places))] {
		p.Message += s.messages
		s.places = append(s.places, p)
	}
	s.messages += next.messages
	s.folds = append(s.folds, next.folds...)
}

// prompt fills in where the text stands in a prompt.
func (s *search) prompt(ctx context.Context, found *Sighting, tools string) error {
	p := found.Kept
	all := stretch{}
	if len(p.Tools) == len(hash{}) {
		inTools, err := s.known(p, textName{generation: p.generation, text: hash(p.Tools)}, func() (hits, error) {
			text, err := s.read(ctx, s.scope, s.session, p, hash(p.Tools))
			return hits{beside: s.needle.in(string(text))}, err
		})
		if err != nil {
			return err
		}
		if inTools.beside {
			all.places = append(all.places, Place{Section: tools, Message: -1})
		}
	}
	messages, err := s.recipe(ctx, p, p.recipe)
	all.add(&messages)
	found.Places, found.Folds = all.places, all.folds
	return s.unread.pass(err, textUnread, p.Number)
}

// message is one message of a prompt.
func (s *search) message(ctx context.Context, p *Kept, m part) (stretch, error) {
	found := stretch{messages: 1}
	name := textName{from: m.From, batch: m.Batch, first: m.First}
	if m.Batch > 0 {
		found.folds = append(found.folds, m.fold())
		if err := s.readFolds(ctx); err != nil {
			return found, err
		}
	} else if m.From == 0 {
		name = textName{generation: p.generation, text: m.text}
	}
	h, err := s.known(p, name, func() (hits, error) {
		if err := s.fill(ctx, s.scope, s.session, p, &m, nil); err != nil {
			return hits{}, err
		}
		return s.needle.hits(&m.Message.Message), nil
	})
	for _, section := range s.sections(&m, h) {
		found.places = append(found.places, Place{Section: section, From: m.From, Batch: m.Batch, First: m.First})
	}
	return found, err
}

// known are the hits of a text of a prompt, which are looked for once. What is no longer there,
// or is damaged, has none.
func (s *search) known(p *Kept, name textName, look func() (hits, error)) (hits, error) {
	h, ok := s.seen[name]
	if ok {
		return h, nil
	}
	h, err := look()
	if name.from > 0 {
		err = s.unread.pass(err, entryUnread, name.from)
	} else {
		err = s.unread.pass(err, textUnread, p.Number)
	}
	if err != nil && !errors.Is(err, ErrGone) {
		return h, err
	}
	s.seen[name] = h
	return h, nil
}

// readFolds looks through the folds of the session, once: their journal is read from its
// beginning.
func (s *search) readFolds(ctx context.Context) error {
	if s.folds {
		return nil
	}
	for f, err := range s.log.EveryFold(ctx, s.scope, s.session) {
		if err != nil {
			if err := s.unread.pass(err, foldUnread); err != nil {
				return err
			}
			continue
		}
		name := textName{batch: f.Batch, first: f.Spans[0].First}
		if _, ok := s.seen[name]; !ok {
			s.seen[name] = s.needle.hits(&session.Message{Content: f.Text})
		}
	}
	s.folds = true
	return nil
}

// recipe is what stands in the messages of a recipe.
func (s *search) recipe(ctx context.Context, p *Kept, recipe []byte) (stretch, error) {
	var all stretch
	var m storev1.Recipe
	if err := read(recipe, &m); err != nil {
		return all, err
	}
	for _, h := range m.Recipes {
		if len(h) != len(hash{}) {
			return all, errDamaged
		}
		chunk, err := s.chunk(ctx, p, hash(h))
		if err != nil {
			return all, err
		}
		all.add(&chunk)
	}
	for _, one := range m.Messages {
		found, err := s.message(ctx, p, newPart(one))
		if err != nil {
			return all, err
		}
		all.add(&found)
	}
	return all, nil
}

// chunk is what stands in a chunk of messages, which is looked through once. Of one that is no
// longer there, or is damaged, the messages are counted.
func (s *search) chunk(ctx context.Context, p *Kept, h hash) (stretch, error) {
	name := textName{generation: p.generation, text: h}
	if found, ok := s.chunks[name]; ok {
		return found, nil
	}
	found := stretch{messages: chunkParts}
	text, err := s.read(ctx, s.scope, s.session, p, h)
	if err == nil {
		found, err = s.recipe(ctx, p, text)
	}
	if err = s.unread.pass(err, textUnread, p.Number); err != nil && !errors.Is(err, ErrGone) {
		return found, err
	}
	s.chunks[name] = found
	return found, nil
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
