package memory

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/left"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/shares"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

const (
	// roomRecords is how many records one commit archives, or deletes from the archive. So
	// many are looked for at once that one save in as many does it, where memory is full.
	roomRecords = 32
	// roomShare bounds how far below its limit a memory gets by that: a hundredth.
	roomShare = 100
	// trimRecords is how many leave at once in the background. They are chosen together,
	// for which all documents of the memory are compared.
	trimRecords = 512
	// maxListed bounds the ids in one answer, and maxUnlisted the ids that wait for one,
	// of all memories: some megabytes. Others are listed in the archive alone.
	maxListed, maxUnlisted = 2048, 1 << 17
	// roomLooked is how many times as many records are read as are taken, to weigh what
	// the index does not know.
	roomLooked = 4
	// worthHalfLife is the age at which half of what a record is worth for being new is
	// gone.
	worthHalfLife = 30 * 24 * time.Hour
	// accessWorth is what a record is worth for being read, where that is counted.
	accessWorth = 0.5
	// spared is the worth added to records of the current batch over older ones, and to
	// instructions over other records.
	spared = 10
)

// memoryLimits are Options.MaxRecords and MaxArchived.
type memoryLimits struct{ records, archived int }

// Room is what left a memory that had more records than it may.
type Room struct {
	// Archived are the ids of the records that were archived.
	Archived []string
	// Deleted is how many left the archive for good.
	Deleted int

	gone map[string]bool // the ids of those
}

// add adds what left later.
func (r *Room) add(later Room) {
	r.forget(later.gone)
	r.Archived, r.Deleted = append(r.Archived, later.Archived...), r.Deleted+later.Deleted
}

// forget drops the ids of records that are no longer in the archive.
func (r *Room) forget(gone map[string]bool) {
	if len(gone) > 0 {
		r.Archived = slices.DeleteFunc(r.Archived, func(id string) bool { return gone[id] })
	}
}

// makeRoom archives the least valuable records of a memory over its limit, and deletes
// archived ones over theirs. It removes as many as were added and a few more, so that no
// save leaves the memory larger. A memory far over a new limit shrinks in the background;
// records removed so are listed, too. In a memory that several write to, who holds more than
// its share gives first. Those in spare were just saved: one stays, and of several the least
// go last. The save was made already, so an error is only logged: the next save goes on.
func (s *Store) makeRoom(ctx context.Context, scope kv.Scope, spare []string, added int) (room Room) {
	if s.limits == (memoryLimits{}) {
		return room
	}
	if s.makeSomeRoom(ctx, scope, &roomMaking{spare: spare}, max(roomRecords, added), &room) {
		s.trimming.list.Add(scope)
	}
	s.trimming.report(scope, &room)
	return room
}

// makeSomeRoom does so with so many records at most, and reports whether there are still too
// many. like says how.
func (s *Store) makeSomeRoom(ctx context.Context, scope kv.Scope, like *roomMaking, most int, room *Room) (more bool) {
	for _, out := range []bool{false, true} {
		m := &roomMaking{store: s, scope: scope, spare: like.spare, lazy: like.lazy, limit: s.limits.records, give: most, now: record.StoredTime(s.now()), out: out}
		if out {
			m.limit, m.give = s.limits.archived, max(most, len(room.Archived))
		}
		if m.limit == 0 {
			continue
		}
		if err := m.run(ctx, room); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "memory: more records than the limit", "scope", scope.String(), "limit", m.limit, "error", err)
		}
		more = more || m.over > 0
	}
	return more
}

// trim brings a memory that is far over its limit a step nearer.
func (s *Store) trim(ctx context.Context, scope kv.Scope) {
	var room Room
	more := s.makeSomeRoom(ctx, scope, &roomMaking{lazy: true}, trimRecords, &room)
	s.trimming.note(scope, room)
	if more && len(room.Archived)+room.Deleted > 0 {
		s.trimming.list.Add(scope) // behind others that wait
	}
}

// trimAll brings memories down to their limits until ctx ends.
func (s *Store) trimAll(ctx context.Context) {
	s.trimming.list.Run(ctx, func(ctx context.Context, scope kv.Scope) {
		if err := packing.Leased(ctx, s.leases, scope, "room", s.trim); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "memory: more records than the limit", "scope", scope.String(), "error", err)
		}
	})
}

