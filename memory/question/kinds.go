package question

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// What a question asks for, by English words. One in another language asks for
// nothing in particular.
var (
	leadingWords  = wordSet("in on at since by")
	whenVerbs     = wordSet("did was is does do will has had have were are")
	askedTimes    = wordSet("date day month year time week weekend")
	askedAmounts  = wordSet("many much old often long far")
	askedPersons  = wordSet("who whose whom where")
	askedThings   = wordSet("name city town country state place book author movie film show series song artist band team game company brand restaurant store person title")
	openQuestions = wordSet("what which")
	nowWords      = wordSet("now current nowaday today latest still anymor") // as the index has them
	presentVerbs  = wordSet("is are am does do")
	oneAsked      = wordSet("what which who whose where when")
	ownerWords    = wordSet("my our your his her their its")
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

// asks returns the kinds of answer that a question asks for.
func asks(words []word) (kinds segment.Flags) {
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

// asksForSeveral reports whether a question asks for several things: "what books",
// "how many", "both".
func asksForSeveral(words []word) bool {
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

// hasPlural reports whether one of the next three words looks like a plural.
func hasPlural(words []word) bool {
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

// asksForCurrent reports whether a question asks how things are, not how they were.
func asksForCurrent(words []word) bool {
	present := false
	for _, word := range words {
		if pastVerbs[word.lower] {
			return false
		}
		present = present || presentVerbs[word.lower]
	}
	return present
}

// asksForPast reports whether a question asks how things were.
func asksForPast(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return pastVerbs[w.lower] })
}

// asksForOne reports whether a question asks for one current fact: "what is", "tell me".
func asksForOne(words []word) bool {
	if len(words) < 2 || slices.ContainsFunc(words, func(w word) bool { return pastVerbs[w.lower] }) {
		return false
	}
	first, second := words[0].lower, words[1].lower
	return oneAsked[first] && (second == "is" || second == "s") || first == "tell" && second == "me"
}

// asksForOwned reports whether a question asks for something of somebody's: "Ann's address",
// "my address".
func asksForOwned(words []word) bool {
	for i, word := range words {
		switch {
		case ownerWords[word.lower]:
			return true
		case word.lower == "s" && i > 0 && !oneAsked[words[i-1].lower]: // not "what's"
			return true
		}
	}
	return false
}
