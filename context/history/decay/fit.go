package decay

// directShare is how much of what is left direct messages may take beyond the first.
const directShare = 0.30

// FitUnit is a unit as Fit sees it.
type FitUnit struct {
	// Tokens is its size.
	Tokens int
	// Kept is never left out: leading system messages, pinned items, the current task.
	Kept bool
	// Direct is a direct message: at least the newest one stays, and more while they
	// take no more than 30 % of what is left.
	Direct bool
}

// Fit says which pieces stay within a budget: all if they fit; else kept pieces, direct
// messages, and then the others from the newest back to the first that does not fit. left
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
	left -= fitDirect(pieces, stays, left)
	for i := len(pieces) - 1; i >= 0; i-- {
		switch {
		case stays[i] || pieces[i].Direct:
			continue
		case pieces[i].Tokens > left:
			return stays, left
		}
		stays[i] = true
		left -= pieces[i].Tokens
	}
	return stays, left
}

// fitDirect lets direct messages stay, the newest first, and returns what they take.
func fitDirect(pieces []FitUnit, stays []bool, left int) int {
	taken, first := 0, true
	for i := len(pieces) - 1; i >= 0; i-- {
		p := &pieces[i]
		if !p.Direct || stays[i] {
			continue
		}
		limit := int(directShare * float64(left))
		if first {
			limit, first = left, false
		}
		if taken+p.Tokens > limit {
			break
		}
		stays[i] = true
		taken += p.Tokens
	}
	return taken
}
