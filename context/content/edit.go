package content

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// WithArguments returns blocks with other arguments, a JSON object, for the calls
// for which arguments has some. All other blocks stay byte for byte.
func WithArguments(blocks json.RawMessage, arguments func(id string) (string, bool)) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		if p.Kind != Call {
			return nil
		}
		if s, ok := arguments(p.ID); ok {
			return p.WithArguments(s)
		}
		return nil
	})
}

// WithResults returns blocks with other texts for the results of calls for which
// result has one. Results that are more than text stay, and so do all other blocks,
// byte for byte.
func WithResults(blocks json.RawMessage, result func(id string) (string, bool)) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		if p.Kind != Result || !OnlyText(p.Parts) {
			return nil
		}
		if s, ok := result(p.ID); ok {
			return p.withText(s)
		}
		return nil
	})
}

// WithoutArguments returns blocks in which the call with an id says nothing, so that its result
// still has a call. All other blocks stay byte for byte.
func WithoutArguments(blocks json.RawMessage, id string) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		switch {
		case p.Kind != Call || p.ID != id:
			return nil
		case p.Custom:
			return p.WithArguments("")
		}
		return p.WithArguments("{}")
	})
}

// WithoutResult returns blocks in which the result of a call is a text, whatever it was. All
// other blocks stay byte for byte.
func WithoutResult(blocks json.RawMessage, id, said string) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		if p.Kind != Result || p.ID != id {
			return nil
		}
		return p.withText(said)
	})
}

// WithID returns the block of a call or a result under another id of the call. Only
// Gemini's call has none: it stays.
func (p *Block) WithID(id string) json.RawMessage {
	f := fieldsOf(p.Raw)
	switch name := map[bool]string{true: "tool_use_id", false: "id"}[p.Kind == Result]; {
	case p.Dialect == Responses:
		return withField(p.Raw, id, "call_id")
	case p.Dialect == Anthropic:
		return withField(p.Raw, id, name)
	case p.Kind == Result && f.get("functionResponse") != nil:
		return withField(p.Raw, id, "functionResponse", "id")
	case p.Kind == Result && f.get("function_response") != nil:
		return withField(p.Raw, id, "function_response", "id")
	}
	return p.Raw
}

// Identified returns blocks in which calls and results that came without an id have the
// one that id gives, unless that is empty. All other blocks stay byte for byte.
func Identified(blocks json.RawMessage, id func(*Block) string) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		if p.Unnamed {
			if s := id(p); s != "" {
				return p.WithID(s)
			}
		}
		return nil
	})
}

// Joined returns the blocks of a, followed by the blocks of b.
func Joined(a, b json.RawMessage) json.RawMessage {
	return list(slices.Concat(elements(a), elements(b)))
}

// WithArguments returns the block of a call with other arguments.
func (p *Block) WithArguments(s string) json.RawMessage {
	f := fieldsOf(p.Raw)
	switch {
	case p.Dialect == Anthropic:
		return withField(p.Raw, json.RawMessage(s), "input")
	case p.Dialect == Responses && f.get("input") != nil:
		return withField(p.Raw, s, "input")
	case p.Dialect == Responses:
		return withField(p.Raw, s, "arguments")
	case f.get("functionCall") != nil:
		return withField(p.Raw, json.RawMessage(s), "functionCall", "args")
	}
	return withField(p.Raw, json.RawMessage(s), "function_call", "args")
}

func (p *Block) withText(s string) json.RawMessage {
	f := fieldsOf(p.Raw)
	response := map[string]any{"output": s}
	if p.Failed {
		response = map[string]any{"error": s}
	}
	switch {
	case p.Dialect == Anthropic:
		return withField(p.Raw, s, "content")
	case p.Dialect == Responses:
		return withField(p.Raw, s, "output")
	case f.get("functionResponse") != nil:
		return withField(p.Raw, response, "functionResponse", "response")
	}
	return withField(p.Raw, response, "function_response", "response")
}

// withField is a JSON object, written canonically, with another value of a field,
// which may stand in an object within.
func withField(raw json.RawMessage, value any, path ...string) json.RawMessage {
	if s, ok := value.(json.RawMessage); ok {
		own, err := text.DecodeJSON(s)
		if err != nil {
			return raw
		}
		value = own
	}
	decoded, err := text.DecodeJSON(raw)
	inner, ok := decoded.(map[string]any)
	for _, name := range path[:len(path)-1] {
		if ok {
			inner, ok = inner[name].(map[string]any)
		}
	}
	if err != nil || !ok {
		return raw
	}
	inner[path[len(path)-1]] = value
	return text.CanonicalJSON(decoded)
}

// WithTexts returns blocks with other texts for those for which change gives one. All
// other blocks stay byte for byte.
func WithTexts(blocks json.RawMessage, change func(string) string) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		if p.Kind != Text || p.Text == "" || fieldsOf(p.Raw).get("text") == nil {
			return nil
		}
		if s := change(p.Text); s != p.Text {
			return withField(p.Raw, s, "text")
		}
		return nil
	})
}

