package guard

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark begins a line that would look like one of the prompt's own. Folds mark what they
// quote in the same way.
const Mark = "| "

// openings are how the lines of a prompt's own parts begin: sections, and what is said in
// place of messages. In lower case.
var openings = []string{
	"goal:", "current goal:", "plan (", "past errors:", "timestamps:", "# available tools", "# skill:", "# other skills",
	"📚 knowledge:", "(source:", "source:", "tools:", "earlier output, by step:", "low confidence:", "summary:",
	"[calling ", "[direct message", "[delegation ", "[parent plan", "[from ", "[tool result",
}

// foldMarks are the beginnings of lines that replace folded, cut or repeated text and say
// where it is. In lower case, without the number that some begin with.
var foldMarks = []string{
	"[earlier steps", "[earlier call", "[folded", "[lines with", "[old tool result", "[summary of", "[turn ", "[image at",
	"[...", "[… ", "full data:", "full output:", "full text of", "full text:",
}

// sameLines stands behind the number of lines that are shown elsewhere.
const sameLines = " lines unchanged:"

// rulers are lines that part the sections of a prompt when they stand alone.
var rulers = []string{"---", "===", "***"}

// Text is a text of a stranger that can stand in a prompt: with memory, knowledge,
// output of tools or words of other agents in it.
//
// The rule: a line that begins as one of the prompt's own does (openings, marks of folds,
// rulers, the head of a knowledge snippet) gets a mark in front, every "<" of a built-in
// tag, or of a special token "<|", becomes "&lt;", and a NUL U+FFFD. White space,
// characters without width and the case of letters don't hide a line or a tag. Everything
// else stays as it is. What went through Text once is not changed by it again.
func Text(s string) string { return lines(inside(s), 0) }

// Inline is Text for what stands behind words of the prompt's own, so that its first line
// does not begin one.
func Inline(s string) string {
	s = inside(s)
	return lines(s, nextLine(s, 0))
}

// inside is a text without what may stand nowhere in a line.
func inside(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return Tags(strings.ReplaceAll(s, "<|", "&lt;|"), builtInTags)
}

// lines marks the lines from a place on that look like the prompt's own.
func lines(s string, at int) string {
	var marked []int
	for ; at >= 0; at = nextLine(s, at) {
		if looksOwn(s[at:]) {
			marked = append(marked, at)
		}
	}
	return WithMarks(s, marked)
}

// nextLine is where the line behind that at a place begins; -1 where there is none.
func nextLine(s string, at int) int {
	for i := at; i < len(s); i++ {
		switch s[i] {
		case '\n', '\r', '\v', '\f':
			return i + 1
		case 0xc2, 0xe2: // what some line breaks begin with
			if r, size := utf8.DecodeRuneInString(s[i:]); isBreak(r) {
				return i + size
			}
		}
	}
	return -1
}

func isBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// maxOpening is more characters than any opening has.
const maxOpening = 32

// looksOwn reports whether a text begins with a line that looks like one of the prompt's
// own.
func looksOwn(s string) bool {
	if !maybeOwn(s) {
		return false
	}
	var room [maxVisibleBytes]byte
	line := visible(room[:0], s)
	return begins(line, openings) || marksFold(line) || isRuler(line) || isSnippetHead(line, s)
}

// maybeOwn reports whether a line can look like one of the prompt's own, by its first two
// characters: most can't.
func maybeOwn(s string) bool {
	at := 0
	for at < len(s) && (s[at] == ' ' || s[at] == '\t') {
		at++
	}
	if at+1 >= len(s) || !plain(s[at]) || !plain(s[at+1]) {
		return at+1 < len(s) // what has no width may stand between
	}
	return s[at] == '[' || pairs[lower(s[at])][lower(s[at+1])]
}

// plain reports whether a byte is a character that one sees, or a space.
func plain(c byte) bool { return ' ' <= c && c < 0x7f }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// pairs are the first two characters of the lines of the prompt's own, in lower case.
var pairs = func() (set [utf8.RuneSelf][utf8.RuneSelf]bool) {
	for _, list := range [][]string{openings, foldMarks, rulers} {
		for _, opening := range list {
			if plain(opening[0]) && plain(opening[1]) {
				set[opening[0]][opening[1]] = true
			}
		}
	}
	return set
}()

// begins reports whether a line begins as one of some texts.
func begins(line []byte, list []string) bool {
	for _, text := range list {
		if len(line) >= len(text) && string(line[:len(text)]) == text {
			return true
		}
	}
	return false
}

func isRuler(line []byte) bool {
	return slices.ContainsFunc(rulers, func(ruler string) bool { return string(line) == ruler })
}

// marksFold reports whether a line, as visible returns it, looks like a line that replaces
// folded, cut or repeated text.
func marksFold(line []byte) bool {
	if begins(line, foldMarks) {
		return true
	}
	number, ok := bytes.CutPrefix(line, []byte("["))
	rest := bytes.TrimLeft(number, "0123456789")
	return ok && len(rest) < len(number) && bytes.HasPrefix(rest, []byte(sameLines))
}

// maxVisibleBytes is room for what visible returns.
const maxVisibleBytes = (maxOpening + 2) * (utf8.UTFMax + 1)

// visible appends what one sees of the beginning of a line: lower case, without the space
// and what has no width at its start, and its runs of space as one. Of a longer line it is
// maxOpening characters.
func visible(dst []byte, s string) []byte {
	n, gap := 0, false
	for _, r := range s {
		switch {
		case isBreak(r), n > maxOpening:
			return dst
		case hidden(r):
			continue
		case unicode.IsSpace(r):
			gap = n > 0
			continue
		}
		if gap {
			dst = append(dst, ' ')
			gap = false
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
		n++
	}
	return dst
}

// hidden reports whether a character has no width.
func hidden(r rune) bool {
	if ' ' <= r && r < 0x7f {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me) || unicode.IsControl(r) && !unicode.IsSpace(r) ||
		r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0'
}

// isSnippetHead reports whether a text whose first line is visible as line begins as the head
// of a knowledge snippet does: a number in brackets, and a score in the line.
func isSnippetHead(line []byte, s string) bool {
	if len(line) < 3 || line[0] != '[' || line[1] < '0' || line[1] > '9' {
		return false
	}
	end := nextLine(s, 0)
	if end < 0 {
		end = len(s)
	}
	return strings.Contains(strings.ToLower(s[:end]), "score")
}
