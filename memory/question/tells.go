package question

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// class is what a word is to Tells; a word can be several.
type class uint16

const (
	timeWord   class = 1 << iota
	nearWord         // "last" of "last summer"
	periodWord       // "summer" of it
	countWord        // "two" of "two days"
	unitWord         // "days" of it
	numberWord
	changeWord
	newWord
)

// classes has the English words by which Tells recognizes what a text holds. One in another
// language has its numbers all the same. They are one map, because it is asked for
// each word of all that is saved.
var classes = classesOf(map[class]string{
	timeWord:   "yesterday today tonight tomorrow ago monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december",
	nearWord:   "last next this past",
	periodWord: "night day week weekend month year morning evening summer spring fall autumn winter monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun",
	countWord:  "few couple several two three four five six seven eight nine ten",
	unitWord:   "day days week weeks month months year years weekend weekends hour hours",
	numberWord: "one two three four five six seven eight nine ten eleven twelve hundred thousand million dozen once twice several few couple first second third fourth fifth",
	changeWord: "moved changed switched quit grew became replaced updated anymore",
	newWord:    "now new since instead left currently",
})

// classLengths are, for each first letter of the words in classes, their lengths as bits:
// most words of a text are known by it to have no class.
var classLengths = func() (lengths [utf8.RuneSelf]uint32) {
	for word := range classes {
		lengths[word[0]] |= 1 << len(word)
	}
	return lengths
}()

// classOf is the class of a word; zero for most.
func classOf(lower string) class {
	if first := lower[0]; first >= utf8.RuneSelf || classLengths[first]>>len(lower)&1 == 0 {
		return 0
	}
	return classes[lower]
}

func classesOf(words map[class]string) map[string]class {
	all := make(map[string]class)
	for c, list := range words {
		for word := range strings.FieldsSeq(list) {
			all[word] |= c
		}
	}
	return all
}

// minNameBytes is the length of the shortest word that is taken for a name.
const minNameBytes = 3

// maxToldBytes is how much of a text is searched for facts: beyond, nearly
// every text holds every kind.
const maxToldBytes = 4 << 10

// Tells returns the kinds of facts that a text holds, by which it can answer a question, and
// whether it asks something itself.
func Tells(text string) segment.Flags {
	var flags segment.Flags
	text = text[:min(len(text), maxToldBytes)]
	r := readings.Get().(*reading)
	defer r.done()
	r.words, r.known = cut(r.words[:0], text), r.known[:0]
	for _, word := range r.words {
		r.known = append(r.known, classOf(word.lower))
	}
	r.known = append(r.known, make([]class, wordsAhead)...)
	words, known := r.words, r.known
	if asksMostly(text, words) {
		flags |= segment.FlagAsks
	}
	changes := 0
	for i, word := range words {
		flags |= word.states(words[i+1:], known[i:])
		if known[i]&changeWord != 0 {
			changes += 2
		}
		if known[i]&newWord != 0 {
			changes++ // two of them count as one of the others
		}
	}
	if changes > 1 {
		flags |= segment.FlagTellsChange
	}
	return flags
}

// wordsAhead is how many words are read behind one to classify it.
const wordsAhead = 2

// reading is a text that is searched for facts: its words and their classes, with
// wordsAhead more that are none.
type reading struct {
	words []word
	known []class
}

// readings are unused ones: each takes some KiB, for every record that is saved.
var readings = sync.Pool{New: func() any { return &reading{} }}

// done lets go of the text.
func (r *reading) done() {
	clear(r.words)
	readings.Put(r)
}

// maxStated is how many words of statement a text may have in addition to its question and
// still count as a question: a longer text states one thing and asks for another.
const maxStated = 30

// asksMostly reports whether one of the lines of a text ends with a question, and
// the text states little other than questions.
func asksMostly(text string, words []word) bool {
	if !endsWithQuestion(text) {
		return false
	}
	stated, sentence := 0, 0
	for i, word := range words {
		sentence++
		gap := text[word.to:]
		if i+1 < len(words) {
			gap = text[word.to:words[i+1].from]
		}
		switch {
		case strings.ContainsAny(gap, "?？"):
			sentence = 0
		case strings.ContainsAny(gap, ".!。！\n"):
			stated, sentence = stated+sentence, 0
		}
	}
	return stated+sentence <= maxStated
}

// endsWithQuestion reports whether one of the lines of a text does.
func endsWithQuestion(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
			return true
		}
	}
	return false
}

// states returns the kinds of fact that the word, with the words behind it, states. known are
// the classes of the word and of at least wordsAhead words behind it.
func (w word) states(next []word, known []class) (flags segment.Flags) {
	if w.capital && !w.begins && len(w.lower) >= minNameBytes {
		flags |= segment.FlagTellsName
	}
	digits := w.lower[0] >= '0' && w.lower[0] <= '9'
	if digits || known[0]&numberWord != 0 {
		flags |= segment.FlagTellsNumber
	}
	const yearDigits = 4
	isRecent := digits && len(w.lower) == yearDigits && yearOf(w.lower) >= 1900 && yearOf(w.lower) < 2100
	isMay := w.capital && !w.begins && w.lower == "may"
	if known[0]&timeWord != 0 || isMay || isRecent || w.beginsPeriod(known) {
		return flags | segment.FlagTellsTime
	}
	if digits || known[0]&countWord != 0 {
		unit := known[1]
		if len(next) > 0 && next[0].lower == "of" {
			unit = known[2]
		}
		if unit&unitWord != 0 {
			flags |= segment.FlagTellsTime
		}
	}
	return flags
}

// beginsPeriod reports whether the word, whose class comes first, begins something like
// "last summer" or "next school year".
func (w word) beginsPeriod(known []class) bool {
	if known[0]&nearWord == 0 {
		return false
	}
	return known[1]&periodWord != 0 || w.lower != "this" && known[2]&periodWord != 0
}
