package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// object is a schema with so many properties of three values each.
func object(properties int) json.RawMessage {
	members := make([]string, properties)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":{"type":"string","description":"x"}`, i)
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(members, ",") + `}}`)
}

// The limits of one schema, and of all that an agent gives.
func TestSchemasAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ text, problem string }{
		"long":        {`{"description":"` + strings.Repeat("x", tools.MaxSchemaBytes) + `"}`, "bytes, at most 65536 are allowed"},
		"deep":        {strings.Repeat(`{"not":`, tools.MaxSchemaDepth) + `{}` + strings.Repeat("}", tools.MaxSchemaDepth), "is nested deeper than 64 levels"},
		"many values": {string(object(1366)), "has more than 4096 values"},
		"no object":   {`[]`, "is not a JSON object"},
		"no text":     {``, "is not a JSON object"},
		"broken":      {`{"type": 3}`, "is not a JSON Schema: type "},
		"not alone":   {`{"$ref": "file:///etc/passwd"}`, "must not refer to another document"},
	} {
		var s tools.Schemas
		if err := s.Check(json.RawMessage(tt.text)); err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var s tools.Schemas
	for i := range 6 {
		err := s.Check(object(1000))
		if refused := i == 5; (err != nil) != refused {
			t.Errorf("schema %d of 3,000 values: %v", i+1, err)
		}
	}
}

// What takes long to compile where it is used is not compiled to be checked.
func TestSchemaPatternsAreNotCompiled(t *testing.T) {
	var s tools.Schemas
	members := make([]string, 1000)
	for i := range members {
		members[i] = fmt.Sprintf(`"(%d|b{1,9}){99}":{}`, i)
	}
	began := time.Now()
	if err := s.Check(json.RawMessage(`{"patternProperties":{` + strings.Join(members, ",") + `}}`)); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute/2 {
		t.Errorf("took %v", took)
	}
}

// A schema whose alternatives lead to themselves costs a call no more than any other one.
func TestSchemasThatMultiply(t *testing.T) {
	refs := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/d"},`, 50), ",")
	deep := strings.Repeat("[", 40) + `"5"` + strings.Repeat("]", 40)
	for name, schema := range map[string]string{
		"alternatives": `{"properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"anyOf":[` + refs + `]}}}`,
		"parts":        `{"properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"items":{"$ref":"#/$defs/d"},"allOf":[` + refs + `]}}}`,
		"nested":       `{"properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":["array","number"],"items":{"$ref":"#/$defs/e"},"allOf":[{"items":{"$ref":"#/$defs/e"}}]},"e":{"items":{"$ref":"#/$defs/d"},"allOf":[{"items":{"$ref":"#/$defs/d"}}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := new(tools.Schemas).Check(json.RawMessage(schema)); err != nil {
				t.Fatal(err)
			}
			tool, err := tools.NewRemote(tools.Descriptor{Name: "hostile", Description: "d", Level: tools.LevelFunction, Schema: json.RawMessage(schema)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{`"5"`, deep} {
				var args map[string]any
				if err := json.Unmarshal(fmt.Appendf(nil, `{"x":%s}`, value), &args); err != nil {
					t.Fatal(err)
				}
				checked := make(chan error, 1)
				go func() { checked <- tool.Check(args) }()
				select {
				case err := <-checked:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Fatal("it looks at schemas without end")
				}
			}
		})
	}
}
