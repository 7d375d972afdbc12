package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// A schema is a stranger's, and may refer to itself many times at each level.
const (
	// maxSchemaDepth bounds how deep schemas are followed.
	maxSchemaDepth = 16
	// maxSchemaTwice is how often a reference is followed within what it leads to: a tree is
	// shown with the branches of its branches.
	maxSchemaTwice = 2
	// maxSchemaRead bounds the bytes of schemas that are read for one tool, each as often as it
	// is referred to. What is left then is a text.
	maxSchemaRead = 256 << 10
)

// schemaFields are what Gemini takes of a schema as it is.
var schemaFields = []string{
	"title", "description", "nullable", "minItems", "maxItems", "minLength", "maxLength", "minProperties",
	"maxProperties", "pattern", "minimum", "maximum", "default",
}

// schemaFormats are what Gemini takes as the format of a type.
var schemaFormats = map[string][]string{
	"string": {"enum", "date-time"}, "integer": {"int32", "int64"}, "number": {"float", "double"},
}

// geminiSchema is a JSON Schema as far as Gemini takes it: one type for each value,
// references resolved, only texts enumerated, and what it does not know left out.
func geminiSchema(schema map[string]any) map[string]any {
	r := reducer{root: schema, left: maxSchemaRead}
	return r.schema(schema, 0)
}

type reducer struct {
	root   map[string]any
	left   int      // bytes that may still be read
	within []string // the references that led to where it is
}

func (r *reducer) schema(s map[string]any, depth int) map[string]any {
	if r.left -= bytesOf(s); depth > maxSchemaDepth || r.left < 0 {
		return map[string]any{"type": "string"}
	}
	outer := len(r.within)
	defer func() { r.within = r.within[:outer] }()
	s = r.whole(s, depth)
	out := make(map[string]any)
	for _, name := range schemaFields {
		if v, ok := s[name]; ok {
			out[name] = v
		}
	}
	kind := r.kind(s, out)
	r.alternatives(s, out, depth)
	if kind == "" && out["anyOf"] == nil {
		kind = guessKind(s)
	}
	if kind != "" {
		out["type"] = kind
	}
	r.enum(s, out, kind)
	if format, _ := s["format"].(string); slices.Contains(schemaFormats[kind], format) {
		out["format"] = format
	}
	switch kind {
	case "object":
		r.properties(s, out, depth)
	case "array":
		out["items"] = r.items(s, depth)
	}
	return out
}

// whole is a schema with what it refers to, and all that it must be at once.
func (r *reducer) whole(s map[string]any, depth int) map[string]any {
	for range maxSchemaDepth {
		ref, ok := s["$ref"].(string)
		if !ok {
			break
		}
		target := r.resolve(ref)
		r.within = append(r.within, ref)
		merged := maps.Clone(target)
		if merged == nil {
			merged = make(map[string]any)
		}
		for name, v := range s {
			if name != "$ref" {
				merged[name] = v
			}
		}
		s = merged
	}
	all, _ := s["allOf"].([]any)
	if len(all) == 0 || depth > maxSchemaDepth {
		return s
	}
	s = maps.Clone(s)
	delete(s, "allOf")
	for _, v := range all {
		part, ok := v.(map[string]any)
		if r.left -= bytesOf(part) + bytesOf(s); ok && r.left >= 0 {
			s = both(s, r.whole(part, depth+1))
		}
	}
	return s
}

// both is what fits two schemas: the properties of both, and what else the first one
// says before the second.
func both(a, b map[string]any) map[string]any {
	out := maps.Clone(b)
	maps.Copy(out, a)
	first, _ := a["properties"].(map[string]any)
	second, _ := b["properties"].(map[string]any)
	if first != nil || second != nil {
		merged := maps.Clone(second)
		if merged == nil {
			merged = make(map[string]any)
		}
		maps.Copy(merged, first)
		out["properties"] = merged
	}
	if req := append(slices.Clone(listOf(a["required"])), listOf(b["required"])...); len(req) > 0 {
		out["required"] = req
	}
	return out
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// resolve finds what a reference within the schema means; nil if there is no such
// thing, or it was followed too often.
func (r *reducer) resolve(ref string) map[string]any {
	again := 0
	for _, name := range r.within {
		if name == ref {
			again++
		}
	}
	if again >= maxSchemaTwice {
		return nil
	}
	path, ok := strings.CutPrefix(ref, "#")
	at := r.root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if !ok || name == "" {
			return nil
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if at, ok = at[name].(map[string]any); !ok {
			return nil
		}
	}
	if r.left -= bytesOf(at); r.left < 0 {
		return nil
	}
	return at
}

// inner are the members of a schema whose values are schemas.
var inner = map[string]bool{
	"properties": true, "items": true, "prefixItems": true, "anyOf": true, "oneOf": true, "allOf": true, "$defs": true, "definitions": true,
}

// bytesOf is about how many bytes a schema has, without the schemas in it.
func bytesOf(schema map[string]any) int {
	n := 0
	for name, v := range schema {
		n += 16 + len(name)
		if !inner[name] {
			n += bytesOfValue(v)
		}
	}
	return n
}

func bytesOfValue(v any) int {
	n := 16
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += bytesOfValue(item)
		}
	case map[string]any:
		for name, member := range v {
			n += len(name) + bytesOfValue(member)
		}
	}
	return n
}

