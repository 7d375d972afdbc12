package question

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// word is a run of letters and digits in a text.
type word struct {
	lower    string
	from, to int32 // where it stands, in bytes
	capital  bool  // it begins with one
	begins   bool  // a sentence
	// joint is the character, of one byte, that alone stands between the word and the
	// next one; zero where there is none or more.
	joint byte
}

// bytesPerWord is what a word and the space behind it have at least in most texts.
const bytesPerWord = 5

// cut appends the words of a text to others. It is the only place that cuts a text, but for
// the analysis, which makes the terms of the index.
func cut(words []word, text string) []word {
	words = slices.Grow(words, len(text)/bytesPerWord+1)
	from := len(words)
	begins, end := true, 0
	for at := 0; at < len(text); {
		r, size := runeAt(text, at)
		if !isWordRune(r) {
			begins = begins && isSpaceOrPunct(r) || r < utf8.RuneSelf && asciiKinds[r]&sentenceEnd != 0
			at += size
			continue
		}
		if n := len(words); n > from && at == end+1 {
			words[n-1].joint = text[end]
		}
		small := isSmall(r)
		for end = at + size; end < len(text); end += size {
			var next rune
			if next, size = runeAt(text, end); !isWordRune(next) {
				break
			}
			small = small && isSmall(next)
		}
		w := word{lower: text[at:end], from: int32(at), to: int32(end), capital: unicode.IsUpper(r), begins: begins}
		if !small {
			w.lower = strings.ToLower(w.lower)
		}
		words = append(words, w)
		at, begins = end, false
	}
	return words
}

// runeAt returns the character at a place of a text and its size in bytes.
func runeAt(text string, at int) (rune, int) {
	if b := text[at]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(text[at:])
}

// What a character is to cut, as bits; asciiKinds has them of ASCII.
const (
	inWord = 1 << iota
	small  // it is in lower case, or has none
	spaceOrPunct
	sentenceEnd
)

var asciiKinds = func() (kinds [utf8.RuneSelf]uint8) {
	for i := range kinds {
		r := rune(i)
		for kind, is := range map[uint8]bool{
			inWord: unicode.IsLetter(r) || unicode.IsNumber(r), small: !unicode.IsUpper(r),
			spaceOrPunct: unicode.IsSpace(r) || unicode.IsPunct(r), sentenceEnd: strings.ContainsRune(".!?:(\n", r),
		} {
			if is {
				kinds[i] |= kind
			}
		}
	}
	return kinds
}()

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiKinds[r]&inWord != 0
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isSmall reports whether a text of such characters is its own lower case.
func isSmall(r rune) bool { return r < utf8.RuneSelf && asciiKinds[r]&small != 0 }

func isSpaceOrPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiKinds[r]&spaceOrPunct != 0
	}
	return unicode.IsSpace(r) || unicode.IsPunct(r)
}

// maxNamesBytes is how much of a question is searched for the names of authors.
const maxNamesBytes = 256

// names returns the words of a text in the form in which the names of authors are
// compared.
func names(text string, words []word) (folded []string) {
	size := 0
	for i := 0; i < len(words); i++ {
		from, to := words[i].from, joined(text, words[i].to)
		for i+1 < len(words) && words[i+1].from == to {
			i++
			to = joined(text, words[i].to)
		}
		parts := []string{words[i].lower}
		if piece := text[from:to]; strings.IndexFunc(piece, isForeign) >= 0 {
			parts = strings.Fields(segment.FoldName(piece)) // the normal form may part it
		}
		for _, part := range parts {
			if size += len(part) + 1; size > maxNamesBytes+1 {
				return folded
			}
			folded = append(folded, part)
		}
	}
	return folded
}

// joined returns where the accents and symbols end that stand at the end of a word:
// a normal form makes letters of them.
func joined(text string, end int32) int32 {
	for at, r := range text[end:] {
		if !isForeign(r) || isWordRune(r) || unicode.IsSpace(r) || unicode.IsPunct(r) {
			return end + int32(at)
		}
	}
	return int32(len(text))
}

func isForeign(r rune) bool { return r >= utf8.RuneSelf }
