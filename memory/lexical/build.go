package lexical

import "slices"

// looseSlots is how many more slots of the dead than of the living a frame may
// have before the next one is laid out anew, without them. So that costs as
// much as the deaths that led to it.
const looseSlots = 1024

// numberedRow is the row of the document with that ordinal.
type numberedRow struct {
	ordinal uint32
	row
}

// frameBuilder makes the frame of a newer state from the one before. What only
// grows is shared between the frames: they see different lengths of the same
// memory. So only the newest frame may be built upon, and by one at a time.
type frameBuilder struct {
	newest   *frame
	sessions map[uint64]uint32 // numbers by digest
	authors  map[string]uint32 // numbers by folded name
	ends     []uint32          // of each session, the last living document by place; 0 for none
	loose    uint32            // see looseSlots
}

func newFrameBuilder() *frameBuilder {
	// Index 0 of every column is no document, session or author.
	f := &frame{
		sieve: newSieve(nil, 0),
		body:  []uint32{0}, header: []uint32{0}, session: []uint32{0}, author: []uint32{0},
		event: []int64{0}, create: []int64{0}, expires: []int64{0}, superseded: []int64{0}, supersedes: []uint32{0},
		importance: []float32{0}, tier: []uint8{0}, flags: []Flags{0}, place: []uint32{0},
		dead: bitset{0}, prev: []uint32{0}, next: []uint32{0}, superseder: []uint32{0},
		sessionDigest: []uint64{0}, sessionWords: []uint32{0}, sessionSize: []uint32{0}, authors: []string{""},
		around: &surroundings{}, gates: &gates{},
	}
	return &frameBuilder{newest: f, sessions: make(map[uint64]uint32), authors: map[string]uint32{"": 0}, ends: []uint32{0}, loose: looseSlots}
}

// extend makes the next frame, with documents up to last: it takes the rows of
// those that are new and live, and the ordinals of those that were known and
// have died, both ascending. Killed is how many ever died.
func (b *frameBuilder) extend(last uint32, rows []numberedRow, died []uint32, killed uint64) *frame {
	known := b.newest
	added := last - known.last
	living := uint32(known.documents) - uint32(len(died)) + uint32(len(rows))
	if known.last == 0 || known.slots()+added-living > living+b.loose {
		if rest := b.rest(died); len(rest) > 0 {
			rows = append(rest, rows...)
		}
		b.layOut(last, rows, killed)
		return b.newest
	}
	all := make([]row, added)
	for _, r := range rows {
		all[r.ordinal-known.last-1] = r.row
	}
	for o, next := known.last+1, 0; len(rows) < int(added) && o <= last && o != 0; o++ {
		if next < len(rows) && rows[next].ordinal == o {
			next++
			continue
		}
		died = append(died, o)
	}
	b.append(all, died, killed)
	return b.newest
}

// append makes the next frame with the rows of the next ordinals, all of them,
// and then without those that died.
func (b *frameBuilder) append(rows []row, died []uint32, killed uint64) {
	f := b.begin(rows, len(died) > 0)
	for _, r := range rows {
		b.add(f, r)
	}
	if len(died) > 0 {
		b.kill(f, died)
	}
	f.killed = killed
	b.newest = f
}

// begin copies the newest frame, and of its columns those of which the next
// one changes more than it appends.
func (b *frameBuilder) begin(rows []row, killing bool) *frame {
	f := *b.newest
	f.around, f.gates = &surroundings{}, &gates{}
	f.grow(len(rows))
	copied := func(column *[]uint32) {
		*column = append(make([]uint32, 0, len(*column)+len(rows)), *column...)
	}
	if killing || slices.ContainsFunc(rows, func(r row) bool { return r.session != 0 }) {
		copied(&f.next)
		copied(&f.sessionWords)
		copied(&f.sessionSize)
	}
	if killing || slices.ContainsFunc(rows, func(r row) bool { return r.place != 0 }) {
		copied(&f.prev)
	}
	if killing || slices.ContainsFunc(rows, func(r row) bool { return r.supersedes != 0 }) {
		copied(&f.superseder)
	}
	if killing {
		f.dead = append(make(bitset, 0, (int(f.slots())+len(rows))/64+1), f.dead...)
	}
	return &f
}

// grow makes room for more documents, all at once.
func (f *frame) grow(n int) {
	for _, column := range []*[]uint32{&f.body, &f.header, &f.session, &f.author, &f.supersedes, &f.place, &f.prev, &f.next, &f.superseder} {
		*column = slices.Grow(*column, n)
	}
	for _, column := range []*[]int64{&f.event, &f.create, &f.expires, &f.superseded} {
		*column = slices.Grow(*column, n)
	}
	f.importance, f.tier, f.flags = slices.Grow(f.importance, n), slices.Grow(f.tier, n), slices.Grow(f.flags, n)
}

// add appends the document with the next ordinal, as if it lived.
func (b *frameBuilder) add(f *frame, r row) {
	f.last++
	o := f.slots()
	b.put(f, o, r)
	if !f.lone(o) {
		b.link(f, o, f.slot(f.place[o]))
	}
}

// put appends the document with the next slot, without its neighbours.
func (b *frameBuilder) put(f *frame, o uint32, r row) {
	ordinal := f.ordinal(o)
	f.body, f.header = append(f.body, r.body), append(f.header, r.header)
	f.event, f.create = append(f.event, r.event), append(f.create, r.create)
	f.expires, f.superseded = append(f.expires, r.expires), append(f.superseded, r.superseded)
	f.supersedes = append(f.supersedes, r.supersedes)
	f.importance, f.tier, f.flags = append(f.importance, r.importance), append(f.tier, r.tier), append(f.flags, r.flags)
	f.author = append(f.author, b.authorNumber(f, r.author))
	number := b.sessionNumber(f, r.session)
	f.session = append(f.session, number)
	place := ordinal
	if r.place > 0 && r.place < ordinal {
		place = r.place
	}
	f.place = append(f.place, place)
	for int(o/64) >= len(f.dead) {
		f.dead = append(f.dead, 0)
	}
	f.prev, f.next, f.superseder = append(f.prev, 0), append(f.next, 0), append(f.superseder, 0)
	if s := f.replaced(o); s != 0 {
		f.superseder[s] = o
	}
	b.count(f, o, 1)
}

