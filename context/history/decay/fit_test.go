package decay_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
)

// stays are the indices of the pieces that stay.
func stays(pieces []decay.FitUnit, budget int) []int {
	kept, _ := decay.Fit(pieces, budget)
	var at []int
	for i, ok := range kept {
		if ok {
			at = append(at, i)
		}
	}
	return at
}

// The documents' nine messages: what is newest stays, up to the first that does not
// fit, and smaller ones before it leave, too.
//
// G14, P06
func TestNineMessages(t *testing.T) {
	pieces := []decay.FitUnit{{Tokens: 200, Kept: true}, {Tokens: 100}, {Tokens: 100}, {Tokens: 100}, {Tokens: 100}, {Tokens: 1400}, {Tokens: 1000}, {Tokens: 1000}, {Tokens: 1000, Kept: true}}
	for budget, want := range map[int][]int{
		4000: {0, 6, 7, 8},
		4599: {0, 6, 7, 8}, 4600: {0, 5, 6, 7, 8}, 4601: {0, 5, 6, 7, 8}, // with msg5
		4999: {0, 2, 3, 4, 5, 6, 7, 8}, 5000: {0, 1, 2, 3, 4, 5, 6, 7, 8}, 5001: {0, 1, 2, 3, 4, 5, 6, 7, 8},
		1200: {0, 8}, 1199: {0, 8},
	} {
		if got := stays(pieces, budget); !slices.Equal(got, want) {
			t.Errorf("%d tokens: %v, want %v", budget, got, want)
		}
	}
	if _, left := decay.Fit(pieces, 1199); left != -1 {
		t.Errorf("%d are left of a budget that what is kept does not fit", left)
	}
}

// Whatever there is: what stays fits unless what is kept alone does not; what is kept
// stays; nothing leaves where all fits; and what stays beside it is the newest.
//
// P06
func TestFitOfRandomPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		pieces := make([]decay.FitUnit, r.IntN(12))
		kept, all := 0, 0
		for i := range pieces {
			pieces[i] = decay.FitUnit{Tokens: r.IntN(50), Kept: r.IntN(5) == 0}
			all += pieces[i].Tokens
			if pieces[i].Kept {
				kept += pieces[i].Tokens
			}
		}
		budget := r.IntN(400)
		is, left := decay.Fit(pieces, budget)
		taken, gone := 0, false
		for i := len(pieces) - 1; i >= 0; i-- {
			p := pieces[i]
			if is[i] {
				taken += p.Tokens
			}
			if p.Kept && !is[i] || !p.Kept && is[i] && gone {
				t.Fatalf("piece %d of %v within %d: %v", i, pieces, budget, is)
			}
			gone = gone || !is[i]
		}
		if left != budget-taken || taken > budget && kept <= budget || all <= budget && taken != all {
			t.Fatalf("%v within %d: %v, %d left", pieces, budget, is, left)
		}
	}
}
