package recall

// What tests of numbers call.
var (
	Fitting = fitting
	Rank    = rank
)

// The nodes of events.
const (
	UnknownNode = unknownNode
	OtherNode   = otherNode
	OwnNode     = ownNode
	ParentNode  = parentNode
)

// NodeOf is a node by its number.
func NodeOf(n uint8) sourceNode { return sourceNode(n) }
