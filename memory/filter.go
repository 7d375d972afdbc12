package memory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// MaxConditions bounds the conditions of one filter.
const MaxConditions = 64

// The fields of a filter beside metadata, and the index field of each; id and
// key are names of records and have none.
var filterFields = map[string]lexical.Field{
	"id": 0, "key": 0,
	"kind":       lexical.Kind,
	"session_id": lexical.Session,
	"author":     lexical.Author,
	"origin":     lexical.Origin,
	"tags":       lexical.Tag,
}

const served = "served are id, key, kind, session_id, author, origin, tags and metadata"

// condition is one part of a filter: the field must have the value.
type condition struct {
	field string        // as in the filter
	index lexical.Field // zero for id and key
	value string
}

// parseFilter reads a filter after AIP-160: conditions joined by AND. A
// condition is field = value for id, key, kind, session_id, author, origin and
// metadata with a path, or tags:value. An empty filter has no conditions.
// Anything else is a *FilterError.
func parseFilter(filter string) ([]condition, error) {
	if strings.TrimSpace(filter) == "" {
		return nil, nil
	}
	var parser filtering.Parser
	parser.Init(filter)
	parsed, err := parser.Parse()
	if err != nil {
		return nil, syntaxError(filter, err)
	}
	c := compiler{filter: filter, positions: parsed.GetSourceInfo().GetPositions()}
	if err := c.compile(parsed.GetExpr()); err != nil {
		return nil, err
	}
	return c.conditions, nil
}

// syntaxError keeps the innermost of the parser's errors, which says most.
func syntaxError(filter string, err error) error {
	out := &FilterError{Filter: filter, Problem: "does not parse"}
	for ; err != nil; err = errors.Unwrap(err) {
		at, ok := err.(interface {
			Position() filtering.Position
			Message() string
		})
		if !ok {
			break
		}
		out.Offset = leadingSpace(filter) + int(at.Position().Offset)
		out.Problem = "does not parse: " + at.Message()
	}
	return out
}

// leadingSpace is how much the parser cuts off, and so how far its positions
// lie before ours.
func leadingSpace(filter string) int {
	return len(filter) - len(strings.TrimLeftFunc(filter, isSpace))
}

func isSpace(r rune) bool { return strings.TrimSpace(string(r)) == "" }

// compiler turns a parsed filter into conditions.
type compiler struct {
	filter     string
	positions  map[int64]int32
	conditions []condition
}

func (c *compiler) offset(e *expr.Expr) int {
	return leadingSpace(c.filter) + int(c.positions[e.GetId()])
}

func (c *compiler) refuse(e *expr.Expr, format string, args ...any) error {
	return &FilterError{Filter: c.filter, Offset: c.offset(e), Problem: fmt.Sprintf(format, args...)}
}

func (c *compiler) compile(e *expr.Expr) error {
	call := e.GetCallExpr()
	if call == nil {
		return c.refuse(e, "a condition needs a field, = or :, and a value")
	}
	switch call.GetFunction() {
	case filtering.FunctionAnd:
		for _, arg := range call.GetArgs() {
			if err := c.compile(arg); err != nil {
				return err
			}
		}
		return nil
	case filtering.FunctionEquals, filtering.FunctionHas:
		return c.compare(e, call)
	case filtering.FunctionFuzzyAnd:
		return c.refuse(e, "conditions must be joined by AND")
	}
	return c.refuse(e, "%s is not served; join conditions with = or : by AND", call.GetFunction())
}

func (c *compiler) compare(e *expr.Expr, call *expr.Expr_Call) error {
	if len(call.GetArgs()) != 2 {
		return c.refuse(e, "a condition needs one field and one value")
	}
	if len(c.conditions) == MaxConditions {
		return c.refuse(e, "has more than %d conditions", MaxConditions)
	}
	left, right := call.GetArgs()[0], call.GetArgs()[1]
	path := memberPath(left)
	if len(path) == 0 {
		return c.refuse(left, "a condition begins with a field; %s", served)
	}
	index, known := filterFields[path[0]]
	switch {
	case path[0] == "metadata":
		return c.compareMetadata(e, call.GetFunction(), path[1:], right)
	case !known:
		return c.refuse(left, "field %q is unknown; %s", path[0], served)
	case len(path) > 1:
		return c.refuse(left, "field %s has no parts", path[0])
	}
	return c.compareField(e, call.GetFunction(), path[0], index, right)
}

