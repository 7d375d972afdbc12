package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Flags are facts of a document that are either so or not.
type Flags uint8

// The flags. The bits are part of the stored format.
const (
	FlagPinned Flags = 1 << iota
	FlagArchived
	FlagQuarantined
	// FlagAsks: the text is a question, so that what comes next may answer it.
	FlagAsks
	// FlagTellsTime, FlagTellsNumber and FlagTellsName: the text has one, so
	// that it can answer a question for it.
	FlagTellsTime
	FlagTellsNumber
	FlagTellsName
	// FlagTellsChange: the text says that something is no longer as it was.
	FlagTellsChange
)

// Facts are what the index knows of a document in addition to its terms.
type Facts struct {
	// Session is the id of the session; empty for none. It is kept as a digest,
	// to find neighbours; to filter by it, add it as a value too.
	Session string
	// Author is who said it; empty for none. Its folded form is kept (see
	// FoldName), so that a query that names the author is recognised.
	Author string
	// Event and Create are times in microseconds since 1970; zero is unset.
	Event, Create int64
	// Superseded is when the document was superseded, for one that says so
	// itself, in microseconds since 1970; zero: it was not.
	Superseded int64
	// Importance is from 0 to 1.
	Importance float64
	// Tier is 1 to 4; 4 is long-term memory.
	Tier  uint8
	Flags Flags
	// Place is the ordinal whose place in the order of arrival the document has,
	// usually that of the first version of the same record; zero: its own. It must
	// have been given already, to a document with its own place.
	Place uint32
}

// maxNameBytes bounds a folded name: longer ones are cut, as no query spells
// them out.
const maxNameBytes = 256

// FoldName returns the form in which names are compared: NFKC, case folded,
// words of letters and digits joined by one space.
func FoldName(name string) string {
	if !isASCII(name) {
		name = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	return cutText(strings.Join(words, " "), maxNameBytes)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cutText cuts a text to a number of bytes, between two characters.
func cutText(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}

// SessionDigest stands for a session in columns; zero is none.
func SessionDigest(session string) uint64 {
	if session == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(session))
	return max(1, binary.BigEndian.Uint64(sum[:]))
}
