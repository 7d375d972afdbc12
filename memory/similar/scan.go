package similar

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// straight makes typographic apostrophes and quotes plain.
var straight = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "…", ".", "–", "-", "—", "-")

// scan splits a text into words and signs.
func scan(text string) []token {
	s := scanner{text: straight.Replace(norm.NFC.String(text)), first: true}
	for s.at < len(s.text) {
		s.next()
	}
	return s.tokens
}

// scanner walks over a text.
type scanner struct {
	text   string
	at     int
	first  bool // a sentence begins
	tokens []token
}

func (s *scanner) rune(at int) rune {
	if at >= len(s.text) {
		return ' '
	}
	r, _ := utf8.DecodeRuneInString(s.text[at:])
	return r
}

func (s *scanner) before() rune {
	if s.at == 0 {
		return ' '
	}
	r, _ := utf8.DecodeLastRuneInString(s.text[:s.at])
	return r
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// next takes one token or blank.
func (s *scanner) next() {
	r := s.rune(s.at)
	size := utf8.RuneLen(r)
	if r == utf8.RuneError {
		size = 1
	}
	after := s.rune(s.at + size)
	switch {
	case inWord(r), unicode.IsSpace(s.before()) && strings.ContainsRune("-+.", r) && unicode.IsDigit(after):
		start := s.at
		for s.at < len(s.text) {
			r := s.rune(s.at)
			size := utf8.RuneLen(r)
			joins := strings.ContainsRune("'-._,:/@", r) && inWord(s.rune(s.at+size)) && s.at > start
			if !inWord(r) && !joins && s.at > start {
				break
			}
			s.at += size
		}
		raw := s.text[start:s.at]
		s.add(token{text: strings.ToLower(raw), raw: raw, word: true})
		return
	case r == '\n':
		s.first = true
	case unicode.IsSpace(r), r == '-' && s.lineBegins():
	case r == '!' && inWord(after): // as in !important
		s.add(token{text: "!", raw: "!"})
	case strings.ContainsRune(".,;:!", r):
		s.add(token{text: string(r), raw: string(r), point: true})
		s.first = s.first || r != ','
	default:
		s.add(token{text: s.text[s.at : s.at+size], raw: s.text[s.at : s.at+size]})
		s.first = s.first || r == '?' || r == '"'
	}
	s.at += size
}

// lineBegins reports whether a dash is the mark of a list.
func (s *scanner) lineBegins() bool {
	line := s.text[strings.LastIndexByte(s.text[:s.at], '\n')+1 : s.at]
	return strings.TrimSpace(line) == "" && unicode.IsSpace(s.rune(s.at+1))
}

func (s *scanner) add(t token) {
	t.first = s.first
	s.first = false
	s.tokens = append(s.tokens, t)
}
