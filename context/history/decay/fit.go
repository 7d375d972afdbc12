package decay

// FitUnit is a unit as Fit sees it.
type FitUnit struct {
	// Tokens is its size.
	Tokens int
	// Kept is never left out: leading system messages, pinned items, the current task.
	Kept bool
}

// Fit says which pieces stay within a budget: all if they fit; else kept pieces,
// and then the others from the newest back to the first that does not fit. left
// is the free part of the budget; it is negative if the kept pieces are too large.
func Fit(pieces []FitUnit, budget int) (stays []bool, left int) {
	stays, left = make([]bool, len(pieces)), budget
	for i := range pieces {
		left -= pieces[i].Tokens
		stays[i] = true
	}
	if left >= 0 {
		return stays, left
	}
	left = budget
	for i := range pieces {
		if stays[i] = pieces[i].Kept; stays[i] {
			left -= pieces[i].Tokens
		}
	}
	if left <= 0 {
		return stays, left
	}
	for i := len(pieces) - 1; i >= 0; i-- {
		switch {
		case stays[i]:
			continue
		case pieces[i].Tokens > left:
			return stays, left
		}
		stays[i] = true
		left -= pieces[i].Tokens
	}
	return stays, left
}
