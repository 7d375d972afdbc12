package past

import (
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// Piece is a part of a message's content that a section owns.
type Piece struct {
	// Section is the name of the section.
	Section string
	// Bytes is how much of the content it owns.
	Bytes int
}

// Message is a message of a prompt, before a format makes something else of it.
type Message struct {
	session.Message
	// Pieces are the sections that own the content, in order; one of them owns all of it
	// and whatever else the message has.
	Pieces []Piece
	// From is the position of the entry of the log that it is, word for word; 0 for none.
	From uint64
	// Batch and First name the fold that it is: its batch and its first position; 0 for
	// none.
	Batch, First uint64
}

// FoldName names a fold: its batch and its first position.
type FoldName struct{ Batch, First uint64 }

func (m *Message) fold() FoldName { return FoldName{m.Batch, m.First} }

// Size is what a section took.
type Size struct {
	// Section is its name.
	Section string
	// Tokens is its size.
	Tokens int
}

// Kept is what a record keeps of a prompt in addition to its messages.
type Kept struct {
	// Number counts the prompts of the session, from 1. Set by the store.
	Number uint64
	// ID is the id that its receipt gave it.
	ID string
	// Model and Format are what it was made for.
	Model  string
	Format uint8
	// Position is where the session's log ended.
	Position uint64
	// Tokens is its size as reported, Counter and Certainty how it was counted.
	Tokens    int
	Counter   string
	Certainty uint8
	// Sizes are the sizes of its sections, in order.
	Sizes []Size
	// Prefix is the hash of what stood before the goal, in hex.
	Prefix string
	// Tools are the tools as the format has them.
	Tools []byte
	// Extra is whatever else its maker needs.
	Extra []byte
	// Sum is the SHA-256 of its bytes.
	Sum [32]byte

	generation uint64
	recipe     []byte
}

// GoneError says that a prompt can't be made again, and what is missing.
type GoneError struct {
	// What is missing, such as "the record of prompt 3".
	What string
}

func (e *GoneError) Error() string { return "past: the prompt can't be made again: " + e.What }

// ErrGone is what every GoneError is.
var ErrGone = errors.New("past: the prompt can't be made again")

// Is makes errors.Is(err, ErrGone) true.
func (e *GoneError) Is(target error) bool { return target == ErrGone }

// Gone is a GoneError in the words of a format.
func Gone(format string, args ...any) error {
	return &GoneError{What: fmt.Sprintf(format, args...)}
}
