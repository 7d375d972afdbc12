package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// What a question asks for and what a text tells, by English words. A text in
// another language tells its numbers and asks its questions all the same.
var (
	timeWords   = wordSet("yesterday today tonight tomorrow ago monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december")
	nearWords   = wordSet("last next this past")
	periodWords = wordSet("night day week weekend month year morning evening summer spring fall autumn winter monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun")
	countWords  = wordSet("few couple several two three four five six seven eight nine ten")
	unitWords   = wordSet("day days week weeks month months year years weekend weekends hour hours")
	numberWords = wordSet("one two three four five six seven eight nine ten eleven twelve hundred thousand million dozen once twice several few couple first second third fourth fifth")

	changeWords = wordSet("moved changed switched quit grew became replaced updated anymore")
	newWords    = wordSet("now new since instead left currently")

	leadingWords  = wordSet("in on at since by")
	whenVerbs     = wordSet("did was is does do will has had have were are")
	askedTimes    = wordSet("date day month year time week weekend")
	askedAmounts  = wordSet("many much old often long far")
	askedPersons  = wordSet("who whose whom where")
	askedThings   = wordSet("name city town country state place book author movie film show series song artist band team game company brand restaurant store person title")
	openQuestions = wordSet("what which")
	presentVerbs  = wordSet("is are am does do")
	pastVerbs     = wordSet("did was were had has been")
	listEnds      = wordSet("did was is does do will has had have were are would can could should may might of to about for in on at with")
)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// minNameBytes is the length of the shortest word that is taken for a name.
const minNameBytes = 3

// maxToldBytes is how much of a text is read for what it tells: beyond, nearly
// every text tells everything.
const maxToldBytes = 4 << 10

// toldBy returns what a text tells, by which it can answer a question, and
// whether one of its lines asks something itself.
func toldBy(text string) segment.Flags {
	var told segment.Flags
	text = text[:min(len(text), maxToldBytes)]
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
			told |= segment.FlagAsks
		}
	}
	words := wordsOf(text)
	changes := 0
	for i, word := range words {
		told |= word.tells(words[i+1:])
		switch {
		case changeWords[word.lower]:
			changes += 2
		case newWords[word.lower]:
			changes++ // two of them tell as much as one of the others
		}
	}
	if changes > 1 {
		told |= segment.FlagTellsChange
	}
	return told
}

// plainWord is a run of letters and digits.
type plainWord struct {
	lower   string
	capital bool // begins with one
	begins  bool // a sentence
}

func wordsOf(text string) (words []plainWord) {
	begins := true
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if !isWordRune(r) {
			begins = begins && (unicode.IsSpace(r) || unicode.IsPunct(r)) || strings.ContainsRune(".!?:(\n", r)
			text = text[size:]
			continue
		}
		end := strings.IndexFunc(text, func(r rune) bool { return !isWordRune(r) })
		if end < 0 {
			end = len(text)
		}
		words = append(words, plainWord{strings.ToLower(text[:end]), unicode.IsUpper(r), begins})
		text, begins = text[end:], false
	}
	return words
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// tells returns what the word tells, with those behind it.
func (w plainWord) tells(next []plainWord) (told segment.Flags) {
	if w.capital && !w.begins && len(w.lower) >= minNameBytes {
		told |= segment.FlagTellsName
	}
	digits := w.lower[0] >= '0' && w.lower[0] <= '9'
	if digits || numberWords[w.lower] {
		told |= segment.FlagTellsNumber
	}
	isMay := w.lower == "may" && w.capital && !w.begins
	if timeWords[w.lower] || isMay || isRecentYear(w.lower) || w.beginsPeriod(next) {
		return told | segment.FlagTellsTime
	}
	if (digits || countWords[w.lower]) && len(next) > 0 {
		if next[0].lower == "of" {
			next = next[1:]
		}
		if len(next) > 0 && unitWords[next[0].lower] {
			told |= segment.FlagTellsTime
		}
	}
	return told
}

// beginsPeriod tells whether the word begins something like "last summer" or
// "next school year".
func (w plainWord) beginsPeriod(next []plainWord) bool {
	if !nearWords[w.lower] || len(next) == 0 {
		return false
	}
	return periodWords[next[0].lower] || w.lower != "this" && len(next) > 1 && periodWords[next[1].lower]
}

// isRecentYear tells whether the word is a year of the last or this century.
func isRecentYear(word string) bool {
	const digits = 4
	return len(word) == digits && yearOf(word) >= 1900 && yearOf(word) < 2100
}

// askedFor returns the kinds of answer that a query asks for.
func askedFor(query string) (kinds segment.Flags) {
	words := wordsOf(query)
	at := func(i int) string {
		if i < len(words) {
			return words[i].lower
		}
		return ""
	}
	first := 0
	if leadingWords[at(0)] {
		first = 1
	}
	if at(first) == "when" || openQuestions[at(first)] && askedTimes[at(first+1)] {
		kinds |= segment.FlagTellsTime
	}
	for i, word := range words {
		next := at(i + 1)
		switch {
		case word.lower == "when" && whenVerbs[next]:
			kinds |= segment.FlagTellsTime
		case word.lower == "how" && askedAmounts[next]:
			kinds |= segment.FlagTellsNumber
			if next == "long" {
				kinds |= segment.FlagTellsTime
			}
		case askedPersons[word.lower], openQuestions[word.lower] && slices.ContainsFunc([]string{next, at(i + 2)}, isAskedThing):
			kinds |= segment.FlagTellsName
		}
	}
	return kinds
}

func isAskedThing(word string) bool {
	one := strings.TrimSuffix(word, "s")
	if y, ok := strings.CutSuffix(word, "ies"); ok && askedThings[y+"y"] {
		return true
	}
	return askedThings[word] || askedThings[one]
}

// asksForSeveral tells whether a query asks for several things: "what books",
// "how many", "both".
func asksForSeveral(query string) bool {
	words := wordsOf(query)
	for i, word := range words {
		rest := words[i+1:]
		switch {
		case word.lower == "both", word.lower == "how" && len(rest) > 0 && rest[0].lower == "many":
			return true
		case openQuestions[word.lower] && hasPlural(rest):
			return true
		}
	}
	return false
}

// hasPlural tells whether one of the next three words looks like a plural.
func hasPlural(words []plainWord) bool {
	const within, shortest = 3, 4
	for _, word := range words[:min(len(words), within)] {
		w := word.lower
		if listEnds[w] {
			return false
		}
		if len(w) >= shortest && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") {
			return true
		}
	}
	return false
}

// asksForCurrent tells whether a query asks how things are, not how they were.
func asksForCurrent(query string) bool {
	present := false
	for _, word := range wordsOf(query) {
		if pastVerbs[word.lower] {
			return false
		}
		present = present || presentVerbs[word.lower]
	}
	return present
}
