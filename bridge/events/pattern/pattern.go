package pattern

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// The wildcards of a pattern.
const (
	anyWord  = "*"  // exactly one word
	anyWords = "**" // one or more words, at the end
	// legacyRest ends a legacy pattern that stands for a prefix.
	legacyRest = ".*"
)

// Limits of topics and patterns.
const (
	// MaxTopicBytes bounds a topic's name, and a native pattern.
	MaxTopicBytes = 256
	// maxPatternBytes bounds a pattern of loom.v1, and maxPatternWords its words:
	// as many as a topic of MaxTopicBytes has. They bound what a topic costs to be
	// compared with all patterns.
	maxPatternBytes = 4 << 10
	maxPatternWords = MaxTopicBytes / 2
)

// ErrInvalid: a topic or a pattern is malformed.
var ErrInvalid = errors.New("events: invalid")

// Pattern says which topics a selection is about: one exact topic, or all that
// have a form. The zero value is the exact topic of no bytes. Patterns may be
// compared with ==.
type Pattern struct {
	text string
	kind patternKind
}

// patternKind is how a pattern's text is read.
type patternKind uint8

const (
	exactPattern  patternKind = iota // the topic itself
	nativePattern                    // words, some of them wildcards
	legacyPattern                    // a prefix that ends with a dot, then `*`
)

// Parse reads an exact topic, or a pattern in which the word `*` stands
// for exactly one word and the last word `**` for one or more. Anything else
// that CheckTopic refuses is an *invalid.Error.
func Parse(text string) (Pattern, error) {
	if err := checkName(text); err != nil {
		return Pattern{}, err
	}
	p := Pattern{text: text}
	for word, rest, more := cutWord(text); ; word, rest, more = cutWord(rest) {
		switch {
		case word == anyWord, word == anyWords && !more:
			p.kind = nativePattern
		case strings.Contains(word, anyWord):
			return Pattern{}, invalid.Field(ErrInvalid, "topic", "mixes `*` with other text in a word, or `**` before the end")
		}
		if !more {
			return p, nil
		}
	}
}

// Legacy reads a topic as loom.v1 does: text that ends with `.*` stands
// for every topic that begins with what is before the `*`, at any depth; all
// other text is an exact topic, whatever it holds.
func Legacy(text string) Pattern {
	if strings.HasSuffix(text, legacyRest) {
		return Pattern{text: text, kind: legacyPattern}
	}
	return Pattern{text: text}
}

// String returns the pattern as it was given.
func (p Pattern) String() string { return p.text }

// Exact returns the only topic that the pattern matches; false when it may
// match several.
func (p Pattern) Exact() (topic string, ok bool) { return p.text, p.kind == exactPattern }

// Match reports whether the pattern matches a topic.
func (p Pattern) Match(topic string) bool {
	switch p.kind {
	case legacyPattern:
		return strings.HasPrefix(topic, p.Prefix())
	case nativePattern:
		return matchWords(p.text, topic)
	default:
		return p.text == topic
	}
}

// Prefix is what every topic that matches begins with.
func (p Pattern) Prefix() string {
	switch p.kind {
	case legacyPattern:
		return strings.TrimSuffix(p.text, anyWord)
	case nativePattern:
		return p.text[:strings.Index(p.text, anyWord)]
	default:
		return p.text
	}
}

func matchWords(pattern, topic string) bool {
	for {
		want, wantRest, wantMore := cutWord(pattern)
		if want == anyWords {
			return true
		}
		got, gotRest, gotMore := cutWord(topic)
		switch {
		case want != anyWord && want != got, wantMore != gotMore:
			return false
		case !wantMore:
			return true
		}
		pattern, topic = wantRest, gotRest
	}
}

// cutWord returns the first word of a topic, and whether another follows.
func cutWord(topic string) (word, rest string, more bool) {
	return strings.Cut(topic, ".")
}

// checkName returns an *invalid.Error unless text has the form of a topic,
// wildcards aside.
func checkName(text string) error {
	switch {
	case text == "" || len(text) > MaxTopicBytes:
		return invalid.Field(ErrInvalid, "topic", "must have 1 to %d bytes", MaxTopicBytes)
	case !utf8.ValidString(text):
		return invalid.Field(ErrInvalid, "topic", "is not UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return invalid.Field(ErrInvalid, "topic", "holds a control character")
	}
	for word := range strings.SplitSeq(text, ".") {
		if word == "" {
			return invalid.Field(ErrInvalid, "topic", "has an empty word")
		}
	}
	return nil
}

// CheckTopic returns an *invalid.Error unless topic is an exact topic: 1 to
// MaxTopicBytes of UTF-8 without control characters, words separated by dots,
// no word empty, and no `*`.
func CheckTopic(topic string) error {
	if strings.Contains(topic, anyWord) {
		return invalid.Field(ErrInvalid, "topic", "holds `*`, but is to be an exact topic")
	}
	return checkName(topic)
}

// Check returns an *invalid.Error unless topics can be found by the pattern.
func (p Pattern) Check(legacy bool) error {
	switch {
	case legacy:
		return p.CheckLegacy()
	case p.kind == legacyPattern:
		return invalid.Field(ErrInvalid, "topic", "is a pattern of loom.v1")
	case p.kind == exactPattern:
		return CheckTopic(p.text)
	}
	return nil
}

// CheckLegacy returns an *invalid.Error unless a subscription that is PerSelection
// takes the pattern: it is to be UTF-8, and one of several topics is to have at most
// 4 KiB and 128 words.
func (p Pattern) CheckLegacy() error {
	switch {
	case !utf8.ValidString(p.text):
		return invalid.Field(ErrInvalid, "topic", "is not UTF-8")
	case p.kind == exactPattern:
		return nil
	case len(p.text) > maxPatternBytes:
		return invalid.Field(ErrInvalid, "topic", "is a pattern of %d bytes, over the limit of %d", len(p.text), maxPatternBytes)
	}
	if words := strings.Count(p.Prefix(), "."); words > maxPatternWords {
		return invalid.Field(ErrInvalid, "topic", "is a pattern of %d words, over the limit of %d", words, maxPatternWords)
	}
	return nil
}
