package analysis

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/kljensen/snowball/french"
	"github.com/kljensen/snowball/hungarian"
	"github.com/kljensen/snowball/norwegian"
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"
)

//go:embed tongues.txt
var tonguesTable string

// tongue is a language other than English that texts in Latin letters are recognised to be
// in, each text by itself.
type tongue struct {
	name  string
	stem  func(word string) string
	words map[string]struct{} // small words that show the language
}

const (
	// recognizeBytes is how much of a text is looked at to recognize its language.
	recognizeBytes = 384
	// surely so many words more of English than of any other language end the look, or of
	// another than of English.
	surely = 2
	// maxTellingBytes is the length of the longest word that shows a language.
	maxTellingBytes = 12
	// maxTelling is how many different words are counted.
	maxTelling = 32
	// englishBit stands for English among the languages of a word.
	englishBit = 1
)

// tongues holds the languages, and the bits of the languages of each word and letter that
// shows one: bit i+1 is that of the language i. They are never changed.
var tongues, tellingWords, tellingLetters = readTongues()

func readTongues() (all []*tongue, telling map[string]uint16, letters [endOfLatin]uint16) {
	classic := func(stem func(string, bool) string) func(string) string {
		return func(word string) string { return stem(word, true) }
	}
	stems := map[string]func(string) string{
		"german": snowballed(german.Stem), "dutch": snowballed(dutch.Stem), "french": classic(french.Stem),
		"spanish": classic(spanish.Stem), "italian": snowballed(italian.Stem), "portuguese": snowballed(portuguese.Stem),
		"swedish": classic(swedish.Stem), "danish": snowballed(danish.Stem), "norwegian": classic(norwegian.Stem),
		"finnish": snowballed(finnish.Stem), "hungarian": classic(hungarian.Stem), "romanian": snowballed(romanian.Stem),
		"turkish": snowballed(turkish.Stem),
	}
	accented := map[string]string{ // letters that English lacks
		"german": "äöüß", "dutch": "ëï", "french": "éèêëàâçîïôùûœ", "spanish": "ñáéíóúü", "italian": "àèéìòù",
		"portuguese": "ãõáâàçéêíóôú", "swedish": "åäö", "danish": "åæø", "norwegian": "åæø", "finnish": "äö",
		"hungarian": "áéíóöőúüű", "romanian": "ăâîșțşţ", "turkish": "çğıöşü",
	}
	telling = make(map[string]uint16)
	for line := range strings.Lines(tonguesTable) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "#" || name == "" {
			continue
		}
		bit := uint16(englishBit)
		t := &tongue{name: name, stem: stems[name], words: stopSet(rest)}
		if name != "english" {
			bit = 2 << len(all)
			all = append(all, t)
		}
		for word := range t.words {
			telling[word] |= bit
		}
		for _, r := range accented[name] {
			letters[r] |= bit
		}
	}
	return all, telling, letters
}

// recognize says which language other than English a text in Latin letters is in, or nil.
// English is what nothing else is more likely than. Sure is whether several words show it.
func recognize(text string) (t *tongue, sure bool) {
	var v votes
	text = text[:min(len(text), recognizeBytes)]
	for at := 0; at < len(text) && v.english < v.best+surely && v.best < v.english+2*surely; {
		end := wordEnd(text, at)
		switch {
		case end == at:
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
			continue
		case !joins(text, at-1) && !joins(text, end):
			v.add(text[at:end])
		}
		at = end
	}
	return v.winner(), v.best > 1
}

// wordEnd returns where the Latin letters end that begin at a place.
func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		if !isLatin(r) {
			break
		}
		at += size
	}
	return at
}

// isLatin reports whether r is a Latin letter or a mark on one.
func isLatin(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return classes[byte(r)]&(small|upper) != 0
	case r < endOfLatin:
		return r >= 'À' && r != '×' && r != '÷'
	}
	return 0x0300 <= r && r < 0x0370 || 0x1e00 <= r && r < 0x1f00 // marks; Latin Extended Additional
}

// endOfLatin is behind the Latin letters of everyday languages.
const endOfLatin = 0x0250

// joins reports whether a digit stands at a place, or a joint of an identifier:
// the text next to it is no word of a language.
func joins(text string, at int) bool {
	return at > 0 && at+1 < len(text) && (isDigit(text[at]) || isJoiner(text[at]) && isAlnum(text[at-1]) && isAlnum(text[at+1]))
}

// votes counts the words that show languages.
type votes struct {
	words, english, best int
	telling              int // words of seen
	seen                 [maxTelling]string
	each                 [16]int // by language
	longest              int     // characters of the longest of them
	letters              [16]int // by language: letters that few others have
}

// add counts a word for all languages that it shows.
func (v *votes) add(word string) {
	v.words++
	var buf [maxTellingBytes]byte
	if len(word) > len(buf) {
		return
	}
	var bits uint16
	if isASCII(word) {
		bits = tellingWords[string(lower(buf[:0], word))]
	} else {
		bits = tellingWords[strings.ToLower(word)]
	}
	for _, r := range word {
		if r >= utf8.RuneSelf {
			v.letter(unicode.ToLower(r))
		}
	}
	if bits == 0 || v.telling == maxTelling ||
		slices.ContainsFunc(v.seen[:v.telling], func(s string) bool { return strings.EqualFold(s, word) }) {
		return
	}
	v.seen[v.telling] = word
	v.telling++
	v.longest = max(v.longest, utf8.RuneCountInString(word))
	if bits&englishBit != 0 {
		v.english++
	}
	for i := range tongues {
		if bits&(2<<i) != 0 {
			v.each[i]++
			v.best = max(v.best, v.each[i])
		}
	}
}

// letter counts a letter for the languages that have it.
func (v *votes) letter(r rune) {
	if r >= endOfLatin {
		return
	}
	for i := range tongues {
		if tellingLetters[r]&(2<<i) != 0 {
			v.letters[i]++
		}
	}
}

const (
	// fewWords: a single word shows their language, if it is long enough.
	fewWords, longWord = 12, 4
)

// winner is the language that most words show, or of several the one that
// has more of the letters.
func (v *votes) winner() *tongue {
	if v.best <= v.english || v.best == 1 && (v.words > fewWords || v.longest < longWord) {
		return nil
	}
	var won *tongue
	most, alike := -1, false
	for i, t := range tongues {
		switch n := v.letters[i]; {
		case v.each[i] < v.best || n < most:
		case n == most:
			alike = true
		default:
			won, most, alike = t, n, false
		}
	}
	if alike {
		return nil
	}
	return won
}

// stop reports whether a folded word carries no meaning by itself.
func (t *tongue) stop(word string) bool {
	_, ok := t.words[word]
	return ok
}

// meaning is what a word is in a language that a text was recognised to be in.
type meaning struct {
	tongue *tongue
	term   string // without accents, as English terms are; empty: none
	stop   bool
}

// in returns what a word is in a language.
func (k *known) in(t *tongue) *meaning {
	if m := k.meaning.Load(); m != nil && m.tongue == t {
		return m
	}
	m, word := &meaning{tongue: t}, k.word
	if !isASCII(word) {
		word = Fold(word)
	}
	m.stop = t.stop(word)
	if len(word) <= maxForeignStem && isStemmable(word) {
		m.term = cut(withoutAccents(t.stem(word)))
	}
	k.meaning.Store(m)
	return m
}
