package step

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	// maxErrorsBytes of evidence are lines that say what went wrong.
	maxErrorsBytes = 1400
	// maxTellingBytes are lines that sum up.
	maxTellingBytes = 400
	// namesMark begins the line of names.
	namesMark = "names: "
	// maxNameBytes bounds one name; longer ones are no names.
	maxNameBytes = 80
)

// evidence says what the part of a text says that is not shown: lines that sum
// up, lines that say what went wrong, and names.
func evidence(s shown, cut cutText, found survey) string {
	var b strings.Builder
	for _, line := range found.telling {
		if b.Len()+len(line) < maxTellingBytes && !strings.Contains(cut.inline, line) {
			b.WriteString(line + "\n")
		}
	}
	left := maxErrorsBytes
	for _, line := range s.hiddenErrors(cut) {
		if strings.Contains(b.String(), line) {
			continue
		}
		if len(line) > left {
			line = text.Head(line, max(left-len(text.Ellipsis), 0)) + text.Ellipsis
		}
		if left -= len(line) + 1; left < 0 {
			break
		}
		b.WriteString(line + "\n")
	}
	if room := MaxEvidenceBytes - b.Len() - len(namesMark); room > 0 {
		if names := hiddenNames(s.hidden(cut), cut.inline+b.String(), room); names != "" {
			b.WriteString(namesMark + names)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// part is a held part of a text.
type part struct {
	text string
	// from and to are the part of it that is not shown.
	from, to int
}

func (s shown) parts(cut cutText) []part {
	if s.whole() {
		return []part{{s.text, cut.head, len(s.text) - cut.tail}}
	}
	return []part{
		{s.text, cut.head, len(s.text)},
		{s.tail, 0, max(len(s.tail)-cut.tail, 0)},
	}
}

// hiddenErrors returns the first and last error lines that are not shown.
func (s shown) hiddenErrors(cut cutText) []string {
	var lines []string
	parts := s.parts(cut)
	for i, p := range parts {
		found := excerpt.ErrorLines(p.text)
		if len(parts) > 1 && i == 0 {
			found = found[:min(len(found), excerpt.FirstErrorLines)]
		} else if len(parts) > 1 {
			found = found[max(len(found)-excerpt.LastErrorLines, 0):]
		}
		for _, line := range found {
			text := p.text[line.From:line.To]
			if line.To > p.from && line.From < p.to && !slices.Contains(lines, text) {
				lines = append(lines, text)
			}
		}
	}
	return lines
}

// hidden are the texts that are not shown, as much of each end as is looked at.
func (s shown) hidden(cut cutText) []string {
	var texts []string
	for _, p := range s.parts(cut) {
		body := excerpt.QuotedPart(p.text, min(p.from, p.to), p.to)
		if len(body) > 2*HeldBodyBytes {
			texts = append(texts, text.Head(body, HeldBodyBytes), text.Tail(body, HeldBodyBytes))
			continue
		}
		texts = append(texts, body)
	}
	return texts
}

// hiddenNames are the names in texts that stand nowhere in what is shown, the best
// first, in at most room bytes.
func hiddenNames(texts []string, shown string, room int) string {
	found := excerpt.NewRanking()
	for _, hidden := range texts {
		found.Add(excerpt.WholeNames(hidden))
	}
	known := make(map[string]bool)
	excerpt.Gather(shown, func(_ excerpt.Class, name string, _ int) {
		if found.Has(name) {
			known[name] = true
		}
	})
	var line []byte
	for _, name := range found.Best() {
		if !known[name.Text] && len(line)+len(name.Text)+1 <= room {
			line = append(append(line, name.Text...), ' ')
		}
	}
	return strings.TrimSuffix(string(line), " ")
}
