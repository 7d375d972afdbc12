package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Deletion names a record that is to go.
type Deletion struct {
	// ID names the record, or Key does. Give one of the two.
	ID, Key string
	// ExpectedVersion is the version that the record must have. Zero: any.
	ExpectedVersion int64
}

// Deleted is a record that went.
type Deleted struct {
	// ID was its id.
	ID string
	// Version was its last one.
	Version int64
}

// Delete takes a record out of memory: its text, words, vector, key and earlier
// versions. A record that it had superseded is current again, with the key that it had
// taken over; if the deleted one was superseded itself, the two that remain are linked.
// One that was derived from it goes on naming it.
//
// A request id makes the call safe to repeat, as with Save.
//
// Errors: *invalid.Error, *NotFoundError, *VersionError, *OwnedError. After any of
// them nothing has changed.
func (s *Store) Delete(ctx context.Context, scope kv.Scope, d Deletion, requestID string) (Deleted, error) {
	deletion, err := s.StageDelete(scope, d, requestID)
	if err != nil {
		return Deleted{}, err
	}
	deletion.actor = actorOf(ctx)
	if err := deletion.commit(ctx, "memory: delete"); err != nil {
		return Deleted{}, err
	}
	return Deleted{ID: deletion.records[0].ID, Version: deletion.records[0].Version}, nil
}

// StageDelete prepares a commit of the caller's to do what Delete does.
func (s *Store) StageDelete(scope kv.Scope, d Deletion, requestID string) (*Staging, error) {
	if err := s.beginRequest(scope, requestID); err != nil {
		return nil, err
	}
	if err := checkNamed(d.ID, d.Key, d.ExpectedVersion); err != nil {
		return nil, err
	}
	del := &deleting{scope: scope, deletion: d, requestID: requestID, now: record.StoredTime(s.now())}
	return &Staging{store: s, scope: scope, run: del.stage}, nil
}

// deleting is a deletion under way.
type deleting struct {
	scope     kv.Scope
	deletion  Deletion
	requestID string
	now       time.Time
}

// stage is the deletion's part of a commit.
func (d *deleting) stage(ctx context.Context, e *edit) error {
	ref, digest := recordsRef(d.scope), d.content()
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, d.requestID, digest)
	if err != nil {
		return err
	}
	if replayed {
		gone, err := record.Record{}.WithAnswer(answer)
		e.result = []record.Record{gone}
		return err
	}
	r, _, err := e.named(ctx, d.deletion.ID, d.deletion.Key, d.deletion.ExpectedVersion, d.now)
	if err != nil {
		return err
	}
	if err := e.remove(ctx, r); err != nil {
		return err
	}
	gone := record.Record{ID: r.ID, Version: r.Version}
	e.result = []record.Record{gone}
	kv.StageOnceOf(e.tx, ref, e.actor.Agent, d.requestID, digest, record.EncodeChangeAnswer(gone), d.now)
	return nil
}

// content stands for what a repeated request is compared by.
func (d *deleting) content() [sha256.Size]byte {
	b := wire.AppendText([]byte("delete"), 1, d.deletion.ID)
	b = wire.AppendText(b, 2, d.deletion.Key)
	return sha256.Sum256(wire.AppendInt(b, 3, d.deletion.ExpectedVersion))
}

// checkNamed refuses to look for a record that is not named by one of id and
// key.
func checkNamed(id, key string, expected int64) error {
	switch {
	case id != "" && key != "":
		return invalid.Field(ErrInvalid, "key", "and id are both set")
	case expected < 0:
		return invalid.Field(ErrInvalid, "expected_version", "is less than one")
	case key != "":
		return record.CheckName("key", key, record.MaxKeyBytes)
	}
	return record.CheckID("id", id)
}

// Matching says which records are to go.
type Matching struct {
	// Filter is an expression as of a query. Required: what deletes everything says so,
	// such as `version >= 1`.
	Filter string
	// Tiers are those looked at. Default: long-term memory.
	Tiers []int
	// DryRun counts, and deletes nothing.
	DryRun bool
}

// Cleared says what a DeleteMatching did.
type Cleared struct {
	// Deleted is how many records went, or with DryRun would go.
	Deleted int
	// NotOwned is how many stayed because another agent had saved them.
	NotOwned int
}