// trimming is what the background does to memories that are far over their limits.
type trimming struct {
	list *packing.Waiting[kv.Scope]

	mu       sync.Mutex // guards the fields below
	unlisted map[kv.Scope]Room
	ids      int // in unlisted
}

func newTrimming() *trimming {
	return &trimming{list: packing.NewList[kv.Scope](), unlisted: make(map[kv.Scope]Room)}
}

// note keeps the ids that left a memory until an answer lists them.
func (t *trimming) note(scope kv.Scope, room Room) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids+len(room.Archived) > maxUnlisted {
		room.Archived = nil
	}
	before := t.unlisted[scope]
	t.ids -= len(before.Archived)
	before.add(room)
	t.put(scope, before)
}

func (t *trimming) put(scope kv.Scope, unlisted Room) {
	t.ids += len(unlisted.Archived)
	if delete(t.unlisted, scope); len(unlisted.Archived) > 0 || unlisted.Deleted > 0 {
		t.unlisted[scope] = unlisted
	}
}

// report adds to the room of an answer the ids that no answer has listed yet, up to the
// bound.
func (t *trimming) report(scope kv.Scope, room *Room) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unlisted, ok := t.unlisted[scope]
	if !ok {
		return
	}
	t.ids -= len(unlisted.Archived)
	unlisted.forget(room.gone)
	n := min(len(unlisted.Archived), max(0, maxListed-len(room.Archived)))
	room.Archived, room.Deleted = append(room.Archived, unlisted.Archived[:n]...), room.Deleted+unlisted.Deleted
	t.put(scope, Room{Archived: unlisted.Archived[n:]})
}

// roomMaking archives some records of a memory, or deletes some of its archive.
type roomMaking struct {
	store *Store
	scope kv.Scope
	spare []string
	limit int
	give  int // how many records may leave
	now   time.Time
	out   bool // of the archive, for good
	lazy  bool // no caller waits

	over   int      // how many there are too many in addition to those chosen
	chosen []string // ids, those worth least first
	next   []string // candidates not looked at yet
	looked int      // how many of these the commit under way has looked at
	gone   []string // ids of candidates that were archived or deleted
}

// run makes room, with one choice and as many commits as that takes.
func (m *roomMaking) run(ctx context.Context, room *Room) error {
	err := m.store.currentView(ctx, m.scope, func(view kv.Snapshot) error { return m.choose(ctx, view) })
	if err != nil {
		return err
	}
	for m.next = m.chosen; len(m.next) > 0; m.next = m.next[m.looked:] {
		staging := &Staging{store: m.store, scope: m.scope, run: m.stage}
		if err := staging.alone(ctx, m.lazy); err != nil {
			return wrap("memory: make room", err)
		}
		if !m.out {
			room.Archived = append(room.Archived, m.gone...)
			continue
		}
		gone := make(map[string]bool, len(m.gone))
		for _, id := range m.gone {
			gone[id] = true
		}
		room.add(Room{Deleted: len(gone), gone: gone})
		if room.gone == nil {
			room.gone = make(map[string]bool)
		}
		maps.Copy(room.gone, gone)
	}
	return nil
}

// choose finds the records that are to go, if there are too many.
func (m *roomMaking) choose(ctx context.Context, view kv.Reader) error {
	m.chosen, m.over = nil, 0
	most, err := m.most(ctx, view)
	if err != nil || most <= int64(m.limit) {
		return err
	}
	reader, err := m.store.index.Open(ctx, view, m.scope)
	if err != nil {
		return err
	}
	options := selection.Options{Now: m.now.UnixMicro(), Superseded: true, Quarantined: true, Archived: m.out}
	if m.out {
		options.Tiers, _ = tierBits([]int{1, 2, 3, record.LongTerm})
	}
	selected, err := selection.Select(ctx, reader, selection.Filter{}, options)
	if err != nil {
		return err
	}
	by, err := m.savers(ctx, view, reader)
	if err != nil {
		return err
	}
	if least := m.least(reader.Frame(), selected, by); len(least) > 0 {
		m.chosen, err = m.weigh(ctx, view, reader, least, by)
	}
	return err
}

// most is how many records there are at most that the limit is about, from counts alone.
func (m *roomMaking) most(ctx context.Context, view kv.Reader) (int64, error) {
	kept, err := readCounts(ctx, view, m.scope)
	if err != nil || m.out {
		return kept.archived, err
	}
	statistics, _, err := m.store.index.Statistics(ctx, view, m.scope)
	return int64(statistics.Documents) - kept.archived, err
}

