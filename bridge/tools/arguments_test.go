package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func TestParseArguments(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]any
		wantError  string // part of it; empty for none
	}{
		{"empty", "", map[string]any{}, ""},
		{"blank", " \n", map[string]any{}, ""},
		{"exact numbers", `{"a":9007199254740993,"b":1.10}`, map[string]any{"a": json.Number("9007199254740993"), "b": json.Number("1.10")}, ""},
		{"last of a key given twice", `{"a":1,"a":2}`, map[string]any{"a": json.Number("2")}, ""},
		{"brackets in text", `{"a":"[[[{{{\"["}`, map[string]any{"a": `[[[{{{"[`}, ""},
		{"cut off", `{"a":`, nil, "the text ends before"},
		{"no JSON", `path=x`, nil, `not JSON: "path=x" at byte 0`},
		{"more behind", `{} {}`, nil, "more text after"},
		{"array", `[1]`, nil, "must be a JSON object"},
		{"null", `null`, nil, "must be a JSON object"},
		{"text", `"x"`, nil, "must be a JSON object"},
		{"not UTF-8", "{\"a\":\"\xff\"}", nil, "not UTF-8"},
		{"too long", `{"a":"` + strings.Repeat("x", tools.MaxArgumentsBytes) + `"}`, nil, "exceed the limit"},
		{"too deep", `{"a":` + strings.Repeat("[", tools.MaxArgumentsDepth) + strings.Repeat("]", tools.MaxArgumentsDepth) + `}`, nil, "nested deeper"},
		{"much too deep", strings.Repeat("[", 500_000), nil, "nested deeper"},
		{"huge exponent", `{"a":[{"b":1e1000000}]}`, nil, "exponent"},
		{"tiny exponent", `{"a":1E-99999999999999999999}`, nil, "exponent"},
		{"long number", `{"a":` + strings.Repeat("9", tools.MaxNumberBytes+1) + `}`, nil, "digits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tools.ParseArguments([]byte(tt.text))
			if tt.wantError == "" {
				if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
					t.Errorf("error %v (-want +got):\n%s", err, diff)
				}
				return
			}
			bad, ok := errors.AsType[*tools.ArgumentsError](err)
			if !ok || bad.Schema != nil || !strings.Contains(bad.Detail(), tt.wantError) {
				t.Errorf("got %v, want it malformed: %s", err, tt.wantError)
			}
		})
	}
}

