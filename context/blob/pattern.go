package blob

import (
	"bytes"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

const (
	// MaxPatternBytes bounds a pattern.
	MaxPatternBytes = 1024
	// maxPatternSteps bounds what a pattern compiles to: the time for a line is
	// its length times this.
	maxPatternSteps = 1000
)

// LinePattern is what to look for in a line. It is made by Literal or Regexp, and
// safe for concurrent use.
type LinePattern struct {
	// needed are texts of which every line that matches contains one; empty when
	// there are none such.
	needed [][]byte
	// fold says that needed are in lower case, and that the letters of ASCII may
	// be of either case.
	fold bool
	// expression decides; nil when the one needed text does. program is what it
	// was compiled to.
	expression *regexp.Regexp
	program    *syntax.Prog
}

// Literal looks for a text, in either case when ignoreCase is set. Bad input is
// an *invalid.Error.
func Literal(text string, ignoreCase bool) (*LinePattern, error) {
	if ignoreCase {
		p, err := Regexp(regexp.QuoteMeta(text), true)
		if err == nil && text == "" {
			err = invalid.Field(ErrInvalid, "literal", "is required")
		}
		return p, err
	}
	if text == "" || len(text) > MaxPatternBytes || strings.Contains(text, "\n") {
		return nil, invalid.Field(ErrInvalid, "literal", "must be 1 to %d bytes without a line feed", MaxPatternBytes)
	}
	return &LinePattern{needed: [][]byte{[]byte(text)}}, nil
}

// Regexp looks for a regular expression in the syntax of RE2, line by line: `^`
// and `$` are the ends of a line. Bad input is an *invalid.Error.
func Regexp(text string, ignoreCase bool) (*LinePattern, error) {
	if text == "" || len(text) > MaxPatternBytes {
		return nil, invalid.Field(ErrInvalid, "regexp", "must be 1 to %d bytes", MaxPatternBytes)
	}
	if ignoreCase {
		text = "(?i)" + text
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, invalid.Field(ErrInvalid, "regexp", "can't be read: %s", err.Error())
	}
	parsed = parsed.Simplify()
	program, err := syntax.Compile(parsed)
	if err != nil {
		return nil, invalid.Field(ErrInvalid, "regexp", "can't be read: %s", err.Error())
	}
	if len(program.Inst) > maxPatternSteps {
		return nil, invalid.Field(ErrInvalid, "regexp", "repeats too much: %d steps, at most %d are allowed", len(program.Inst), maxPatternSteps)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, invalid.Field(ErrInvalid, "regexp", "can't be read: %s", err.Error())
	}
	p := &LinePattern{expression: expression, program: program}
	one := required(parsed)
	p.fold = one.fold
	for _, text := range one.texts {
		p.needed = append(p.needed, []byte(text))
	}
	return p, nil
}

// maxNeeded bounds the texts that are looked for at once.
const maxNeeded = 8

// oneOf are texts of which every match contains one; none when that can't be
// said.
type oneOf struct {
	texts []string
	fold  bool
}

// worth is how much it saves to look for the texts first: the shortest one
// decides. What may be in either case costs a copy of the content.
func (o oneOf) worth() int {
	if len(o.texts) == 0 {
		return 0
	}
	shortest := len(o.texts[0])
	for _, text := range o.texts {
		shortest = min(shortest, len(text))
	}
	if !o.fold {
		shortest *= 4
	}
	return shortest
}

// required returns texts of which every match of an expression contains one.
func required(re *syntax.Regexp) oneOf {
	switch re.Op {
	case syntax.OpLiteral:
		return requiredLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var best oneOf
		for _, sub := range re.Sub {
			if o := required(sub); o.worth() > best.worth() {
				best = o
			}
		}
		return best
	case syntax.OpAlternate:
		return requiredOfAll(re.Sub)
	}
	return oneOf{}
}

// requiredOfAll joins the texts of alternatives.
func requiredOfAll(alternatives []*syntax.Regexp) oneOf {
	var all oneOf
	for _, sub := range alternatives {
		o := required(sub)
		if len(o.texts) == 0 || len(all.texts)+len(o.texts) > maxNeeded {
			return oneOf{}
		}
		all.texts, all.fold = append(all.texts, o.texts...), all.fold || o.fold
	}
	if all.fold {
		for i, text := range all.texts {
			all.texts[i] = string(appendLower(nil, []byte(text)))
		}
	}
	return all
}

func requiredLiteral(re *syntax.Regexp) oneOf {
	if re.Flags&syntax.FoldCase == 0 {
		text := string(re.Rune)
		if text == "" || strings.ContainsRune(text, utf8.RuneError) {
			return oneOf{} // that one also matches bytes which are no UTF-8
		}
		return oneOf{texts: []string{text}}
	}
	// K and S have a third form beyond ASCII, so that a line may hold neither of
	// their two.
	var best, run []rune
	for _, r := range re.Rune {
		if r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r) {
			run = nil
			continue
		}
		if run = append(run, r); len(run) > len(best) {
			best = run
		}
	}
	if len(best) == 0 {
		return oneOf{}
	}
	return oneOf{texts: []string{strings.ToLower(string(best))}, fold: true}
}

