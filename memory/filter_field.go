package memory

import (
	"context"
	"math"
	"strconv"
	"strings"

	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// filterKind is what a field holds.
type filterKind uint8

const (
	idField filterKind = iota + 1
	textField
	originField
	tagsField
	numberField
	boolField
	timeField
	metadataField
)

const (
	equality = "= != "
	order    = "< <= > >= "
	presence = ":* "
)

// operators lists what a field of the kind is compared with.
func (k filterKind) operators() string {
	switch k {
	case idField, originField, boolField:
		return equality + "and " + presence[:2]
	case tagsField:
		return ":"
	case metadataField:
		return equality + order + "and :"
	}
	return equality + order + "and " + presence[:2]
}

// literals says what a field of the kind takes as a value.
func (k filterKind) literals() string {
	switch k {
	case numberField:
		return "a number"
	case boolField:
		return "true or false"
	case timeField:
		return `a time in quotes, such as "2026-03-01T12:00:00Z" or "2026-03-01"`
	case metadataField:
		return "a text in quotes, a number without exponent, true or false"
	}
	return "a text in quotes"
}

// filterField is the left side of a condition.
type filterField struct {
	name     string
	kind     filterKind
	index    lexical.Field       // of a text
	column   lexical.Column      // of a number, bool or time
	of       func(Record) string // of a text
	span     func(float64) span  // of a number
	path     []string            // of metadata
	operator string
}

// filterFields are the fields beside metadata. It is never changed.
var filterFields = map[string]filterField{
	"id":          {kind: idField},
	"key":         {kind: textField, index: lexical.Key, of: func(r Record) string { return r.Key }},
	"kind":        {kind: textField, index: lexical.Kind, of: func(r Record) string { return r.Kind }},
	"session_id":  {kind: textField, index: lexical.Session, of: func(r Record) string { return r.SessionID }},
	"author":      {kind: textField, index: lexical.Author, of: func(r Record) string { return r.Author }},
	"origin":      {kind: originField, index: lexical.Origin},
	"tags":        {kind: tagsField, index: lexical.Tag},
	"importance":  {kind: numberField, column: lexical.Importance, span: importanceSpan},
	"tier":        {kind: numberField, column: lexical.Tier, span: wholeSpan},
	"pinned":      {kind: boolField, column: lexical.Pinned},
	"event_time":  {kind: timeField, column: lexical.EventTime},
	"create_time": {kind: timeField, column: lexical.CreateTime},
	"expire_time": {kind: timeField, column: lexical.ExpireTime},
}

// field reads the left side of a condition.
func (c *compiler) field(left *expr.Expr) (filterField, error) {
	path := memberPath(left)
	if len(path) == 0 {
		return filterField{}, c.refuse(left, "a condition begins with a field; %s", served)
	}
	if path[0] == "metadata" {
		return filterField{name: "metadata", kind: metadataField, path: path[1:]}, nil
	}
	field, known := filterFields[path[0]]
	switch {
	case !known:
		return filterField{}, c.refuse(left, "field %.64q is unknown; %s", path[0], served)
	case len(path) > 1:
		return filterField{}, c.refuse(left, "field %s has no parts", path[0])
	}
	field.name = path[0]
	return field, nil
}

func (f filterField) serves(operator string) bool {
	switch operator {
	case filtering.FunctionEquals, filtering.FunctionNotEquals:
		return f.kind != tagsField
	case filtering.FunctionHas:
		return true
	}
	return f.kind != idField && f.kind != originField && f.kind != boolField && f.kind != tagsField
}

// binder makes a condition of the field and a value, or says what is wrong.
func (f filterField) binder(value literal) (leaf binder, problem string) {
	if f.kind == metadataField {
		return f.metadata(value)
	}
	if f.operator == filtering.FunctionHas && value.kind == anyLiteral {
		return f.present(), ""
	}
	if f.operator == filtering.FunctionHas && f.kind != tagsField {
		return nil, "is compared with " + f.kind.operators()
	}
	switch f.kind {
	case numberField:
		return f.number(value)
	case timeField:
		return f.time(value)
	case boolField:
		return f.bool(value)
	}
	if value.kind != textLiteral {
		return nil, "takes " + f.kind.literals()
	}
	return f.text(value.text)
}

// fixed is a condition that is the same in every scope.
func fixed(f lexical.Filter) binder {
	return func(context.Context, binding) (lexical.Filter, error) { return f, nil }
}

// present asks whether the field is set.
func (f filterField) present() binder {
	switch {
	case f.kind == idField:
		return fixed(lexical.Filter{})
	case f.column != 0:
		return fixed(lexical.Between(f.column, math.MinInt64, math.MaxInt64))
	}
	return fixed(lexical.Matching(f.index, "", nil, nil))
}

// text compares a text, an id, an origin or a tag.
func (f filterField) text(value string) (binder, string) {
	switch {
	case f.kind == originField && !isOrigin(value):
		return nil, "is one of user, agent, tool, web"
	case f.kind == idField && value == "":
		return nil, "can't be empty"
	case f.kind == idField:
		return f.id(value), ""
	}
	switch has := lexical.Has(f.index, value); f.operator {
	case filtering.FunctionEquals, filtering.FunctionHas:
		return fixed(has), ""
	case filtering.FunctionNotEquals:
		return fixed(lexical.And(lexical.Matching(f.index, "", nil, nil), lexical.Not(has))), ""
	}
	accept := accepts(f.operator)
	return func(_ context.Context, b binding) (lexical.Filter, error) {
		return lexical.Matching(f.index, "", textTest(value, accept), b.verifier(func(r Record) bool {
			own := f.of(r)
			return own != "" && accept(strings.Compare(own, value))
		})), nil
	}, ""
}

// id compares the id: the record that has it is looked up.
func (f filterField) id(value string) binder {
	return func(ctx context.Context, b binding) (lexical.Filter, error) {
		ordinal, err := b.ordinal(ctx, value)
		if err != nil {
			return lexical.Filter{}, err
		}
		only := lexical.Only(ordinal)
		if f.operator == filtering.FunctionNotEquals {
			only = lexical.Not(only)
		}
		return only, nil
	}
}

func isOrigin(name string) bool {
	for _, known := range originNames {
		if name == known {
			return true
		}
	}
	return false
}

func (f filterField) number(value literal) (binder, string) {
	if value.kind != numberLiteral {
		return nil, "takes " + f.kind.literals()
	}
	// A number so long that it isn't one for a machine lies beyond all that
	// these columns hold; ParseFloat then gives an infinity of the right sign.
	number, _ := strconv.ParseFloat(value.text, 64)
	return f.within(f.span(number)), ""
}

func (f filterField) time(value literal) (binder, string) {
	s, ok := timeSpan(value.text)
	if value.kind != textLiteral || !ok {
		return nil, "takes " + f.kind.literals()
	}
	return f.within(s), ""
}

func (f filterField) bool(value literal) (binder, string) {
	if value.kind != boolLiteral {
		return nil, "takes " + f.kind.literals()
	}
	want := int64(0)
	if value.text == "true" {
		want = 1
	}
	return f.within(span{want, want + 1}), ""
}

// importanceSpan is where an importance stands among the others.
func importanceSpan(importance float64) span {
	switch {
	case importance < 0:
		return span{-1, -1}
	case importance > 1:
		return span{math.MaxInt64, math.MaxInt64}
	}
	rank := lexical.ImportanceRank(importance)
	return span{rank, rank + 1}
}

// wholeSpan is where a number stands among small whole numbers.
func wholeSpan(number float64) span {
	const beyond = 1 << 10 // every tier
	number = max(-beyond, min(beyond, number))
	return span{int64(math.Ceil(number)), int64(math.Floor(number)) + 1}
}

// within compares a column with a span.
func (f filterField) within(s span) binder {
	between := func(from, to int64) lexical.Filter { return lexical.Between(f.column, from, to) }
	below, least, above, most := s.from-1, int64(math.MinInt64), s.to, int64(math.MaxInt64)
	switch f.operator {
	case filtering.FunctionNotEquals:
		return fixed(lexical.Or(between(least, below), between(above, most)))
	case filtering.FunctionLessThan:
		return fixed(between(least, below))
	case filtering.FunctionLessEquals:
		return fixed(between(least, s.to-1))
	case filtering.FunctionGreaterThan:
		return fixed(between(above, most))
	case filtering.FunctionGreaterEquals:
		return fixed(between(s.from, most))
	}
	return fixed(between(s.from, s.to-1))
}
