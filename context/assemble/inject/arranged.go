package inject

import (
	"github.com/loom-bridge/loom-bridge/context/session"
)

// between joins two texts.
const between = "\n\n"

// Arranged is the outcome of injections.
type Arranged struct {
	// Pieces are all given injections, including left-out ones, and the ones that Arrange
	// added, in the order of the prompt.
	Pieces []Piece
	// Tokens are what counts of them together, Limit what they may take. Tokens are over
	// Limit only where what is never cut is.
	Tokens, Limit int
}

// Piece is the outcome of one injection.
type Piece struct {
	// Injection is as it was given.
	Injection
	// Shown is its text as it stands in the prompt, in its tag; empty where it was left
	// out or is messages.
	Shown string
	// Before and After are the tokens of what it says, without its tag: as it was given,
	// and as it is shown.
	Before, After int
	// Tokens are what it takes in the prompt, its tag included.
	Tokens int
	// Reason says why it is not as it was given.
	Reason Reason
	// Left are the numbers, from 1, of the parts or exchanges that were left out.
	Left []int

	given int
	parts []string
	shown []session.Message
}

// Reason is why a piece is not as it was given.
type Reason uint8

// The reasons.
const (
	// AsGiven: nothing was cut.
	AsGiven Reason = iota
	// Blank: it says nothing and was left out.
	Blank
	// OverCap: it was cut to its cap.
	OverCap
	// OverTotal: it was cut, or left out, because all together were over the total.
	OverTotal
	// KeptOverCap: it is over its cap and never cut, which is a warning.
	KeptOverCap
)

// String says it in a receipt.
func (r Reason) String() string {
	switch r {
	case Blank:
		return "it is blank"
	case OverCap:
		return "it is over its cap"
	case OverTotal:
		return "all injections are over their total"
	case KeptOverCap:
		return "it is over its cap, and never cut"
	}
	return ""
}

// LeftOut reports whether nothing of it stands in the prompt.
func (p *Piece) LeftOut() bool { return p.Shown == "" && len(p.shown) == 0 }

// ShownMessages are the messages that it shows, if it is messages. They are not to be
// changed.
func (p *Piece) ShownMessages() []session.Message { return p.shown }

// wrapped is a text in the tag of the piece.
func (p *Piece) wrapped(text string) string {
	if text == "" || p.Tag == "" {
		return text
	}
	open := p.Tag
	if p.Attributes != "" {
		open += " " + p.Attributes
	}
	return "<" + open + ">\n" + text + "\n</" + p.Tag + ">"
}
