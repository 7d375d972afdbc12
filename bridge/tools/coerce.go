package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// coerce gives arguments the form that a schema wants, where that leaves no doubt. Models
// and hosts often write a number, a boolean, a list or an object as a text: "5", "true",
// "[1]". Such a text becomes what it says where the schema allows that and no text. Members
// and items are changed in place.
func coerce(schema *jsonschema.Schema, args map[string]any) {
	f := fitter{left: looksAtLeast + looksPerValue*sizeOf(args)}
	f.coerce(schema, args)
}

// A schema is a stranger's, and may lead to itself many times at each level: what is left of
// the arguments when so many schemas were looked at stays as it is.
const (
	looksAtLeast  = 1 << 12
	looksPerValue = 16
)

// fitter is one call of coerce.
type fitter struct {
	left int // schemas that it may still look at
}

// sizeOf counts a value with all that it holds.
func sizeOf(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			n += sizeOf(member)
		}
	case []any:
		for _, item := range v {
			n += sizeOf(item)
		}
	}
	return n
}

func (f *fitter) coerce(schema *jsonschema.Schema, value any) any {
	f.left--
	schema = behind(schema)
	if schema == nil || f.left < 0 {
		return value
	}
	if t, ok := value.(string); ok {
		if schema.Types != nil && allows(schema, "string") {
			return value
		}
		value = fromText(f.typesOf(schema, maxBranches), t)
	}
	switch v := value.(type) {
	case json.Number:
		if whole, ok := Integer(v); ok && strings.ContainsAny(string(v), ".eE") && !slices.Contains(f.typesOf(schema, maxBranches), "number") &&
			checkWhole(v, whole) {
			return json.Number(strconv.FormatInt(whole, 10))
		}
	case map[string]any:
		for _, branch := range f.branches(schema, "object") {
			for name, inner := range v {
				v[name] = f.coerce(memberOf(branch, name), inner)
			}
		}
	case []any:
		for _, branch := range f.branches(schema, "array") {
			for i, item := range v {
				v[i] = f.coerce(itemOf(branch, i), item)
			}
		}
	}
	return value
}

// checkWhole reports whether a number such as 5.0 is a whole one.
func checkWhole(n json.Number, whole int64) bool {
	f, err := n.Float64()
	return err == nil && f == float64(whole) && max(whole, -whole) < 1<<53
}

// maxBranches bounds how deep alternatives of a schema are looked into.
const maxBranches = 8

// behind is the schema that references lead to; nil for one that leads to itself.
func behind(schema *jsonschema.Schema) *jsonschema.Schema {
	for range maxBranches {
		if schema == nil || schema.Ref == nil {
			return schema
		}
		if schema.Types != nil || schema.Properties != nil {
			return schema
		}
		schema = schema.Ref
	}
	return nil
}

// allTypes are the types of JSON, as JSON Schema names them.
var allTypes = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

// typesOf are the types that a schema may allow: too many rather than too few.
func (f *fitter) typesOf(schema *jsonschema.Schema, depth int) []string {
	types := allTypes
	f.left--
	if schema = behind(schema); schema == nil || depth == 0 || f.left < 0 {
		return types
	}
	only := func(these []string) {
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool {
			return !slices.Contains(these, t) && (t != "integer" || !slices.Contains(these, "number"))
		})
	}
	if schema.Types != nil {
		only(schema.Types.ToStrings())
	}
	if schema.Enum != nil {
		only(typesOfValues(schema.Enum.Values))
	}
	if schema.Const != nil {
		only(typesOfValues([]any{*schema.Const}))
	}
	for _, all := range schema.AllOf {
		only(f.typesOf(all, depth-1))
	}
	for _, some := range [][]*jsonschema.Schema{schema.AnyOf, schema.OneOf} {
		if len(some) == 0 {
			continue
		}
		var these []string
		for _, one := range some {
			these = append(these, f.typesOf(one, depth-1)...)
		}
		only(these)
	}
	return types
}

func typesOfValues(values []any) (types []string) {
	for _, value := range values {
		switch value.(type) {
		case nil:
			types = append(types, "null")
		case bool:
			types = append(types, "boolean")
		case string:
			types = append(types, "string")
		case []any:
			types = append(types, "array")
		case map[string]any:
			types = append(types, "object")
		default:
			types = append(types, "number")
		}
	}
	return types
}

