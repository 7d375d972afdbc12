package history

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Rules of deduplication.
const (
	// minSameLines is the shortest run of lines that a reference replaces.
	minSameLines = 4
	// minAnchorBytes is the shortest line, without white space at its ends, that
	// a piece of a run may begin with: shorter ones stand everywhere.
	minAnchorBytes = 6
	// minPieceBytes is the shortest piece of a run that has fewer lines than a
	// run: naming its place takes about half of that.
	minPieceBytes = 32
	// maxPieces bounds the pieces of one run, so that a reader can follow.
	maxPieces = 4
	// maxPlaces bounds the places of one line that are tried.
	maxPlaces = 32
	// maxReducedBytes: of a longer text that is cut no lines are looked up. What
	// a prompt shows of it are its ends, and so little is shown of others.
	maxReducedBytes = 128 << 10
	// maxNumberDigits bounds a line number.
	maxNumberDigits = 7
)

// line is one line of a text. Listings number their lines; the number is kept
// apart, so that the same lines are found with other numbers or without.
type line struct {
	text string
	// key is text without its number, or text; number is -1 where there is
	// none.
	key    string
	number int
	// hidden: a reference stands in its place.
	hidden bool
}

func splitLines(text string) []line {
	lines := make([]line, 0, strings.Count(text, "\n")+1)
	for part := range strings.SplitSeq(text, "\n") {
		lines = append(lines, parseLine(part))
	}
	return lines
}

// parseLine reads the line numbers of cat -n, nl and grep -n.
func parseLine(text string) line {
	plain := line{text: text, key: text, number: -1}
	start := 0
	for start < len(text) && text[start] == ' ' {
		start++
	}
	end, number := start, 0
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		number = number*10 + int(text[end]-'0')
		if end++; end-start > maxNumberDigits {
			return plain
		}
	}
	if end == start || end == len(text) || strings.IndexByte("\t:-", text[end]) < 0 {
		return plain
	}
	return line{text: text, key: text[end+1:], number: number}
}

// shown remembers the lines that a prompt shows, so that they need not be shown
// again.
type shown struct {
	sources []source
	// places has, by the line, where it stands first and last, of all.
	places map[string]places
	all    []place
	// before is the line of the newest source up to which it may be referred to:
	// where the run begins that is looked at.
	before int
}

// source is one text of the prompt.
type source struct {
	ref   string
	lines []line
	// before are the lines of the text before these.
	before int
}

type origin struct{ source, line int }

// places are so many of one line, the first and the last of them in shown.all.
type places struct{ count, first, last int32 }

// place is one of them, and the next of the same line.
type place struct {
	origin
	next int32
}

// add remembers the lines of a text that is shown as it is.
func (s *shown) add(ref, text string) {
	if ref == "" || strings.Count(text, "\n") < minSameLines-1 {
		return
	}
	s.addFrom(ref, text, 0)
}

// addFrom remembers lines before which others stand in their text.
func (s *shown) addFrom(ref, text string, before int) {
	s.sources = append(s.sources, source{ref, splitLines(text), before})
	for i := range s.sources[len(s.sources)-1].lines {
		s.display(i)
	}
}

// addEnds remembers the lines of a text but for those from one to another.
func (s *shown) addEnds(ref, text string, from, to int) {
	end := 0
	for range from {
		end += strings.IndexByte(text[end:], '\n') + 1
	}
	s.add(ref, strings.TrimSuffix(text[:end], "\n"))
	begin := len(text) + 1
	for range strings.Count(text, "\n") - to + 1 {
		begin = strings.LastIndexByte(text[:begin-1], '\n') + 1
	}
	if begin <= len(text) && ref != "" {
		s.addFrom(ref, text[begin:], to)
	}
}

// display remembers one line of the newest source.
func (s *shown) display(i int) {
	at := len(s.sources) - 1
	key := s.sources[at].lines[i].key
	if s.sources[at].ref == "" || !anchors(key) {
		return
	}
	known := s.places[key]
	if known.count == maxPlaces {
		return
	}
	own := int32(len(s.all)) //nolint:gosec // lines of one prompt
	s.all = append(s.all, place{origin: origin{at, i}})
	if known.count == 0 {
		known.first = own
	} else {
		s.all[known.last].next = own
	}
	known.count, known.last = known.count+1, own
	s.places[key] = known
}

// addEntry records the texts that an entry shows other than its output. The words and the
// arguments of a turn are listed apart from the output, which has its reference.
func (s *shown) addEntry(e *Entry) {
	if e.Ref == "" {
		return
	}
	if e.Kind == Fixed {
		s.add(e.source(), e.Text)
		return
	}
	s.add(e.source()+" said", e.Text)
	for _, c := range e.Calls {
		s.addArgs(e.source(), c.Args)
	}
}

// addArgs remembers the longer texts among the arguments of a call: files that
// it writes are often printed later.
func (s *shown) addArgs(ref, args string) {
	if !strings.Contains(args, `\n`) {
		return
	}
	var fields map[string]any
	if json.Unmarshal([]byte(args), &fields) != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if text, ok := fields[key].(string); ok {
			s.add(ref+" "+key, text)
		}
	}
}

// anchors reports whether a piece may begin with a line.
func anchors(key string) bool { return len(strings.TrimSpace(key)) >= minAnchorBytes }

