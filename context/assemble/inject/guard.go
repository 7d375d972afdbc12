package inject

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// quoteMark begins a line that would look like one of the prompt's own. Folds mark what
// they quote in the same way.
const quoteMark = "| "

// builtInTags are the tags that prompts have whoever asks for them.
var builtInTags = []string{tagMemory, tagKnowledge, PlaybookTag, tagTool, "notes", "agents_md"}

// openings are how the lines of a prompt's own parts begin: sections, folds, references
// and what is said in place of messages. In lower case.
var openings = []string{
	"goal:", "current goal:", "plan (", "past errors:", "timestamps:", "# available tools", "# skill:", "# other skills",
	"📚 knowledge:", "(source:", "source:", "tools:", "full data:", "full output:", "full text of",
	"low confidence:", "summary:",
	"[earlier steps", "[earlier call", "[folded", "[lines with", "[old tool result", "[summary of", "[turn ",
	"[image at", "[calling ", "[direct message", "[delegation ", "[parent plan", "[tool result", "[...",
}

// rulers are lines that part the sections of a prompt when they stand alone.
var rulers = []string{"---", "===", "***"}

// Guard is a text of a stranger that can stand in a prompt: with memory, knowledge,
// output of tools or words of other agents in it.
//
// The rule: a line that begins as one of the prompt's own does (openings, rulers, the
// head of a knowledge snippet) gets a mark in front, and every "<" of a built-in tag, or
// of a special token "<|", becomes "&lt;". White space, characters without width and the
// case of letters don't hide a line or a tag. Everything else stays as it is. What went
// through Guard once is not changed by it again.
func Guard(s string) string {
	s = guardTags(strings.ReplaceAll(s, "<|", "&lt;|"), builtInTags)
	var b strings.Builder
	from := 0
	for at := 0; at >= 0; at = nextLine(s, at) {
		if looksOwn(s[at:]) {
			b.WriteString(s[from:at])
			b.WriteString(quoteMark)
			from = at
		}
	}
	if b.Len() == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// GuardTags is Guard for a text that does not begin a line.
func GuardTags(s string) string { return guardTags(s, builtInTags) }

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

// looksOwn tells whether a text begins with a line that looks like one of the prompt's
// own.
func looksOwn(s string) bool {
	line := visible(s)
	if slices.ContainsFunc(openings, func(o string) bool { return strings.HasPrefix(line, o) }) {
		return true
	}
	return slices.Contains(rulers, line) || isSnippetHead(s)
}

// visible is what one sees of the beginning of a line: lower case, without the space and
// what has no width at its start, and its runs of space as one. Of a longer line it is
// maxOpening characters.
func visible(s string) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range s {
		switch {
		case isBreak(r), n > maxOpening:
			return b.String()
		case hidden(r):
			continue
		case unicode.IsSpace(r):
			gap = n > 0
			continue
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(unicode.ToLower(r))
		n++
	}
	if gap && n > 0 {
		b.WriteByte(' ')
	}
	return strings.TrimRight(b.String(), " ")
}

// hidden tells whether a character has no width.
func hidden(r rune) bool {
	if ' ' <= r && r < 0x7f {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me) || unicode.IsControl(r) && !unicode.IsSpace(r) ||
		r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0'
}

// isSnippetHead tells whether a text begins as the head of a knowledge snippet does: a
// number in brackets, and a score in the line.
func isSnippetHead(s string) bool {
	line := visible(s)
	if len(line) < 3 || line[0] != '[' || line[1] < '0' || line[1] > '9' {
		return false
	}
	end := nextLine(s, 0)
	if end < 0 {
		end = len(s)
	}
	return strings.Contains(strings.ToLower(s[:end]), "score")
}

// tagsOf are the tags of callers' injections, which nobody else may open or close.
func tagsOf(all []Injection) []string {
	var tags []string
	for i := range all {
		if tag := strings.ToLower(all[i].Tag); tag != "" && !slices.Contains(builtInTags, tag) && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// isNameByte tells whether a byte can stand in the name of a tag, in lower case.
func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '_' || b == '-'
}

// angles are characters that look like the beginning of a tag.
var angles = [...]string{"<", "＜", "﹤", "〈", "‹"}

// angleAt is how long the angle is with which s begins; 0 where it begins with none.
func angleAt(s string) int {
	if s[0] < utf8.RuneSelf {
		if s[0] == '<' {
			return 1
		}
		return 0
	}
	for _, angle := range angles[1:] {
		if strings.HasPrefix(s, angle) {
			return len(angle)
		}
	}
	return 0
}

// guardTags writes "&lt;" for the beginning of each opening or closing tag of those
// names.
func guardTags(s string, tags []string) string {
	if len(tags) == 0 {
		return s
	}
	var b strings.Builder
	from := 0
	for at := 0; at < len(s); at++ {
		size := 0
		if s[at] == '<' || s[at] >= utf8.RuneSelf {
			size = angleAt(s[at:])
		}
		if size > 0 && isTag(s[at+size:], tags) {
			b.WriteString(s[from:at])
			b.WriteString("&lt;")
			from = at + size
			at = from - 1
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// maxSkipped bounds what is looked through for the name of a tag. What hides more than
// that is taken for one.
const maxSkipped = 32

// isTag tells whether what follows a "<" is one of those tags, opening or closing, as
// one sees it.
func isTag(s string, tags []string) bool {
	var name []byte
	skipped := 0
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && isNameByte(byte(unicode.ToLower(r))):
			name = append(name, byte(unicode.ToLower(r)))
			if len(name) > settings.MaxTagBytes {
				return false
			}
			continue
		case hidden(r), len(name) == 0 && (strings.ContainsRune("/／\\", r) || unicode.IsSpace(r)):
			if skipped++; skipped > maxSkipped {
				return true
			}
			continue
		}
		return slices.Contains(tags, string(name))
	}
	return slices.Contains(tags, string(name))
}