// fromText returns what a text says, where no text is allowed but that is, or else the text.
func fromText(types []string, given string) any {
	if slices.Contains(types, "string") {
		return given
	}
	bare := strings.TrimSpace(given)
	allowed := func(name string) bool { return slices.Contains(types, name) }
	switch {
	case bare == "":
		return given
	case (allowed("number") || allowed("integer")) && isNumber(bare):
		return json.Number(bare)
	case allowed("boolean") && strings.EqualFold(bare, "true"):
		return true
	case allowed("boolean") && strings.EqualFold(bare, "false"):
		return false
	case bare == "null":
		return nil
	case bare[0] == '[' && allowed("array"), bare[0] == '{' && allowed("object"):
		if value, err := parseValue([]byte(bare)); err == nil {
			return value
		}
	}
	return given
}

// isNumber reports whether a text is a JSON number within the limits of one.
func isNumber(text string) bool {
	if text == "" || len(text) > MaxNumberBytes || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	return json.Valid([]byte(text)) && checkNumber(text) == ""
}

// branches are the parts of a schema that say what a value of a type holds. Of alternatives
// that is the one that allows the type; where several do, none says it without doubt.
func (f *fitter) branches(schema *jsonschema.Schema, of string) []*jsonschema.Schema {
	list := []*jsonschema.Schema{schema}
	if schema.Ref != nil {
		list = append(list, behind(schema.Ref))
	}
	for _, all := range schema.AllOf {
		list = append(list, behind(all))
	}
	for _, some := range [][]*jsonschema.Schema{schema.AnyOf, schema.OneOf} {
		var fit []*jsonschema.Schema
		for _, one := range some {
			if slices.Contains(f.typesOf(one, maxBranches), of) {
				fit = append(fit, behind(one))
			}
		}
		if len(fit) == 1 {
			list = append(list, fit[0])
		}
	}
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// memberOf is the schema of a member of an object; nil where there is none.
func memberOf(schema *jsonschema.Schema, name string) *jsonschema.Schema {
	if member := schema.Properties[name]; member != nil {
		return member
	}
	for named, member := range schema.PatternProperties {
		if _, unread := named.(pattern); unread {
			return nil // it may say something else of the member
		}
		if named.MatchString(name) {
			return member
		}
	}
	more, _ := schema.AdditionalProperties.(*jsonschema.Schema)
	return more
}

// itemOf is the schema of an item of a list; nil where there is none.
func itemOf(schema *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(schema.PrefixItems) {
		return schema.PrefixItems[i]
	}
	switch items := schema.Items.(type) { // as drafts before 2020-12 have it
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
		more, _ := schema.AdditionalItems.(*jsonschema.Schema)
		return more
	}
	return schema.Items2020
}

// unknown appends a violation for each member of args that a schema does not name, where it
// names members and says nothing of others: a call with another meaning than the model
// believes must not run.
func unknown(list []Violation, schema *jsonschema.Schema, value any, path ...string) []Violation {
	if schema = behind(schema); schema == nil || len(list) >= MaxViolations {
		return list
	}
	switch v := value.(type) {
	case map[string]any:
		closed := schema.Properties != nil && schema.AdditionalProperties == nil && schema.PatternProperties == nil &&
			schema.AllOf == nil && schema.AnyOf == nil && schema.OneOf == nil && schema.Ref == nil
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, ok := schema.Properties[name]; ok {
				list = unknown(list, schema.Properties[name], v[name], append(path, name)...)
			} else if closed && len(list) < MaxViolations {
				list = append(list, Violation{Path: join(path, name), Problem: noArgument(name, schema)})
			}
		}
	case []any:
		for i, item := range v {
			list = unknown(list, itemOf(schema, i), item, append(path, fmt.Sprint(i))...)
		}
	}
	return list
}

// noArgument says that there is no argument of a name, and which there are.
func noArgument(name string, schema *jsonschema.Schema) string {
	if near := nearest(name, maps.Keys(schema.Properties)); near != "" {
		return "is not known (did you mean " + near + "?)"
	}
	if len(schema.Properties) == 0 {
		return "is not known: there are no arguments"
	}
	return "is not known; there are " + strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", ")
}

// holdsText reports whether a value holds a text that may be written for something else.
func holdsText(value any) bool {
	switch v := value.(type) {
	case string:
		bare := strings.TrimSpace(v)
		return bare != "" && (strings.IndexByte("[{-0123456789", bare[0]) >= 0 || bare == "null" ||
			strings.EqualFold(bare, "true") || strings.EqualFold(bare, "false"))
	case map[string]any:
		for _, member := range v {
			if holdsText(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsText)
	}
	return false
}
