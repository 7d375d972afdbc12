package memory

import (
	"context"
	"fmt"
	"strings"

	"go.einride.tech/aip/filtering"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// metadata makes a condition on a metadata path. The literal decides the type.
func (f filterField) metadata(value literal) (binder, string) {
	has := f.operator == filtering.FunctionHas
	if len(f.path) == 0 {
		return f.member(value)
	}
	path := pathOf(f.path)
	if value.kind == anyLiteral {
		if !has {
			return nil, "is asked for with metadata." + strings.Join(f.path, ".") + ":*"
		}
		return fixed(selection.Matching(segment.Metadata, path, nil, nil)), ""
	}
	if value.misleads() {
		return nil, fmt.Sprintf("takes true, false, a number without sign +, or a text in quotes, and %.16s is none of these; what is null is not set", value.text)
	}
	want := metadataValue{path: path, kind: value.metadataKind(), text: value.text}
	if p := patternOf(value.text); value.kind == textLiteral && !isOrder(f.operator) {
		whole, ok := p.exact()
		if !ok {
			return f.metadataLike(path, p), ""
		}
		want.text = whole
	}
	switch equals := selection.Has(segment.Metadata, want.term()); f.operator {
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

// member asks whether the metadata have a name, or any.
func (f filterField) member(value literal) (binder, string) {
	switch {
	case f.operator == filtering.FunctionHas && value.kind == anyLiteral:
		return fixed(selection.Matching(segment.Metadata, "", nil, nil)), ""
	case f.operator == filtering.FunctionHas && value.kind == textLiteral:
		return fixed(selection.Matching(segment.Metadata, metadataPath("", value.text), nil, nil)), ""
	}
	return nil, "needs a path, such as metadata.source"
}

func (l literal) metadataKind() metadataKind {
	switch l.kind {
	case numberLiteral:
		return metadataNumber
	case boolLiteral:
		return metadataBool
	}
	return metadataText
}

// scalarAt asks for a text, number or bool at the path, of any value.
func scalarAt(path string) selection.Filter {
	var kinds []selection.Filter
	for _, kind := range []metadataKind{metadataText, metadataNumber, metadataBool} {
		kinds = append(kinds, selection.Matching(segment.Metadata, path+string([]byte{byte(kind)}), nil, nil))
	}
	return selection.Or(kinds...)
}

// metadataLike compares the text at the path with one in which asterisks may stand
// for any characters.
func (f filterField) metadataLike(path string, p pattern) binder {
	return func(_ context.Context, b binding) (selection.Filter, error) {
		verify := b.verifier(func(r Record) bool {
			return r.hasMetadata(func(v metadataValue) bool {
				alone := f.operator == filtering.FunctionHas || !v.inArray
				return v.path == path && v.kind == metadataText && alone && p.matches(v.text)
			})
		})
		like := func(kind metadataKind) selection.Filter {
			begin := p.begins(leastKeptBytes)
			return selection.Matching(segment.Metadata, path+string([]byte{byte(kind)})+begin, p.test(begin), verify)
		}
		switch f.operator {
		case filtering.FunctionNotEquals:
			return selection.And(scalarAt(path), selection.Not(like(metadataText))), nil
		case filtering.FunctionHas:
			return selection.Or(like(metadataText), like(elementText), selection.Verified(selection.Has(segment.Metadata, manyAt(path)), verify)), nil
		}
		return like(metadataText), nil
	}
}

// leastKeptBytes is what the term of a text has of it at least, however long its
// path is.
const leastKeptBytes = 8

// manyAt is the term of an array that has more elements than are terms.
func manyAt(path string) string {
	return metadataValue{path: path, kind: metadataGroup, text: manyElements}.term()
}

// contains asks for a value at the path, or in an array there.
func contains(want metadataValue, equals selection.Filter) binder {
	element := want
	element.inArray = true
	return func(_ context.Context, b binding) (selection.Filter, error) {
		return selection.Or(equals,
			selection.Has(segment.Metadata, element.term()),
			selection.Verified(selection.Has(segment.Metadata, manyAt(want.path)), b.verifier(func(r Record) bool {
				return r.hasMetadata(func(v metadataValue) bool {
					return v.path == want.path && v.kind == want.kind && v.text == want.text
				})
			}))), nil
	}
}

// ranged compares a text or number at the path.
func (f filterField) ranged(want metadataValue) binder {
	accept := accepts(f.operator)
	test := textTest(want.text, accept)
	compare := func(own string) int { return strings.Compare(own, want.text) }
	if want.kind == metadataNumber {
		test = numberTest(want.text, accept)
		number := parseDecimal(want.text)
		compare = func(own string) int { return parseDecimal(own).compare(number) }
	}
	prefix := want.path + string([]byte{byte(want.kind)})
	return func(_ context.Context, b binding) (selection.Filter, error) {
		return selection.Matching(segment.Metadata, prefix, test, b.verifier(func(r Record) bool {
			return r.hasMetadata(func(v metadataValue) bool {
				return v.path == want.path && v.kind == want.kind && !v.inArray && accept(compare(v.text))
			})
		})), nil
	}
}

// hasMetadata tells whether one of the metadata's values is such.
func (r Record) hasMetadata(such func(metadataValue) bool) bool {
	found := false
	// What is stored was checked when it was saved.
	_ = walkMetadata(r.Metadata, func(v metadataValue) { found = found || such(v) })
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
		kept, whole := cutValue(rest)
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
	number := parseDecimal(operand)
	return func(rest string) selection.Match {
		if _, whole := cutValue(rest); !whole {
			return selection.Unsure
		}
		return matches(accept(parseDecimal(rest).compare(number)))
	}
}
