package content

import (
	"bytes"
	"encoding/json"
	"slices"
)

// fields are the fields of a block, in its order.
type fields []blockField

type blockField struct {
	name  string
	value json.RawMessage
}

// blanks are what may stand between the tokens of JSON.
const blanks = " \t\r\n"

// fieldsOf takes an object apart, and nothing within it; nil for all else. raw is
// valid JSON: a map of each object would take ten times the memory of its text.
func fieldsOf(raw json.RawMessage) fields {
	rest := bytes.TrimLeft(raw, blanks)
	if len(rest) == 0 || rest[0] != '{' {
		return nil
	}
	f := fields{}
	for rest = bytes.TrimLeft(rest[1:], blanks); len(rest) > 0 && rest[0] == '"'; rest = bytes.TrimLeft(rest, blanks+",") {
		n := valueEnd(rest)
		name := plainText(rest[:n])
		rest = bytes.TrimLeft(rest[n:], blanks+":")
		n = valueEnd(rest)
		f = append(f, blockField{name, bytes.TrimRight(rest[:n], blanks)})
		rest = rest[n:]
	}
	return f
}

// valueEnd is where the JSON value ends that a text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return i + 1 + depth // an end of what is around the value belongs to that
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// plainText is what a JSON string says.
func plainText(raw []byte) string {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it is a string
	return s
}

// get is a field, nil for none. Of two of a name the last one counts, as it does for
// providers.
func (f fields) get(name string) json.RawMessage {
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].name == name {
			return f[i].value
		}
	}
	return nil
}

// text is a field that is a text, or empty.
func (f fields) text(name string) string {
	if v := f.get(name); len(v) > 0 && v[0] == '"' {
		return plainText(v)
	}
	return ""
}

// either is a field by the first of its names that is set: Python's libraries write
// some of them otherwise.
func (f fields) either(names ...string) json.RawMessage {
	for _, name := range names {
		if v := f.get(name); v != nil {
			return v
		}
	}
	return nil
}

func (f fields) object(names ...string) fields { return fieldsOf(f.either(names...)) }

func (f fields) isTrue(name string) bool { return string(f.get(name)) == "true" }

// Only is a JSON object with its known fields, each as it came; nil where
// none is.
func Only(object json.RawMessage, known map[string]bool) json.RawMessage {
	all := fieldsOf(object)
	unknown := func(f blockField) bool { return !known[f.name] }
	if !slices.ContainsFunc(all, unknown) {
		return object
	}
	var out json.RawMessage
	for _, f := range slices.DeleteFunc(all, unknown) {
		out = append(append(append(append(out, ",\""...), f.name...), "\":"...), f.value...)
	}
	if out == nil {
		return nil
	}
	out[0] = '{'
	return append(out, '}')
}
