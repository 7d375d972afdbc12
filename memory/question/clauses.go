package question

import (
	"strings"
	"unicode/utf8"
)

const (
	// headWords is how many words the head of a clause has, leastHead how many where the text
	// would have less than bodyWords behind it: Korean and Turkish say much in a word.
	headWords, leastHead, bodyWords = 6, 2, 3
	// In scripts without spaces a clause is one word. shortHead and longHead are the heads of it
	// in bytes: such words are shorter in Chinese than in Japanese.
	shortHead, longHead = 21, 33
	// bodyBytes is what the text has at least behind one of these.
	bodyBytes = 9
	// maxClauses bounds the clauses of a text that are looked at: the last ones.
	maxClauses = 4
)

// Clause is a part of a text between punctuation marks, with its first words, by which it says
// what it is about to do.
type Clause struct {
	Head string
	// At is where it begins in the text, in bytes.
	At int
}

// Clauses returns the last clauses of a text, but for the first of all, that have something
// behind their heads; the last one first.
func Clauses(text string) (clauses []Clause) {
	words := cut(nil, text)
	end := len(words) // of the clause at hand
	for i, n := len(words)-1, 0; i > 0 && n < maxClauses; i-- {
		if !strings.ContainsAny(text[words[i-1].to:words[i].from], ",;:.!?\n…—–،؛؟。，、；：！？") {
			continue
		}
		at, last := int(words[i].from), min(i+headWords, end, max(i+leastHead, len(words)-bodyWords))
		if last == i+1 && text[at] >= utf8.RuneSelf {
			for _, longest := range []int{shortHead, longHead} {
				to := runeStart(text, min(at+longest, int(words[i].to)))
				if to+bodyBytes > len(text) {
					break
				}
				clauses = append(clauses, Clause{text[at:to], at})
				if to == int(words[i].to) {
					break
				}
			}
		} else if len(words)-last >= bodyWords {
			clauses = append(clauses, Clause{text[at:words[last-1].to], at})
		}
		end = i
		n++
	}
	return clauses
}

// runeStart returns the place, or the last one before it, at which a character begins.
func runeStart(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