// savers are who saved the records of a memory.
type savers struct {
	of   []uint32 // by slot, a place in all; nil: one saved everything
	all  []shares.Saver
	give []int // how many records of each go
}

func (s *savers) saver(slot uint32) uint32 {
	if s.of == nil {
		return 0
	}
	return s.of[slot]
}

// savers finds out who saved what. The first is for records without a known saver.
func (m *roomMaking) savers(ctx context.Context, view kv.Reader, reader *lexical.Reader) (*savers, error) {
	by := &savers{all: make([]shares.Saver, 1)}
	if m.scope.Kind == kv.OwnerAgent {
		return by, nil
	}
	by.of = make([]uint32, reader.Frame().Slots()+1)
	const prefix = string(segment.Saver)
	known := make(map[string]uint32)
	for w, err := range reader.Terms(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		saver := w.Term[len(prefix):]
		number, seen := known[saver]
		example := uint32(0)
		err := reader.EachPosting(w, func(slot uint32, _ uint64) {
			if !seen {
				number, seen = uint32(len(by.all)), true
				by.all = append(by.all, shares.Saver{})
				known[saver] = number
			}
			by.of[slot], example = number, slot
		})
		if err != nil {
			return nil, err
		}
		if seen && by.all[number].Of == "" {
			if by.all[number].Of, err = m.holder(ctx, view, reader, saver, example); err != nil {
				return nil, err
			}
		}
	}
	return by, nil
}

// holder is for whose share counts what a saver saved, the document of a slot among it.
func (m *roomMaking) holder(ctx context.Context, view kv.Reader, reader *lexical.Reader, saver string, slot uint32) (string, error) {
	if m.store.holderOf == nil {
		return saver, nil
	}
	if strings.HasPrefix(saver, segment.DigestMark) {
		ids, err := reader.IDs(ctx, reader.Frame().Ordinals([]uint32{slot}))
		if err != nil {
			return "", err
		}
		err = record.Named(ctx, view, m.scope, ids, func(_ int, r *record.Record, _ int) error {
			saver = r.SavedBy
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return m.store.holderOf(m.scope.Tenant, saver), nil
}

// weighed is a document and what it is worth.
type weighed struct {
	ordinal, place uint32
	saver          uint32
	worth          float64
}

func lighter(a, b weighed) int {
	return cmp.Or(cmp.Compare(a.worth, b.worth), cmp.Compare(a.place, b.place))
}

// lightest keeps the lightest of many, so many at most.
type lightest struct {
	most  int
	all   []weighed
	bound weighed // weight of the heaviest kept item; valid once len(all) == most
	full  bool
}

func (l *lightest) add(w weighed) {
	if l.full && lighter(w, l.bound) >= 0 {
		return
	}
	if l.all = append(l.all, w); len(l.all) >= 2*l.most {
		l.sort()
		l.full, l.bound = true, l.all[len(l.all)-1]
	}
}

// sort puts the lightest first and drops all that are none.
func (l *lightest) sort() {
	slices.SortFunc(l.all, lighter)
	l.all = l.all[:min(len(l.all), l.most)]
}

// least says how many documents of each saver are to go, together as many as there are too
// many and a few more, so that the next saves need not look; and returns documents of theirs
// that are worth little.
func (m *roomMaking) least(f *frame.Frame, selected *selection.Selection, by *savers) (least []weighed) {
	total := 0
	of := make([]lightest, len(by.all))
	for i := range of {
		of[i].most = roomLooked*m.give + len(m.spare)
	}
	for ordinal := range selected.All() {
		slot := f.Slot(ordinal)
		if archived := f.Flags[slot]&segment.FlagArchived != 0; archived != m.out {
			continue
		}
		total++
		saver := by.saver(slot)
		by.all[saver].Held++
		if f.Flags[slot]&segment.FlagPinned == 0 {
			by.all[saver].May++
			of[saver].add(weighed{ordinal, f.Place[slot], saver, m.worth(f, slot)})
		}
	}
	if total <= m.limit {
		return nil
	}
	for i := range of {
		of[i].sort()
	}
	keep := m.limit - m.limit/roomShare
	by.give = shares.Give(by.all, keep, min(m.give, total-keep), func(a, nth, b, mth int) bool {
		return lighter(of[a].all[nth], of[b].all[mth]) < 0
	})
	given := 0
	for i, n := range by.give {
		given += n
		if n > 0 {
			least = append(least, of[i].all[:min(len(of[i].all), roomLooked*n+len(m.spare))]...)
		}
	}
	if given == m.give { // else no more may leave
		m.over = total - given - m.limit
	}
	return least
}

// worth is what a document is worth by what the index knows: from 0 to 2, its importance
// and how new it is, and less for one that was replaced. In the archive the first goes
// first.
func (m *roomMaking) worth(f *frame.Frame, slot uint32) float64 {
	switch {
	case m.out:
		return 0
	case f.IsSuperseded(slot):
		return -1
	}
	return float64(f.Importance[slot]) + newness(m.now.Sub(time.UnixMicro(f.Create[slot])))
}

func newness(age time.Duration) float64 {
	return math.Exp2(-max(0, age.Hours()) / worthHalfLife.Hours())
}

// weigh reads the records, adds what the index does not know, and returns the ids of those
// that go, those worth least first.
func (m *roomMaking) weigh(ctx context.Context, view kv.Reader, reader *lexical.Reader, all []weighed, by *savers) ([]string, error) {
	ordinals := make([]uint32, len(all))
	for i, w := range all {
		ordinals[i] = w.ordinal
	}
	ids, err := reader.IDs(ctx, ordinals)
	if err != nil {
		return nil, err
	}
	used := make([]access.Value, len(ids))
	if m.store.accesses != nil && !m.out {
		if used, err = access.Read(ctx, view, m.scope, ids); err != nil {
			return nil, err
		}
	}
	byID := make(map[string]weighed, len(ids))
	var firm []string // what instructs leaves last, and never for what a model saves
	err = record.Named(ctx, view, m.scope, ids, func(i int, r *record.Record, _ int) error {
		w := all[i]
		if w.worth >= 0 && !m.out {
			w.worth = r.Importance + newness(m.now.Sub(latest(r.CreateTime, r.UpdateTime, r.LastRepeatTime))) + useOf(*r) + accessWorth*used[i].Strength(m.now)
		}
		if slices.Contains(m.spare, r.ID) {
			w.worth += spared
		}
		if m.store.instructs(r) {
			w.worth += spared
			firm = append(firm, r.ID)
		}
		byID[r.ID] = w
		return nil
	})
	if err != nil {
		return nil, err
	}
	if writer.Of(ctx) != writer.Program {
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(firm, id) })
	}
	if len(m.spare) == 1 { // a save must not be out of sight at once
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == m.spare[0] })
	}
	slices.SortFunc(ids, func(a, b string) int { return lighter(byID[a], byID[b]) })
	left := slices.Clone(by.give)
	return slices.DeleteFunc(ids, func(id string) bool {
		saver := byID[id].saver
		left[saver]--
		return left[saver] < 0
	}), nil
}

