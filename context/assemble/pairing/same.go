package pairing

import (
	"bytes"
	"slices"
)

// Same reports whether two groups are of the same entries and show the same, whether or not
// something waits for results. Of entries that the log has read once, it compares little more
// than where they are in memory.
func (g *Group) Same(other *Group) bool {
	return slices.Equal(g.Members, other.Members) && slices.EqualFunc(g.Turns, other.Turns, (*Turn).same)
}

func (t *Turn) same(other *Turn) bool {
	return t.Label == other.Label && t.Said == other.Said && t.turnID == other.turnID && t.Output == other.Output && t.at == other.at &&
		t.Described == other.Described && slices.EqualFunc(t.Calls, other.Calls, sameCall)
}

func sameCall(a, b Call) bool {
	return a.ID == b.ID && a.Wish == b.Wish && a.thought == b.thought && a.label == b.label && a.Result == b.Result &&
		bytes.Equal(a.Blocks, b.Blocks) && bytes.Equal(a.extra, b.extra) && a.within == b.within && a.Answered == b.Answered && a.folded == b.folded
}