// DeleteMatching deletes the records that a filter lets through, each as Delete does,
// including superseded and archived ones. Records saved or changed meanwhile stay. Each
// commit deletes some dozens: after a failure the records deleted so far are gone, the
// counts say how many, and the call can be repeated.
//
// Errors: *invalid.Error; *filter.Error.
func (s *Store) DeleteMatching(ctx context.Context, scope kv.Scope, m Matching) (done Cleared, err error) {
	if m.Filter == "" {
		return done, invalid.Field(ErrInvalid, "filter", "is required; to delete everything, use a filter that matches everything, such as version >= 1")
	}
	actor := actorOf(ctx)
	reading := &edit{store: s, actor: actor}
	var found []Deleted
	for token, more := "", true; more; more = token != "" {
		l, err := s.checkListing(scope, Listing{Filter: m.Filter, Tiers: m.Tiers, PageSize: MaxPageSize, PageToken: token})
		if err != nil {
			return done, err
		}
		page, err := s.page(ctx, scope, l)
		if err != nil {
			return done, wrap("memory: delete matching", err)
		}
		for _, r := range page.Records {
			if reading.may(&r) != nil {
				done.NotOwned++
				continue
			}
			found = append(found, Deleted{r.ID, r.Version})
		}
		token = page.NextPageToken
	}
	if m.DryRun {
		done.Deleted = len(found)
		return done, nil
	}
	for len(found) > 0 {
		c := &clearing{found: found, now: record.StoredTime(s.now())}
		staging := &Staging{store: s, scope: scope, run: c.stage, actor: actor}
		if err := staging.commit(ctx, "memory: delete matching"); err != nil {
			return done, err
		}
		done.Deleted += c.deleted
		found = found[c.passed:]
	}
	return done, nil
}

// everything is a filter that lets all records through.
const everything = "version >= 1"

// Clear deletes everything of a scope: all records of all agents and the data stored with
// them, such as index entries and answers of requests. No other call may save to it meanwhile.
// After a failure it can be repeated.
func (s *Store) Clear(ctx context.Context, scope kv.Scope) error {
	for {
		done, err := s.DeleteMatching(ctx, scope, Matching{Filter: everything, Tiers: []int{1, 2, 3, record.LongTerm}})
		if err != nil {
			return err
		}
		if done.Deleted > 0 {
			continue
		}
		for left := true; left; {
			if left, err = s.wipe(ctx, scope); err != nil {
				return wrap("memory: clear", err)
			}
		}
		return nil
	}
}

// maxWiped bounds the keys of a keyspace that one commit of a Clear deletes. With the longest
// keys two keyspaces fit into a batch.
const maxWiped = 7000

// wipe deletes some of what stands in a scope that has no records, and reports whether there
// was anything.
func (s *Store) wipe(ctx context.Context, scope kv.Scope) (left bool, err error) {
	err = s.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{recordsRef(scope), lexical.Ref(scope)},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			left = false
			for _, ks := range []kv.Keyspace{kv.Index, kv.Records} {
				all := kv.Prefix(scope.AppendPrefix(nil))
				all.Limit = maxWiped
				for pair, err := range tx.Scan(ctx, ks, all) {
					if err != nil {
						return err
					}
					left = true
					tx.Delete(ks, pair.Key)
				}
			}
			return nil
		},
	})
	return left, err
}

// clearing is one commit of a DeleteMatching or a DeleteAged.
type clearing struct {
	found []Deleted
	now   time.Time
	goes  func(*record.Record) bool // nil: each does

	passed, deleted int
}

// stage removes some of what was found and is as it was then.
func (c *clearing) stage(ctx context.Context, e *edit) error {
	c.deleted = 0
	var err error
	c.passed, err = e.each(ctx, idsOf(c.found), func(i int, r *record.Record) error {
		if r == nil || r.Version != c.found[i].Version || r.ExpiredAt(c.now) || e.may(r) != nil || c.goes != nil && !c.goes(r) {
			return nil
		}
		c.deleted++
		return e.remove(ctx, r)
	})
	return err
}