// places finds where a line may match in one text.
type places struct {
	pattern *LinePattern
	text    []byte
	next    []int // of each needed text, from the last place asked for on
}

// begin takes a text: in lower case when the pattern folds.
func (p *places) begin(text []byte) {
	p.text = text
	p.next = append(p.next[:0], make([]int, len(p.pattern.needed))...)
	for i := range p.next {
		p.next[i] = -1
	}
}

// after returns the first place from the beginning of a line on, or -1. Places
// must be asked for in order.
func (p *places) after(from int) int {
	if len(p.next) == 0 && from < len(p.text) {
		return from
	}
	first := len(p.text)
	for i, at := range p.next {
		if at < from {
			at = len(p.text)
			if found := bytes.Index(p.text[from:], p.pattern.needed[i]); found >= 0 {
				at = from + found
			}
			p.next[i] = at
		}
		first = min(first, at)
	}
	if first == len(p.text) {
		return -1
	}
	return first
}

// in returns where the first match of a line begins and ends. Where that takes
// long it calls pause again and again, whose error ends it.
func (p *LinePattern) in(line []byte, pause func() error) (start, end int, ok bool, err error) {
	if p.expression == nil {
		at := bytes.Index(line, p.needed[0])
		return at, at + len(p.needed[0]), at >= 0, nil
	}
	var found []int
	if steps := len(p.program.Inst); steps*len(line) <= quickSteps {
		found = p.expression.FindIndex(line)
	} else {
		reader := &pausingReader{text: line, every: max(quickSteps/steps, 1), pause: pause}
		found = p.expression.FindReaderIndex(reader)
		err = reader.err
	}
	if found == nil || err != nil {
		return 0, 0, false, err
	}
	return found[0], found[1], true, nil
}

// quickSteps is how many bytes times steps are looked at without a pause: some
// milliseconds.
const quickSteps = 1 << 18

// pausingReader gives a text to an expression, with pauses.
type pausingReader struct {
	text     []byte
	at, next int // next is where to pause
	every    int
	pause    func() error
	err      error
}

// ReadRune says that the text is at its end when the pause fails.
func (r *pausingReader) ReadRune() (rune, int, error) {
	if r.at >= r.next && r.err == nil {
		r.err, r.next = r.pause(), r.at+r.every
	}
	if r.err != nil || r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	char, n := utf8.DecodeRune(r.text[r.at:])
	r.at += n
	return char, n, nil
}

// appendLower appends text with its ASCII letters in lower case.
func appendLower(dst, text []byte) []byte {
	start := len(dst)
	dst = append(dst, text...)
	for i, b := range dst[start:] {
		if 'A' <= b && b <= 'Z' {
			dst[start+i] = b + ('a' - 'A')
		}
	}
	return dst
}
