package redact

import (
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// block is a text to look through, without the escapes of JSON.
type block struct {
	text    string
	buffer  []byte
	escapes []escape
	found   []found
}

// escape says that what stands from a place of the text on comes from a place of the raw one.
type escape struct{ text, raw int }

var blocks = sync.Pool{New: func() any { return new(block) }}

// maxSpare bounds what a block keeps for its next use.
const maxSpare = 1 << 18

func (b *block) free() {
	b.text, b.found = "", b.found[:0]
	if cap(b.buffer) <= maxSpare && cap(b.escapes) <= maxSpare/8 {
		blocks.Put(b)
	}
}

// take undoes the escapes of a raw text.
func (b *block) take(raw string) {
	b.text, b.escapes = raw, b.escapes[:0]
	next := nextOdd(raw)
	if next == len(raw) {
		return
	}
	b.buffer = b.buffer[:0]
	for at := 0; ; {
		b.buffer = append(b.buffer, raw[at:at+next]...)
		at += next
		if at == len(raw) {
			break
		}
		if raw[at] == '\\' {
			var size int
			b.buffer, size = unescape(b.buffer, raw[at:])
			at += size
		} else {
			at += hiddenSize(raw[at:])
		}
		b.escapes = append(b.escapes, escape{len(b.buffer), at})
		next = nextOdd(raw[at:])
	}
	b.text = string(b.buffer)
}

// unescape appends what the escape at the beginning of a text means, and returns how long it
// is. Several backslashes in a row (JSON within JSON) are one escape. If they begin no escape,
// they are one backslash.
func unescape(dst []byte, text string) ([]byte, int) {
	at := 1
	for at < len(text) && text[at] == '\\' {
		at++
	}
	if at == len(text) {
		return append(dst, '\\'), at
	}
	switch c := text[at]; c {
	case '"', '/', '\'':
		return append(dst, c), at + 1
	case 'n', 'r', 't', 'b', 'f':
		return append(dst, "\n\r\t\b\f"[strings.IndexByte("nrtbf", c)]), at + 1
	case 'u':
		if len(text) >= at+5 {
			if n, err := strconv.ParseUint(text[at+1:at+5], 16, 16); err == nil && n > 0 {
				switch {
				case n < 0x80:
					return append(dst, byte(n)), at + 5
				case hidden(rune(n)):
					return dst, at + 5
				}
			}
		}
	}
	return append(dst, '\\'), at
}

// raw is the place of the raw text that a place of the text is.
func (b *block) raw(at int) int {
	i := sort.Search(len(b.escapes), func(i int) bool { return b.escapes[i].text > at }) - 1
	if i < 0 {
		return at
	}
	return b.escapes[i].raw + at - b.escapes[i].text
}

// at is the place of the text that a place of the raw one is, which stands in no escape.
func (b *block) at(raw int) int {
	i := sort.Search(len(b.escapes), func(i int) bool { return b.escapes[i].raw > raw }) - 1
	if i < 0 {
		return raw
	}
	return b.escapes[i].text + raw - b.escapes[i].raw
}

// hidden reports whether a letter shows nothing: a writer puts one into a secret for it
// to pass.
func hidden(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x2064 || r >= 0x2066 && r <= 0x206f ||
		r == 0xad || r == 0x34f || r == 0x61c || r == 0x180e || r == 0xfeff || r >= 0xfe00 && r <= 0xfe0f
}

// hiddenSize is the size of the hidden letter that a text begins with; zero for none.
func hiddenSize(text string) int {
	switch text[0] { // what they begin with in UTF-8
	case 0xc2, 0xcd, 0xd8, 0xe1, 0xe2, 0xef:
		if r, size := utf8.DecodeRuneInString(text); hidden(r) {
			return size
		}
	}
	return 0
}

// nextOdd is the place of the next backslash or hidden letter; the length of the text without
// one.
func nextOdd(text string) int {
	end := strings.IndexByte(text, '\\')
	if end < 0 {
		end = len(text)
	}
	for _, first := range []byte{0xe2, 0xef, 0xc2, 0xcd, 0xd8, 0xe1} {
		for at := 0; ; at++ {
			next := strings.IndexByte(text[at:end], first)
			if next < 0 {
				break
			}
			if at += next; hiddenSize(text[at:]) > 0 {
				end = at
				break
			}
		}
	}
	return end
}
