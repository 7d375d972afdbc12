package past

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// ShownMemory is the part of a record's Extra that says whose memory the prompt could show.
type ShownMemory struct {
	// User is the person whose memory was queried. Nil in records of older versions, which
	// did not note it; empty if no person's was.
	User *string `json:"user,omitempty"`
	// Forked are those whose memory a fork's prompts show since they begin as another
	// prompt did.
	Forked []string `json:"forked,omitempty"`
}

// Users are all of them, and whether that is known.
func (s ShownMemory) Users() (users []string, known bool) {
	if s.User != nil && *s.User != "" {
		users = append(users, *s.User)
	}
	return append(users, s.Forked...), s.User != nil
}

// may reports whether the memory of a person may be shown.
func (s ShownMemory) may(user string) bool {
	users, known := s.Users()
	return !known || slices.Contains(users, user)
}

// KindUnmarked counts records of prompts that went because an older version did not note
// whether they show the person's memory.
const KindUnmarked = "prompts_unmarked"

// Erasure removes records of prompts when a subject is erased. For a person's memory it
// removes the records made with that memory, and records that do not say whose they used; for
// a step, the records made since. Texts that no other record uses go too.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "context/assemble/past",
		Sorts: []erase.Sort{
			{Keyspace: kv.Log, Kinds: "a", Tags: string(rune(tagRecord)), Counted: "prompts", Marked: unmarked, Texts: "recorded prompts of agents"},
			{Keyspace: kv.Log, Kinds: "a", Tags: string([]byte{tagText, tagState}), Texts: "recorded prompts of agents"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			x := &eraser{Run: r}
			return x.change, nil
		},
	}
}

// eraser is one run. Entries come in the order of their keys, so that the records of a scope
// come before its texts.
type eraser struct {
	*erase.Run
	scope kv.Scope
	// gone are the sessions that lose records, with the texts that their others need, by
	// generation.
	gone map[string]map[uint64]map[hash]bool
}

func (x *eraser) change(ctx context.Context, e erase.Entry) ([]byte, bool, error) {
	session, rest, err := kv.CutEscaped(e.Tail)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if x.Subject.Session != "" {
		return e.Goes(x.Own(e) && session == x.Subject.Session, nil)
	}
	if x.Looks && x.Subject.Step == 0 || !x.shows(e.Scope) {
		return e.Stays()
	}
	if x.gone == nil || x.scope != e.Scope {
		x.scope, x.gone = e.Scope, make(map[string]map[uint64]map[hash]bool)
		if err := x.learn(ctx); err != nil {
			return nil, false, err
		}
	}
	switch {
	case e.Tag == tagRecord:
		p, err := decodeRecord(e.Value)
		return e.Goes(err == nil && x.names(session, p), err)
	case e.Tag == tagText && x.gone[session] != nil && len(rest) >= 8+len(hash{}):
		needed := x.gone[session][binary.BigEndian.Uint64(rest)]
		return e.Goes(!needed[hash(rest[8:8+len(hash{})])], nil)
	}
	return e.Stays()
}

// shows reports whether prompts of an agent may show what goes.
func (x *eraser) shows(agent kv.Scope) bool {
	if x.Subject.Step != 0 {
		return agent == x.Scope && x.Place.Position > 0
	}
	return x.MayShow(agent)
}

// names reports whether a prompt of a session could show the erased data. A step is in every
// prompt made since it was recorded, in full or in a fold.
func (x *eraser) names(session string, p *Kept) bool {
	if x.Subject.Step != 0 {
		return session == x.Place.Session && p.Position >= x.Place.Position
	}
	if x.Subject.Kind != erase.User {
		return true
	}
	var shown ShownMemory
	return json.Unmarshal(p.Extra, &shown) != nil || shown.may(x.Subject.ID)
}

// unmarked is the kind of a stored record that does not say whose memory the prompt could
// show.
func unmarked(s erase.Subject, value []byte) string {
	var shown ShownMemory
	p, err := decodeRecord(value)
	if s.Kind != erase.User || err != nil || json.Unmarshal(p.Extra, &shown) == nil && shown.User != nil {
		return ""
	}
	return KindUnmarked
}

// learn finds the sessions of the scope that lose records, and the texts that stay in those.
func (x *eraser) learn(ctx context.Context) error {
	type kept struct {
		generation uint64
		texts      []hash
	}
	stay := make(map[string][]kept)
	err := erase.Each(ctx, x.From, kv.Log, x.scope.Key(tagRecord), func(tail, value []byte) error {
		session, _, err := kv.CutEscaped(tail)
		if err != nil {
			return err
		}
		p, err := decodeRecord(value)
		if err != nil {
			return err
		}
		if x.names(session, p) {
			x.gone[session] = make(map[uint64]map[hash]bool)
			return nil
		}
		texts, err := x.texts(ctx, session, p.generation, p.recipe)
		if len(p.Tools) == len(hash{}) {
			texts = append(texts, hash(p.Tools))
		}
		stay[session] = append(stay[session], kept{p.generation, texts})
		return err
	})
	for session, needed := range x.gone {
		for _, k := range stay[session] {
			if needed[k.generation] == nil {
				needed[k.generation] = make(map[hash]bool)
			}
			for _, h := range k.texts {
				needed[k.generation][h] = true
			}
		}
	}
	return err
}

// texts are the texts that a recipe needs.
func (x *eraser) texts(ctx context.Context, session string, generation uint64, recipe []byte) (all []hash, err error) {
	var m storev1.Recipe
	if err := read(recipe, &m); err != nil {
		return nil, err
	}
	for _, text := range m.Recipes {
		if len(text) != len(hash{}) {
			continue
		}
		inner, err := x.inner(ctx, session, generation, hash(text))
		if err != nil {
			return nil, err
		}
		all = append(append(all, hash(text)), inner...)
	}
	for _, part := range m.Messages {
		all = append(all, newPart(part).text)
	}
	return all, nil
}

// inner are the texts that a part of a recipe needs. One that is missing needs none.
func (x *eraser) inner(ctx context.Context, session string, generation uint64, h hash) ([]hash, error) {
	var recipe []byte
	for part := range maxTextParts {
		values, err := x.From.Get(ctx, kv.Log, textKey(x.scope, session, generation, h, part))
		if err != nil || len(values[0]) == 0 {
			return nil, err
		}
		recipe = append(recipe, values[0][1:]...)
		if values[0][0] != goesOn {
			break
		}
	}
	return x.texts(ctx, session, generation, recipe)
}
