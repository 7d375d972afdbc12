package syncs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// roundRecords is how many changed records of one side a round takes.
	roundRecords = 1000
	// maxPending bounds the records that are looked at again in each round.
	maxPending = 10_000
	// atOnce is how many records are changed at once.
	atOnce = 8
	// tries is how often a record is looked at in one round that others change meanwhile.
	tries = 5
	// guardedFrom is from how many deletions on the share of them matters.
	guardedFrom = 10
)

// Counts say what was done, or would be.
type Counts struct {
	Here      int64 `json:"changed_here"`
	There     int64 `json:"changed_there"`
	Removed   int64 `json:"deleted"`
	Conflicts int64 `json:"conflicts"`
	Refused   int64 `json:"refused"`
	Equal     int64 `json:"equal"`
}

// tale is something that is told of a record.
type tale struct {
	Event string `json:"event"`
	ID    string `json:"id,omitempty"`
	Text  string `json:"text"`
	// Kept is the id of the copy that a conflict leaves.
	Kept string `json:"kept,omitempty"`
}

// session keeps two sides in step.
type session struct {
	here, there side
	state       *state
	dry, notes  bool
	// deletions lets more than half of all known records be deleted at once.
	deletions bool
	tell      func(tale)
	progress  func(done int)
	now       func() time.Time
	counts    Counts
	done      atomic.Int64
	// keys is held while two records with one key are settled.
	keys sync.Mutex
}

// GuardError says that so much is gone on one side that it is not deleted on the other unasked.
type GuardError struct {
	Side        string
	Gone, Known int
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("%d of %d records in step are gone %s; is it the right one, and whole? Nothing was changed: --allow-deletions deletes them on the other side, too", e.Gone, e.Known, e.Side)
}

// sight is what both sides have of a record that may have changed; nil: not read in this round.
type sight [2]*entry

// round does what changed on either side since the last one; more says that there is more to do.
func (s *session) round(ctx context.Context) (more bool, err error) {
	var found [2]changes
	for i, from := range []side{s.here, s.there} {
		most := roundRecords
		if s.state.at[i] == "" && len(s.state.pairs) > 0 {
			most = 0 // what is missing among all was deleted
		}
		found[i], err = from.changes(ctx, s.state.at[i], most, func(id, hash string) bool {
			p := s.state.pairs[id]
			return p != nil && !s.state.pending[id] && [2]mark{p.Here, p.There}[i].Hash == hash
		})
		if err != nil {
			return false, fmt.Errorf("%s: %w", from.name(), err)
		}
	}
	seen, order := s.sights(found)
	if err := s.guard(seen); err != nil {
		return false, err
	}
	if err := s.each(ctx, order, func(ctx context.Context, id string) error { return s.settle(ctx, id, seen[id]) }); err != nil {
		return false, err
	}
	return found[0].more || found[1].more, s.state.reached([2]string{found[0].at, found[1].at})
}

// sights are the records to look at, and their order.
func (s *session) sights(found [2]changes) (seen map[string]sight, order []string) {
	seen = make(map[string]sight)
	put := func(i int, e *entry) {
		one, ok := seen[e.id]
		if !ok {
			order = append(order, e.id)
		}
		one[i] = e
		seen[e.id] = one
	}
	for i := range found {
		for j := range found[i].entries {
			put(i, &found[i].entries[j])
		}
	}
	for i := range found {
		if !found[i].whole {
			continue
		}
		for id := range s.state.pairs {
			if !found[i].held[id] && seen[id][i] == nil {
				put(i, &entry{id: id})
			}
		}
	}
	for id := range s.state.pending {
		if _, ok := seen[id]; !ok {
			seen[id] = sight{}
			order = append(order, id)
		}
	}
	return seen, order
}

// guard refuses to go on where more than half of what is known is gone on one side, or all of it,
// as of a folder that is not mounted.
func (s *session) guard(seen map[string]sight) error {
	if s.deletions {
		return nil
	}
	for i, of := range []side{s.here, s.there} {
		gone := 0
		for id, one := range seen {
			p := s.state.pairs[id]
			if p != nil && one[i] != nil && one[i].state == absent && !p.expired(s.now()) {
				gone++
			}
		}
		all := len(s.state.pairs)
		if gone >= guardedFrom && 2*gone > all || gone > 1 && gone == all {
			return &GuardError{of.name(), gone, all}
		}
	}
	return nil
}

// each calls do for ids, some at once, until one fails.
func (s *session) each(ctx context.Context, ids []string, do func(ctx context.Context, id string) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan string)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for id := range work {
				if err := do(ctx, id); err != nil {
					stop(err)
					return
				}
				s.progress(int(s.done.Add(1)))
			}
		})
	}
