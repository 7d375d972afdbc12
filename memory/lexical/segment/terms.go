package segment

import (
	"crypto/sha256"
	"errors"
)

// Errors of the index.
var (
	// ErrDamaged: a stored piece of the index can't be read.
	ErrDamaged = errors.New("lexical: index is damaged")
	// ErrNewer: a piece was written in a layout that this version can't read.
	ErrNewer = errors.New("lexical: index has a newer format")
)

// Field is the kind of a term. The bytes are part of the stored format.
type Field byte

// The fields.
const (
	// Word terms come from the analysis of the text; only they have
	// frequencies and are ranked by.
	Word Field = 'w'
	// Tag, Kind, Session, Author and Origin terms are values of that field.
	Tag     Field = 't'
	Kind    Field = 'k'
	Session Field = 's'
	Author  Field = 'a'
	Origin  Field = 'o'
	// Review terms are states of records that somebody has to look at.
	Review Field = 'r'
	// Metadata terms are a path and a typed value.
	Metadata Field = 'm'
	// Key terms are the caller's own names of records.
	Key Field = 'n'
	// ValidUntil terms are the moments until which records are valid.
	ValidUntil Field = 'u'
	// Import terms are the ids of imports that records came with.
	Import Field = 'i'
	// Saver terms are the agents that saved records of a memory which several share.
	Saver Field = 'b'
)

const (
	// MaxTermBytes bounds a stored term, its field included.
	MaxTermBytes = 100
	// DigestMark begins a value that is stored as its digest. It can't begin
	// UTF-8.
	DigestMark = "\xff"
)

// Value returns the form in which a value is stored: itself, or a digest of
// 128 bits when it is long. Values must not begin with byte ff.
func Value(value string) string {
	if len(value) < MaxTermBytes {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return DigestMark + string(sum[:16])
}

// Payload is what a posting carries in addition to its ordinal.
type Payload uint8

// The payloads.
const (
	Bare      Payload = iota // nothing: a value
	frequency                // how often, in body and header: a word
)

func payloadOf(field Field) Payload {
	if field == Word {
		return frequency
	}
	return Bare
}
