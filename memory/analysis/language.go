package analysis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/french"
	"github.com/kljensen/snowball/hungarian"
	"github.com/kljensen/snowball/norwegian"
	"github.com/kljensen/snowball/russian"
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"
)

// ErrUnknownLanguage: there is no stemmer for the language.
var ErrUnknownLanguage = errors.New("analysis: unknown language")

// Language is what an Analyzer takes words of letters to be: its stop words
// fall away and its endings are cut. Words of other languages are matched as
// they are, or nearly so. What is not words of letters is read alike in all.
type Language uint8

// The languages. The zero value is English.
const (
	English Language = iota
	French
	Hungarian
	Norwegian
	Russian
	Spanish
	Swedish
)

// grammar is what an Analyzer knows of a language.
type grammar struct {
	name string
	stop func(word string) bool
	stem func(word string, stopWordsToo bool) string
	// plainLetters: accents tell no words apart, and people leave them out.
	plainLetters bool
}

// grammars holds the languages by number. It is never changed.
var grammars = []grammar{
	English:   {"english", isStopWord, stemEnglish, true},
	French:    {"french", isFrenchStopWord, french.Stem, false},
	Hungarian: {"hungarian", hungarian.IsStopWord, hungarian.Stem, false},
	Norwegian: {"norwegian", norwegian.IsStopWord, norwegian.Stem, false},
	Russian:   {"russian", russian.IsStopWord, russian.Stem, false},
	Spanish:   {"spanish", spanish.IsStopWord, spanish.Stem, false},
	Swedish:   {"swedish", swedish.IsStopWord, swedish.Stem, false},
}

// Languages returns all languages.
func Languages() []Language {
	all := make([]Language, len(grammars))
	for i := range all {
		all[i] = Language(i)
	}
	return all
}

// ParseLanguage returns the language of an English name in lower case, such as
// "french"; an empty one is English. Otherwise the error is ErrUnknownLanguage.
func ParseLanguage(name string) (Language, error) {
	if name == "" {
		return English, nil
	}
	i := slices.IndexFunc(grammars, func(g grammar) bool { return g.name == name })
	if i < 0 {
		return English, fmt.Errorf("%w %.32q", ErrUnknownLanguage, name)
	}
	return Language(i), nil
}

// String returns the English name in lower case.
func (l Language) String() string { return l.grammar().name }

func (l Language) grammar() grammar {
	if int(l) >= len(grammars) {
		return grammars[English]
	}
	return grammars[l]
}

// isFrenchStopWord adds to the library's list the article that it lacks.
func isFrenchStopWord(word string) bool { return word == "les" || french.IsStopWord(word) }

// stemEnglish cuts an English word to its stem; went and gone become go first.
func stemEnglish(word string, stopWordsToo bool) string {
	return english.Stem(baseOf(word), stopWordsToo)
}

// baseOf returns the base of an irregular form, or of one with an s behind it, which is
// a noun: what has thoughts in it is found by thought.
func baseOf(word string) string {
	if base, ok := irregular[word]; ok {
		return base
	}
	if base, ok := irregular[strings.TrimSuffix(word, "s")]; ok {
		return base
	}
	return word
}