feed:
	for _, id := range ids {
		select {
		case work <- id:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	all.Wait()
	return context.Cause(ctx)
}

// settle does what is to be done about one record.
func (s *session) settle(ctx context.Context, id string, seen sight) error {
	known, pending := s.state.known(id)
	again := pending
	for range tries {
		here, there, err := s.look(ctx, id, known, seen, again)
		if err != nil {
			return err
		}
		err = s.apply(ctx, known, here, there)
		why, isRefused := errors.AsType[*refusedError](err)
		switch {
		case err == nil:
			return nil
		case isRefused:
			atomic.AddInt64(&s.counts.Refused, 1)
			s.tell(tale{Event: "refused", ID: id, Text: why.why})
			return s.later(id, known)
		case !errors.Is(err, errMoved):
			return err
		}
		seen, again = sight{}, true
	}
	return s.later(id, known)
}

// later has a record looked at again in the next round.
func (s *session) later(id string, known *pair) error {
	s.state.mu.Lock()
	full := len(s.state.pending) >= maxPending && !s.state.pending[id]
	s.state.mu.Unlock()
	if full {
		return fmt.Errorf("more than %d records are refused; the last one is %q", maxPending, id)
	}
	if s.dry {
		return nil
	}
	return s.state.note(id, known, true)
}

// look is what both sides have of a record: as the round has read it, as it was last equal, or, where
// again says so, as it is now.
func (s *session) look(ctx context.Context, id string, known *pair, seen sight, again bool) (here, there entry, err error) {
	for i, of := range []side{s.here, s.there} {
		e := seen[i]
		switch {
		case e != nil && !again:
		case again || s.dry && known == nil:
			now, err := of.get(ctx, id)
			if err != nil {
				return here, there, err
			}
			e = &now
		case known != nil:
			m := [2]mark{known.Here, known.There}[i]
			e = &entry{id: id, mark: m, view: view{state: present, hash: m.Hash}}
		default:
			e = &entry{id: id} // and creating it finds that it is there after all
		}
		if i == 0 {
			here = *e
		} else {
			there = *e
		}
	}
	return here, there, nil
}

// apply decides and does it.
func (s *session) apply(ctx context.Context, known *pair, here, there entry) error {
	v := decide(known, here.view, there.view, s.now(), s.notes)
	switch v {
	case nothing, forget:
		return s.noted(here.id, nil)
	case agree:
		atomic.AddInt64(&s.counts.Equal, 1)
		p := pairOf(here, there)
		if known != nil && p.Expires == 0 && here.record.Text == "" && there.record.Text == "" {
			p.Expires = known.Expires
		}
		return s.noted(here.id, p)
	case removeThere:
		return s.drop(ctx, s.here, s.there, there)
	case removeHere:
		return s.drop(ctx, s.there, s.here, here)
	case copyThere:
		got, err := s.copy(ctx, known, s.here, s.there, here, there, &s.counts.There)
		if err != nil || got.state == absent { // it has expired
			return cmp.Or(err, s.noted(here.id, nil))
		}
		return s.noted(here.id, pairOf(here, got))
	case copyHere:
		got, err := s.copy(ctx, known, s.there, s.here, there, here, &s.counts.Here)
		if err != nil || got.state == absent {
			return cmp.Or(err, s.noted(here.id, nil))
		}
		return s.noted(here.id, pairOf(got, there))
	}
	return s.conflict(ctx, here, there)
}

func (s *session) noted(id string, p *pair) error {
	if s.dry {
		return nil
	}
	return s.state.note(id, p, false)
}

// drop deletes a record on one side that is gone on the other.
func (s *session) drop(ctx context.Context, gone, from side, e entry) error {
	if !s.dry {
		if err := from.remove(ctx, e); err != nil {
			return err
		}
	}
	atomic.AddInt64(&s.counts.Removed, 1)
	s.tell(tale{Event: "deleted", ID: e.id, Text: fmt.Sprintf("deleted %s, since it is gone %s", from.name(), gone.name())})
	return s.noted(e.id, nil)
}

// copy gives one side what the other one has.
func (s *session) copy(ctx context.Context, known *pair, from, to side, e, was entry, count *int64) (got entry, err error) {
	if !s.dry {
		if was.state == absent {
			got, err = to.create(ctx, e.record)
			if taken, ok := errors.AsType[*keyTakenError](err); ok {
				got, err = s.sameKey(ctx, from, to, e, taken.holder)
			}
		} else {
			got, err = to.update(ctx, was, e.record)
		}
		if err != nil {
			return got, fmt.Errorf("%s: %w", to.name(), err)
		}
	}
	atomic.AddInt64(count, 1)
	if known != nil && was.state == absent {
		s.tell(tale{Event: "kept", ID: e.id, Text: fmt.Sprintf("deleted %s, changed %s: the change stays", to.name(), from.name())})
	}
	return got, nil
}

// sameKey brings a record to a side where another record has its key. The later one replaces the
// other, which is kept as every replaced record is; so they are on both sides.
func (s *session) sameKey(ctx context.Context, from, to side, e, holder entry) (entry, error) {
	s.keys.Lock() // the other record may be on its way here
	defer s.keys.Unlock()
	if there, err := to.get(ctx, e.id); err != nil || there.state != absent {
		return there, cmp.Or(err, errMoved)
	}
	mine, theirs := e.record, holder.record
	wins := hereLater(e.view, holder.view)
	if wins {
		mine.Supersedes, theirs.SupersededBy = theirs.ID, mine.ID
	} else {
		theirs.Supersedes, mine.SupersededBy = mine.ID, theirs.ID
	}
	bring := func(to side, r record.Record) (entry, error) {
		got, err := to.create(ctx, r)
		if errors.Is(err, errMoved) {
			return to.get(ctx, r.ID)
		}
		return got, err
	}
	// The loser is brought as one that can't take the key; the winner takes it by replacing the loser.
	got, err := bring(to, mine)
	if err == nil {
		_, err = bring(from, theirs)
	}
	if _, ok := errors.AsType[*keyTakenError](err); ok {
		return got, &refusedError{fmt.Sprintf("record %q has the key %q, too, and neither may replace the other", holder.id, e.record.Key)}
	}
	if err != nil {
		return got, err
	}
	stays, goes := mine.ID, theirs.ID
	if !wins {
		stays, goes = goes, stays
	}
	atomic.AddInt64(&s.counts.Conflicts, 1)
	s.tell(tale{Event: "conflict", ID: stays, Kept: goes, Text: fmt.Sprintf("both sides have saved key %q: %s, the later one, has replaced %s", e.record.Key, stays, goes)})
	return got, s.state.note(theirs.ID, nil, true)
}

// conflict keeps both contents: the later one under the id, the other as an archived copy, on both sides.
func (s *session) conflict(ctx context.Context, here, there entry) error {
	stays, goes, of, at := here, there, s.here, s.there
	if !hereLater(here.view, there.view) {
		stays, goes, of, at = there, here, s.there, s.here
	}
	copied := conflictCopy(goes)
	// It is told first: what is cut off here may be no conflict any more when it is looked at again.
	atomic.AddInt64(&s.counts.Conflicts, 1)
	s.tell(tale{Event: "conflict", ID: here.id, Kept: copied.ID, Text: fmt.Sprintf(
		"changed on both sides: the text %s, of %s, stays; the one %s, of %s, is kept as %s", of.name(), stamp(stays.time), at.name(), stamp(goes.time), copied.ID)})
	if !s.dry {
		for _, to := range []side{s.here, s.there} {
			if _, err := to.create(ctx, copied); err != nil && !errors.Is(err, errMoved) {
				return fmt.Errorf("%s: %w", to.name(), err)
			}
		}
		got, err := at.update(ctx, goes, stays.record)
		if err != nil {
			return fmt.Errorf("%s: %w", at.name(), err)
		}
		p := pairOf(stays, got)
		if of == s.there {
			p = pairOf(got, stays)
		}
		if err := s.noted(here.id, p); err != nil {
			return err
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) }

// run does rounds until there is nothing more to do.
func (s *session) run(ctx context.Context) error {
	for {
		more, err := s.round(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// follow does rounds whenever something changes, until ctx ends. What fails is told and tried again.
func (s *session) follow(ctx context.Context) error {
	const first, most = time.Second, 30 * time.Second
	for wait := first; ; {
		err := s.run(ctx)
		if _, guarded := errors.AsType[*GuardError](err); guarded {
			return err
		}
		if err == nil {
			wait = first
			err = s.change(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			continue
		}
		s.tell(tale{Event: "waiting", Text: fmt.Sprintf("%v; tried again in %v", err, wait)})
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, most)
	}
}

// change waits for a change of either side.
func (s *session) change(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	came := make(chan error, 2)
	var both sync.WaitGroup
	for i, of := range []side{s.here, s.there} {
		at := s.state.at[i]
		both.Go(func() { came <- of.await(ctx, at) })
	}
	err := <-came
	stop()
	both.Wait()
	return err
}
