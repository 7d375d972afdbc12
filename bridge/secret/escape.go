package secret

import (
	"bytes"
	"html"
	"slices"
	"unicode/utf8"
)

// maxEntity bounds an entity of HTML, with its zeros.
const maxEntity = 32

// maxEscape bounds any escape. So many bytes before a place may belong to one that goes on
// behind it.
const maxEscape = maxEntity

// special are the bytes that escapes begin with, and invisible letters.
var special = func() (t [256]bool) {
	for _, c := range "%\\&\x00" {
		t[c] = true
	}
	t[0xC2], t[0xE2], t[0xEF] = true, true, true
	return t
}()

// unescaped is a view with its escapes undone, and whether there were any. Unless the end of
// the text is that of all, an escape that is not complete there is left out.
func (v unescaped) unescaped(end bool) (out unescaped, changed bool) {
	out.size = v.size
	first := slices.IndexFunc(v.text, func(c byte) bool { return special[c] })
	if first < 0 {
		return unescaped{size: v.size}, false
	}
	out.text = append(make([]byte, 0, len(v.text)), v.text[:first]...)
	out.at = make([]int, first, len(v.text))
	for i := range out.at {
		out.at[i] = v.from(i)
	}
	for i := first; i < len(v.text); {
		c, used := v.text[i:i+1], 1
		if special[v.text[i]] {
			var complete bool
			if c, used, complete = unescape(v.text[i:]); !complete && !end {
				out.size = v.from(i)
				break
			}
			changed = changed || used != 1 || len(c) != 1 || c[0] != v.text[i]
		}
		for _, b := range c {
			out.text, out.at = append(out.text, b), append(out.at, v.from(i))
		}
		i += used
	}
	return out, changed
}

// unescape undoes the escape that a text begins with, and returns how long it is: 1 and its
// first byte where there is none. It is not complete where the text ends within it.
func unescape(text []byte) (out []byte, used int, complete bool) {
	switch text[0] {
	case 0: // every second byte of UTF-16
		return nil, 1, true
	case '%':
		if n, ok := number(text[1:min(3, len(text))], 16); ok && len(text) >= 3 {
			return []byte{byte(n)}, 3, true
		}
		return text[:1], 1, len(text) >= 3
	case '\\':
		return unescapeBackslash(text)
	case '&':
		return unescapeEntity(text)
	}
	if n := unseen(text); n > 0 {
		return nil, n, true
	}
	return text[:1], 1, len(text) >= 3
}

// unseen is the length of a letter without a form that a text begins with; 0 for none.
func unseen(text []byte) int {
	switch r, n := utf8.DecodeRune(text); r {
	case 0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF:
		return n
	}
	return 0
}

// number reads digits; false for others, or nothing.
func number(text []byte, base int) (n int, ok bool) {
	for _, c := range text {
		d := int(digits[c])
		if d < 0 || d >= base || n > utf8.MaxRune {
			return 0, false
		}
		n = n*base + d
	}
	return n, len(text) > 0
}

// short are the escapes of one letter.
var short = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

func unescapeBackslash(text []byte) (out []byte, used int, complete bool) {
	if len(text) < 2 {
		return text, 1, false
	}
	c := text[1]
	for _, form := range []struct {
		letter  byte
		lengths []int
		base    int
		skip    int
	}{{'u', []int{4}, 16, 2}, {'U', []int{8}, 16, 2}, {'x', []int{2}, 16, 2}, {'0', []int{3}, 8, 1}, {'1', []int{3}, 8, 1}} {
		if c != form.letter {
			continue
		}
		if c == 'u' && len(text) > 2 && text[2] == '{' {
			end := bytes.IndexByte(text[:min(len(text), maxEscape)], '}')
			if n, ok := number(text[3:max(3, end)], 16); ok {
				return utf8.AppendRune(nil, rune(n)), end + 1, true
			}
			return text[:1], 1, end >= 0 || len(text) >= maxEscape
		}
		length := form.lengths[0]
		if len(text) < form.skip+length {
			return text[:1], 1, false
		}
		n, ok := number(text[form.skip:form.skip+length], form.base)
		switch {
		case !ok:
		case c == 'x' || form.base == 8:
			return []byte{byte(n)}, form.skip + length, true
		default:
			return utf8.AppendRune(nil, rune(n)), form.skip + length, true
		}
	}
	if s, ok := short[c]; ok {
		return []byte{s}, 2, true
	}
	if '!' <= c && c <= '~' && (c < '0' || c > '9') && lower(c) < 'a' || lower(c) > 'z' && c <= '~' {
		return text[1:2], 2, true
	}
	return text[:1], 1, true
}

func unescapeEntity(text []byte) (out []byte, used int, complete bool) {
	part := text[:min(len(text), maxEntity)]
	end := 1
	for end < len(part) && (part[end] == '#' || lower(part[end]) >= 'a' && lower(part[end]) <= 'z' || part[end] >= '0' && part[end] <= '9') {
		end++
	}
	if end == len(part) {
		return text[:1], 1, len(text) >= maxEntity
	}
	if part[end] == ';' {
		end++
	}
	whole := string(part[:end])
	if plain := html.UnescapeString(whole); plain != whole && (part[end-1] == ';' || part[1] == '#') {
		return []byte(plain), end, true
	}
	return text[:1], 1, true
}
