package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class says what the splitting rules may do with a character; a character
// may be in several.
type class uint8

const (
	// upper may stand in the first half of a word: capitals, titles, letters
	// without case, modifiers, marks.
	upper class = 1 << iota
	// lower may stand in the second half of a word: small letters, letters
	// without case, modifiers, marks.
	lower
	letter
	number
	space
	newline // carriage return and line feed, which are space too
	mark    // goes with letters as well as with symbols
	ending  // no character: the end of the text
)

// symbol reports whether a character is neither letter, number nor space. Marks
// are symbols too.
func (c class) symbol() bool { return c&(letter|number|space|ending) == 0 }

// caseless is what letters without case, modifiers and marks share.
const caseless = upper | lower

// classTable finds the class of a rune in two steps: by its higher bits the
// page, by its lower ones the class. Equal pages are not shared; only those
// that hold something other than symbols exist.
type classTable struct {
	ascii [utf8.RuneSelf]class
	page  [(unicode.MaxRune + 1) >> pageBits]uint16
	pages [][1 << pageBits]class
}

// pageBits makes pages of 256 runes: of the 4352 there are, about 500 are
// needed.
const pageBits = 8

// loadClasses builds the table once. It never changes afterwards.
var loadClasses = sync.OnceValue(newClassTable)

func newClassTable() *classTable {
	t := &classTable{pages: make([][1 << pageBits]class, 1)}
	for _, set := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, upper | letter},
		{unicode.Lt, upper | letter},
		{unicode.Ll, lower | letter},
		{unicode.Lm, caseless | letter},
		{unicode.Lo, caseless | letter},
		{unicode.M, caseless | mark},
		{unicode.N, number},
		{unicode.White_Space, space},
	} {
		for _, r := range set.table.R16 {
			t.fill(rune(r.Lo), rune(r.Hi), rune(r.Stride), set.class)
		}
		for _, r := range set.table.R32 {
			t.fill(rune(r.Lo), rune(r.Hi), rune(r.Stride), set.class)
		}
	}
	t.fill('\n', '\n', 1, space|newline)
	t.fill('\r', '\r', 1, space|newline)
	for r := range t.ascii {
		t.ascii[r] = t.of(rune(r))
	}
	return t
}

func (t *classTable) fill(low, high, stride rune, c class) {
	for r := low; r <= high; r += stride {
		page := &t.page[r>>pageBits]
		if *page == 0 {
			*page = uint16(len(t.pages))
			t.pages = append(t.pages, [1 << pageBits]class{})
		}
		t.pages[*page][r&(1<<pageBits-1)] |= c
	}
}

// of returns the class of any rune.
func (t *classTable) of(r rune) class {
	return t.pages[t.page[r>>pageBits]][r&(1<<pageBits-1)]
}

// at returns the class of the character at a place of valid UTF-8 and its
// width, which is zero at the end of the text.
func (t *classTable) at(text string, i int) (class, int) {
	if i >= len(text) {
		return ending, 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	return t.wide(text[i:])
}

// wide is at for what is no ASCII.
//
//go:noinline
func (t *classTable) wide(text string) (class, int) {
	r, width := utf8.DecodeRuneInString(text)
	return t.of(r), width
}
