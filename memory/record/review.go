package record

// Review is the outcome of a record that somebody has to look at before it is found. The
// numbers are part of the on-disk format.
type Review uint8

// The states. Zero: no review was asked for.
const (
	// ReviewHeld: it waits, and no query finds it.
	ReviewHeld Review = 1
	// ReviewApproved: somebody has let it through.
	ReviewApproved Review = 2
	// ReviewRejected: somebody has refused it, so no query finds it.
	ReviewRejected Review = 3
)

// ReviewNames holds the names of the states. It is never changed.
var ReviewNames = map[Review]string{ReviewHeld: "held", ReviewApproved: "approved", ReviewRejected: "rejected"}

// String returns held, approved or rejected, the names that filters use; empty for none.
func (r Review) String() string { return ReviewNames[r] }

// Hides reports whether a record in that state stays out of queries and prompts.
func (r Review) Hides() bool { return r == ReviewHeld || r == ReviewRejected }
