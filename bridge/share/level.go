package share

import (
	"math"
	"slices"
)

// Level returns the most that any owner may keep so that all together keep at most
// total: those with less keep what they have, and leave what they don't use to the
// others. Where all fit, it is the largest number.
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
