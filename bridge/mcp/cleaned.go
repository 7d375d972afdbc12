package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// tagged takes the ends of tags out of a text, whatever the tag.
var tagged = strings.NewReplacer("</", "&lt;/", "<|", "&lt;|")

// cleaned returns a server's text about a tool or a parameter as prompts and terminals show
// it: one line that closes no tag and looks like no line of a prompt.
func cleaned(s string) string { return guard.Text(tagged.Replace(text.OneLine(text.Valid(s)))) }

// cleanedSchema returns a schema with cleaned texts; false if it is invalid or hides
// letters in the name of a parameter.
func cleanedSchema(schema json.RawMessage) (json.RawMessage, bool) {
	if !suspicious(schema) {
		return schema, true
	}
	value, err := text.DecodeJSON(schema)
	if err != nil {
		return nil, false
	}
	ok := true
	value = cleanedValue(value, "", &ok)
	return text.CanonicalJSON(value), ok
}

// suspicious reports whether a schema holds anything that cleaned would change: an escape, a
// tag, or a non-ASCII letter. Most hold none.
func suspicious(schema json.RawMessage) bool {
	return bytes.ContainsAny(schema, "\\<") || bytes.ContainsFunc(schema, func(r rune) bool { return r >= 0x7f || r < ' ' && r != '\n' && r != '\t' && r != '\r' }) ||
		bytes.Contains(schema, []byte(`"description":`)) || bytes.Contains(schema, []byte(`"title":`)) || bytes.Contains(schema, []byte(`"$comment":`))
}

// words are the keywords whose values are for people and models to read.
var words = map[string]bool{"description": true, "title": true, "$comment": true, "markdownDescription": true, "errorMessage": true}

func cleanedValue(v any, key string, ok *bool) any {
	switch v := v.(type) {
	case string:
		if words[key] {
			return cleaned(v)
		}
		return text.Seen(v)
	case []any:
		for i := range v {
			v[i] = cleanedValue(v[i], key, ok)
		}
	case map[string]any:
		for name := range v {
			if text.OneLine(name) != strings.TrimSpace(name) || strings.ContainsAny(name, "<>") {
				*ok = false
			}
			v[name] = cleanedValue(v[name], name, ok)
		}
	}
	return v
}
