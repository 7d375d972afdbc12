package tokens

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// How a text is cut before the engine sees it.
const (
	// MaxRunBytes is the longest run of one class of characters (letters, white
	// space, symbols) that is counted whole.
	MaxRunBytes = 2 << 10
	// runPieceBytes is what a longer run is counted in. The engine takes 16
	// times as long for a piece four times as long.
	runPieceBytes = 512
	// maxWholeRunBytes bounds the runs between the two sizes that one call
	// counts whole, so that a text made of nothing else stays affordable.
	maxWholeRunBytes = 128 << 10
	// chunkBytes is the size from which a text is cut where the engine would
	// split it anyway. It keeps the engine's working memory small.
	chunkBytes = 64 << 10
)

// class is what the engine's splitter may keep together.
type class uint8

const (
	none class = iota
	letter
	number // split after three at the latest, so never a long run
	space
	symbol
	mark // goes with letters as well as with symbols
)

// pieces cuts text into parts to be counted one by one. The bool is false for
// a part whose end is not where the engine would have split.
func pieces(text string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		whole := maxWholeRunBytes
		start := 0
		for at := 0; at < len(text); {
			end, size, kind := runEnd(text, at)
			switch {
			case kind == number || size <= runPieceBytes:
				if at-start >= chunkBytes && splits(text, at) {
					if !yield(text[start:at], true) {
						return
					}
					start = at
				}
			case size <= MaxRunBytes && size <= whole:
				whole -= size
			default:
				if start < at && !yield(text[start:at], false) || !yieldRun(text[at:end], yield) {
					return
				}
				start = end
			}
			at = end
		}
		if start < len(text) {
			yield(text[start:], true)
		}
	}
}

// yieldRun yields a long run in pieces.
func yieldRun(run string, yield func(string, bool) bool) bool {
	start, size := 0, 0
	for at, r := range run {
		if size >= runPieceBytes {
			if !yield(run[start:at], false) {
				return false
			}
			start, size = at, 0
		}
		size += utf8.RuneLen(r)
	}
	return yield(run[start:], false)
}

// splits tells whether the engine always splits at a place: between a letter
// or number and white space.
func splits(text string, at int) bool {
	if text[at] != ' ' && text[at] != '\n' {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return unicode.IsLetter(before) || unicode.IsNumber(before)
}

// runEnd returns where the run that begins at a place ends, its size for the
// engine and its class. Marks belong to the letters or symbols beside them. A
// byte that is no UTF-8 has the size of the character that replaces it.
func runEnd(text string, at int) (end, size int, run class) {
	for at < len(text) {
		r, width := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, width = utf8.DecodeRuneInString(text[at:])
		}
		next := classOf(r)
		switch {
		case run == none || run == mark && (next == letter || next == symbol):
			run = next
		case next == mark && (run == letter || run == symbol):
		case next != run:
			return at, size, run
		}
		at += width
		size += utf8.RuneLen(r)
	}
	return at, size, run
}

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		return letter
	case '0' <= r && r <= '9':
		return number
	case unicode.IsSpace(r):
		return space
	case r < utf8.RuneSelf:
		return symbol
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsMark(r):
		return mark
	}
	return symbol
}
