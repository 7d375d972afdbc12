package filter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// Limits of a filter.
const (
	// MaxBytes bounds its text.
	MaxBytes = 4 << 10
	// MaxConditions bounds the conditions of a filter: each reads its own postings.
	MaxConditions = 64
	// MaxDepth bounds how deep parentheses and NOT nest, far above what a person
	// writes.
	MaxDepth = 32
)

const served = "served are id, key, kind, session_id, author, origin, review, text, tags, importance, tier, pinned, archived, version, event_time, create_time, update_time, expire_time, valid_until, superseded_by, import_id, import_changes and metadata"

// Expression is a filter that was read: a tree of conditions that are not tied to a
// scope yet. The zero Expression lets everything through. It is never changed, so it
// is safe for concurrent use.
//
// The language is AIP-160. Conditions are joined by AND, OR, NOT (or -) and
// parentheses. A blank joins as AND does. OR binds tighter than a blank, and a blank
// tighter than AND.
//
//   - key, kind, session_id, author, import_id and superseded_by are compared with = != < <=
//     > >= in the order of code points, id and origin (user, agent, tool, web) with
//     = and !=. Texts other than plain words stand in quotes.
//   - text is compared with = and !=, and text:"disk full" asks whether it holds
//     that, letter by letter.
//   - tags:"red" asks for a tag.
//   - With =, != and : an asterisk in a text stands for zero or more characters
//     (key = "ci*"); "\\*" is an asterisk.
//   - importance, tier, version and import_changes are compared with numbers, pinned with true or
//     false.
//   - event_time, create_time, update_time, expire_time and valid_until are compared with a
//     moment after RFC 3339 or with a day, month or year in UTC as a whole
//     ("2026-03-01", "2026-03", "2026"): = means within it, > after its end.
//   - metadata.a.b is compared with a text, a number without exponent, or true
//     or false; the literal decides the type, and numbers compare exactly.
//     With : it also looks into arrays (metadata.labels:"urgent").
//     Texts such as True and null stand in quotes, and a whole number beyond 64
//     bits has .0 behind it.
//   - field:* asks whether a field is set at all.
//   - = and : take several values: kind = ("note" OR "plan").
//
// What is not set meets no condition, != included; NOT (x = 1) lets it through.
// The != of metadata holds for values of other types. text, superseded_by, version,
// valid_until and update_time are not in the index: the records that the other conditions
// leave are read for them, at most 64 MiB.
type Expression struct {
	join func(...selection.Filter) selection.Filter // of args; nil in a condition
	args []Expression
	leaf binder // of a condition
}

// binder makes the index's form of a condition for one scope and view.
type binder func(context.Context, binding) (selection.Filter, error)

// Bind returns the index's form of the filter for one scope. It reads the
// records that the filter names by id. What it returns may read records later,
// so it is valid as long as the view.
func (f Expression) Bind(ctx context.Context, view kv.Getter, scope kv.Scope) (selection.Filter, error) {
	left := maxVerifiedBytes
	return f.bindTo(ctx, binding{view, scope, &left})
}

func (f Expression) bindTo(ctx context.Context, b binding) (selection.Filter, error) {
	if f.leaf != nil {
		return f.leaf(ctx, b)
	}
	if f.join == nil {
		return selection.Filter{}, nil
	}
	args := make([]selection.Filter, len(f.args))
	for i, arg := range f.args {
		var err error
		if args[i], err = arg.bindTo(ctx, b); err != nil {
			return selection.Filter{}, err
		}
	}
	return f.join(args...), nil
}

// Parse reads a filter, an empty one as one without conditions. What is none is an
// *Error.
func Parse(text string) (Expression, error) {
	if strings.TrimSpace(text) == "" {
		return Expression{}, nil
	}
	if len(text) > MaxBytes {
		return Expression{}, &Error{Filter: text, Problem: fmt.Sprintf("has %d bytes, more than %d", len(text), MaxBytes)}
	}
	var parser filtering.Parser
	parser.Init(text)
	parsed, err := parser.Parse()
	if err != nil {
		return Expression{}, syntaxError(text, err)
	}
	c := compiler{filter: text, positions: parsed.GetSourceInfo().GetPositions()}
	return c.compile(parsed.GetExpr(), c.restriction, 0)
}

// syntaxError keeps the innermost of the parser's errors, which says most.
func syntaxError(filter string, err error) error {
	out := &Error{Filter: filter}
	problem := ""
	for ; err != nil; err = errors.Unwrap(err) {
		at, ok := err.(interface {
			Position() filtering.Position
			Message() string
		})
		if !ok {
			break
		}
		out.Offset = leadingSpace(filter) + int(at.Position().Offset)
		problem = ": " + at.Message()
	}
	if isLongInteger(filter[min(out.Offset, len(filter)):]) {
		problem = ": a whole number beyond 64 bits is written with .0 behind it"
	}
	out.Problem = "does not parse" + problem +
		`; a filter is made of conditions such as kind = "note" or metadata.n > 5, joined by AND, OR, NOT and parentheses`
	return out
}

