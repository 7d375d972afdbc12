package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Tool is a tool to offer.
type Tool struct {
	// Name is what the format calls it: see Format.ToolName.
	Name string
	// Description says what it does.
	Description string
	// Schema is the JSON Schema of its arguments.
	Schema map[string]any
}

// Tools writes the value of the field `tools` of a body: canonical JSON, sorted by
// the names. No tools are an empty list.
func Tools(f Format, tools []Tool) []byte {
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	list := make([]any, len(tools))
	for i := range tools {
		list[i] = f.definition(&tools[i])
	}
	if f == Gemini && len(list) > 0 {
		list = []any{map[string]any{"functionDeclarations": list}}
	}
	return text.CanonicalJSON(list)
}

// definition is a tool as the format has it. OpenAI holds to a schema to the letter
// by itself, which most schemas are not made for.
func (f Format) definition(t *Tool) map[string]any {
	d := map[string]any{"name": t.Name, "description": t.Description}
	switch f {
	case OpenAIChat:
		d["parameters"] = rootSchema(t.Schema)
		return map[string]any{"type": "function", "function": d}
	case OpenAIResponses:
		d["type"], d["strict"], d["parameters"] = "function", false, rootSchema(t.Schema)
	case Anthropic:
		d["input_schema"] = rootSchema(t.Schema)
	case Gemini:
		if schema := geminiSchema(t.Schema); schema["properties"] != nil {
			d["parameters"] = schema
		}
	default:
		d["parameters"] = t.Schema
	}
	if t.Description == "" && (f == Anthropic || f == OpenAIResponses) {
		delete(d, "description")
	}
	return d
}

// rootSchema is a schema whose root is an object and nothing else: OpenAI and
// Anthropic refuse alternatives there. Within properties they stay.
func rootSchema(schema map[string]any) map[string]any {
	root := maps.Clone(schema)
	for _, name := range []string{"anyOf", "oneOf", "allOf", "not", "enum"} {
		delete(root, name)
	}
	if root["type"] != "object" {
		root["type"] = "object"
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		root["properties"] = map[string]any{}
	}
	return root
}

// ToolsOf reads the tools that Tools has written, whatever the format. What is no such list
// has none.
func ToolsOf(written []byte) []Tool {
	var list []map[string]any
	if json.Unmarshal(written, &list) != nil {
		return nil
	}
	var out []Tool
	for _, d := range list {
		if declared, ok := d["functionDeclarations"].([]any); ok { // Gemini's
			for _, one := range declared {
				if d, ok := one.(map[string]any); ok {
					out = append(out, defined(d))
				}
			}
			continue
		}
		if inner, ok := d["function"].(map[string]any); ok {
			d = inner
		}
		out = append(out, defined(d))
	}
	return out
}

// defined is the tool of a definition.
func defined(d map[string]any) (t Tool) {
	t.Name, _ = d["name"].(string)
	t.Description, _ = d["description"].(string)
	if t.Schema, _ = d["parameters"].(map[string]any); t.Schema == nil {
		t.Schema, _ = d["input_schema"].(map[string]any)
	}
	return t
}
