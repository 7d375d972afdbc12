package lexical

import (
	"cmp"
	"slices"
)

// rest returns the rows of the living, without those that died.
func (b *frameBuilder) rest(died []uint32) []numberedRow {
	f := b.newest
	rows := make([]numberedRow, 0, int(f.documents)-len(died))
	for slot := uint32(1); slot <= f.slots(); slot++ {
		o := f.ordinal(slot)
		if len(died) > 0 && died[0] == o {
			died = died[1:]
		} else if !f.dead.has(slot) {
			rows = append(rows, numberedRow{o, f.row(slot)})
		}
	}
	return rows
}

// layOut begins anew with a frame that has slots for those documents only.
func (b *frameBuilder) layOut(last uint32, rows []numberedRow, killed uint64) {
	loose := b.loose
	*b = *newFrameBuilder()
	b.loose = loose
	f := b.begin(nil, true)
	f.grow(len(rows))
	f.last = last
	if len(rows) < int(last) {
		f.sieve = newSieve(rows, last)
	}
	for i, r := range rows {
		b.put(f, uint32(i)+1, r.row)
	}
	b.chain(f)
	f.killed = killed
	b.newest = f
}

// chain links all documents of a frame that was laid out: looking for the place
// of each one would take too long in a session where many have been changed.
func (b *frameBuilder) chain(f *frame) {
	var order []uint32
	for o := range f.slots() {
		if !f.lone(o + 1) {
			order = append(order, o+1)
		}
	}
	slices.SortFunc(order, func(o, p uint32) int {
		return cmp.Or(cmp.Compare(f.session[o], f.session[p]), cmp.Compare(f.place[o], f.place[p]), cmp.Compare(o, p))
	})
	for i, o := range order {
		if i > 0 && f.session[order[i-1]] == f.session[o] {
			f.prev[o], f.next[order[i-1]] = order[i-1], o
		}
		b.ends[f.session[o]] = o
	}
}
