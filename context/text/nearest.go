package text

import (
	"cmp"
	"slices"
)

// Nearest is the one of the known names, of which there is at least one, that is the
// fewest edits away from a name.
func Nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return cmp.Compare(Distance(name, a), Distance(name, b)) })
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
