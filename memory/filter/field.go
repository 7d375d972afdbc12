package filter

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// fieldKind is what a field holds.
type fieldKind uint8

const (
	idField fieldKind = iota + 1
	textField
	originField
	reviewField
	tagsField
	numberField
	boolField
	timeField
	metadataField
	// contentField is a text that the index has the words of alone.
	contentField
)

const (
	equality = "= != "
	order    = "< <= > >= "
	presence = ":* "
)

// operators lists what a field of the kind is compared with.
func (k fieldKind) operators() string {
	switch k {
	case idField, originField, reviewField, boolField:
		return equality + "and " + presence[:2]
	case tagsField:
		return ":"
	case contentField:
		return equality + "and :"
	case metadataField:
		return equality + order + "and :"
	}
	return equality + order + "and " + presence[:2]
}

// literals says what a field of the kind takes as a value.
func (k fieldKind) literals() string {
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

// field is the left side of a condition.
type field struct {
	name     string
	kind     fieldKind
	index    segment.Field              // of a text
	column   selection.Column           // of a number, bool or time
	of       func(record.Record) string // of a text
	interval func(float64) interval     // of a number
	path     []string                   // of metadata
	operator string
	// Of what the index does not have: where is what to look through, everything
	// unless it is set, and stored reads a number or a time, false where there is none.
	where  selection.Filter
	stored func(record.Record) (int64, bool)
}

// fields are the fields other than metadata. It is never changed.
var fields = map[string]field{
	"id":          {kind: idField},
	"key":         {kind: textField, index: segment.Key, of: func(r record.Record) string { return r.Key }},
	"kind":        {kind: textField, index: segment.Kind, of: func(r record.Record) string { return r.Kind }},
	"session_id":  {kind: textField, index: segment.Session, of: func(r record.Record) string { return r.SessionID }},
	"import_id":   {kind: textField, index: segment.Import, of: func(r record.Record) string { return r.ImportID }},
	"author":      {kind: textField, index: segment.Author, of: func(r record.Record) string { return r.Author }},
	"origin":      {kind: originField, index: segment.Origin},
	"review":      {kind: reviewField, index: segment.Review},
	"tags":        {kind: tagsField, index: segment.Tag},
	"importance":  {kind: numberField, column: selection.Importance, interval: importanceInterval},
	"tier":        {kind: numberField, column: selection.Tier, interval: integerInterval},
	"pinned":      {kind: boolField, column: selection.Pinned},
	"archived":    {kind: boolField, column: selection.IsArchived},
	"event_time":  {kind: timeField, column: selection.EventTime},
	"create_time": {kind: timeField, column: selection.CreateTime},
	"expire_time": {kind: timeField, column: selection.ExpireTime},
	"text":        {kind: contentField, of: func(r record.Record) string { return r.Text }},
	"superseded_by": {
		kind: textField, of: func(r record.Record) string { return r.SupersededBy },
		where: selection.Between(selection.IsSuperseded, 1, 1),
	},
	"valid_until": {
		kind: timeField, where: selection.Matching(segment.ValidUntil, "", nil, nil),
		stored: func(r record.Record) (int64, bool) { return r.ValidUntil.UnixMicro(), !r.ValidUntil.IsZero() },
	},
	"version": {kind: numberField, interval: integerInterval, stored: func(r record.Record) (int64, bool) { return r.Version, true }},
	"import_changes": {
		kind: numberField, interval: integerInterval, where: selection.Matching(segment.Import, "", nil, nil),
		stored: func(r record.Record) (int64, bool) { return r.Version - r.ImportVersion, r.ImportID != "" },
	},
	"update_time": {kind: timeField, stored: func(r record.Record) (int64, bool) {
		return r.UpdateTime.UnixMicro(), !r.UpdateTime.IsZero()
	}},
}

// field reads the left side of a condition.
func (c *compiler) field(left *expr.Expr) (field, error) {
	path := memberPath(left)
	if len(path) == 0 {
		return field{}, c.refuse(left, "a condition begins with a field; %s", served)
	}
	if path[0] == "metadata" {
		return field{name: "metadata", kind: metadataField, path: path[1:]}, nil
	}
	f, known := fields[path[0]]
	switch {
	case !known:
		return field{}, c.refuse(left, "field %.64q is unknown; %s", path[0], served)
	case len(path) > 1:
		return field{}, c.refuse(left, "field %s has no parts", path[0])
	}
	f.name = path[0]
	return f, nil
}

func (f field) serves(operator string) bool {
	switch operator {
	case filtering.FunctionEquals, filtering.FunctionNotEquals:
		return f.kind != tagsField
	case filtering.FunctionHas:
		return true
	}
	switch f.kind {
	case idField, originField, reviewField, boolField, tagsField, contentField:
		return false
	}
	return true
}

// binder makes a condition of the field and a value, or says what is wrong.
func (f field) binder(value literal) (leaf binder, problem string) {
	if f.kind == metadataField {
		return f.metadata(value)
	}
	if f.operator == filtering.FunctionHas && value.kind == anyLiteral {
		return f.present(), ""
	}
	if f.operator == filtering.FunctionHas && f.kind != tagsField && f.kind != contentField {
		return nil, "is compared with " + f.kind.operators()
	}
	switch f.kind {
	case numberField:
		return f.number(value)
	case timeField:
		s, ok := timeInterval(value.text)
		if value.kind != textLiteral || !ok {
			return nil, "takes " + f.kind.literals()
		}
		return f.between(s), ""
	case boolField:
		return f.bool(value)
	}
	if value.kind != textLiteral {
		return nil, "takes " + f.kind.literals()
	}
	return f.text(value.text)
}

// fixed is a condition that is the same in every scope.
func fixed(f selection.Filter) binder {
	return func(context.Context, binding) (selection.Filter, error) { return f, nil }
}

// present asks whether the field is set.
func (f field) present() binder {
	switch {
	case f.kind == idField, f.kind == contentField:
		return fixed(selection.Filter{})
	case f.stored != nil:
		return f.asked(func(r record.Record) bool { _, ok := f.stored(r); return ok })
	case f.index == 0 && f.column == 0:
		return f.asked(func(r record.Record) bool { return f.of(r) != "" })
	case f.column != 0:
		return fixed(selection.Between(f.column, math.MinInt64, math.MaxInt64))
	}
	return fixed(selection.Matching(f.index, "", nil, nil))
}

// asked is a condition that only the records themselves can decide.
func (f field) asked(accept func(record.Record) bool) binder {
	return func(_ context.Context, b binding) (selection.Filter, error) {
		return selection.Verified(f.where, b.verifier(accept)), nil
	}
}

// text compares a text, an id, an origin or a tag.
func (f field) text(value string) (binder, string) {
	switch {
	case f.kind == originField && !slices.Contains(slices.Collect(maps.Values(record.OriginNames)), value):
		return nil, "is one of user, agent, tool, web"
	case f.kind == reviewField && !slices.Contains(slices.Collect(maps.Values(record.ReviewNames)), value):
		return nil, "is one of held, approved, rejected"
	case f.kind == idField && value == "":
		return nil, "can't be empty"
	}
	switch f.operator {
	case filtering.FunctionEquals, filtering.FunctionHas, filtering.FunctionNotEquals:
		return f.like(patternOf(value)), ""
	}
	accept := accepts(f.operator)
	such := func(r record.Record) bool {
		own := f.of(r)
		return own != "" && accept(strings.Compare(own, value))
	}
	if f.index == 0 {
		return f.asked(such), ""
	}
	return func(_ context.Context, b binding) (selection.Filter, error) {
		return selection.Matching(f.index, "", textTest(value, accept), b.verifier(such)), nil
	}, ""
}

// like compares a text with one in which asterisks may stand for any characters.
func (f field) like(p pattern) binder {
	differs := f.operator == filtering.FunctionNotEquals
	switch {
	case f.kind == idField:
		return f.id(p)
	case f.kind == contentField && f.operator == filtering.FunctionHas:
		return f.asked(func(r record.Record) bool { return slices.Concat(pattern{""}, p, pattern{""}).matches(f.of(r)) })
	case f.index == 0:
		return f.asked(func(r record.Record) bool { return f.of(r) != "" && p.matches(f.of(r)) != differs })
	}
	if whole, ok := p.exact(); ok {
		return fixed(f.unless(differs, selection.Has(f.index, whole)))
	}
	return func(_ context.Context, b binding) (selection.Filter, error) {
		verify := b.verifier(func(r record.Record) bool {
			if f.kind == tagsField {
				return slices.ContainsFunc(r.Tags, p.matches)
			}
			return f.of(r) != "" && p.matches(f.of(r))
		})
		begin := p.begins(segment.MaxTermBytes)
		found := selection.Matching(f.index, begin, p.test(begin), verify)
		if begin != "" {
			// Long values are kept as digests, which begin as nothing does.
			found = selection.Or(found, selection.Matching(f.index, segment.DigestMark, func(string) selection.Match { return selection.Unsure }, verify))
		}
		return f.unless(differs, found), nil
	}
}

// unless negates a condition on a text, for records that have one.
func (f field) unless(differs bool, found selection.Filter) selection.Filter {
	if !differs {
		return found
	}
	return selection.And(selection.Matching(f.index, "", nil, nil), selection.Not(found))
}

// id compares the id: the record that has it is looked up, and of a pattern every
// id.
func (f field) id(p pattern) binder {
	return func(ctx context.Context, b binding) (selection.Filter, error) {
		only := selection.Verified(selection.Filter{}, func(_ context.Context, ids []string) ([]bool, error) {
			such := make([]bool, len(ids))
			for i, id := range ids {
				such[i] = p.matches(id)
			}
			return such, nil
		})
		if value, ok := p.exact(); ok {
			ordinal, err := b.ordinal(ctx, value)
			if err != nil {
				return selection.Filter{}, err
			}
			only = selection.Only(ordinal)
		}
		if f.operator == filtering.FunctionNotEquals {
			only = selection.Not(only)
		}
		return only, nil
	}
}

func (f field) number(value literal) (binder, string) {
	if value.kind != numberLiteral {
		return nil, "takes " + f.kind.literals()
	}
	// A number so long that it isn't one for a machine lies beyond all that
	// these columns hold; ParseFloat then gives an infinity of the right sign.
	number, _ := strconv.ParseFloat(value.text, 64)
	return f.between(f.interval(number)), ""
}

func (f field) bool(value literal) (binder, string) {
	if value.kind != boolLiteral {
		return nil, "takes " + f.kind.literals()
	}
	want := int64(0)
	if value.text == "true" {
		want = 1
	}
	return f.between(interval{want, want + 1}), ""
}

// importanceInterval is where an importance stands among the others.
func importanceInterval(importance float64) interval {
	switch {
	case importance < 0:
		return interval{-1, -1}
	case importance > 1:
		return interval{math.MaxInt64, math.MaxInt64}
	}
	rank := selection.ImportanceRank(importance)
	return interval{rank, rank + 1}
}

// integerInterval is where a number stands among whole numbers.
func integerInterval(number float64) interval {
	const beyond = 1 << 53 // every count
	number = max(-beyond, min(beyond, number))
	return interval{int64(math.Ceil(number)), int64(math.Floor(number)) + 1}
}

// between compares a column, or what the records have, with an interval.
func (f field) between(in interval) binder {
	if f.stored != nil {
		return f.asked(func(r record.Record) bool {
			own, ok := f.stored(r)
			return ok && in.accepts(own, f.operator)
		})
	}
	between := func(from, to int64) selection.Filter { return selection.Between(f.column, from, to) }
	below, least, above, most := in.from-1, int64(math.MinInt64), in.to, int64(math.MaxInt64)
	switch f.operator {
	case filtering.FunctionNotEquals:
		return fixed(selection.Or(between(least, below), between(above, most)))
	case filtering.FunctionLessThan:
		return fixed(between(least, below))
	case filtering.FunctionLessEquals:
		return fixed(between(least, in.to-1))
	case filtering.FunctionGreaterThan:
		return fixed(between(above, most))
	case filtering.FunctionGreaterEquals:
		return fixed(between(in.from, most))
	}
	return fixed(between(in.from, in.to-1))
}
