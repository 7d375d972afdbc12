package compress

import (
	"fmt"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// The sizes of a short form of any text, in characters.
const (
	// frameReserve is what the lines around the two ends may take.
	frameReserve = 350
	// minBudget is the least that the two ends have together.
	minBudget = 400
)

// plain shows the beginning and the end of a text.
func plain(s string, chars, threshold int) []string {
	budget := max(threshold-frameReserve, minBudget)
	head := budget * 3 / 4
	first, last := s, ""
	if chars > budget {
		first, _ = text.HeadChars(s, head)
		last, _ = text.TailChars(s, budget-head)
		first, last = excerpt.Head(s, len(first)), excerpt.Tail(s, len(last))
	}
	missing := utf8.RuneCountInString(s[len(first) : len(s)-len(last)])
	about := fmt.Sprintf("%d chars, %d lines", chars, text.CountLines(s))
	return []string{about, first + omitted(missing) + last}
}

// omitted stands for characters that are not shown.
func omitted(chars int) string { return fmt.Sprintf("\n…[%d chars omitted]…\n", chars) }
