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
	return edited(blocks, func(p *Part) json.RawMessage {
		if p.Kind != Call {
			return nil
		}
		if s, ok := arguments(p.ID); ok {
			return p.withArguments(s)
		}
		return nil
	})
}

// WithResults returns blocks with other texts for the results of calls for which
// result has one. Results that are more than text stay, and so do all other blocks,
// byte for byte.
func WithResults(blocks json.RawMessage, result func(id string) (string, bool)) json.RawMessage {
	return edited(blocks, func(p *Part) json.RawMessage {
		if p.Kind != Result || !OnlyText(p.Parts) {
			return nil
		}
		if s, ok := result(p.ID); ok {
			return p.withText(s)
		}
		return nil
	})
}

// WithID returns the block of a call or a result under another id of the call. Only
// Gemini's has none: it stays.
func (p *Part) WithID(id string) json.RawMessage {
	for _, name := range []string{"call_id", "tool_use_id", "id"} {
		if fieldsOf(p.Raw).get(name) != nil {
			return withField(p.Raw, id, name)
		}
	}
	return p.Raw
}

func (p *Part) withArguments(s string) json.RawMessage {
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

func (p *Part) withText(s string) json.RawMessage {
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

// edited returns blocks in which some are others. change returns nil for a block
// that stays.
func edited(blocks json.RawMessage, change func(*Part) json.RawMessage) json.RawMessage {
	var raw []json.RawMessage
	if len(blocks) == 0 || json.Unmarshal(blocks, &raw) != nil {
		return blocks
	}
	r := reader{named: make(map[string]int)}
	changed := false
	for i := range raw {
		if own, ok := r.edit(raw[i], change); ok {
			raw[i], changed = own, true
		}
	}
	if !changed {
		return blocks
	}
	return list(raw)
}

// edit changes one block; a whole content of Gemini by its parts.
func (r *reader) edit(raw json.RawMessage, change func(*Part) json.RawMessage) (json.RawMessage, bool) {
	f := fieldsOf(raw)
	if inner := f.get("parts"); inner != nil && f.get("type") == nil {
		own := r.editAll(inner, change)
		if own == nil {
			return nil, false
		}
		return withField(raw, own, "parts"), true
	}
	p := Part{Raw: raw}
	r.block(&p, f, 0)
	own := change(&p)
	return own, own != nil
}

// editAll changes the parts of a content; nil if none changes.
func (r *reader) editAll(blocks json.RawMessage, change func(*Part) json.RawMessage) json.RawMessage {
	var raw []json.RawMessage
	if json.Unmarshal(blocks, &raw) != nil {
		return nil
	}
	changed := false
	for i := range raw {
		p := Part{Raw: raw[i]}
		r.block(&p, fieldsOf(raw[i]), 1)
		if own := change(&p); own != nil {
			raw[i], changed = own, true
		}
	}
	if !changed {
		return nil
	}
	return list(raw)
}

// list is a JSON array.
func list(elements []json.RawMessage) json.RawMessage {
	texts := make([][]byte, len(elements))
	for i := range elements {
		texts[i] = elements[i]
	}
	return slices.Concat([]byte("["), bytes.Join(texts, []byte(",")), []byte("]"))
}
