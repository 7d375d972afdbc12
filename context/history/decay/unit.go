package decay

import (
	"github.com/loom-bridge/loom-bridge/context/history"
)

// Unit is what stays, moves and goes together.
type Unit struct {
	// Position is the place of its first entry in the log. Positions rise.
	Position uint64
	// Messages are how many it shows in full.
	Messages int
	// Turn is the user's turn that it belongs to, from 1.
	Turn int
	// Asked says that the model was asked for it: the provider read all before.
	Asked bool
	// Wish says that a turn of the user begins with it. The last one is the current
	// task.
	Wish bool
	// Stays says that no zone touches it: pinned, the current task, an open call. Kept
	// says that it is never left out, either.
	Stays, Kept bool
	// Task says that it is the current task, one message that may be cut where it
	// does not fit. It is Kept.
	Task bool
	// Yields says that it is Kept only if the newest unit still fits.
	Yields bool
	// Full is what it takes in full, Aged what it takes with its images as lines;
	// Folded and FoldedAged are the same in the zone of folds. A form that takes no
	// less than the one it would replace is not used.
	Full, Aged, Folded, FoldedAged int
	// Said are its messages, for a summary.
	Said []Said
	// Refs name its entries to people.
	Refs []string
}

// Said is what a summary may say of a message.
type Said struct {
	// Role is who speaks, Sentence what: see the function of that name. Empty says
	// nothing.
	Role, Sentence string
	// Words are the whole text, to weigh it against the goal. They may be cut.
	Words string
	// Failed and Goal are never left out of a summary.
	Failed, Goal bool
}

// Conversation is what is laid out.
type Conversation struct {
	// Units are all of a session, in order.
	Units []Unit
	// Zoned parts them by age, in zones; else all of them stand in full.
	Zoned bool
	// Mark is where the boundaries stand.
	Mark history.Mark
	// Literal lets them move with every call.
	Literal bool
	// Budget is the most tokens that the layout may take; 0 is no bound.
	Budget int
	// Lost is how many calls stand as text because they have no result. One more makes a
	// batch: while it waited it was shown as a call.
	Lost int
	// Since and ExpectedTurns are as in a history.History.
	Since         uint64
	ExpectedTurns int
	// Goal is what the agent works towards.
	Goal string
}

// UnitForm is how a unit is shown.
type UnitForm uint8

// The forms.
const (
	// InFull is as it was.
	InFull UnitForm = iota
	// Aged is that with images as lines.
	Aged
	// Folded has shortened texts, and a line for each call.
	Folded
	// FoldedAged is that with images as lines.
	FoldedAged
)

// Shown is one item of a layout.
type Shown struct {
	// Text is the summary, as one message of role user. Empty shows a unit.
	Text string
	// Unit is the index of a unit, Form how it is shown.
	Unit int
	Form UnitForm
	// Room is how many tokens a unit may take that must be cut; 0 shows it as it is.
	Room int
	// Tokens is its size.
	Tokens int
}

// ShownUnits is a conversation as it is shown.
type ShownUnits struct {
	// Shown is what stands there, in order.
	Shown []Shown
	// Tokens is the size of it all. It is over the budget where nothing more can be
	// left out. Less is how much of that stands for more than itself.
	Tokens, Less int
	// Mark is where the boundaries stand.
	Mark history.Mark
	// Reason is why they moved, zero if they did not. Refs name what is shown
	// otherwise since; Before is what the layout took until then. BreakEven is as in
	// a history.Decision.
	Reason    history.Reason
	Refs      []string
	Before    int
	BreakEven float64
}
