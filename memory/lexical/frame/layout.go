package frame

import (
	"cmp"
	"slices"
)

// liveRows returns the rows of live documents.
func (b *Builder) liveRows(deleted []uint32) []NumberedRow {
	f := b.Newest
	rows := make([]NumberedRow, 0, int(f.Documents)-len(deleted))
	for slot := uint32(1); slot <= f.Slots(); slot++ {
		o := f.Ordinal(slot)
		if len(deleted) > 0 && deleted[0] == o {
			deleted = deleted[1:]
		} else if !f.Deleted.Has(slot) {
			rows = append(rows, NumberedRow{o, f.Row(slot)})
		}
	}
	return rows
}

// layOut begins anew with a frame that has slots for those documents only.
func (b *Builder) layOut(last uint32, rows []NumberedRow, deletions uint64) {
	loose := b.MaxUnusedSlots
	*b = *NewBuilder()
	b.MaxUnusedSlots = loose
	f := b.begin(nil, true)
	f.grow(len(rows))
	f.Last = last
	if len(rows) < int(last) {
		f.slotMap = newSlotMap(rows, last)
	}
	for i, r := range rows {
		b.put(f, uint32(i)+1, r.Row)
	}
	b.linkAll(f)
	f.Deletions = deletions
	b.Newest = f
}

// linkAll links all documents of a frame that was laid out: looking for the place
// of each one would take too long in a session where many have been changed.
func (b *Builder) linkAll(f *Frame) {
	var order []uint32
	for o := range f.Slots() {
		if !f.HasNoSession(o + 1) {
			order = append(order, o+1)
		}
	}
	slices.SortFunc(order, func(o, p uint32) int {
		return cmp.Or(cmp.Compare(f.Session[o], f.Session[p]), cmp.Compare(f.Place[o], f.Place[p]), cmp.Compare(o, p))
	})
	for i, o := range order {
		if i > 0 && f.Session[order[i-1]] == f.Session[o] {
			f.Prev[o], f.Next[order[i-1]] = order[i-1], o
		}
		b.lastOfSession[f.Session[o]] = o
	}
}
