package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

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
