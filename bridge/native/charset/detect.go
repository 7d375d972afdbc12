package charset

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Detect returns the encoding of a file that begins with head, and whether it is text at
// all. Whole says that head is all of it. UTF-8 wins wherever the bytes are UTF-8.
func Detect(head []byte, whole bool) (e Encoding, isText bool) {
	switch {
	case bytes.HasPrefix(head, []byte(utf8Marked.mark)):
		return utf8Marked, isUTF8(head, whole)
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return utf16LE.marked("\xff\xfe"), isUTF16(head[2:], binary.LittleEndian, whole)
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return utf16BE.marked("\xfe\xff"), isUTF16(head[2:], binary.BigEndian, whole)
	case isUTF8(head, whole):
		return Encoding{}, true
	case mostlyASCII(head, 0) && isUTF16(head, binary.LittleEndian, whole):
		return utf16LE, true
	case mostlyASCII(head, 1) && isUTF16(head, binary.BigEndian, whole):
		return utf16BE, true
	case hasControls(head):
		return Encoding{}, false
	}
	return guess(head), true
}

// isUTF8 reports whether bytes are UTF-8 text; the last character may be cut off where
// they are not all. NUL is no text.
func isUTF8(head []byte, whole bool) bool {
	if !whole {
		head = text.WholeChars(head)
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// isUTF16 reports whether bytes are text of UTF-16: whole units, surrogates in pairs, no
// control characters.
func isUTF16(head []byte, order binary.ByteOrder, whole bool) bool {
	if whole && len(head)%2 != 0 {
		return false
	}
	high := false
	for i := 0; i+1 < len(head); i += 2 {
		unit := order.Uint16(head[i:])
		isLow := unit >= 0xdc00 && unit < 0xe000
		if isLow != high || unit < 0x80 && isControl(byte(unit)) || unit >= 0xfffe {
			return false
		}
		high = unit >= 0xd800 && unit < 0xdc00
	}
	return !whole || !high
}

// mostlyASCII reports whether three of four units of two bytes are ASCII, whose character
// stands at an offset.
func mostlyASCII(head []byte, offset int) bool {
	ascii := 0
	for i := 0; i+1 < len(head); i += 2 {
		if c := head[i+offset]; head[i+1-offset] == 0 && c != 0 && c < 0x80 {
			ascii++
		}
	}
	return ascii > 0 && ascii*8 >= len(head)*3
}

// isControl reports whether text files do not have a byte.
func isControl(c byte) bool {
	const spaces = "\t\n\r\f\v\b\x1b"
	return (c < ' ' || c == 0x7f) && bytes.IndexByte([]byte(spaces), c) < 0
}

func hasControls(head []byte) bool {
	return bytes.ContainsFunc(head, func(r rune) bool { return r < 0x80 && isControl(byte(r)) })
}

// guess chooses among encodings of one byte a character. Letters of another script stand
// together in words; letters of Latin scripts stand alone among ASCII.
func guess(head []byte) Encoding {
	e := Encoding{name: "windows-1252", form: charmap.Windows1252, guessed: true}
	if inWords(head) {
		e = guessScript(head)
	}
	if text, err := e.Decode(head); err == nil {
		if again, err := e.Encode(text); err == nil && bytes.Equal(again, head) {
			return e
		}
	}
	// It has all bytes.
	return Encoding{name: "iso-8859-1", form: charmap.ISO8859_1, guessed: true}
}

// inWords reports whether most bytes beyond ASCII stand three or more together.
func inWords(head []byte) bool {
	all, together, run := 0, 0, 0
	for i := 0; i <= len(head); i++ {
		if i < len(head) && head[i] >= 0x80 {
			all++
			run++
			continue
		}
		if run >= 3 {
			together += run
		}
		run = 0
	}
	return together*2 > all
}

// guessScript chooses the encoding in which most letters are small ones of the script, and
// capitals stand at the beginning of words.
func guessScript(head []byte) Encoding {
	best, bestScore := Encoding{}, 0
	for i, candidate := range []struct {
		name   string
		form   *charmap.Charmap
		script *unicode.RangeTable
	}{
		{"windows-1251", charmap.Windows1251, unicode.Cyrillic},
		{"koi8-r", charmap.KOI8R, unicode.Cyrillic},
		{"windows-1253", charmap.Windows1253, unicode.Greek},
	} {
		score, inWord := 0, false
		for _, c := range head {
			r := candidate.form.DecodeByte(c)
			switch letter := unicode.Is(candidate.script, r); {
			case letter && unicode.IsLower(r):
				score++
			case letter && inWord, !letter && c >= 0xc0:
				score -= 2
			}
			inWord = unicode.IsLetter(r)
		}
		if i == 0 || score > bestScore {
			best, bestScore = Encoding{name: candidate.name, form: candidate.form, guessed: true}, score
		}
	}
	return best
}
