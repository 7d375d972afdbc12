package question

import (
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

// cut cuts a text into words. It is the only place that does, but for the analysis,
// which makes the terms of the index.
func cut(text string) []word {
	words := make([]word, 0, len(text)/bytesPerWord+1)
	begins, end := true, 0
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !isWordRune(r) {
			begins = begins && (unicode.IsSpace(r) || unicode.IsPunct(r)) || strings.ContainsRune(".!?:(\n", r)
			at += size
			continue
		}
		if n := len(words); n > 0 && at == end+1 {
			words[n-1].joint = text[end]
		}
		end = at + size
		for end < len(text) {
			next, size := utf8.DecodeRuneInString(text[end:])
			if !isWordRune(next) {
				break
			}
			end += size
		}
		words = append(words, word{
			lower: strings.ToLower(text[at:end]), from: int32(at), to: int32(end),
			capital: unicode.IsUpper(r), begins: begins,
		})
		at, begins = end, false
	}
	return words
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

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
