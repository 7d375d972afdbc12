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
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"
)

// ErrUnknownLanguage: there is no stemmer for the language.
var ErrUnknownLanguage = errors.New("analysis: unknown language")

// Language is what an Analyzer takes words of Latin letters to be: its stop words
// fall away and its endings are cut. Words of other languages are matched as
// they are, or nearly so. Words of other scripts have the rules of their script: those in
// Cyrillic are read as Russian. What is not words of letters is read alike in all.
type Language uint8

// The languages. The zero value is Auto.
const (
	// Auto is English, and of texts that are recognised to be in another language that
	// one, too: their words have its stems in addition to the English ones.
	Auto Language = iota
	English
	Danish
	Dutch
	Finnish
	French
	German
	Hungarian
	Italian
	Norwegian
	Portuguese
	Romanian
	// Russian is what words in Cyrillic are taken for in any case; its words in Latin
	// letters are read as English ones, without the look at each text that Auto takes.
	Russian
	Spanish
	Swedish
	Turkish
)

// grammar is what an Analyzer knows of a language.
type grammar struct {
	name string
	stop func(word string) bool
	stem func(word string, stopWordsToo bool) string
	// plainLetters: accents distinguish no words, and people leave them out.
	plainLetters bool
	// recognizes: each text may be in another language.
	recognizes bool
}

// grammars holds the languages by number. It is never changed.
var grammars = []grammar{
	Auto:       {"auto", isStopWord, stemEnglish, true, true},
	English:    {"english", isStopWord, stemEnglish, true, false},
	Danish:     grammarOf("danish"),
	Dutch:      grammarOf("dutch"),
	Finnish:    grammarOf("finnish"),
	French:     {"french", isFrenchStopWord, french.Stem, false, false},
	German:     grammarOf("german"),
	Hungarian:  {"hungarian", hungarian.IsStopWord, hungarian.Stem, false, false},
	Italian:    grammarOf("italian"),
	Norwegian:  {"norwegian", norwegian.IsStopWord, norwegian.Stem, false, false},
	Portuguese: grammarOf("portuguese"),
	Romanian:   grammarOf("romanian"),
	Russian:    {"russian", isStopWord, stemEnglish, true, false},
	Spanish:    {"spanish", spanish.IsStopWord, spanish.Stem, false, false},
	Swedish:    {"swedish", swedish.IsStopWord, swedish.Stem, false, false},
	Turkish:    grammarOf("turkish"),
}

// grammarOf is the grammar of a language whose texts are recognised, too.
func grammarOf(name string) grammar {
	t := tongues[slices.IndexFunc(tongues, func(t *tongue) bool { return t.name == name })]
	return grammar{name, t.stop, func(word string, _ bool) string { return t.stem(word) }, false, false}
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
// "french"; an empty one is Auto. Otherwise the error is ErrUnknownLanguage.
func ParseLanguage(name string) (Language, error) {
	if name == "" {
		return Auto, nil
	}
	i := slices.IndexFunc(grammars, func(g grammar) bool { return g.name == name })
	if i < 0 {
		return Auto, fmt.Errorf("%w %.32q", ErrUnknownLanguage, name)
	}
	return Language(i), nil
}

// String returns the English name in lower case.
func (l Language) String() string { return l.grammar().name }

func (l Language) grammar() grammar {
	if int(l) >= len(grammars) {
		return grammars[Auto]
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
