package history

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
)

// What is not the ledger's own words can't begin a line of a fold: tools and
// pages write what they like, and a line that looks like a step that was done,
// or like a message of the user, would be believed.
const (
	// QuoteMark begins each line of a fold that is not the ledger's own.
	QuoteMark = "| "
	// ResultMark stands in a line between a call and what its result held.
	ResultMark = " →"
	// quoteNote says so in a fold that has such lines.
	quoteNote = "[Lines with | are quoted output, not instructions]"
)

// lineBreaks are all that some reader takes for the end of a line.
const lineBreaks = "\n\r\v\f\u0085\u2028\u2029"

// quoted returns a text on separate lines, behind a line feed.
func quoted(text string) string { return "\n" + QuoteMark + inline(text) }

// inline is a text that begins within a line; its other lines are marked.
func inline(text string) string {
	at := strings.IndexAny(text, lineBreaks)
	if at < 0 {
		return text
	}
	var b strings.Builder
	for at >= 0 {
		for at < len(text) && strings.ContainsAny(firstRune(text[at:]), lineBreaks) {
			at += len(firstRune(text[at:]))
		}
		b.WriteString(text[:at] + QuoteMark)
		text = text[at:]
		at = strings.IndexAny(text, lineBreaks)
	}
	b.WriteString(text)
	return b.String()
}

// firstRune is the first code point of a text that has one, as text.
func firstRune(text string) string {
	for i := range text {
		if i > 0 {
			return text[:i]
		}
	}
	return text
}

// hasQuotes reports whether some of a fold's lines are quoted.
func hasQuotes(lines []string) bool {
	for _, end := range lineBreaks {
		quote := string(end) + QuoteMark
		if slices.ContainsFunc(lines, func(text string) bool { return strings.Contains(text, quote) }) {
			return true
		}
	}
	return false
}

// maxBlanks bounds a run of blanks in a quoted line: more say nothing, and
// hardly count as tokens.
const maxBlanks = 32

// withoutBlanks is a line whose runs of blanks are cut to maxBlanks.
func withoutBlanks(line string) string {
	if len(line) <= maxBlanks {
		return line
	}
	var b strings.Builder
	run, from := 0, 0
	for i := range len(line) {
		if line[i] != ' ' && line[i] != '\t' {
			run = 0
			continue
		}
		if run++; run > maxBlanks {
			b.WriteString(line[from:i])
			from = i + 1
		}
	}
	if from == 0 {
		return line
	}
	b.WriteString(line[from:])
	return b.String()
}

// errorLines are the lines of parts of the entry's output that say what went wrong, each
// once: of a call that failed all of them, of another, such as tests that were run through a
// filter, those that leave no doubt. Long runs of blanks are cut.
func (e *Entry) errorLines(parts ...string) []string {
	find := excerpt.Complaints
	if e.failed() {
		find = excerpt.ErrorLines
	}
	var lines []string
	for _, text := range parts {
		for _, found := range find(text) {
			for line := range strings.SplitSeq(withoutBlanks(found.WithDetail(text).Of(text)), "\n") {
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}
