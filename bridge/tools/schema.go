package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// MaxViolations bounds how many violations one error lists: enough to correct
// a call, and not the length of a hostile array.
const MaxViolations = 32

// schemaURL names the one document a compiler gets. It is never fetched.
const schemaURL = "tool:schema"

// noLoader refuses every document a schema refers to by address.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema must not refer to another document (%s)", url)
}

// compile returns the compiled schema. The meta-schemas of the JSON Schema
// drafts are built in; everything else outside the text is refused.
func compile(text json.RawMessage) (*jsonschema.Schema, error) {
	return compileWith(jsonschema.NewCompiler(), text)
}

func compileWith(compiler *jsonschema.Compiler, text json.RawMessage) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if _, ok := document.(map[string]any); !ok {
		return nil, errors.New("is no JSON object")
	}
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	if !allows(schema, "object") {
		return nil, errors.New("does not allow an object")
	}
	return schema, nil
}

func allows(schema *jsonschema.Schema, name string) bool {
	return schema.Types == nil || slices.Contains(schema.Types.ToStrings(), name)
}

// dropNulls removes the members of args that are null, so that they count as
// missing, except where the schema names null as a type of the member.
func dropNulls(schema *jsonschema.Schema, args map[string]any) {
	for name, value := range args {
		if value != nil {
			continue
		}
		member := schema.Properties[name]
		if member == nil || member.Types == nil || !allows(member, "null") {
			delete(args, name)
		}
	}
}

// violations compares args with the schema and returns all that is wrong.
func violations(schema *jsonschema.Schema, args map[string]any) []Violation {
	err := schema.Validate(args)
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{{Problem: err.Error()}}
	}
	list := leaves(nil, found)
	slices.SortFunc(list, func(a, b Violation) int {
		return strings.Compare(a.Path+"\x00"+a.Problem, b.Path+"\x00"+b.Problem)
	})
	list = slices.Compact(list)
	return list[:min(len(list), MaxViolations)]
}

// leaves appends the violations at the ends of the tree of causes: the nodes
// between only say that something below them failed.
func leaves(list []Violation, err *jsonschema.ValidationError) []Violation {
	for _, cause := range err.Causes {
		list = leaves(list, cause)
	}
	if len(err.Causes) > 0 {
		return list
	}
	if missing, ok := err.ErrorKind.(*kind.Required); ok {
		for _, name := range missing.Missing {
			list = append(list, Violation{join(err.InstanceLocation, name), "is required"})
		}
		return list
	}
	if more, ok := err.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, name := range more.Properties {
			list = append(list, Violation{join(err.InstanceLocation, name), "is not known"})
		}
		return list
	}
	return append(list, Violation{join(err.InstanceLocation), problem(err.ErrorKind)})
}

// maxProblemBytes keeps a violation short where it quotes a value.
const maxProblemBytes = 300

func problem(k jsonschema.ErrorKind) string {
	if t, ok := k.(*kind.Type); ok {
		return fmt.Sprintf("must be %s, not %s", strings.Join(t.Want, " or "), t.Got)
	}
	s := k.LocalizedString(message.NewPrinter(language.English))
	return text.Cut(s, maxProblemBytes, text.Dots)
}

// join writes a location as a model would: a.b[2].c.
func join(location []string, more ...string) string {
	var b strings.Builder
	for _, part := range slices.Concat(location, more) {
		if _, err := strconv.ParseUint(part, 10, 32); err == nil {
			b.WriteString("[" + part + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}