func (c *compiler) compareField(e *expr.Expr, operator, field string, index lexical.Field, right *expr.Expr) error {
	if want := operatorOf(field); operator != want {
		return c.refuse(e, "%s is compared with %s", field, want)
	}
	value, ok := text(right)
	if !ok {
		return c.refuse(right, "%s takes a text in quotes", field)
	}
	if field == "origin" && !isOrigin(value) {
		return c.refuse(right, "origin is one of user, agent, tool, web")
	}
	if value == "" && index == 0 {
		return c.refuse(right, "%s can't be empty", field)
	}
	c.conditions = append(c.conditions, condition{field, index, value})
	return nil
}

func operatorOf(field string) string {
	if field == "tags" {
		return filtering.FunctionHas
	}
	return filtering.FunctionEquals
}

func isOrigin(name string) bool {
	for _, known := range originNames {
		if name == known {
			return true
		}
	}
	return false
}

func (c *compiler) compareMetadata(e *expr.Expr, operator string, names []string, right *expr.Expr) error {
	if operator != filtering.FunctionEquals {
		return c.refuse(e, "metadata is compared with =")
	}
	if len(names) == 0 {
		return c.refuse(e, "metadata needs a path, such as metadata.source")
	}
	path := ""
	for _, name := range names {
		path = metadataPath(path, name)
	}
	value, ok := c.literal(path, right)
	if !ok {
		return c.refuse(right, "metadata takes a text in quotes, a number, true or false")
	}
	c.conditions = append(c.conditions, condition{"metadata", lexical.Metadata, value})
	return nil
}

// literal returns the term of a metadata path with the literal's type and
// value. True and false without quotes are bools.
func (c *compiler) literal(path string, e *expr.Expr) (string, bool) {
	if name := e.GetIdentExpr().GetName(); name == "true" || name == "false" {
		return metadataTerm(path, name == "true")
	}
	if value, ok := text(e); ok {
		return metadataTerm(path, value)
	}
	switch e.GetConstExpr().GetConstantKind().(type) {
	case *expr.Constant_Int64Value, *expr.Constant_DoubleValue:
		return path + "n" + canonicalNumber(c.number(e)), true
	}
	return "", false
}

// number returns a number as it stands in the filter, as the parsed value may
// have lost digits or taken a leading zero for octal.
func (c *compiler) number(e *expr.Expr) string {
	from := c.filter[c.offset(e):]
	negative := strings.HasPrefix(from, "-")
	digits := strings.TrimLeft(from, "-")
	if strings.HasPrefix(digits, "0x") {
		return strconv.FormatInt(e.GetConstExpr().GetInt64Value(), 10)
	}
	end := strings.IndexFunc(digits, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end >= 0 {
		digits = digits[:end]
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// text returns the value of a text with or without quotes.
func text(e *expr.Expr) (string, bool) {
	if ident := e.GetIdentExpr(); ident != nil {
		return ident.GetName(), true
	}
	value, ok := e.GetConstExpr().GetConstantKind().(*expr.Constant_StringValue)
	if !ok {
		return "", false
	}
	return value.StringValue, true
}

// memberPath returns the names of a.b.c, or nil.
func memberPath(e *expr.Expr) []string {
	if ident := e.GetIdentExpr(); ident != nil {
		return []string{ident.GetName()}
	}
	if member := e.GetSelectExpr(); member != nil {
		if parent := memberPath(member.GetOperand()); parent != nil {
			return append(parent, member.GetField())
		}
	}
	return nil
}
