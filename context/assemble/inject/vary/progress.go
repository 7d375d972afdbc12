package vary

import (
	"fmt"
	"strings"
)

// List is how the items of a list are marked.
type List uint8

// The lists; the zero List is Plain.
const (
	// Plain items have no mark.
	Plain List = iota
	// Numbered items have their number.
	Numbered
	// Bulleted items have a dash.
	Bulleted
	// Indented items stand two spaces in.
	Indented
)

// Mark stands before the item of a number, from 1.
func (l List) Mark(number int) string {
	switch l {
	case Numbered:
		return fmt.Sprintf("%d. ", number)
	case Bulleted:
		return "- "
	case Indented:
		return "  "
	}
	return ""
}

// Progress is how progress is written.
type Progress uint8

// The ways.
const (
	// Percentage is "60% complete".
	Percentage Progress = iota
	// Fraction is "3/5 steps completed".
	Fraction
	// Bar is "[██████░░░░] 60%".
	Bar
	// Count is "Step 3 of 5".
	Count
)

// barCells is how long a bar is.
const barCells = 10

// Text says that done of total steps are done. Of nothing it says nothing.
func (p Progress) Text(done, total int) string {
	if total <= 0 {
		return ""
	}
	done = min(max(done, 0), total)
	percent := done * 100 / total
	switch p {
	case Fraction:
		return fmt.Sprintf("%d/%d steps completed", done, total)
	case Bar:
		full := done * barCells / total
		return "[" + strings.Repeat("█", full) + strings.Repeat("░", barCells-full) + fmt.Sprintf("] %d%%", percent)
	case Count:
		return fmt.Sprintf("Step %d of %d", done, total)
	}
	return fmt.Sprintf("%d%% complete", percent)
}
