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
