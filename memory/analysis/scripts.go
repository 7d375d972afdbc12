package analysis

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/kljensen/snowball/russian"
)

// script is a way of writing whose words follow the rules of one language, whatever the
// Language of the Analyzer.
type script struct {
	letters *unicode.RangeTable
	// plain takes away what people leave out when they write: points, strokes, accents.
	plain func(word string) string
	// alphabet are the letters of the language; words with others are not stemmed. Empty:
	// all letters of the script.
	alphabet string
	stop     func(word string) bool
	stem     func(word string) string
}

// scripts are those other than Latin. It is never changed.
var scripts = []*script{
	{
		letters: unicode.Cyrillic, plain: strings.NewReplacer("ё", "е", "\u0301", "", "\u0300", "").Replace, alphabet: "абвгдежзийклмнопрстуфхцчшщъыьэюя",
		stop: russian.IsStopWord, stem: func(word string) string { return russian.Stem(word, true) },
	},
	{letters: unicode.Greek, plain: withoutAccents, stop: noStopWord, stem: stemGreek},
	{letters: unicode.Arabic, plain: plainArabic, stop: noStopWord, stem: snowballed(arabic.Stem)},
	{letters: unicode.Hebrew, plain: plainHebrew, stop: noStopWord, stem: stemHebrew},
	{letters: unicode.Devanagari, plain: plainHindi, stop: noStopWord, stem: stemHindi},
	{letters: unicode.Tamil, plain: withoutCf, stop: noStopWord, stem: snowballed(tamil.Stem)},
}

func noStopWord(string) bool { return false }

// scriptOf returns the script of a word by its first letter, or nil for Latin and for those
// that no language is known for.
func scriptOf(word string) *script {
	for _, r := range word {
		if !unicode.IsLetter(r) {
			continue
		}
		for _, s := range scripts {
			if unicode.Is(s.letters, r) {
				return s
			}
		}
		return nil
	}
	return nil
}

func (s *script) stemmable(word string) bool {
	if len(word) > maxForeignStem {
		return false
	}
	for _, r := range word {
		if s.alphabet != "" && !strings.ContainsRune(s.alphabet, r) || !unicode.Is(s.letters, r) {
			return false
		}
	}
	return true
}

// snowballed makes a function of one of Snowball's stemmers.
func snowballed(stem func(*snowballstem.Env) bool) func(word string) string {
	return func(word string) string {
		env := snowballstem.NewEnv(word)
		stem(env)
		return env.Current()
	}
}

// without returns a word without some of its characters.
func without(word string, dropped func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if dropped(r) {
			return -1
		}
		return r
	}, word)
}

// withoutCf drops the invisible characters that join and part letters.
func withoutCf(word string) string {
	return without(word, func(r rune) bool { return unicode.Is(unicode.Cf, r) })
}

func isPoint(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Cf) }

// plainArabic drops vowel signs and the stroke that only stretches a word. What stands
// under the alef and at the end of words is left to the stemmer.
func plainArabic(word string) string {
	const tatweel = 'ـ'
	return persianLetters.Replace(without(word, func(r rune) bool { return r == tatweel || isPoint(r) }))
}

// persianLetters are the letters that Persian keyboards have in place of Arabic ones.
var persianLetters = strings.NewReplacer("ی", "ي", "ک", "ك")

// finals are the Hebrew letters that look different at the end of a word.
var finals = strings.NewReplacer("ך", "כ", "ם", "מ", "ן", "נ", "ף", "פ", "ץ", "צ")

// plainHebrew drops the points and writes last letters like others.
func plainHebrew(word string) string { return finals.Replace(without(word, isPoint)) }

// leastHebrew is how many letters a stem keeps: as many as most roots have.
const leastHebrew = 3

// stemHebrew cuts the plural and the feminine endings, then the letters that stand for the
// article, and, in, to, from, as and that, as long as a root is left. A root that begins
// with one of these letters loses it in all of its forms alike.
func stemHebrew(word string) string {
	for _, ending := range []string{"ימ", "ות", "ת", "ה"} {
		if cut, ok := strings.CutSuffix(word, ending); ok && utf8.RuneCountInString(cut) >= leastHebrew {
			word = cut
			break
		}
	}
	for utf8.RuneCountInString(word) > leastHebrew {
		r, size := utf8.DecodeRuneInString(word)
		if !strings.ContainsRune("והבלכמש", r) {
			break
		}
		word = word[size:]
	}
	return word
}

// hindiSigns unifies spellings: a dot below a letter is left out, and the two signs of a
// nasal are one.
var hindiSigns = strings.NewReplacer("\u093c", "", "ँ", "ं", "\u200c", "", "\u200d", "")

func plainHindi(word string) string { return hindiSigns.Replace(word) }

// hindiEndings are cut by the lightweight stemmer of Ramanathan and Rao (2003), in the
// spelling of plainHindi.
var hindiEndings = endings(`
	ाएंगी ाएंगे ाऊंगी ाऊंगा ाइयां ाइयों ाएगी ाएगा ाओगी ाओगे एंगी ेंगी एंगे ेंगे ूंगी ूंगा ातीं नाओं नाएं ताओं ताएं ियां ियों
	ाकर ाइए ाईं ाया ेगी ेगा ोगी ोगे ाने ाना ाते ाती ाता तीं ाओं ाएं ुओं ुएं ुआं
	कर ाओ िए ाई ाए ने नी ना ते ीं ती ता ां ों ें ो े ू ु ी ि ा
`)

func stemHindi(word string) string { return hindiEndings.cut(word, 2) }

// greekEndings are the endings of nouns, adjectives and verbs, without accents and with the
// medial sigma, longest first.
var greekEndings = endings(`
	ουμε αμε ετε ατε ουσα ησα ησε ησει ησω εσαι εται ονται ομαι ματοσ ματα ματων
	ουσ εισ ιων ουν ιου αν εσ ασ ησ ισ οσ υσ ου οι ον ων αι ει εω ια ιο μα α ε η ι ο υ ω
`)

func stemGreek(word string) string { return greekEndings.cut(word, 3) }

// suffixes are endings of words, the longest first.
type suffixes []string

func endings(text string) suffixes {
	all := suffixes(strings.Fields(text))
	slices.SortStableFunc(all, func(a, b string) int { return utf8.RuneCountInString(b) - utf8.RuneCountInString(a) })
	return all
}

// cut cuts the longest ending that leaves so many characters.
func (s suffixes) cut(word string, least int) string {
	for _, ending := range s {
		if cut, ok := strings.CutSuffix(word, ending); ok && utf8.RuneCountInString(cut) >= least {
			return cut
		}
	}
	return word
}
