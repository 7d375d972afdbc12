package step

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// searches reports whether a command line searches for text.
func searches(command string) bool {
	for word := range strings.FieldsSeq(command) {
		switch word[strings.LastIndexByte(word, '/')+1:] {
		case "grep", "egrep", "fgrep", "rg", "ag", "ack":
			return true
		}
	}
	return false
}

// search recognizes what grep and its like found: lines that begin with a file
// and a line number.
type search struct {
	hinted         bool
	matches, other int64
	files          map[string]bool
	last           string // of files
}

// minSearchLines: without a command that searches, fewer lines may be anything.
const minSearchLines = 3

func (g *search) line(_ *survey, line string) {
	if line == "" || line == "--" {
		return
	}
	at := strings.IndexByte(line, ':')
	if at <= 0 || !startsWithDigit(line[at+1:]) || strings.ContainsAny(line[:at], " \t") {
		g.other++
		return
	}
	if _, rest := leadingNumber(line[at+1:]); !strings.HasPrefix(rest, ":") {
		g.other++
		return
	}
	g.matches++
	if line[:at] == g.last { // lines of a file stand together
		return
	}
	if g.last = line[:at]; g.files == nil {
		g.files = make(map[string]bool)
	}
	if len(g.files) < maxCounted {
		g.files[g.last] = true
	}
}

func (g *search) end(s *survey) {
	// Compilers print places, too, and then say what is wrong there.
	_, compiler := s.found[figureErrors]
	if g.matches == 0 || g.matches < 4*g.other || !g.hinted && (g.matches < minSearchLines || compiler) {
		return
	}
	s.counted(figureMatches, g.matches)
	s.counted(figureFilesMatched, int64(len(g.files)))
}

// build recognizes compilers, linters and make.
type build struct{ errors, warnings int64 }

func (b *build) line(s *survey, line string) {
	wrong := strings.Contains(line, "rror") || strings.Contains(line, "ERROR")
	switch {
	case !wrong && !strings.Contains(line, "arning") && !strings.Contains(line, "problem"):
	case strings.HasPrefix(line, "make: *** "), strings.HasPrefix(line, "make["):
		if strings.Contains(line, "***") {
			s.add(line)
		}
	case strings.HasPrefix(line, "error: "), strings.HasPrefix(line, "error["), strings.Contains(line, ": error: "),
		strings.Contains(line, ": fatal error: "), strings.Contains(line, ": error TS"), strings.HasPrefix(line, "ERROR in "):
		b.errors++
	case strings.HasPrefix(line, "warning: "), strings.HasPrefix(line, "warning["), strings.Contains(line, ": warning: "):
		b.warnings++
	case sums(line):
		s.add(line)
	}
}

// sums reports whether a line sums up problems: "✖ 3 problems (1 error, 2
// warnings)", "Found 2 errors in 1 file".
func sums(line string) bool {
	text := strings.TrimLeft(line, " ✖×")
	return strings.HasPrefix(text, "Found ") && strings.Contains(text, " error") ||
		startsWithDigit(text) && (strings.Contains(text, " problems (") || strings.Contains(text, " problem (") ||
			strings.HasSuffix(text, " errors generated.") || strings.HasSuffix(text, " error generated."))
}

func (b *build) end(s *survey) {
	s.counted(figureErrors, b.errors)
	s.counted(figureWarnings, b.warnings)
}

// raised recognizes what a program died of: tracebacks, panics, stack traces.
type raised struct {
	// waiting is set behind the head of a Python traceback: the exception is the next line
	// that is not indented.
	waiting bool
	// last is a line that may name the exception, if a frame follows it.
	last string
	text string
}

// maxExceptionBytes bounds the text of an exception.
const maxExceptionBytes = 200

func (r *raised) line(_ *survey, line string) {
	last := r.last
	r.last = ""
	switch {
	case strings.HasPrefix(line, "Traceback (most recent call last):"):
		r.waiting = true
	case r.waiting && line != "" && line[0] != ' ' && line[0] != '\t':
		r.waiting = false
		r.text = line
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "Exception in thread "), strings.HasPrefix(line, "Caused by: "),
		strings.HasPrefix(line, "thread '") && strings.Contains(line, "panicked at"):
		r.text = line
	case last != "" && strings.HasPrefix(line, "    at "): // a frame of JavaScript
		r.text = last
	case strings.Contains(line, "Error: "):
		if name, _, found := strings.Cut(line, ": "); found && strings.HasSuffix(name, "Error") && !strings.ContainsAny(name, " \t") {
			r.last = line
		}
	}
}

func (r *raised) end(s *survey) {
	s.set(figureException, text.Head(r.text, maxExceptionBytes))
}

// listed recognizes long listings of files.
type listed struct{ files, dirs int64 }

// modeChars is how many characters say what a file is and who may use it.
const modeChars = 10

func (l *listed) line(_ *survey, line string) {
	if len(line) <= modeChars || strings.IndexByte("-dlbcps", line[0]) < 0 {
		return
	}
	for _, c := range line[1:modeChars] {
		if !strings.ContainsRune("rwxsStT-", c) {
			return
		}
	}
	if strings.IndexByte(" +.@", line[modeChars]) < 0 {
		return
	}
	switch name := line[strings.LastIndexByte(line, ' ')+1:]; {
	case name == "." || name == "..":
	case line[0] == 'd':
		l.dirs++
	default:
		l.files++
	}
}

func (l *listed) end(s *survey) {
	if l.files+l.dirs > 0 && !s.partial {
		s.always(figureFiles, l.files)
		s.always(figureDirs, l.dirs)
	}
}

// grid recognizes tables: database output, which says how many rows there are, and tables
// with a head in capitals.
type grid struct {
	lines, rows int64
	said, head  bool
}

func (g *grid) line(_ *survey, line string) {
	if strings.Trim(line, " ") == "" {
		return
	}
	g.lines++
	if g.lines == 1 {
		g.head = capitals(line)
	}
	if line[len(line)-1] != ')' {
		return
	}
	text := strings.TrimSpace(line)
	if n := countBefore(text, " row"); n > 0 && (strings.HasPrefix(text, "(") || strings.Contains(text, " in set")) {
		g.rows, g.said = n, true
	}
}

// capitals reports whether a line is two words or more, all in capitals, in
// columns.
func capitals(line string) bool {
	columns := 0
	for word := range strings.FieldsSeq(line) {
		if word != strings.ToUpper(word) || word == strings.ToLower(word) {
			return false
		}
		columns++
	}
	return columns >= 2 && (strings.Contains(line, "  ") || strings.Contains(line, "\t"))
}

func (g *grid) end(s *survey) {
	switch {
	case g.said:
		s.set(figureRows, g.rows)
	case g.head && g.lines > 1:
		s.counted(figureRows, g.lines-1)
	}
}
