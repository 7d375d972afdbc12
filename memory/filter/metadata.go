package filter

import (
	"context"
	"fmt"
	"strings"

	"go.einride.tech/aip/filtering"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// metadata makes a condition on a metadata path. The literal decides the type.
func (f field) metadata(value literal) (binder, string) {
	has := f.operator == filtering.FunctionHas
	if len(f.path) == 0 {
		switch {
		case f.operator == filtering.FunctionHas && value.kind == anyLiteral:
			return fixed(selection.Matching(segment.Metadata, "", nil, nil)), ""
		case f.operator == filtering.FunctionHas && value.kind == textLiteral:
			return fixed(selection.Matching(segment.Metadata, record.MetadataPath("", value.text), nil, nil)), ""
		}
		return nil, "needs a path, such as metadata.source"
	}
	path := ""
	for _, name := range f.path {
		path = record.MetadataPath(path, name)
	}
	if value.kind == anyLiteral {
		if !has {
			return nil, "is asked for with metadata." + strings.Join(f.path, ".") + ":*"
		}
		return fixed(selection.Matching(segment.Metadata, path, nil, nil)), ""
	}
	if value.misleads() {
		return nil, fmt.Sprintf("takes true, false, a number without sign +, or a text in quotes, not %.16s; null counts as not set", value.text)
	}
	want := record.MetadataValue{Path: path, Kind: value.metadataKind(), Text: value.text}
	if p := patternOf(value.text); value.kind == textLiteral && !isOrder(f.operator) {
		whole, ok := p.exact()
		if !ok {
			return f.metadataLike(path, p), ""
		}
		want.Text = whole
	}
	switch equals := selection.Has(segment.Metadata, want.Term()); f.operator {
	case filtering.FunctionEquals:
		return fixed(equals), ""
	case filtering.FunctionNotEquals:
		return fixed(selection.And(scalarAt(path), selection.Not(equals))), ""
	case filtering.FunctionHas:
		return contains(want, equals), ""
	}
	if value.kind == boolLiteral {
		return nil, "has no order of true and false; they are compared with = != and :"
	}
	return f.ranged(want), ""
}

func (l literal) metadataKind() record.MetadataKind {
	switch l.kind {
	case numberLiteral:
		return record.MetadataNumber
	case boolLiteral:
		return record.MetadataBool
	}
	return record.MetadataText
}

// scalarAt asks for a text, number or bool at the path, of any value.
func scalarAt(path string) selection.Filter {
	var kinds []selection.Filter
	for _, kind := range []record.MetadataKind{record.MetadataText, record.MetadataNumber, record.MetadataBool} {
		kinds = append(kinds, selection.Matching(segment.Metadata, path+string([]byte{byte(kind)}), nil, nil))
	}
	return selection.Or(kinds...)
}

// metadataLike compares the text at the path with one in which asterisks may stand
// for any characters.
func (f field) metadataLike(path string, p pattern) binder {
	return func(_ context.Context, b binding) (selection.Filter, error) {
		verify := b.verifier(func(r record.Record) bool {
			return hasMetadata(r, func(v record.MetadataValue) bool {
				alone := f.operator == filtering.FunctionHas || !v.InArray
				return v.Path == path && v.Kind == record.MetadataText && alone && p.matches(v.Text)
			})
		})
		like := func(kind record.MetadataKind) selection.Filter {
			begin := p.begins(leastKeptBytes)
			return selection.Matching(segment.Metadata, path+string([]byte{byte(kind)})+begin, p.test(begin), verify)
		}
		switch f.operator {
		case filtering.FunctionNotEquals:
			return selection.And(scalarAt(path), selection.Not(like(record.MetadataText))), nil
		case filtering.FunctionHas:
			return selection.Or(like(record.MetadataText), like(record.ElementText), selection.Verified(selection.Has(segment.Metadata, manyAt(path)), verify)), nil
		}
		return like(record.MetadataText), nil
	}
}

// leastKeptBytes is what the term of a text has of it at least, however long its
// path is.
const leastKeptBytes = 8

// manyAt is the term of an array that has more elements than are terms.
func manyAt(path string) string {
	return record.MetadataValue{Path: path, Kind: record.MetadataGroup, Text: record.ManyElements}.Term()
}

// contains asks for a value at the path, or in an array there.
func contains(want record.MetadataValue, equals selection.Filter) binder {
	element := want
	element.InArray = true
	return func(_ context.Context, b binding) (selection.Filter, error) {
		return selection.Or(equals,
			selection.Has(segment.Metadata, element.Term()),
			selection.Verified(selection.Has(segment.Metadata, manyAt(want.Path)), b.verifier(func(r record.Record) bool {
				return hasMetadata(r, func(v record.MetadataValue) bool {
					return v.Path == want.Path && v.Kind == want.Kind && v.Text == want.Text
				})
			}))), nil
	}
}

// ranged compares a text or number at the path.
func (f field) ranged(want record.MetadataValue) binder {
	accept := accepts(f.operator)
	test := textTest(want.Text, accept)
	compare := func(own string) int { return strings.Compare(own, want.Text) }
	if want.Kind == record.MetadataNumber {
		test = numberTest(want.Text, accept)
		number := record.ParseDecimal(want.Text)
		compare = func(own string) int { return record.ParseDecimal(own).Compare(number) }
	}
	prefix := want.Path + string([]byte{byte(want.Kind)})
	return func(_ context.Context, b binding) (selection.Filter, error) {
		return selection.Matching(segment.Metadata, prefix, test, b.verifier(func(r record.Record) bool {
			return hasMetadata(r, func(v record.MetadataValue) bool {
				return v.Path == want.Path && v.Kind == want.Kind && !v.InArray && accept(compare(v.Text))
			})
		})), nil
	}
}

// hasMetadata reports whether one of the metadata's values is such.
func hasMetadata(r record.Record, such func(record.MetadataValue) bool) bool {
	found := false
	// What is stored was checked when it was saved.
	_ = record.WalkMetadata(r.Metadata, func(v record.MetadataValue) { found = found || such(v) })
	return found
}

// accepts returns what a comparison must give for the operator.
func accepts(operator string) func(int) bool {
	switch operator {
	case filtering.FunctionLessThan:
		return func(c int) bool { return c < 0 }
	case filtering.FunctionLessEquals:
		return func(c int) bool { return c <= 0 }
	case filtering.FunctionGreaterThan:
		return func(c int) bool { return c > 0 }
	}
	return func(c int) bool { return c >= 0 }
}

func matches(ok bool) selection.Match {
	if ok {
		return selection.Yes
	}
	return selection.No
}

// textTest compares what a term keeps of a text with the operand, by code
// point. A cut text is longer than what is kept.
func textTest(operand string, accept func(int) bool) func(string) selection.Match {
	return func(rest string) selection.Match {
		kept, whole := record.CutValue(rest)
		switch {
		case whole:
			return matches(accept(strings.Compare(kept, operand)))
		case len(operand) > len(kept) && strings.HasPrefix(operand, kept):
			return selection.Unsure
		case strings.HasPrefix(kept, operand):
			return matches(accept(1))
		}
		return matches(accept(strings.Compare(kept, operand)))
	}
}

// numberTest compares a canonical number with the operand. One that was cut
// has lost its exponent.
func numberTest(operand string, accept func(int) bool) func(string) selection.Match {
	number := record.ParseDecimal(operand)
	return func(rest string) selection.Match {
		if _, whole := record.CutValue(rest); !whole {
			return selection.Unsure
		}
		return matches(accept(record.ParseDecimal(rest).Compare(number)))
	}
}
