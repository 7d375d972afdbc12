package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns text in the form in which terms are compared: normalized (NFKC)
// and without differences of case. Folding twice changes nothing more.
func Fold(text string) string {
	// Folding can undo the normal form and the normal form can bring back
	// capitals; in practice two rounds settle it.
	const maxRounds = 4
	for range maxRounds {
		folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
		if folded == text {
			break
		}
		text = folded
	}
	return text
}

// plainForms are letters that Unicode takes for separate letters, and that are
// written without their stroke or dot where a keyboard has none.
var plainForms = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ı", "i", "æ", "ae", "œ", "oe", "ð", "d", "þ", "th", "ħ", "h")

// spelledOut are letters that are written as two where a keyboard has no marks.
var spelledOut = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ø", "oe", "å", "aa")

// withoutAccents takes the marks from the Latin and Greek letters of a folded text:
// café is cafe. Those of other scripts are part of the word.
func withoutAccents(text string) string {
	var plain strings.Builder
	taken := false // whether the letter before loses its marks
	for _, r := range norm.NFD.String(text) {
		if mark := unicode.Is(unicode.Mn, r); !mark {
			taken = unicode.In(r, unicode.Latin, unicode.Greek)
		} else if taken {
			continue
		}
		plain.WriteRune(r)
	}
	return plainForms.Replace(norm.NFKC.String(plain.String()))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// trimMarks returns the part of a chunk between ASCII characters at its ends
// that are no letters or digits.
func trimMarks(text string) (from, to int) {
	to = len(text)
	for from < to && isMark(text[from]) {
		from++
	}
	for from < to && isMark(text[to-1]) {
		to--
	}
	return from, to
}

func isMark(c byte) bool { return c < utf8.RuneSelf && !isAlnum(c) }

// isSimpleWord reports whether a text is one word that needs no normalizing and
// no rules to see where it ends: ASCII letters and simple letters.
func isSimpleWord(text string) bool {
	for _, r := range text {
		if r < utf8.RuneSelf && (!isAlnum(byte(r)) || isDigit(byte(r))) || r >= utf8.RuneSelf && !isSimpleLetter(r) {
			return false
		}
	}
	return text != ""
}

// isSimpleLetter reports whether r is a Latin, Greek or Cyrillic letter of
// everyday languages that is already in normal form.
func isSimpleLetter(r rune) bool {
	switch {
	case 'À' <= r && r <= 'ž':
		return !strings.ContainsRune("×÷ĲĳĿŀŉ", r)
	case 'Έ' <= r && r <= 'ώ':
		return !strings.ContainsRune("\u038b\u038d\u03a2", r)
	}
	return 'Ѐ' <= r && r <= 'ҁ' || 'Ҋ' <= r && r <= 'ԯ'
}
