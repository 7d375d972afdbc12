package share

import (
	"math"
	"slices"
)

// Level returns the largest limit for each owner with which all together hold at most
// total (max-min fair): owners below it keep what they have, and what they leave is
// divided among the others. If all fit, it is the largest number.
func Level(sizes []int64, total int64) int64 {
	sorted := slices.Sorted(slices.Values(sizes))
	left := max(total, 0)
	for i, size := range sorted {
		if part := left / int64(len(sorted)-i); size > part {
			return part
		}
		left -= size
	}
	return math.MaxInt64
}
