package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
)

// Tools have the names that providers take: up to so many characters, and no longer.
//
// A02
func TestToolNames(t *testing.T) {
	for _, tt := range []struct {
		format provider.Format
		name   string
		want   string
		taken  bool
	}{
		{provider.Neutral, "fs:read_file", "fs:read_file", true},
		{provider.OpenAIChat, "fs:read_file", "fs_read_file", true},
		{provider.OpenAIResponses, "fs:read_file", "fs_read_file", true},
		{provider.Anthropic, "fs:read_file", "fs_read_file", true},
		{provider.Gemini, "fs:read_file", "fs_read_file", true},
		{provider.Gemini, "7z:list", "_7z_list", false},
		{provider.Gemini, "-a", "_-a", false},
		{provider.Anthropic, "7z:list", "7z_list", true},
		{provider.OpenAIChat, "été", "_t_", true},
	} {
		if got, taken := tt.format.ToolName(tt.name); got != tt.want && tt.taken || taken != tt.taken {
			t.Errorf("%s, %s: got %s, %v", tt.format, tt.name, got, taken)
		}
	}
	for format, most := range map[provider.Format]int{
		provider.OpenAIChat: 64, provider.OpenAIResponses: 64, provider.Anthropic: 128, provider.Gemini: 64,
	} {
		for n, want := range map[int]bool{0: false, most - 1: true, most: true, most + 1: false} {
			name := strings.Repeat("a", n)
			if called, taken := format.ToolName(name); taken != want || len(called) > most {
				t.Errorf("%s, %d characters: got %d, %v", format, n, len(called), taken)
			}
		}
	}
}

// The same tools are the same bytes in any order, and definitions are as providers
// take them.
//
// M01, E06
func TestTools(t *testing.T) {
	schema := map[string]any{"anyOf": []any{}, "properties": map[string]any{"a": map[string]any{"type": "string", "enum": []any{"x"}}}}
	tools := []provider.Tool{{Name: "b", Schema: map[string]any{}}, {Name: "a", Description: "Does a.", Schema: schema}}
	for format, want := range map[provider.Format]string{
		provider.Neutral:         `[{"description":"Does a.","name":"a","parameters":{"anyOf":[],"properties":{"a":{"enum":["x"],"type":"string"}}}},{"description":"","name":"b","parameters":{}}]`,
		provider.OpenAIChat:      `[{"function":{"description":"Does a.","name":"a","parameters":{"properties":{"a":{"enum":["x"],"type":"string"}},"type":"object"}},"type":"function"},{"function":{"description":"","name":"b","parameters":{"properties":{},"type":"object"}},"type":"function"}]`,
		provider.OpenAIResponses: `[{"description":"Does a.","name":"a","parameters":{"properties":{"a":{"enum":["x"],"type":"string"}},"type":"object"},"strict":false,"type":"function"},{"name":"b","parameters":{"properties":{},"type":"object"},"strict":false,"type":"function"}]`,
		provider.Anthropic:       `[{"description":"Does a.","input_schema":{"properties":{"a":{"enum":["x"],"type":"string"}},"type":"object"},"name":"a"},{"input_schema":{"properties":{},"type":"object"},"name":"b"}]`,
		provider.Gemini:          `[{"functionDeclarations":[{"description":"Does a.","name":"a","parameters":{"properties":{"a":{"enum":["x"],"type":"string"}},"type":"object"}},{"description":"","name":"b"}]}]`,
	} {
		got := string(provider.Tools(format, tools))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", format, got, want)
		}
		slices.Reverse(tools)
		if again := string(provider.Tools(format, tools)); again != got {
			t.Errorf("%s: in another order it is %s", format, again)
		}
		if none := string(provider.Tools(format, nil)); none != "[]" {
			t.Errorf("%s: no tools are %s", format, none)
		}
	}
}

