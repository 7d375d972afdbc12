package history

import "strings"

// Kind is what an entry is, whatever role it has in a prompt: the observations
// of some agents stand in user messages, and they fold all the same.
type Kind uint8

// The kinds.
const (
	// Fixed is never folded and never shortened: system and user messages.
	Fixed Kind = iota
	// Turn is what the model said, with the calls it asked for, if any.
	Turn
	// Result is what one call of the turn before it gave.
	Result
	// Step is a call and its result in one entry.
	Step
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
	// Label is what an overflow calls the entry, such as "message 7 (user)".
	// Empty is Ref.
	Label string
	// Text is what was said: the message, or the model's words beside its
	// calls.
	Text string
	// Calls are what a Turn asks for. A Step has one.
	Calls []Call
	// Output is what the call of a Result or a Step gave.
	Output string
	// Shown is how a prompt shows Output unfolded, where a harness puts a frame
	// around it; empty shows Output itself.
	Shown string
	// Exit is the exit code of a call that has one, or nil.
	Exit *int
	// Failed says that the call failed. An exit code other than zero says so
	// too.
	Failed bool
	// CallID is the call that a Result answers; empty answers the first call
	// that has no result. Of a Step it is the id of its own call.
	CallID string
	// TurnID holds the Steps of one model turn together; empty stands alone.
	TurnID string
	// Pinned keeps the entry, and with it its call and results, as it is.
	Pinned bool
	// ExtraTokens is the size of what is no text, such as images.
	ExtraTokens int
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

// text is the call as one text.
func (c Call) text() string { return c.Name + " " + c.Args }

// failed tells whether the entry's call went wrong.
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

// label is what people know the entry by.
func (e *Entry) label() string {
	if e.Label != "" {
		return e.Label
	}
	return e.Ref
}
