package selection

import (
	"context"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Filter says which documents may be hits: a tree of conditions, built with the
// functions below. The zero Filter lets every document through. A Filter never
// changes and can be used at once by several calls.
type Filter struct {
	op       operator
	args     []Filter
	field    segment.Field
	value    string
	test     func(rest string) Match
	verify   Verifier
	column   Column
	from, to int64
	ordinals []uint32
}

type operator uint8

const (
	opEverything operator = iota
	opAnd
	opOr
	opNot
	opHas
	opMatching
	opVerified
	opBetween
	opOnly
)

// Match is what a test makes of a value.
type Match uint8

// The outcomes of a test. Unsure: the index keeps too little of the value, the
// document itself must be asked.
const (
	No Match = iota
	Yes
	Unsure
)

// Verifier reports for each document, named by its id, whether it meets a
// condition. It is asked about documents that the index can't decide on, some
// hundred at a time.
type Verifier func(ctx context.Context, ids []string) ([]bool, error)

// Column is a number that the index keeps of each document.
type Column uint8

// The columns. Times are in microseconds since 1970; a document without one
// lies in no range.
const (
	EventTime Column = iota + 1
	CreateTime
	ExpireTime
	// Importance lies in the order of ImportanceRank.
	Importance
	// Tier is 1 to 4.
	Tier
	// Pinned is 1 for a pinned document, else 0.
	Pinned
	// IsArchived is 1 for a document in the archive, else 0.
	IsArchived
	// IsSuperseded is 1 for a document that another one has replaced, else 0.
	IsSuperseded
)

// And lets through what all filters let through; without any, everything.
func And(filters ...Filter) Filter { return Filter{op: opAnd, args: filters} }

// Or lets through what one of the filters lets through; without any, nothing.
func Or(filters ...Filter) Filter { return Filter{op: opOr, args: filters} }

// Not lets through what the filter does not.
func Not(f Filter) Filter { return Filter{op: opNot, args: []Filter{f}} }

// Has lets through the documents that hold the value.
func Has(f segment.Field, value string) Filter { return Filter{op: opHas, field: f, value: value} }

// Matching lets through the documents that hold a value of the field which
// begins with prefix and whose rest passes the test. A nil test passes all.
// Values that are stored as a digest are found by the empty prefix and by
// DigestMark only; the test then gets the digest, which begins with that mark, or
// what is behind it.
// Where the test is unsure, verify decides; it may be nil if that can't be.
func Matching(f segment.Field, prefix string, test func(rest string) Match, verify Verifier) Filter {
	return Filter{op: opMatching, field: f, value: prefix, test: test, verify: verify}
}

// Verified lets through what the filter lets through and verify confirms.
func Verified(f Filter, verify Verifier) Filter {
	return Filter{op: opVerified, args: []Filter{f}, verify: verify}
}

// Between lets through the documents whose number lies from from to to, both
// included.
func Between(c Column, from, to int64) Filter {
	return Filter{op: opBetween, column: c, from: from, to: to}
}

// Only lets through the documents with these ordinals; ordinals that the index does not
// have are ignored.
func Only(ordinals ...uint32) Filter { return Filter{op: opOnly, ordinals: ordinals} }

// ImportanceRank is the number that stands for an importance from 0 to 1 in
// its column. The index keeps about seven digits of it.
func ImportanceRank(importance float64) int64 {
	return int64(math.Float32bits(float32(math.Abs(importance))))
}
