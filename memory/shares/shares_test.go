package shares_test

import (
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/shares"
)

func TestGive(t *testing.T) {
	for _, tt := range []struct {
		name       string
		savers     []shares.Saver
		keep, most int
		want       []int
	}{
		{"one has all", []shares.Saver{{"a", 12, 12}}, 9, 32, []int{3}},
		{"as much as stays", []shares.Saver{{"a", 5, 5}, {"b", 4, 4}}, 9, 32, []int{0, 0}},
		{"who floods gives", []shares.Saver{{"a", 100, 100}, {"b", 3, 3}}, 90, 32, []int{13, 0}},
		{"most at a time", []shares.Saver{{"a", 100, 100}, {"b", 3, 3}}, 50, 8, []int{8, 0}},
		{"many names of one holder", []shares.Saver{{"a", 1, 1}, {"a", 1, 1}, {"a", 1, 1}, {"b", 3, 3}}, 5, 32, []int{1, 0, 0, 0}},
		{"within a holder by savers", []shares.Saver{{"a", 8, 8}, {"a", 2, 2}, {"b", 5, 5}}, 10, 32, []int{5, 0, 0}},
		{"pinned ones stay, and nobody leaves for them", []shares.Saver{{"a", 100, 0}, {"b", 3, 3}}, 90, 32, []int{0, 0}},
		{"what is unpinned goes first", []shares.Saver{{"a", 100, 2}, {"b", 3, 3}}, 90, 32, []int{2, 0}},
		{"equals by what they would lose", []shares.Saver{{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}}, 2, 32, []int{1, 0, 0}},
		{"nobody", nil, 2, 32, []int{}},
	} {
		got := shares.Give(tt.savers, tt.keep, min(tt.most, over(tt.savers, tt.keep)), func(a, nth, b, mth int) bool { return a+nth < b+mth })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// over is how many there are too many.
func over(savers []shares.Saver, keep int) int {
	for _, s := range savers {
		keep -= s.Held
	}
	return max(0, -keep)
}
