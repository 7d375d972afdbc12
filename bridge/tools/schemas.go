package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Limits of the schemas that others give for their tools. Compiling takes some
// twenty microseconds for a value, and the square of the depth.
const (
	// MaxSchemaDepth bounds how deep the arrays and objects of one are nested.
	MaxSchemaDepth = 64
	// MaxSchemaValues bounds the values of one.
	MaxSchemaValues = 4096
	// MaxSchemasValues bounds the values of all schemas of one agent.
	MaxSchemasValues = 1 << 14
)

// Schemas checks the schemas of one agent's tools, one after another. Its zero
// value is ready.
type Schemas struct {
	values int // values of the checked schemas
}

// Check returns what is wrong with a schema, as a sentence without its subject;
// nil for the JSON Schema of an object that stands by itself. What it holds is
// counted before it is read.
func (s *Schemas) Check(given json.RawMessage) error {
	shape := text.ShapeOf(given)
	s.values += shape.Values
	switch {
	case len(given) > MaxSchemaBytes:
		return fmt.Errorf("is %d bytes, at most %d are allowed", len(given), MaxSchemaBytes)
	case shape.Depth > MaxSchemaDepth:
		return fmt.Errorf("is nested deeper than %d levels", MaxSchemaDepth)
	case shape.Values > MaxSchemaValues:
		return fmt.Errorf("has more than %d values", MaxSchemaValues)
	case s.values > MaxSchemasValues:
		return fmt.Errorf("has too many values: the schemas of one agent may have %d together", MaxSchemasValues)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(given, &object) != nil || object == nil {
		return errors.New("is not a JSON object")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseRegexpEngine(anyPattern)
	if _, err := compileWith(compiler, given); err != nil {
		return fmt.Errorf("is not a JSON Schema: %s", schemaProblem(err))
	}
	return nil
}

// pattern stands for one of a schema whose values are never checked here. Dialects
// differ, and compiling one can take long.
type pattern string

func (p pattern) String() string { return string(p) }

// MatchString is never asked.
func (p pattern) MatchString(string) bool { return true }

func anyPattern(text string) (jsonschema.Regexp, error) { return pattern(text), nil }

// schemaProblem is the first cause of an error in a line.
func schemaProblem(err error) string {
	s := err.Error()
	if broken, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = broken.Err // which it does not unwrap to
	}
	if found, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		if list := leaves(nil, found); len(list) > 0 {
			s = strings.TrimSpace(list[0].Path + " " + list[0].Problem)
		}
	}
	s = strings.ReplaceAll(s, "\n", " ")
	return text.Cut(s, maxProblemBytes, text.Dots)
}
