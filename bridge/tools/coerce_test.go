package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// TestTextsBecomeWhatTheySay writes each kind of value as a text, as hosts do, under schemas
// of every form: the tool gets the value, or the text where a text is allowed as well.
func TestTextsBecomeWhatTheySay(t *testing.T) {
	tests := []struct {
		name, schema, given, want string
	}{
		{"a number", `{"type":"number"}`, `"5"`, `5`},
		{"a number with blanks", `{"type":"integer"}`, `" -3 "`, `-3`},
		{"a boolean", `{"type":"boolean"}`, `"True"`, `true`},
		{"a list", `{"type":"array"}`, `"[\"a\",\"b\"]"`, `["a","b"]`},
		{"a list of numbers as texts", `{"type":"array","items":{"type":"integer"}}`, `"[\"1\",2]"`, `[1,2]`},
		{"an object", `{"type":"object"}`, `"{\"a\":1}"`, `{"a":1}`},
		{"an object in a list in an object", `{"type":"object","properties":{"edits":{"type":"array","items":{"type":"object","properties":{"line":{"type":"integer"}}}}}}`, `{"edits":"[{\"line\":\"7\"}]"}`, `{"edits":[{"line":7}]}`},
		{"a null", `{"type":["integer","null"]}`, `"null"`, `null`},
		{"a number or null", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"4"`, `4`},
		{"a list or null of objects", `{"anyOf":[{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"}}}},{"type":"null"}]}`, `"[{\"n\":\"1.5\"}]"`, `[{"n":1.5}]`},
		{"a reference", `{"$ref":"#/$defs/n"}`, `"6"`, `6`},
		{"all of several", `{"allOf":[{"type":["string","integer"]},{"type":["integer","null"]}]}`, `"6"`, `6`},
		{"a choice of numbers", `{"enum":[1,2]}`, `"2"`, `2`},
		{"a constant", `{"const":true}`, `"true"`, `true`},
		{"members without a name", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":"1"}`, `{"a":1}`},
		{"members by a pattern", `{"type":"object","patternProperties":{"^n":{"type":"integer"}}}`, `{"n1":"1","m":"1"}`, `{"n1":1,"m":"1"}`},
		{"first items", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}`, `["1","2"]`, `[1,"2"]`},

		{"a whole number with a point", `{"type":"integer"}`, `5.0`, `5`},

		{"a text", `{"type":"string"}`, `"5"`, `"5"`},
		{"a text that looks like a list", `{"type":"string"}`, `"[1]"`, `"[1]"`},
		{"a text or a number", `{"type":["string","integer"]}`, `"5"`, `"5"`},
		{"a text or a list", `{"anyOf":[{"type":"string"},{"type":"array"}]}`, `"[1]"`, `"[1]"`},
		{"anything", `{}`, `"5"`, `"5"`},
		{"one of two objects", `{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"}}},{"type":"object","properties":{"n":{"type":"string"}}}]}`, `{"n":"5"}`, `{"n":"5"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema := `{"type":"object","properties":{"v":` + tt.schema + `},"$defs":{"n":{"type":"integer"}}}`
			own, err := tools.New(tools.Descriptor{Name: "own", Schema: json.RawMessage(schema), Level: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			elsewhere, err := tools.NewRemote(tools.Descriptor{Name: "elsewhere", Schema: json.RawMessage(schema), Level: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range []*tools.Tool{own, elsewhere} {
				if tool == elsewhere && (strings.Contains(tt.schema, "patternProperties") || tt.given == "5.0") {
					continue // patterns of others are not run, and where no text is, nothing is looked at
				}
				args, want := parsed(t, `{"v":`+tt.given+`}`), parsed(t, `{"v":`+tt.want+`}`)
				if err := tool.Check(args); err != nil {
					t.Errorf("%s refuses it: %v", tool.Descriptor().Name, err)
				}
				if diff := cmp.Diff(want, args); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tool.Descriptor().Name, diff)
				}
			}
		})
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	args, err := tools.ParseArguments([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return args
}

func TestTextsThatAreNothingElseAreRefusedInPlainWords(t *testing.T) {
	schema := `{"type":"object","properties":{"n":{"type":"integer"},"list":{"type":"array"},"o":{"type":"object"}}}`
	tool, err := tools.New(tools.Descriptor{Name: "own", Schema: json.RawMessage(schema), Level: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{
		`{"n":"five"}`, `{"n":""}`, `{"n":"1e999999"}`, `{"list":"[1"}`, `{"list":"a, b"}`, `{"o":"[1]"}`, `{"list":"{}"}`,
		`{"list":"` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `"}`,
	} {
		if err := tool.Check(parsed(t, given)); err == nil || !strings.Contains(err.Error(), "must be") || !strings.Contains(err.Error(), "not string") {
			t.Errorf("%.80s: %v", given, err)
		}
	}
}

func TestUnknownArgumentsAreNamed(t *testing.T) {
	const open = `{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"}}}},` +
		`"args":{"type":"object"}}}`
	tests := []struct{ name, schema, given, want string }{
		{"all known", open, `{"path":"a","edits":[{"old":"x"}],"args":{"anything":1}}`, ""},
		{"a name that is nearly one", open, `{"paths":"a"}`, "paths: is not known (did you mean path?)"},
		{"a name like none", open, `{"timeout_ms":1}`, "timeout_ms: is not known; there are args, edits, path"},
		{"in an item", open, `{"edits":[{"old":"x"},{"old":"x","count":2}]}`, "edits[1].count: is not known; there are old"},
		{"several", open, `{"x":1,"y":1}`, "x: is not known"},
		{"none allowed", `{"type":"object","properties":{}}`, `{"x":1}`, "there are no arguments"},
		{"no names stated", `{"type":"object"}`, `{"x":1}`, ""},
		{"others allowed", `{"type":"object","properties":{"a":{}},"additionalProperties":true}`, `{"x":1}`, ""},
		{"named by an alternative", `{"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"x":{}}}]}`, `{"x":1}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool, err := tools.New(tools.Descriptor{Name: "own", Schema: json.RawMessage(tt.schema), Level: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = tool.CheckNames(parsed(t, tt.given))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
