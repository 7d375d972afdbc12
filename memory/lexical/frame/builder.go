package frame

import (
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// MaxUnusedSlots is how many more slots of deleted documents than of live ones a
// frame may have before the next one is laid out anew, without them. So that
// costs as much as the deaths that led to it.
const MaxUnusedSlots = 1024

// NumberedRow is the row of the document with that ordinal.
type NumberedRow struct {
	Ordinal uint32
	segment.Row
}

// Builder makes the frame of a newer state from the one before. What only
// grows is shared between the frames: they see different lengths of the same
// memory. So only the newest frame may be built upon, and by one at a time.
type Builder struct {
	Newest         *Frame
	sessions       map[uint64]uint32 // numbers by digest
	authors        map[string]uint32 // numbers by folded name
	lastOfSession  []uint32          // of each session, the last live document by place; 0 for none
	MaxUnusedSlots uint32            // see looseSlots
}

// NewBuilder returns a builder whose newest frame has no documents.
func NewBuilder() *Builder {
	// Index 0 of every column is no document, session or author.
	f := &Frame{
		slotMap: newSlotMap(nil, 0),
		Body:    []uint32{0}, Header: []uint32{0}, Session: []uint32{0}, Author: []uint32{0},
		Event: []int64{0}, Create: []int64{0}, Expires: []int64{0}, Superseded: []int64{0}, supersedes: []uint32{0},
		Importance: []float32{0}, tier: []uint8{0}, Flags: []segment.Flags{0}, Place: []uint32{0},
		Deleted: bitset.Set{0}, Prev: []uint32{0}, Next: []uint32{0}, Superseder: []uint32{0},
		SessionDigest: []uint64{0}, SessionWords: []uint32{0}, SessionSize: []uint32{0}, Authors: []string{""},
		derived: &sync.Map{},
	}
	return &Builder{Newest: f, sessions: make(map[uint64]uint32), authors: map[string]uint32{"": 0}, lastOfSession: []uint32{0}, MaxUnusedSlots: MaxUnusedSlots}
}

// Extend makes the next frame, with documents up to last: it takes the rows of new live
// documents and the ordinals of known documents that were deleted, both ascending.
// deletions counts all deletions so far.
func (b *Builder) Extend(last uint32, rows []NumberedRow, deleted []uint32, deletions uint64) *Frame {
	known := b.Newest
	added := last - known.Last
	live := uint32(known.Documents) - uint32(len(deleted)) + uint32(len(rows))
	if known.Last == 0 || known.Slots()+added-live > live+b.MaxUnusedSlots {
		if rest := b.liveRows(deleted); len(rest) > 0 {
			rows = append(rest, rows...)
		}
		b.layOut(last, rows, deletions)
		return b.Newest
	}
	all := make([]segment.Row, added)
	for _, r := range rows {
		all[r.Ordinal-known.Last-1] = r.Row
	}
	for o, next := known.Last+1, 0; len(rows) < int(added) && o <= last && o != 0; o++ {
		if next < len(rows) && rows[next].Ordinal == o {
			next++
			continue
		}
		deleted = append(deleted, o)
	}
	b.append(all, deleted, deletions)
	return b.Newest
}

// append makes the next frame with the rows of the next ordinals, and then removes the
// deleted ones.
func (b *Builder) append(rows []segment.Row, deleted []uint32, deletions uint64) {
	f := b.begin(rows, len(deleted) > 0)
	for _, r := range rows {
		f.Last++
		o := f.Slots()
		b.put(f, o, r)
		if !f.HasNoSession(o) {
			b.link(f, o, f.Slot(f.Place[o]))
		}
	}
	if len(deleted) > 0 {
		b.delete(f, deleted)
	}
	f.Deletions = deletions
	b.Newest = f
}

// begin copies the newest frame, and the columns that the next frame changes other than by
// appending.
func (b *Builder) begin(rows []segment.Row, deleting bool) *Frame {
	f := *b.Newest
	f.derived = &sync.Map{}
	f.grow(len(rows))
	copied := func(column *[]uint32) {
		*column = append(make([]uint32, 0, len(*column)+len(rows)), *column...)
	}
	if deleting || slices.ContainsFunc(rows, func(r segment.Row) bool { return r.Session != 0 }) {
		copied(&f.Next)
		copied(&f.SessionWords)
		copied(&f.SessionSize)
	}
	if deleting || slices.ContainsFunc(rows, func(r segment.Row) bool { return r.Place != 0 }) {
		copied(&f.Prev)
	}
	if deleting || slices.ContainsFunc(rows, func(r segment.Row) bool { return r.Supersedes != 0 }) {
		copied(&f.Superseder)
	}
	if deleting {
		f.Deleted = append(make(bitset.Set, 0, (int(f.Slots())+len(rows))/64+1), f.Deleted...)
	}
	return &f
}

// grow makes room for more documents, all at once.
func (f *Frame) grow(n int) {
	for _, column := range []*[]uint32{&f.Body, &f.Header, &f.Session, &f.Author, &f.supersedes, &f.Place, &f.Prev, &f.Next, &f.Superseder} {
		*column = slices.Grow(*column, n)
	}
	for _, column := range []*[]int64{&f.Event, &f.Create, &f.Expires, &f.Superseded} {
		*column = slices.Grow(*column, n)
	}
	f.Importance, f.tier, f.Flags = slices.Grow(f.Importance, n), slices.Grow(f.tier, n), slices.Grow(f.Flags, n)
}

// put appends the document with the next slot, without its neighbours.
func (b *Builder) put(f *Frame, o uint32, r segment.Row) {
	ordinal := f.Ordinal(o)
	f.Body, f.Header = append(f.Body, r.Body), append(f.Header, r.Header)
	f.Event, f.Create = append(f.Event, r.Event), append(f.Create, r.Create)
	f.Expires, f.Superseded = append(f.Expires, r.Expires), append(f.Superseded, r.Superseded)
	f.supersedes = append(f.supersedes, r.Supersedes)
	f.Importance, f.tier, f.Flags = append(f.Importance, r.Importance), append(f.tier, r.Tier), append(f.Flags, r.Flags)
	f.Author = append(f.Author, b.authorNumber(f, r.Author))
	number := b.sessionNumber(f, r.Session)
	f.Session = append(f.Session, number)
	place := ordinal
	if r.Place > 0 && r.Place < ordinal {
		place = r.Place
	}
	f.Place = append(f.Place, place)
	for int(o/64) >= len(f.Deleted) {
		f.Deleted = append(f.Deleted, 0)
	}
	f.Prev, f.Next, f.Superseder = append(f.Prev, 0), append(f.Next, 0), append(f.Superseder, 0)
	if s := f.replaced(o); s != 0 {
		f.Superseder[s] = o
	}
	b.count(f, o, 1)
}

func (b *Builder) authorNumber(f *Frame, name string) uint32 {
	n, ok := b.authors[name]
	if !ok {
		n = uint32(len(f.Authors))
		f.Authors = append(f.Authors, name)
		b.authors[name] = n
	}
	return n
}

func (b *Builder) sessionNumber(f *Frame, digest uint64) uint32 {
	if n, ok := b.sessions[digest]; ok && digest != 0 {
		return n
	}
	n := uint32(len(f.SessionDigest))
	f.SessionDigest = append(f.SessionDigest, digest)
	f.SessionWords, f.SessionSize = append(f.SessionWords, 0), append(f.SessionSize, 0)
	b.lastOfSession = append(b.lastOfSession, 0)
	if digest != 0 {
		b.sessions[digest] = n
	}
	return n
}

// link puts a document among its neighbours. It stands behind the one whose
// place it takes, while that is live, and otherwise is looked for from the end.
func (b *Builder) link(f *Frame, o, taken uint32) {
	number := f.Session[o]
	before := b.lastOfSession[number]
	if taken > 0 && taken < o && f.Session[taken] == number && !f.Deleted.Has(taken) {
		before = taken
		for n := f.Next[before]; n != 0 && f.Place[n] <= f.Place[o]; n = f.Next[n] {
			before = n
		}
	}
	for before != 0 && f.Place[before] > f.Place[o] {
		before = f.Prev[before]
	}
	var after uint32
	if before != 0 {
		after = f.Next[before]
		f.Next[before] = o
	} else {
		after = b.first(f, number)
	}
	f.Prev[o], f.Next[o] = before, after
	if after != 0 {
		f.Prev[after] = o
	} else {
		b.lastOfSession[number] = o
	}
}

// first returns the first live document of a session. It is only asked for
// when a document goes before all others.
func (b *Builder) first(f *Frame, number uint32) uint32 {
	o := b.lastOfSession[number]
	if o == 0 {
		return 0
	}
	for f.Prev[o] != 0 {
		o = f.Prev[o]
	}
	return o
}

// replaced returns the document that this one replaces; 0 for none.
func (f *Frame) replaced(o uint32) uint32 {
	if s := f.Slot(f.supersedes[o]); s < o {
		return s
	}
	return 0
}

// delete takes out documents that live until now.
func (b *Builder) delete(f *Frame, deleted []uint32) {
	lost := make(map[uint32]struct{}) // those whose superseder was deleted
	for _, ordinal := range deleted {
		o := f.Slot(ordinal)
		f.Deleted.Add(o)
		b.unlink(f, o)
		b.count(f, o, -1)
		if s := f.replaced(o); s != 0 && f.Superseder[s] == o {
			f.Superseder[s] = 0
			lost[s] = struct{}{}
		}
	}
	if len(lost) == 0 {
		return
	}
	for o := uint32(1); o <= f.Slots(); o++ {
		if f.supersedes[o] == 0 || f.Deleted.Has(o) {
			continue
		}
		s := f.replaced(o)
		if _, ok := lost[s]; ok && s != 0 {
			f.Superseder[s] = o
		}
	}
}

func (b *Builder) unlink(f *Frame, o uint32) {
	number := f.Session[o]
	if f.SessionDigest[number] == 0 {
		return
	}
	p, n := f.Prev[o], f.Next[o]
	if p != 0 {
		f.Next[p] = n
	}
	if n != 0 {
		f.Prev[n] = p
	} else {
		b.lastOfSession[number] = p
	}
	f.Prev[o], f.Next[o] = 0, 0
}

// count adds a document to the counts of live ones, or with -1 takes it out.
func (b *Builder) count(f *Frame, o uint32, by int) {
	number := f.Session[o]
	before := f.SessionSize[number]
	f.SessionSize[number] += uint32(by)
	f.SessionWords[number] += uint32(by) * f.Length(o)
	f.Documents += uint64(by)
	f.BodyWords += uint64(by * int(f.Body[o]))
	f.HeaderWords += uint64(by * int(f.Header[o]))
	if before == 0 || f.SessionSize[number] == 0 {
		f.LiveSessions += uint32(by)
	}
	if f.SessionDigest[number] == 0 {
		f.WithoutSession += uint32(by)
	}
}

// MemoryBytes is about how much memory the builder and its newest frame take.
func (b *Builder) MemoryBytes() int {
	const empty, perSession, perAuthor = 4000, 60, 100
	return empty + b.Newest.MemoryBytes() + perSession*len(b.sessions) + perAuthor*len(b.authors)
}

// MemoryBytes is about how much memory a frame takes, by its documents.
func (f *Frame) MemoryBytes() int {
	// The columns of a document take 63 bytes; the rest is for data that the kept states do
	// not share, and for derived data.
	const perDocument = 130
	return f.slotMap.memoryBytes() + perDocument*cap(f.Body)
}

// Row returns the row of a document that the frame has.
func (f *Frame) Row(o uint32) segment.Row {
	r := segment.Row{
		Body: f.Body[o], Header: f.Header[o], Session: f.SessionDigest[f.Session[o]], Author: f.Authors[f.Author[o]],
		Event: f.Event[o], Create: f.Create[o], Expires: f.Expires[o], Superseded: f.Superseded[o], Supersedes: f.supersedes[o],
		Importance: f.Importance[o], Tier: f.tier[o], Flags: f.Flags[o],
	}
	if f.Place[o] != f.Ordinal(o) {
		r.Place = f.Place[o]
	}
	return r
}