// kind is the one type of a schema. Null among several makes it nullable, and other
// several become alternatives.
func (r *reducer) kind(s, out map[string]any) string {
	if kind, ok := s["type"].(string); ok {
		return strings.ToLower(kind)
	}
	var kinds []string
	for _, v := range listOf(s["type"]) {
		switch kind, _ := v.(string); kind {
		case "":
		case "null":
			out["nullable"] = true
		default:
			kinds = append(kinds, kind)
		}
	}
	switch len(kinds) {
	case 0:
		return ""
	case 1:
		return kinds[0]
	}
	options := make([]any, len(kinds))
	for i, kind := range kinds {
		options[i] = map[string]any{"type": kind}
		if kind == "array" {
			options[i] = map[string]any{"type": kind, "items": map[string]any{"type": "string"}}
		}
	}
	out["anyOf"] = options
	return ""
}

// alternatives writes anyOf and oneOf, one schema and null as that one.
func (r *reducer) alternatives(s, out map[string]any, depth int) {
	var options []any
	for _, v := range append(slices.Clone(listOf(s["anyOf"])), listOf(s["oneOf"])...) {
		inner, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if inner["type"] == "null" {
			out["nullable"] = true
			continue
		}
		options = append(options, r.schema(inner, depth+1))
	}
	switch {
	case len(options) == 1 && s["type"] == nil:
		only, _ := options[0].(map[string]any)
		for name, v := range only {
			if _, taken := out[name]; !taken {
				out[name] = v
			}
		}
	case len(options) > 0 && s["type"] == nil:
		out["anyOf"] = options
	}
}

// guessKind is the type of a schema that names none.
func guessKind(s map[string]any) string {
	switch {
	case s["properties"] != nil || s["additionalProperties"] != nil:
		return "object"
	case s["items"] != nil || s["prefixItems"] != nil:
		return "array"
	case s["const"] != nil && !isText(s["const"]):
		return "number"
	}
	return "string"
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// enum writes what texts are allowed; of other types it is said in words.
func (r *reducer) enum(s, out map[string]any, kind string) {
	values := listOf(s["enum"])
	if v, ok := s["const"]; ok {
		values = []any{v}
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		if v == nil {
			out["nullable"] = true
		}
		return v == nil
	})
	if len(values) == 0 {
		return
	}
	if kind == "string" && !slices.ContainsFunc(values, func(v any) bool { return !isText(v) || v == "" }) {
		out["enum"] = values
		return
	}
	words, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(fmt.Sprintf("%s One of: %s", words, text.SpacedJSON(values)))
}

func (r *reducer) properties(s, out map[string]any, depth int) {
	given, _ := s["properties"].(map[string]any)
	if len(given) == 0 {
		return
	}
	properties := make(map[string]any, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) { // the same ones are left out each time
		inner, _ := given[name].(map[string]any) // true and false say nothing of the type
		properties[name] = r.schema(inner, depth+1)
	}
	out["properties"] = properties
	var required []any
	for _, v := range listOf(s["required"]) {
		if name, ok := v.(string); ok && properties[name] != nil && !slices.Contains(required, any(name)) {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
}

// items is the one schema of what a list holds.
func (r *reducer) items(s map[string]any, depth int) any {
	if inner, ok := s["items"].(map[string]any); ok {
		return r.schema(inner, depth+1)
	}
	var options []any
	for _, v := range append(slices.Clone(listOf(s["prefixItems"])), listOf(s["items"])...) {
		if inner, ok := v.(map[string]any); ok {
			options = append(options, r.schema(inner, depth+1))
		}
	}
	switch len(options) {
	case 0:
		return map[string]any{"type": "string"}
	case 1:
		return options[0]
	}
	return map[string]any{"anyOf": options}
}
