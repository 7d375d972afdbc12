package compress

import (
	"fmt"
	"strings"
	"unicode/utf8"

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
		first, last = cutHead(first, head), cutTail(last, budget-head)
	}
	missing := utf8.RuneCountInString(s[len(first) : len(s)-len(last)])
	about := fmt.Sprintf("%d chars, %d lines", chars, text.CountLines(s))
	return []string{about, first + omitted(missing) + last}
}

// omitted stands for characters that are not shown.
func omitted(chars int) string { return fmt.Sprintf("\n…[%d chars omitted]…\n", chars) }

// cutHead ends a beginning of n characters before its last line feed, if that
// stands in the last 40 percent.
func cutHead(head string, n int) string {
	at := strings.LastIndexByte(head, '\n')
	if at >= 0 && utf8.RuneCountInString(head[:at])*10 >= n*6 {
		return head[:at]
	}
	return head
}

// cutTail begins an end of n characters behind its first line feed, if that
// stands in the first 40 percent.
func cutTail(tail string, n int) string {
	at := strings.IndexByte(tail, '\n')
	if at >= 0 && utf8.RuneCountInString(tail[:at])*10 < n*4 {
		return tail[at+1:]
	}
	return tail
}
