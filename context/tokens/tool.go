package tokens

import (
	"bytes"
	"encoding/json"
	"strings"
)

// What tool definitions cost in addition to their texts, by OpenAI's rule.
const (
	propertiesTokens = 3 // once, when there are properties
	propertyTokens   = 3
	enumTokens       = -3
	enumItemTokens   = 3
	toolsEndTokens   = 12
	// maxSchemaDepth bounds how deep nested properties are followed.
	maxSchemaDepth = 32
)

// ToolDefinition is what counts of one tool definition.
type ToolDefinition struct {
	// Name is the name the model calls it by.
	Name string
	// Description says what it does.
	Description string
	// Schema is the JSON Schema of its arguments, or nil.
	Schema json.RawMessage
}

// Tools counts tool definitions sent with the messages; an empty list costs nothing.
// OpenAI's published rule covers one level of properties: deeper ones are counted by the
// same rule and make the count an estimate, and so does a schema that is no object or a
// property that names no type. For the other counters the schema counts as the JSON that it
// is.
func (c *Counter) Tools(model string, tools []ToolDefinition) (Count, error) {
	s := c.sum(model)
	for _, tool := range tools {
		if s.model.Counter == OpenAI {
			s.function(tool)
		} else {
			s.texts(tool.Name, tool.Description, compact(tool.Schema))
		}
	}
	if len(tools) > 0 {
		s.flat(s.model.ToolPrompt)
	}
	if len(tools) > 0 && s.model.Counter == OpenAI {
		s.flat(toolsEndTokens)
	}
	return s.result()
}

func (s *sum) function(tool ToolDefinition) {
	s.flat(s.model.FunctionTokens)
	s.texts(tool.Name + ":" + strings.TrimSuffix(tool.Description, "."))
	s.schema(tool.Schema, 0)
}

// compact is JSON without the white space that providers leave out.
func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

// property is a schema as far as the rule looks at it.
type property struct {
	Type        any                        `json:"type"`
	Description string                     `json:"description"`
	Enum        []any                      `json:"enum"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Items       json.RawMessage            `json:"items"`
}

func (s *sum) schema(raw json.RawMessage, depth int) {
	if len(raw) == 0 {
		return
	}
	var object property
	if depth > maxSchemaDepth || json.Unmarshal(raw, &object) != nil {
		s.guess(string(raw))
		return
	}
	if len(object.Properties) > 0 {
		s.flat(propertiesTokens)
		s.guessed = s.guessed || depth > 0
	}
	for key, value := range object.Properties {
		s.property(key, value, depth+1)
	}
	s.schema(object.Items, depth+1)
}

func (s *sum) property(key string, raw json.RawMessage, depth int) {
	var p property
	if json.Unmarshal(raw, &p) != nil {
		s.guess(key + ":" + string(raw))
		return
	}
	s.guessed = s.guessed || p.Type == nil
	s.flat(propertyTokens)
	if p.Enum != nil {
		s.flat(enumTokens)
	}
	for _, item := range p.Enum {
		s.flat(enumItemTokens)
		s.texts(plain(item))
	}
	s.texts(key + ":" + plain(p.Type) + ":" + strings.TrimSuffix(p.Description, "."))
	if len(p.Properties) > 0 || len(p.Items) > 0 {
		s.schema(raw, depth)
	}
}

// plain is a JSON value as the rule writes it: strings without quotes.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}
