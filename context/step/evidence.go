package step

import (
	"cmp"
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
	// cutMark ends a line that was cut.
	cutMark = "…"
	// namesMark begins the line of names.
	namesMark = "names: "
	// maxNameBytes bounds one name; longer ones are no names.
	maxNameBytes = 80
)

// evidence says what the part of a text says that is not shown: lines that sum
// up, lines that say what went wrong, and names.
func evidence(s shown, cut clipped, found survey) string {
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
			line = text.Head(line, max(left-len(cutMark), 0)) + cutMark
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

// parts are the held parts of a text, each with what of it is not shown.
type part struct {
	text   string
	hidden span
}

func (s shown) parts(cut clipped) []part {
	if s.whole() {
		return []part{{s.text, span{cut.head, len(s.text) - cut.tail}}}
	}
	return []part{
		{s.text, span{cut.head, len(s.text)}},
		{s.tail, span{0, max(len(s.tail)-cut.tail, 0)}},
	}
}

// hiddenErrors are those of the first and last lines that say what went wrong
// that are not shown.
func (s shown) hiddenErrors(cut clipped) []string {
	var lines []string
	parts := s.parts(cut)
	for i, p := range parts {
		found := errorLines(p.text)
		if len(parts) > 1 && i == 0 {
			found = found[:min(len(found), firstErrorLines)]
		} else if len(parts) > 1 {
			found = found[max(len(found)-lastErrorLines, 0):]
		}
		for _, line := range found {
			text := p.text[line.from:line.to]
			if line.to > p.hidden.from && line.from < p.hidden.to && !slices.Contains(lines, text) {
				lines = append(lines, text)
			}
		}
	}
	return lines
}

// hidden are the texts that are not shown, as much of each end as is looked at.
func (s shown) hidden(cut clipped) []string {
	var texts []string
	for _, p := range s.parts(cut) {
		body := excerpt.QuotedPart(p.text, min(p.hidden.from, p.hidden.to), p.hidden.to)
		if len(body) > 2*HeldBodyBytes {
			texts = append(texts, text.Head(body, HeldBodyBytes), text.Tail(body, HeldBodyBytes))
			continue
		}
		texts = append(texts, body)
	}
	return texts
}

// What makes a name worth keeping.
const (
	scorePath    = 3
	scoreFailure = 2
	scoreAny     = 1
)

// hiddenNames are the names in texts that stand nowhere in what is shown, those
// that come most often and tell most first, in at most room bytes.
func hiddenNames(texts []string, shown string, room int) string {
	known := make(map[string]bool)
	eachName(shown, func(name string) { known[name] = true })
	type scored struct {
		name  string
		score int
	}
	var found []scored
	index := make(map[string]int)
	for _, text := range texts {
		eachName(text, func(name string) {
			if known[name] {
				return
			}
			at, ok := index[name]
			if !ok {
				at = len(found)
				index[name] = at
				found = append(found, scored{name: name})
			}
			found[at].score += nameScore(name)
		})
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var line []byte
	for _, f := range found {
		if len(line)+len(f.name)+1 <= room {
			line = append(append(line, f.name...), ' ')
		}
	}
	return strings.TrimSuffix(string(line), " ")
}

func nameScore(name string) int {
	switch {
	case strings.Contains(name, "/"):
		return scorePath
	case strings.HasSuffix(name, "Error"), strings.HasSuffix(name, "Exception"), strings.Contains(name, "FAIL"):
		return scoreFailure
	}
	return scoreAny
}

// eachName calls found for each name in a text: a path, a symbol, a number with
// its unit; anything that is no plain word.
func eachName(text string, found func(name string)) {
	var quoted excerpt.Quoted
	for i := 0; i < len(text); {
		if !nameBytes[text[i]] {
			i++
			continue
		}
		i += quoted.Escaped(text, i)
		from := i
		for i < len(text) && nameBytes[text[i]] {
			i++
		}
		name := strings.Trim(text[from:i], ".:-/")
		if len(name) >= 4 && len(name) <= maxNameBytes && specific(name) {
			found(name)
		}
	}
}

var nameBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = wordBytes[c] || strings.IndexByte("./:-", byte(c)) >= 0
	}
	return is
}()

// specific tells a name from a plain word or a plain number: it has letters, and
// a digit, a dot, a slash, an underscore or a capital inside, or it is long.
func specific(name string) bool {
	letters, marks := 0, false
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
			marks = marks || c < 'a' && i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z'
		case c != ':' && c != '-':
			marks = true
		}
	}
	return letters > 1 && (marks || len(name) >= 8)
}