// reduce returns text with every run of lines that is already shown replaced
// by a line that says where, and remembers the rest. at has, for each line of
// the answer, where it began in text; it is nil where nothing is replaced.
func (s *shown) reduce(ref, text string) (reduced string, at []int) {
	s.sources = append(s.sources, source{ref, splitLines(text), 0})
	lines := s.sources[len(s.sources)-1].lines
	var out []string
	for i := 0; i < len(lines); {
		s.before = i
		run, n := s.known(lines[i:])
		mark := ""
		if n >= minSameLines {
			mark = s.mark(run, n, lines[i:])
		}
		hidden := mark != "" && len(mark) < textBytes(lines[i:i+n])
		if hidden && out == nil { // the first: all before it stays
			out, at = make([]string, i, len(lines)), make([]int, i, len(lines))
			for k := range i {
				out[k], at[k] = lines[k].text, k
			}
		}
		if hidden {
			out, at = append(out, mark), append(at, i)
		}
		for range max(n, 1) {
			lines[i].hidden = hidden
			if !hidden {
				if out != nil {
					out, at = append(out, lines[i].text), append(at, i)
				}
				s.display(i)
			}
			i++
		}
	}
	if out == nil {
		return text, nil
	}
	return strings.Join(out, "\n"), at
}

// hideBetween forgets lines of the newest text, which were cut out after all:
// from a line of what reduce returned up to another. at is what reduce
// returned with it; nil means that nothing had been replaced.
func (s *shown) hideBetween(at []int, from, to int) {
	lines := s.sources[len(s.sources)-1].lines
	place := func(i int) int {
		switch {
		case at == nil:
			return min(i, len(lines))
		case i < len(at):
			return at[i]
		}
		return len(lines)
	}
	for i := place(from); i < place(to); i++ {
		lines[i].hidden = true
	}
}

// piece is a part of a run that stands elsewhere, line for line.
type piece struct {
	from  origin
	lines int
	// exact: byte for byte; otherwise but for line numbers.
	exact bool
	// times is how often it stands here, one behind the other.
	times int
}

// again reports whether a piece is this one once more.
func (p piece) again(next piece) bool {
	return p.exact && next.exact && p.from == next.from && p.lines == next.lines
}

// known returns the run of shown lines that the lines begin with, as pieces,
// and its length.
func (s *shown) known(lines []line) (run []piece, n int) {
	for n < len(lines) {
		p := s.longest(lines[n:])
		last := len(run) - 1
		switch {
		case p.lines > 0 && last >= 0 && run[last].again(p):
			run[last].times++
		case len(run) == maxPieces, p.lines < minSameLines && textBytes(lines[n:n+p.lines]) < minPieceBytes:
			return run, n
		default:
			run = append(run, p)
		}
		n += p.lines
	}
	return run, n
}

func textBytes(lines []line) int {
	return sum(lines, func(l *line) int { return len(l.text) + 1 })
}

// longest returns the longest piece that the lines begin with; among equals an identical
// one, then the first.
func (s *shown) longest(lines []line) (best piece) {
	if !anchors(lines[0].key) {
		return piece{}
	}
	known := s.places[lines[0].key]
	at := known.first
	for range known.count {
		p := s.all[at]
		at = p.next
		for _, exact := range []bool{true, false} {
			if n := s.same(p.origin, lines, exact); n > best.lines {
				best = piece{p.origin, n, exact, 1}
			}
		}
	}
	return best
}

// same counts the lines from a place on that are shown and equal.
func (s *shown) same(p origin, lines []line, exact bool) int {
	there := s.sources[p.source].lines[p.line:]
	if p.source == len(s.sources)-1 {
		there = there[:max(s.before-p.line, 0)]
	}
	n := 0
	for n < len(lines) && n < len(there) && !there[n].hidden {
		a, b := lines[n], there[n]
		if exact && a.text != b.text || !exact && (a.key != b.key || !follows(a, lines[0], n)) {
			break
		}
		n++
	}
	return n
}

// follows reports whether a line is numbered as the n-th behind first has to be.
func follows(a, first line, n int) bool {
	return first.number < 0 && a.number < 0 || first.number >= 0 && a.number == first.number+n
}

// mark stands in the place of a run of n lines, and says where they are.
func (s *shown) mark(run []piece, n int, lines []line) string {
	var b strings.Builder
	b.WriteString("[" + strconv.Itoa(n) + " lines unchanged:")
	ref := ""
	for i, p := range run {
		if i > 0 {
			b.WriteByte(',')
		}
		of := s.sources[p.from.source]
		if of.ref != ref {
			ref = of.ref
			b.WriteString(" " + ref + " line")
		}
		p.from.line += of.before
		b.WriteString(" " + p.where(lines[0]))
		lines = lines[p.lines*p.times:]
	}
	return b.String() + "]"
}

// where names the piece's lines; first is the first of them as it is now.
func (p piece) where(first line) string {
	text := strconv.Itoa(p.from.line + 1)
	if p.lines > 1 {
		text += "-" + strconv.Itoa(p.from.line+p.lines)
	}
	switch {
	case p.times > 1:
		return text + " " + strconv.Itoa(p.times) + " times"
	case p.exact:
		return text
	case first.number >= 0:
		return text + " numbered from " + strconv.Itoa(first.number)
	}
	return text + " without numbers"
}