// useOf is what a record is worth for having been repeated: each doubling a tenth, up to a
// half.
func useOf(r record.Record) float64 {
	const most, doublings = 0.5, 10
	return min(most, math.Log2(1+float64(r.Repeats))/doublings)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// stage archives the chosen records that are unchanged, or deletes them from the archive.
func (m *roomMaking) stage(ctx context.Context, e *edit) error {
	m.gone, m.looked = nil, 0
	for _, id := range m.next {
		if m.looked == roomRecords || m.looked > 0 && e.full() {
			break
		}
		m.looked++
		at := slices.IndexFunc(e.writes, func(w write) bool { return w.record.ID == id })
		if at >= 0 { // one that another of them had superseded
			if err := e.flush(ctx); err != nil {
				return err
			}
		}
		r, stored, err := e.peek(ctx, id, -1)
		if err != nil {
			return err
		}
		if r == nil || r.Pinned || r.Archived != m.out || r.ExpiredAt(m.now) {
			continue
		}
		m.gone = append(m.gone, id)
		if m.out {
			if err := e.remove(ctx, r); err != nil {
				return err
			}
			if r.Writer == writer.Import {
				if err := left.Note(ctx, e.tx, m.scope, *r); err != nil {
					return err
				}
			}
			continue
		}
		next, err := e.store.redraft(stored, *r, func(r *record.Record) error {
			r.Archived, r.ArchiveTime = true, m.now
			return nil
		})
		if err != nil {
			return err
		}
		if err := e.replace(ctx, r, next, true); err != nil {
			return err
		}
	}
	return nil
}
