package history

import (
	"cmp"
	"strings"
)

// Kind is what an entry is, whatever role it has in a prompt: the observations
// of some agents stand in user messages, and they fold all the same.
type Kind uint8

// The kinds.
const (
	// Fixed is never folded and never cut: system and user messages.
	Fixed Kind = iota
	// Turn is what the model said, with the calls it asked for, if any.
	Turn
	// Result is what one call of the turn before it gave.
	Result
	// Step is a call and its result in one entry.
	Step
	// Unseen is what no prompt shows, such as a second result of a call. It goes
	// where its Group goes.
	Unseen
)

// Entry is one entry of a session's log. Its texts are read, never changed.
type Entry struct {
	// Position is its place in the log, from 1. Positions rise; gaps are fine.
	Position uint64
	// Kind says what it is.
	Kind Kind
	// Ref is how a reader gets the full text back, such as "step_012" or, where
	// the fold's header explains it, "012". It begins the entry's line in a fold
	// and names it in marks. Without one, lines have no reference, and nothing
	// refers to the entry's text. A Turn and one Result may share a reference;
	// two Results may not.
	Ref string
	// FullRef is the reference as a reader needs it where no header explains
	// Ref: in marks, and among the Refs of a fold. Empty is Ref.
	FullRef string
	// Full is where all of Output can be read, which a result says whose middle
	// is left out. Empty is FullRef.
	Full string
	// Label is what an overflow calls the entry, such as "message 7 (user)".
	// Empty is Ref.
	Label string
	// Text is the text of the message, or the model's words before its calls.
	Text string
	// Calls are what a Turn asks for. A Step has one.
	Calls []Call
	// Output is what the call of a Result or a Step gave.
	Output string
	// Shown is how a prompt shows Output unfolded, where a harness puts a frame
	// around it; empty shows Output itself.
	Shown string
	// CutMark are the words that stand in Shown, and in Output, for so many bytes that
	// were left out before: CutBytes. Empty when nothing was.
	CutMark  string
	CutBytes int64
	// Read says where in the text that is shown one begins that can be read on
	// from any line; nil when none does.
	Read *Reading
	// Whole says that the output is shown as it is, however long it is: content
	// that can't be cut, such as images.
	Whole bool
	// Limit is the most tokens that are shown of the output, where that is fewer than
	// the ledger shows of any; 0 leaves it to the ledger. It bounds nothing that is
	// Pinned or Whole.
	Limit int
	// Brief says that Output is a summary of what the call gave, not that itself:
	// a fold keeps it.
	Brief bool
	// Evidence are names and lines of failures in what Output leaves out of what
	// the call gave. It is never shown unfolded; a fold names them.
	Evidence string
	// Exit is the exit code of a call that has one, or nil.
	Exit *int
	// Failed says that the call failed. An exit code other than zero says so
	// too.
	Failed bool
	// CallID is the call that a Result answers; empty answers the first call
	// that has no result. For a Step it is the id of the step's call.
	CallID string
	// TurnID holds the Steps of one model turn together; empty stands alone.
	TurnID string
	// Group holds entries together that stand next to each other and have the
	// same one: they stay, move and go together. Zero leaves it to the ids.
	Group uint64
	// Open says of an entry with a Group that the group's calls still wait for a
	// result, so that it can't be folded yet.
	Open bool
	// Pinned keeps the entry as it is: nothing of it is left out, however long it
	// is, and it never folds. Its call and results, or its turn, don't fold
	// either.
	Pinned bool
	// ExtraTokens are the entry's tokens in a prompt other than its texts and the frames of
	// messages: images, ids, names. It may be negative, because texts counted together may
	// take less.
	ExtraTokens int
}

// Reading is a text that a call has read, and that can be read on.
type Reading struct {
	// Start and End bound it in the text that is shown.
	Start, End int
	// Next says how to read on behind a beginning of it, in the words of the tool,
	// or nothing; ended says that the beginning ends with its line.
	Next func(beginning string, ended bool) string
}

// Call is one call of a tool.
type Call struct {
	// ID is the model's id of the call. Ids may repeat within a session.
	ID string
	// Name is the tool, as the model wrote it.
	Name string
	// Args are its arguments, as the model wrote them.
	Args string
}

// CallText is a call as the line of a fold has it, if it is not cut there.
func CallText(c Call) string { return inline(strings.TrimSpace(c.text())) }

// text is the call as one text.
func (c Call) text() string { return c.Name + " " + c.Args }

// failed reports whether the entry's call went wrong.
func (e *Entry) failed() bool { return e.Failed || e.Exit != nil && *e.Exit != 0 }

// shown is the entry's output as an unfolded prompt shows it.
func (e *Entry) shown() string {
	if e.Shown != "" {
		return e.Shown
	}
	return e.Output
}

// asked is the text of the entry's calls.
func (e *Entry) asked() string {
	texts := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		texts[i] = c.text()
	}
	return strings.Join(texts, " ")
}

// fullRef is the reference as a reader needs it.
func (e *Entry) fullRef() string { return cmp.Or(e.FullRef, e.Ref) }

// source is how marks name the entry; empty where nothing may refer to it.
func (e *Entry) source() string {
	if e.Ref == "" {
		return ""
	}
	return e.fullRef()
}

// full is where all of the output can be read.
func (e *Entry) full() string { return cmp.Or(e.Full, e.fullRef()) }

// label is what people know the entry by.
func (e *Entry) label() string {
	return cmp.Or(e.Label, e.fullRef())
}
