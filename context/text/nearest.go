package text

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest is the one of the known names, of which there is at least one, that is the
// fewest edits away from a name.
func Nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return cmp.Compare(Distance(name, a), Distance(name, b)) })
}

// Near is the known name that another one most likely means: one is the beginning of the other,
// or about a third of its letters are wrong at most. None may be.
func Near(name string, known []string) (near string, ok bool) {
	meant := slices.DeleteFunc(slices.Clone(known), func(k string) bool {
		begins := strings.HasPrefix(k, name) || strings.HasPrefix(name, k)
		return name == "" || !begins && 3*Distance(name, k) > len(name)+1 // two letters of five may have changed places
	})
	if len(meant) == 0 {
		return "", false
	}
	return Nearest(name, meant), true
}

// Distance is the number of bytes to insert, delete or replace to make a of b
// (Levenshtein's).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