// A schema is reduced to what Gemini takes.
func TestGeminiSchema(t *testing.T) {
	for property, want := range map[string]string{
		`{"type":["string","null"],"description":"d"}`:    `{"description":"d","nullable":true,"type":"string"}`,
		`{"type":["string","integer"]}`:                   `{"anyOf":[{"type":"string"},{"type":"integer"}]}`,
		`{"$ref":"#/$defs/Path"}`:                         `{"description":"A path.","type":"string"}`,
		`{"$ref":"#/$defs/Path","description":"Where."}`:  `{"description":"Where.","type":"string"}`,
		`{"$ref":"#/$defs/None"}`:                         `{"type":"string"}`,
		`{"const":"a"}`:                                   `{"enum":["a"],"type":"string"}`,
		`{"type":"integer","enum":[1,2]}`:                 `{"description":"One of: [1, 2]","type":"integer"}`,
		`{"type":"string","enum":["a",null]}`:             `{"enum":["a"],"nullable":true,"type":"string"}`,
		`{"oneOf":[{"type":"string"},{"type":"null"}]}`:   `{"nullable":true,"type":"string"}`,
		`{"oneOf":[{"type":"string"},{"type":"number"}]}`: `{"anyOf":[{"type":"string"},{"type":"number"}]}`,
		`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{}},"required":["b","c"]}]}`: `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"],"type":"object"}`,
		`{"type":"array"}`: `{"items":{"type":"string"},"type":"array"}`,
		`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`:       `{"items":{"type":"integer"},"type":"array"}`,
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}]}`: `{"items":{"anyOf":[{"type":"string"},{"type":"number"}]},"type":"array"}`,
		`{"type":"string","format":"uri","minLength":1}`:                       `{"minLength":1,"type":"string"}`,
		`{"type":"string","format":"date-time"}`:                               `{"format":"date-time","type":"string"}`,
		`{"type":"object","additionalProperties":{"type":"string"}}`:           `{"type":"object"}`,
		`true`: `{"type":"string"}`,
	} {
		var schema map[string]any
		text := `{"type":"object","$schema":"x","$defs":{"Path":{"type":"string","description":"A path."}},"properties":{"p":` + property + `}}`
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			t.Fatal(err)
		}
		before := maps.Clone(schema)
		got := string(provider.Tools(provider.Gemini, []provider.Tool{{Name: "t", Schema: schema}}))
		if want := `[{"functionDeclarations":[{"description":"","name":"t","parameters":{"properties":{"p":` + want + `},"type":"object"}}]}]`; got != want {
			t.Errorf("%s:\n got %s\nwant %s", property, got, want)
		}
		if len(before) != len(schema) {
			t.Errorf("%s: the schema was changed", property)
		}
	}
}

// A schema that refers to itself is shown with its branches' branches; one of a stranger takes
// little room and time, however often it does.
func TestGeminiSchemaOfItself(t *testing.T) {
	many := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	const self = `{"$ref":"#/$defs/d"}`
	long := strings.Repeat("x", 10_000)
	var around []string // each leads to all others
	for i := range 20 {
		around = append(around, fmt.Sprintf(`"%d":{"properties":{"a":{"$ref":"#/$defs/%d"},"b":{"$ref":"#/$defs/%d"},"c":{"$ref":"#/$defs/%d"}}}`, i, (i+1)%20, (i+2)%20, (i+3)%20))
	}
	for name, one := range map[string]struct {
		schema string
		most   int
	}{
		"itself":       {`{"type":"object","properties":{"p":{"$ref":"#"}}}`, 300},
		"a filter":     {`{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"and":{"type":"array","items":` + self + `},"or":{"type":"array","items":` + self + `},"not":` + self + `,"field":{"type":"string"}}}}}`, 4096},
		"alternatives": {`{"properties":{"p":` + self + `},"$defs":{"d":{"anyOf":[` + many(50, self) + `]}}}`, 128 << 10},
		"parts":        {`{"properties":{"p":` + self + `},"$defs":{"d":{"allOf":[` + many(50, self) + `],"properties":{"a":` + self + `,"b":` + self + `}}}}`, 128 << 10},
		"long":         {`{"properties":{"p":` + self + `},"$defs":{"d":{"description":"` + long + `","anyOf":[` + many(50, self) + `]}}}`, 512 << 10},
		"around":       {`{"$ref":"#/$defs/0","$defs":{` + strings.Join(around, ",") + `}}`, 512 << 10},
	} {
		var schema map[string]any
		if err := json.Unmarshal([]byte(one.schema), &schema); err != nil {
			t.Fatal(err)
		}
		tools := []provider.Tool{{Name: "t", Schema: schema}}
		got := provider.Tools(provider.Gemini, tools)
		if len(got) > one.most || !json.Valid(got) {
			t.Errorf("%s: it is %d bytes, at most %d are wanted", name, len(got), one.most)
		}
		if again := provider.Tools(provider.Gemini, tools); !bytes.Equal(again, got) {
			t.Errorf("%s: it is another one the next time", name)
		}
		t.Log(name, len(got))
	}
}
