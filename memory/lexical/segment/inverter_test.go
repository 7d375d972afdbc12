package segment_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// An inverter that was reset has nothing of what it held before, and gives terms in order.
func TestInverterReset(t *testing.T) {
	v := segment.NewInverter(0, 0)
	for round := range 3 {
		want := ""
		for term := range 3 * (3 - round) {
			name := fmt.Sprintf("term-%d-%d", round, term)
			want += name
			for ordinal := range term + 1 {
				want += fmt.Sprint(" ", ordinal)
			}
			want += "\n"
		}
		for ordinal := range 9 {
			for term := 3*(3-round) - 1; term >= ordinal; term-- {
				v.Add(fmt.Appendf(nil, "term-%d-%d", round, term), segment.Posting{Ordinal: uint32(ordinal)})
			}
		}
		got := ""
		err := v.Each(func(term string, postings []segment.Posting) error {
			got += term
			for _, p := range postings {
				got += fmt.Sprint(" ", p.Ordinal)
			}
			got += "\n"
			return nil
		})
		if err != nil || got != want {
			t.Fatalf("round %d: got\n%swant\n%s%v", round, got, want, err)
		}
		v.Reset()
	}
}
