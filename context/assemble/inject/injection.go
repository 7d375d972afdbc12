package inject

import (
	"cmp"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// Phase is where in a prompt an injection stands.
type Phase uint8

// The phases; the zero Phase is none.
const (
	// System is the system message: who the model is and what it can do.
	System Phase = iota + 1
	// UserContext describes the user and the task.
	UserContext
	// Runtime is what changes with every turn.
	Runtime
)

// Cache is how long a provider's cache may keep an injection. Within a phase, what
// lasts longer stands first.
type Cache uint8

// The cache classes; the zero Cache is Dynamic.
const (
	// Stable text changes with the session's settings only.
	Stable Cache = iota + 1
	// Session text changes with the memory.
	Session
	// Dynamic text may change with every prompt.
	Dynamic
)

// DefaultPriority is that of a caller's injection. A higher one stands first and is cut
// last.
const DefaultPriority = 50

// Injection is one piece of a prompt with its own budget. It has a Text, or
// Parts, or Messages; one without any is left out.
type Injection struct {
	// Name is unique in a prompt: that of a section of package settings, or of a caller's.
	Name string
	// Phase is where it stands. Required.
	Phase Phase
	// Cache is how long it may be cached; zero is Dynamic.
	Cache Cache
	// Priority is 0 to settings.MaxPriority. Equal ones stand in the order in which they were
	// given.
	Priority int
	// MaxTokens bounds its text, without its tag; 0 is no bound.
	MaxTokens int
	// Least is what it takes of its bound in any prompt: what it takes above that is cut
	// before any other text if all are over their total; 0 is all that it takes.
	Least int
	// Tag wraps the text as <tag>, text and </tag> on separate lines; empty leaves it bare.
	// Attributes stand behind the name in the opening tag, as they are.
	Tag, Attributes string
	// Text is what it says; blank is left out.
	Text string
	// Parts stand in place of Text, joined by a blank line: what does not fit leaves
	// part by part, the last first.
	Parts []string
	// Messages are separate messages, in place of Text. If they do not fit they are dropped
	// exchange by exchange, last first; an exchange begins at a message of the user. A
	// system message is one by itself and is cut as a text.
	Messages []session.Message
	// Rest says how to read the rest of Text where it was cut, which a last line repeats;
	// empty: there is no such line.
	Rest string
	// Whole is never cut: over its cap it is a warning.
	Whole bool
	// Last stands last of its phase, whatever its priority, and is never cut.
	Last bool
	// Framed says that its lines are the program's own and the parts of strangers in them
	// went through Guard. Arrange guards what is neither Framed nor Whole.
	Framed bool
	// Source says where it came from, for the receipt.
	Source string
	// Row is its row in the table of package instruct; empty is that of its name. Writers
	// wrote it; empty: unknown. What they may not say in the role of the system stands
	// in the part about the user, whatever its phase.
	Row     instruct.Source
	Writers instruct.Who
}

// row is what holds for its words.
func (in *Injection) row() *instruct.Row {
	name, _, _ := strings.Cut(in.Name, newSuffix)
	return instruct.Of(cmp.Or(in.Row, instruct.Source(name)))
}

// newSuffix ends the names of what is found beyond a section that stands.
const newSuffix = ":new"

// Instructs reports whether it may stand in the role of the system.
func (in *Injection) Instructs() bool {
	row := in.row()
	return row.Role == session.System && row.Instructs(in.Writers)
}

// MayInstruct reports whether its messages may be instructions: each has a role given by its
// writer.
func (in *Injection) MayInstruct() bool { return in.row().Role == session.System }

// kept reports whether it is never cut.
func (in *Injection) kept() bool { return in.Whole || in.Last }

// rank is where its cache class stands.
func (in *Injection) rank() Cache {
	if in.Cache == 0 {
		return Dynamic
	}
	return in.Cache
}