// isLongInteger reports whether a text begins with more digits than the parser
// takes for a number.
func isLongInteger(text string) bool {
	const longest = 18 // digits that 64 bits always hold
	text = strings.TrimPrefix(text, "-")
	return len(text)-len(strings.TrimLeft(text, "0123456789")) > longest
}

// leadingSpace is how much the parser cuts off, and so how far its positions
// lie before ours.
func leadingSpace(filter string) int {
	return len(filter) - len(strings.TrimLeftFunc(filter, unicode.IsSpace))
}

// compiler converts a parsed filter into conditions.
type compiler struct {
	filter     string
	positions  map[int64]int32
	conditions int
}

func (c *compiler) offset(e *expr.Expr) int {
	return min(leadingSpace(c.filter)+int(c.positions[e.GetId()]), len(c.filter))
}

func (c *compiler) refuse(e *expr.Expr, format string, args ...any) error {
	return &Error{Filter: c.filter, Offset: c.offset(e), Problem: fmt.Sprintf(format, args...)}
}

// compile reads a tree of AND, OR and NOT whose leaves leaf reads.
func (c *compiler) compile(e *expr.Expr, leaf func(*expr.Expr) (Expression, error), depth int) (Expression, error) {
	var f Expression
	operator := e.GetCallExpr().GetFunction()
	switch operator {
	case filtering.FunctionAnd, filtering.FunctionFuzzyAnd: // the second is a blank
		f.join = selection.And
	case filtering.FunctionOr:
		f.join = selection.Or
	case filtering.FunctionNot:
		f.join = func(args ...selection.Filter) selection.Filter { return selection.Not(args[0]) }
	default:
		return leaf(e)
	}
	if depth == MaxDepth {
		return Expression{}, c.refuse(e, "nests deeper than %d levels", MaxDepth)
	}
	for _, operand := range operands(nil, e, operator) {
		arg, err := c.compile(operand, leaf, depth+1)
		if err != nil {
			return Expression{}, err
		}
		f.args = append(f.args, arg)
	}
	return f, nil
}

// operands returns what AND or OR joins: a AND b AND c has three operands on
// one level, not two levels. A NOT has one.
func operands(dst []*expr.Expr, e *expr.Expr, operator string) []*expr.Expr {
	for _, arg := range e.GetCallExpr().GetArgs() {
		if operator != filtering.FunctionNot && arg.GetCallExpr().GetFunction() == operator {
			dst = operands(dst, arg, operator)
			continue
		}
		dst = append(dst, arg)
	}
	return dst
}

// restriction reads a field, an operator and a value, or several values joined
// in parentheses.
func (c *compiler) restriction(e *expr.Expr) (Expression, error) {
	call := e.GetCallExpr()
	if call == nil {
		return Expression{}, c.refuse(e, "a condition needs a field, an operator such as = or :, and a value; a text of several words stands in quotes, and words to look for belong into the query")
	}
	if !isOperator(call.GetFunction()) || len(call.GetArgs()) != 2 {
		return Expression{}, c.refuse(e, "function %s is not served", call.GetFunction())
	}
	left, right := call.GetArgs()[0], call.GetArgs()[1]
	field, err := c.field(left)
	if err != nil {
		return Expression{}, err
	}
	field.operator = call.GetFunction()
	each := func(value *expr.Expr) (Expression, error) { return c.condition(e, field, value) }
	switch right.GetCallExpr().GetFunction() {
	case filtering.FunctionAnd, filtering.FunctionOr, filtering.FunctionNot, filtering.FunctionFuzzyAnd:
		if field.operator != filtering.FunctionEquals && field.operator != filtering.FunctionHas {
			return Expression{}, c.refuse(right, "several values in parentheses are served with = and : only")
		}
		return c.compile(right, each, 0)
	}
	return each(right)
}

// isOrder reports whether an operator compares by order.
func isOrder(operator string) bool {
	switch operator {
	case filtering.FunctionLessThan, filtering.FunctionLessEquals,
		filtering.FunctionGreaterThan, filtering.FunctionGreaterEquals:
		return true
	}
	return false
}

func isOperator(function string) bool {
	switch function {
	case filtering.FunctionEquals, filtering.FunctionNotEquals, filtering.FunctionHas:
		return true
	}
	return isOrder(function)
}

// condition reads one value and makes a condition of it.
func (c *compiler) condition(e *expr.Expr, field field, value *expr.Expr) (Expression, error) {
	if c.conditions++; c.conditions > MaxConditions {
		return Expression{}, c.refuse(e, "has more than %d conditions", MaxConditions)
	}
	if !field.serves(field.operator) {
		return Expression{}, c.refuse(e, "%s is compared with %s", field.name, field.kind.operators())
	}
	literal, ok := c.literal(value)
	if !ok {
		return Expression{}, c.refuse(value, "%s takes %s", field.name, field.kind.literals())
	}
	leaf, problem := field.binder(literal)
	if problem != "" {
		return Expression{}, c.refuse(value, "%s %s", field.name, problem)
	}
	return Expression{leaf: leaf}, nil
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
