package guard

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// The tags of a prompt's own parts.
const (
	TagTool      = "tool"
	TagMemory    = "user_memory"
	TagKnowledge = "knowledge_context"
	TagPlaybook  = "playbook_hint"
	TagNotes     = "notes"
	TagAgents    = "agents_md"
)

// builtInTags are the tags that prompts have for every caller.
var builtInTags = []string{TagMemory, TagKnowledge, TagPlaybook, TagTool, TagNotes, TagAgents}

// BuiltIn reports whether a tag, in lower case, is one of a prompt's own parts.
func BuiltIn(tag string) bool { return slices.Contains(builtInTags, tag) }

// isNameByte reports whether a byte can stand in the name of a tag, in lower case.
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

// hasAngle reports whether a text may hold one of angles, by the bytes that they begin with.
func hasAngle(s string) bool {
	return slices.ContainsFunc(angles[:], func(angle string) bool { return strings.IndexByte(s, angle[0]) >= 0 })
}

// Tags writes "&lt;" for the beginning of each opening or closing tag of those names,
// which are in lower case.
func Tags(s string, tags []string) string {
	if len(tags) == 0 || !hasAngle(s) {
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

// maxSkipped bounds the text that is searched for the name of a tag. Anything longer counts
// as a tag.
const maxSkipped = 32

// isTag reports whether what follows a "<" is one of those tags, opening or closing, as
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