// WithOutputs returns blocks with other texts in results of calls where change gives one.
// All other blocks stay byte for byte.
func WithOutputs(blocks json.RawMessage, change func(string) string) json.RawMessage {
	return edited(blocks, func(p *Block) json.RawMessage {
		if p.Kind != Result {
			return nil
		}
		return p.withOutput(change)
	})
}

// withOutput is a result with other texts; nil where change changes none.
func (p *Block) withOutput(change func(string) string) json.RawMessage {
	for _, name := range []string{"content", "output"} {
		inner := fieldsOf(p.Raw).get(name)
		if len(inner) == 0 || inner[0] != '[' {
			continue
		}
		if own := WithTexts(inner, change); !bytes.Equal(own, inner) {
			return withField(p.Raw, own, name)
		}
		return nil
	}
	if !OnlyText(p.Parts) {
		return nil
	}
	s := joined(Texts(p.Parts))
	if own := change(s); own != s {
		return p.withText(own)
	}
	return nil
}

// Without returns the blocks for which drop is false, nil if there are none. All others
// stay byte for byte.
func Without(blocks json.RawMessage, drop func(*Block) bool) json.RawMessage {
	raw := elements(blocks)
	r := newReader()
	kept := slices.DeleteFunc(slices.Clone(raw), func(text json.RawMessage) bool {
		p := Block{Raw: text}
		r.block(&p, fieldsOf(text), 0)
		return drop(&p)
	})
	switch len(kept) {
	case len(raw):
		return blocks
	case 0:
		return nil
	}
	return list(kept)
}

// Edit returns blocks with others in the place of those for which change returns one,
// within results of calls and messages, too. All others stay byte for byte.
func Edit(blocks json.RawMessage, change func(*Block) json.RawMessage) json.RawMessage {
	return edit(blocks, 0, change)
}

func edit(blocks json.RawMessage, depth int, change func(*Block) json.RawMessage) json.RawMessage {
	if depth > maxDepth {
		return blocks
	}
	return edited(blocks, func(p *Block) json.RawMessage {
		if own := change(p); own != nil {
			return own
		}
		for _, name := range []string{"content", "output"} {
			if inner := fieldsOf(p.Raw).get(name); len(inner) > 0 && inner[0] == '[' {
				if own := edit(inner, depth+1, change); !bytes.Equal(own, inner) {
					return withField(p.Raw, own, name)
				}
			}
		}
		return nil
	})
}

// TextBlock is a text as a dialect has it in what is shown to a model.
func (d Dialect) TextBlock(s string) json.RawMessage {
	switch d {
	case Responses:
		return text.CanonicalJSON(map[string]any{"type": "input_text", "text": s})
	case Gemini:
		return text.CanonicalJSON(map[string]any{"text": s})
	}
	return text.CanonicalJSON(map[string]any{"type": "text", "text": s})
}

// WithoutField is the block without a field; nil if it has none of that name.
func (p *Block) WithoutField(name string) json.RawMessage {
	if fieldsOf(p.Raw).get(name) == nil {
		return nil
	}
	decoded, err := text.DecodeJSON(p.Raw)
	object, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	delete(object, name)
	return text.CanonicalJSON(object)
}

// HasOthers reports whether the block has fields other than the named ones.
func (p *Block) HasOthers(names ...string) bool {
	return slices.ContainsFunc(fieldsOf(p.Raw), func(f blockField) bool { return !slices.Contains(names, f.name) })
}

// FieldText is a field of the block that is a text, or empty.
func (p *Block) FieldText(name string) string { return fieldsOf(p.Raw).text(name) }

// elements returns the elements of a JSON array; nil for other values.
func elements(blocks json.RawMessage) []json.RawMessage {
	var raw []json.RawMessage
	if len(blocks) == 0 || json.Unmarshal(blocks, &raw) != nil {
		return nil
	}
	return raw
}

// edited returns blocks in which some are others. change returns nil for a block
// that stays.
func edited(blocks json.RawMessage, change func(*Block) json.RawMessage) json.RawMessage {
	r := newReader()
	if own := r.edited(blocks, change); own != nil {
		return own
	}
	return blocks
}

// edited is nil if nothing changes.
func (r *reader) edited(blocks json.RawMessage, change func(*Block) json.RawMessage) json.RawMessage {
	raw, changed := elements(blocks), false
	for i := range raw {
		if own := r.changed(raw[i], change); own != nil {
			raw[i], changed = own, true
		}
	}
	if !changed {
		return nil
	}
	return list(raw)
}

// changed changes one block; a whole content of Gemini by its parts.
func (r *reader) changed(raw json.RawMessage, change func(*Block) json.RawMessage) json.RawMessage {
	f := fieldsOf(raw)
	if inner := f.get("parts"); inner != nil && f.get("type") == nil {
		if own := r.edited(inner, change); own != nil {
			return withField(raw, own, "parts")
		}
		return nil
	}
	p := Block{Raw: raw}
	r.block(&p, f, 0)
	return change(&p)
}

// list is a JSON array.
func list(elements []json.RawMessage) json.RawMessage {
	texts := make([][]byte, len(elements))
	for i := range elements {
		texts[i] = elements[i]
	}
	return slices.Concat([]byte("["), bytes.Join(texts, []byte(",")), []byte("]"))
}
