package lexical

import (
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// However short the documents are, the lengths of a merged segment fit one
// value.
func TestMergedLengthsFitOneValue(t *testing.T) {
	var list segmentList
	add := func(documents, level uint32) {
		first := uint32(1)
		if n := len(list.segments); n > 0 {
			first = list.segments[n-1].last + 1
		}
		list.segments = append(list.segments, segmentInfo{
			stamp: uint64(first), first: first, last: first + documents - 1, level: level, bytes: uint64(documents),
		})
	}
	merged := 0
	for range 500 {
		add(maxPackDocuments, 0)
		for inputs := list.mergeable(); inputs != nil; inputs = list.mergeable() {
			first, last := inputs[0], inputs[len(inputs)-1]
			// As long as a text of lexical terms can be: 350,000 words and 344 of
			// the header.
			lengths := slices.Repeat([]docLength{{350_000, 344}}, int(last.last-first.first)+1)
			if size := len(encodeLengths(lengths)); size > kv.MaxValueBytes {
				t.Fatalf("the lengths of %d documents take %d bytes", len(lengths), size)
			}
			list.replace(slices.Clone(inputs), segmentInfo{
				stamp: 1<<32 + uint64(first.first), first: first.first, last: last.last, level: first.level + 1, bytes: uint64(len(lengths)),
			})
			merged++
		}
	}
	if merged < 100 || len(list.segments) > 50 {
		t.Errorf("%d merges leave %d segments", merged, len(list.segments))
	}
}
