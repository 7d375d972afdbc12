package provider

import (
	"bytes"
	"math/bits"
	"unicode/utf8"
)

// escapedPart: one byte in this many, about, is written as two.
const escapedPart = 16

// quote writes text as encoding/json does that escapes no HTML, byte for byte,
// but reads eight characters at once where no escape is needed: reading its texts is most
// of the cost of a prompt.
func quote(out *bytes.Buffer, text string) {
	out.Grow(len(text) + len(text)/escapedPart + len(`""`))
	dst := append(out.AvailableBuffer(), '"')
	for text != "" {
		n := plainPrefix(text)
		dst, text = append(dst, text[:n]...), text[n:]
		if text != "" {
			dst, n = appendEscaped(dst, text)
			text = text[n:]
		}
	}
	out.Write(append(dst, '"'))
}

// plainPrefix is how many bytes of text, from its beginning, stand for themselves
// in a JSON string.
func plainPrefix(text string) int {
	n := 0
	for ; n+8 <= len(text); n += 8 {
		if marks := unplain(word(text[n:])); marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
	}
	for n < len(text) && plainByte(text[n]) {
		n++
	}
	return n
}

// word is the first eight bytes of text as a number, the first one lowest.
func word(text string) uint64 {
	_ = text[7] // so that the compiler makes one load of it
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// unplain marks the highest bit of the first byte of eight that does not stand
// for itself, and maybe of bytes behind it; it is 0 if all do. It tests all at
// once: a byte under a limit borrows its highest bit when the limit is taken from
// it, and the XOR of equal bytes is zero. A borrow changes only the bytes behind.
func unplain(w uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	control := (w - each*' ') &^ w
	quotes := w ^ each*'"'
	slashes := w ^ each*'\\'
	return (w | control | (quotes-each)&^quotes | (slashes-each)&^slashes) & high
}

func plainByte(b byte) bool {
	return b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\'
}

// appendEscaped appends the first character of text, which is not a plain byte,
// and returns how many bytes it has there.
func appendEscaped(dst []byte, text string) ([]byte, int) {
	const hex = "0123456789abcdef"
	b := text[0]
	if b >= utf8.RuneSelf {
		return appendRune(dst, text)
	}
	short := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), b)
	if short >= 0 {
		return append(dst, '\\', `"\bfnrt`[short]), 1
	}
	return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xF]), 1
}

// appendRune appends a character beyond ASCII. JSON may hold all of them, but
// two end a line in JavaScript.
func appendRune(dst []byte, text string) ([]byte, int) {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case r == utf8.RuneError && n == 1:
		return append(dst, `\ufffd`...), 1
	case r == '\u2028':
		return append(dst, `\u2028`...), n
	case r == '\u2029':
		return append(dst, `\u2029`...), n
	}
	return append(dst, text[:n]...), n
}