func (b *frameBuilder) authorNumber(f *frame, name string) uint32 {
	n, ok := b.authors[name]
	if !ok {
		n = uint32(len(f.authors))
		f.authors = append(f.authors, name)
		b.authors[name] = n
	}
	return n
}

func (b *frameBuilder) sessionNumber(f *frame, digest uint64) uint32 {
	if n, ok := b.sessions[digest]; ok && digest != 0 {
		return n
	}
	n := uint32(len(f.sessionDigest))
	f.sessionDigest = append(f.sessionDigest, digest)
	f.sessionWords, f.sessionSize = append(f.sessionWords, 0), append(f.sessionSize, 0)
	b.ends = append(b.ends, 0)
	if digest != 0 {
		b.sessions[digest] = n
	}
	return n
}

// link puts a document among its neighbours. It stands behind the one whose
// place it takes, while that lives, and otherwise is looked for from the end.
func (b *frameBuilder) link(f *frame, o, taken uint32) {
	number := f.session[o]
	before := b.ends[number]
	if taken > 0 && taken < o && f.session[taken] == number && !f.dead.has(taken) {
		before = taken
		for n := f.next[before]; n != 0 && f.place[n] <= f.place[o]; n = f.next[n] {
			before = n
		}
	}
	for before != 0 && f.place[before] > f.place[o] {
		before = f.prev[before]
	}
	var after uint32
	if before != 0 {
		after = f.next[before]
		f.next[before] = o
	} else {
		after = b.first(f, number)
	}
	f.prev[o], f.next[o] = before, after
	if after != 0 {
		f.prev[after] = o
	} else {
		b.ends[number] = o
	}
}

// first returns the first living document of a session. It is only asked for
// when a document goes before all others.
func (b *frameBuilder) first(f *frame, number uint32) uint32 {
	o := b.ends[number]
	if o == 0 {
		return 0
	}
	for f.prev[o] != 0 {
		o = f.prev[o]
	}
	return o
}

// replaced returns the document that this one replaces; 0 for none.
func (f *frame) replaced(o uint32) uint32 {
	if s := f.slot(f.supersedes[o]); s < o {
		return s
	}
	return 0
}

// kill takes out documents that live until now.
func (b *frameBuilder) kill(f *frame, died []uint32) {
	lost := make(map[uint32]struct{}) // those whose superseder died
	for _, ordinal := range died {
		o := f.slot(ordinal)
		f.dead.set(o)
		b.unlink(f, o)
		b.count(f, o, -1)
		if s := f.replaced(o); s != 0 && f.superseder[s] == o {
			f.superseder[s] = 0
			lost[s] = struct{}{}
		}
	}
	if len(lost) == 0 {
		return
	}
	for o := uint32(1); o <= f.slots(); o++ {
		if f.supersedes[o] == 0 || f.dead.has(o) {
			continue
		}
		s := f.replaced(o)
		if _, ok := lost[s]; ok && s != 0 {
			f.superseder[s] = o
		}
	}
}

func (b *frameBuilder) unlink(f *frame, o uint32) {
	number := f.session[o]
	if f.sessionDigest[number] == 0 {
		return
	}
	p, n := f.prev[o], f.next[o]
	if p != 0 {
		f.next[p] = n
	}
	if n != 0 {
		f.prev[n] = p
	} else {
		b.ends[number] = p
	}
	f.prev[o], f.next[o] = 0, 0
}

// count takes a document into the counts of the living, or out with -1.
func (b *frameBuilder) count(f *frame, o uint32, by int) {
	number := f.session[o]
	before := f.sessionSize[number]
	f.sessionSize[number] += uint32(by)
	f.sessionWords[number] += uint32(by) * f.length(o)
	f.documents += uint64(by)
	f.bodyWords += uint64(by * int(f.body[o]))
	f.headerWords += uint64(by * int(f.header[o]))
	if before == 0 || f.sessionSize[number] == 0 {
		f.sessions += uint32(by)
	}
	if f.sessionDigest[number] == 0 {
		f.alone += uint32(by)
	}
}

// size is about how much memory the builder and its newest frame take.
func (b *frameBuilder) size() int {
	const empty, perSession, perAuthor = 4000, 60, 100
	return empty + b.newest.size() + perSession*len(b.sessions) + perAuthor*len(b.authors)
}

// size is about how much memory a frame takes, by its documents.
func (f *frame) size() int {
	// Of a document the columns take 63 bytes; the rest is what the states kept
	// do not share, and what is derived from them.
	const perDocument = 130
	return f.sieve.size() + perDocument*cap(f.body)
}

// row returns the row of a document that the frame has.
func (f *frame) row(o uint32) row {
	r := row{
		body: f.body[o], header: f.header[o], session: f.sessionDigest[f.session[o]], author: f.authors[f.author[o]],
		event: f.event[o], create: f.create[o], expires: f.expires[o], superseded: f.superseded[o], supersedes: f.supersedes[o],
		importance: f.importance[o], tier: f.tier[o], flags: f.flags[o],
	}
	if f.place[o] != f.ordinal(o) {
		r.place = f.place[o]
	}
	return r
}
