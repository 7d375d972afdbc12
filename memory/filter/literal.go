package filter

import (
	"strconv"
	"strings"
	"time"

	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

// literalKind is what a value of a filter looks like.
type literalKind uint8

const (
	textLiteral literalKind = iota + 1
	numberLiteral
	boolLiteral
	anyLiteral // an asterisk without quotes
)

// literal is a value of a filter.
type literal struct {
	kind literalKind
	text string // of a number its canonical form
	bare bool   // a text without quotes
}

// misleads reports whether a text without quotes looks like something else, so that
// its writer hardly meant the text.
func (l literal) misleads() bool {
	switch strings.ToLower(l.text) {
	case "true", "false", "null", "none", "nil":
		return l.bare
	}
	return l.bare && strings.HasPrefix(l.text, "+")
}

// literal reads a value. True, false and * without quotes are no texts.
func (c *compiler) literal(e *expr.Expr) (literal, bool) {
	if call := e.GetCallExpr(); call != nil {
		if call.GetFunction() != filtering.FunctionTimestamp || len(call.GetArgs()) != 1 {
			return literal{}, false
		}
		value, ok := call.GetArgs()[0].GetConstExpr().GetConstantKind().(*expr.Constant_StringValue)
		if !ok {
			return literal{}, false
		}
		return literal{kind: textLiteral, text: value.StringValue}, true
	}
	if name := e.GetIdentExpr().GetName(); name != "" {
		return c.bare(e, name), true
	}
	switch value := e.GetConstExpr().GetConstantKind().(type) {
	case *expr.Constant_StringValue:
		return c.bare(e, value.StringValue), true
	case *expr.Constant_Int64Value, *expr.Constant_DoubleValue:
		return literal{kind: numberLiteral, text: record.CanonicalNumber(c.number(e))}, true
	}
	return literal{}, false
}

// bare reads a text that may stand without quotes. After a colon the parser
// makes a constant of it all the same, so the filter itself must decide.
func (c *compiler) bare(e *expr.Expr, text string) literal {
	quoted := strings.HasPrefix(c.filter[c.offset(e):], `"`) || strings.HasPrefix(c.filter[c.offset(e):], `'`)
	switch {
	case quoted:
	case text == "*":
		return literal{kind: anyLiteral}
	case text == "true" || text == "false":
		return literal{kind: boolLiteral, text: text}
	}
	return literal{kind: textLiteral, text: text, bare: !quoted}
}

// number returns a number as it stands in the filter, as the parsed value may
// have lost digits or taken a leading zero for octal.
func (c *compiler) number(e *expr.Expr) string {
	from := c.filter[c.offset(e):]
	digits := strings.TrimLeft(from, "-")
	if strings.HasPrefix(digits, "0x") {
		return strconv.FormatInt(e.GetConstExpr().GetInt64Value(), 10)
	}
	end := strings.IndexFunc(digits, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end >= 0 {
		digits = digits[:end]
	}
	if strings.HasPrefix(from, "-") {
		return "-" + digits
	}
	return digits
}

// interval is a stretch of a column's numbers, from included and to not.
type interval struct{ from, to int64 }

// accepts reports whether a number stands to the interval as the operator says.
func (s interval) accepts(n int64, operator string) bool {
	switch operator {
	case filtering.FunctionNotEquals:
		return n < s.from || n >= s.to
	case filtering.FunctionLessThan:
		return n < s.from
	case filtering.FunctionLessEquals:
		return n < s.to
	case filtering.FunctionGreaterThan:
		return n >= s.to
	case filtering.FunctionGreaterEquals:
		return n >= s.from
	}
	return n >= s.from && n < s.to
}

// timeSpan reads a moment after RFC 3339, or a day, a month or a year in UTC,
// in microseconds. A moment between two microseconds is an empty interval.
func timeInterval(text string) (interval, bool) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		from := t.UnixMicro()
		if t.Nanosecond()%int(time.Microsecond) != 0 {
			return interval{from + 1, from + 1}, true
		}
		return interval{from, from + 1}, true
	}
	for layout, next := range map[string][3]int{"2006-01-02": {0, 0, 1}, "2006-01": {0, 1, 0}, "2006": {1, 0, 0}} {
		if t, err := time.Parse(layout, text); err == nil {
			return interval{t.UnixMicro(), t.AddDate(next[0], next[1], next[2]).UnixMicro()}, true
		}
	}
	return interval{}, false
}