// idsOf are the ids of those that one commit may remove.
func idsOf(found []Deleted) []string {
	ids := make([]string, min(len(found), sweepRecords))
	for i := range ids {
		ids[i] = found[i].ID
	}
	return ids
}

// maxAged bounds the records that DeleteAged reads at once.
const maxAged = 512

// Aged says what a DeleteAged did.
type Aged struct {
	// Deleted is how many records went.
	Deleted int
	// Oldest is the moment from which the oldest of those counts that may go some day; zero
	// if there is none.
	Oldest time.Time
}

// DeleteAged deletes, as Delete does each, the long-term records of a scope that are older
// than a moment: they were neither saved nor changed nor repeated since, superseded and
// archived ones included. Pinned records stay, and so do records that wait for review. The records of
// all agents go, whichever agent asks. Each commit deletes some dozens; after a failure the records
// deleted so far are gone, and the call can be repeated.
func (s *Store) DeleteAged(ctx context.Context, scope kv.Scope, before time.Time) (done Aged, err error) {
	if err := s.begin(scope); err != nil {
		return done, err
	}
	for a := (aging{store: s, scope: scope, before: record.StoredTime(before)}); ; {
		err := s.currentView(ctx, scope, func(view kv.Snapshot) error { return a.look(ctx, view) })
		for found := a.found; err == nil && len(found) > 0; {
			c := &clearing{found: found, now: record.StoredTime(s.now()), goes: a.goes}
			err = (&Staging{store: s, scope: scope, run: c.stage}).alone(ctx, true)
			if err == nil {
				done.Deleted += c.deleted
				found = found[c.passed:]
			}
		}
		if err != nil {
			return done, wrap("memory: delete aged", err)
		}
		if !a.more {
			done.Oldest = a.oldest
			return done, nil
		}
	}
}

// aging looks for the records of a scope that are too old.
type aging struct {
	store  *Store
	scope  kv.Scope
	before time.Time
	place  uint32 // of the last record that was read

	found  []Deleted
	more   bool
	oldest time.Time // of the records that stay for now
}

// look finds some more.
func (a *aging) look(ctx context.Context, view kv.Reader) error {
	a.found, a.more = nil, false
	reader, err := a.store.index.Open(ctx, view, a.scope)
	if err != nil {
		return err
	}
	selected, err := selection.Select(ctx, reader, selection.Filter{}, selection.Options{
		Now: a.store.now().UnixMicro(), Superseded: true, Quarantined: true, Archived: true,
	})
	if err != nil {
		return err
	}
	f := reader.Frame()
	var ordinals []uint32
	for ordinal := range selected.All() {
		slot := f.Slot(ordinal)
		created := time.UnixMicro(f.Create[slot])
		switch {
		case f.Place[slot] <= a.place, f.Flags[slot]&segment.FlagPinned != 0:
		case !created.Before(a.before):
			a.stays(created)
		default:
			ordinals = append(ordinals, ordinal)
		}
	}
	slices.SortFunc(ordinals, func(x, y uint32) int { return cmp.Compare(f.Place[f.Slot(x)], f.Place[f.Slot(y)]) })
	if a.more = len(ordinals) > maxAged; a.more {
		ordinals = ordinals[:maxAged]
	}
	if len(ordinals) > 0 {
		a.place = f.Place[f.Slot(ordinals[len(ordinals)-1])]
	}
	ids, err := reader.IDs(ctx, ordinals)
	if err != nil {
		return err
	}
	return record.Named(ctx, view, a.scope, ids, func(_ int, r *record.Record, _ int) error {
		switch {
		case a.goes(r):
			a.found = append(a.found, Deleted{r.ID, r.Version})
		case !r.Pinned && r.Review != record.ReviewHeld:
			a.stays(lastChange(r))
		}
		return nil
	})
}

// goes reports whether a record is too old, and nothing holds it.
func (a *aging) goes(r *record.Record) bool {
	return !r.Pinned && r.Review != record.ReviewHeld && r.Tier == record.LongTerm && lastChange(r).Before(a.before)
}

func lastChange(r *record.Record) time.Time {
	return latest(r.CreateTime, r.UpdateTime, r.LastRepeatTime)
}

func (a *aging) stays(since time.Time) {
	if a.oldest.IsZero() || since.Before(a.oldest) {
		a.oldest = since
	}
}
