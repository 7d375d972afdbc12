// Package shares says whose records leave a memory that several write to, and has too many.
//
// Who keeps a memory together has equal shares of it: a [Saver] belongs to a holder, such as
// the credential of several agents, and within the share of a holder its savers have equal
// shares. What a holder or saver does not need is for the others. So no saver loses a record
// while it holds no more than its share, whatever others save.
package shares

import "cmp"

// Saver is who saved some of the records.
type Saver struct {
	// Of is the holder for whose share its records count.
	Of string
	// Held is how many it has, and May how many of them may leave.
	Held, May int
}

// Give returns how many records of each saver leave, most in all, so that keep stay. First
// leaves what is furthest above its share; among equals less reports whether the record that
// saver a gives as its nth goes before that which b gives as its mth, from 0. It may be fewer
// than there are too many, where those above their share may not leave.
func Give(savers []Saver, keep, most int, less func(a, nth, b, mth int) bool) []int {
	held := make(map[string]int)
	for _, s := range savers {
		held[s.Of] += s.Held
	}
	all := make([]int, 0, len(held))
	for _, n := range held {
		all = append(all, n)
	}
	share := level(all, keep)
	within := make(map[string][]int)
	for _, s := range savers {
		if held[s.Of] > share {
			within[s.Of] = append(within[s.Of], s.Held)
		}
	}
	shareOf := make(map[string]int, len(within))
	for of, helds := range within {
		shareOf[of] = level(helds, share)
		held[of] -= share // what it has above its share
	}
	give := make([]int, len(savers))
	for range most {
		best, bestOver := -1, 0
		for i, s := range savers {
			ofShare, above := shareOf[s.Of]
			over := s.Held - ofShare - give[i]
			if !above || held[s.Of] <= 0 || over <= 0 || give[i] == s.May {
				continue
			}
			if best >= 0 {
				c := cmp.Or(cmp.Compare(held[savers[best].Of], held[s.Of]), cmp.Compare(bestOver, over))
				if c > 0 || c == 0 && !less(i, give[i], best, give[best]) {
					continue
				}
			}
			best, bestOver = i, over
		}
		if best < 0 {
			break
		}
		give[best]++
		held[savers[best].Of]--
	}
	return give
}

// level is the highest number that each may have, where none takes more than it has, and all
// together at most total.
func level(held []int, total int) int {
	low, high := 0, total // the level that is known to fit, and the highest that can
	for low < high {
		mid := low + (high-low+1)/2
		sum := 0
		for _, n := range held {
			if sum += min(n, mid); sum > total {
				break
			}
		}
		if sum <= total {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