func FuzzParseArguments(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"a":[1,2,{"b":null}]}`, `{"a":1e400}`, `[`, `{"\u0000":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	r := MustRegistry(f, "x")
	f.Fuzz(func(t *testing.T, text []byte) {
		args, err := tools.ParseArguments(text)
		if err != nil {
			if !errors.Is(err, tools.ErrInvalidArguments) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		if err := check(r, "x", args); err != nil {
			t.Fatalf("a schema that takes any object refused %q: %v", text, err)
		}
		again, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tools.ParseArguments(again); err != nil && len(again) <= tools.MaxArgumentsBytes {
			t.Fatalf("parsed %q but not its own form: %v", text, err)
		}
	})
}

const editSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1},
"line":{"type":"integer","minimum":1},
"mode":{"enum":["a","b"]},
"note":{"type":["string","null"]},
"deep":{"type":"boolean"},
"share":{"type":"number"},
"either":{"type":["string","integer"]},
"counts":{"type":"array","items":{"type":"integer"}},
"edits":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}},
"required":["path","line"]}`

func TestCheckTellsAllViolations(t *testing.T) {
	r := tools.NewRegistry(nil)
	if err := r.Add(tools.Descriptor{Name: "edit", Level: 1, Schema: json.RawMessage(editSchema)}, nothing); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, args string
		want       []string
	}{
		{"right", `{"path":"a","line":3}`, nil},
		{"more keys than named", `{"path":"a","line":3,"colour":"red","x":null}`, nil},
		{"whole number written as a fraction", `{"path":"a","line":3.0}`, nil},
		{"optional null", `{"path":"a","line":3,"mode":null,"edits":null}`, nil},
		{"null where null is a type", `{"path":"a","line":3,"note":null}`, nil},
		{"all missing", `{}`, []string{"line: is required", "path: is required"}},
		{"null counts as missing", `{"path":null,"line":1}`, []string{"path: is required"}},
		{"wrong types", `{"path":3,"line":"x"}`, []string{"line: must be integer, not string", "path: must be string, not number"}},
		{"a boolean is no number", `{"path":"a","line":true}`, []string{"line: must be integer, not boolean"}},
		{"a number as text", `{"path":"a","line":" 3 "}`, nil},
		{"a number as text, out of range", `{"path":"a","line":"0"}`, []string{"line: minimum: got 0, want 1"}},
		{"a fraction as text", `{"path":"a","line":"3.5"}`, []string{"line: must be integer, not number"}},
		{"a huge number as text", `{"path":"a","line":"1e99999"}`, []string{"line: must be integer, not string"}},
		{"no text at all", `{"path":"a","line":""}`, []string{"line: must be integer, not string"}},
		{"below", `{"path":"a","line":1,"edits":[{"text":"x"},{"text":1},{}]}`, []string{"edits[1].text: must be string, not number", "edits[2].text: is required"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, err := tools.ParseArguments([]byte(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if bad, ok := errors.AsType[*tools.ArgumentsError](check(r, "edit", args)); ok {
				for _, v := range bad.Violations {
					got = append(got, v.String())
				}
				if string(bad.Schema) != editSchema || bad.Tool != "edit" {
					t.Errorf("the error does not carry tool and schema: %+v", bad)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// Text that is a number or a boolean is taken as one where one is wanted, and only
// there.
func TestCheckTakesTextAsWhatItIs(t *testing.T) {
	r := tools.NewRegistry(nil)
	if err := r.Add(tools.Descriptor{Name: "edit", Level: 1, Schema: json.RawMessage(editSchema)}, nothing); err != nil {
		t.Fatal(err)
	}
	args, err := tools.ParseArguments([]byte(`{"path":"5","line":"3","deep":"True","share":"-1e-2","either":"7","note":"true","counts":["1",2]," other":"4"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := check(r, "edit", args); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"path": "5", "line": json.Number("3"), "deep": true, "share": json.Number("-1e-2"), "either": "7", "note": "true",
		"counts": []any{json.Number("1"), json.Number("2")}, " other": "4",
	}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestCheckBoundsViolations(t *testing.T) {
	r := tools.NewRegistry(nil)
	if err := r.Add(tools.Descriptor{Name: "edit", Level: 1, Schema: json.RawMessage(editSchema)}, nothing); err != nil {
		t.Fatal(err)
	}
	args, err := tools.ParseArguments([]byte(`{"path":"a","line":1,"mode":"` + strings.Repeat("é", 100_000) + `","edits":[` + strings.Repeat("1,", 10_000) + `1]}`))
	if err != nil {
		t.Fatal(err)
	}
	bad, ok := errors.AsType[*tools.ArgumentsError](check(r, "edit", args))
	if !ok || len(bad.Violations) != tools.MaxViolations || len(bad.Error()) > 20_000 {
		t.Errorf("got %d violations in %d bytes", len(bad.Violations), len(bad.Error()))
	}
}

func TestInteger(t *testing.T) {
	tests := []struct {
		in   any
		want int64
		ok   bool
	}{
		{json.Number("3"), 3, true},
		{json.Number("3.0"), 3, true},
		{json.Number("3e2"), 300, true},
		{json.Number("99999999999999999999"), 1<<63 - 1, true},
		{json.Number("-1e300"), -1 << 63, true},
		{"3", 0, false},
		{nil, 0, false},
	}
	for _, tt := range tests {
		if got, ok := tools.Integer(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("Integer(%v) = %d, %v; want %d, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func ExampleArgumentsError() {
	r := tools.NewRegistry(nil)
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	_ = r.Add(tools.Descriptor{Name: "fs:read_file", Level: tools.LevelFunction, Schema: schema}, nothing)
	tool, _ := r.Lookup("read_file")
	fmt.Println(tool.Check(map[string]any{"file": "README.md"}))
	// Output: tools: invalid arguments of fs:read_file: path: is required
}
