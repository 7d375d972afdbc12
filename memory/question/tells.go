package question

import (
	"strings"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// What a text tells, by English words. One in another language tells its numbers all
// the same.
var (
	timeWords   = wordSet("yesterday today tonight tomorrow ago monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december")
	nearWords   = wordSet("last next this past")
	periodWords = wordSet("night day week weekend month year morning evening summer spring fall autumn winter monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun")
	countWords  = wordSet("few couple several two three four five six seven eight nine ten")
	unitWords   = wordSet("day days week weeks month months year years weekend weekends hour hours")
	numberWords = wordSet("one two three four five six seven eight nine ten eleven twelve hundred thousand million dozen once twice several few couple first second third fourth fifth")
	changeWords = wordSet("moved changed switched quit grew became replaced updated anymore")
	newWords    = wordSet("now new since instead left currently")
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

// Tells returns what a text tells, by which it can answer a question, and
// whether one of its lines asks something itself.
func Tells(text string) segment.Flags {
	var told segment.Flags
	text = text[:min(len(text), maxToldBytes)]
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
			told |= segment.FlagAsks
		}
	}
	words := cut(text)
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

// tells returns what the word tells, with those behind it.
func (w word) tells(next []word) (told segment.Flags) {
	if w.capital && !w.begins && len(w.lower) >= minNameBytes {
		told |= segment.FlagTellsName
	}
	digits := w.lower[0] >= '0' && w.lower[0] <= '9'
	if digits || numberWords[w.lower] {
		told |= segment.FlagTellsNumber
	}
	const yearDigits = 4
	isRecent := len(w.lower) == yearDigits && yearOf(w.lower) >= 1900 && yearOf(w.lower) < 2100
	isMay := w.lower == "may" && w.capital && !w.begins
	if timeWords[w.lower] || isMay || isRecent || w.beginsPeriod(next) {
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
func (w word) beginsPeriod(next []word) bool {
	if !nearWords[w.lower] || len(next) == 0 {
		return false
	}
	return periodWords[next[0].lower] || w.lower != "this" && len(next) > 1 && periodWords[next[1].lower]
}
