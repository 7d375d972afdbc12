package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// lookEvery is how often a follower looks for itself at an engine that other processes
// write to.
const lookEvery = time.Second

// Following asks for what changes in a scope.
type Following struct {
	// After is the position of the last change that is known. Empty: none, so that
	// every record comes once, as it is.
	After string
	// WithVectors completes the records with their vectors.
	WithVectors bool
	// Room is asked for room before changes of about so many bytes are read, and as soon as
	// there are any more. Default nil: there is room.
	Room func(ctx context.Context, bytes int) error
}

// followBytes is about how many bytes of records are read at once.
const followBytes = 2 << 20

// firstFollowed is how many of them are read first, whose sizes say how many fit.
const firstFollowed = 4

// Change is a record that was saved or changed, or a deleted one.
type Change struct {
	// Record is what it is now, with the relations that go out from it; nil for one that was deleted or has expired.
	Record *record.Record
	// ID is the record's.
	ID string
	// Position is the place behind the change.
	Position string
}

// Changes are changes of one moment.
type Changes struct {
	// Changes are in an order in which they can be applied.
	Changes []Change
	// Position is the place behind all of them.
	Position string
	// More says that there were others at that moment.
	More bool
}

// ErrPositionGone: the changes behind a position are not known any more, because the
// scope was erased, its index made anew, or more than feed.MaxKept records were deleted.
// Who follows begins anew, without a position, and drops what it knows.
var ErrPositionGone = errors.New("memory: changes after that position are no longer kept; start again without a position")

// Follow calls do with what changed behind a position, and then with every further change
// until ctx ends or do fails. It says with no change and More false where it has caught up,
// once at the beginning at least.
//
// A record that changed several times comes once, as it is last; one that came and went
// does not come, or only as deleted. One that expires is deleted when it is swept, some
// seconds later; its ExpireTime said so before. Whoever takes the changes one after the
// other knows, where More is false, what List shows of all tiers. A vector that an embedder
// adds later is no change.
//
// Errors: *invalid.Error for an invalid position; ErrPositionGone; the errors of do.
func (s *Store) Follow(ctx context.Context, scope kv.Scope, f Following, do func(Changes) error) error {
	if err := s.begin(scope); err != nil {
		return err
	}
	rings, stop := s.bell.Listen(scope)
	defer stop()
	position, err := s.position(ctx, scope, f.After)
	if err != nil {
		return wrap("memory: follow", err)
	}
	for {
		if f.Room != nil {
			if err := f.Room(ctx, followBytes); err != nil {
				return wrap("memory: follow", err)
			}
		}
		r := reading{store: s, scope: scope, at: position}
		if err := r.run(ctx, f.WithVectors); err != nil {
			return wrap("memory: follow", err)
		}
		position = r.at
		if err := do(r.found); err != nil {
			return err
		}
		if r.found.More {
			continue
		}
		if err := s.await(ctx, scope, rings, r.sequences); err != nil {
			return err
		}
	}
}

// followed are the refs whose sequences say that a scope has changed.
func followed(scope kv.Scope) []kv.Ref { return []kv.Ref{recordsRef(scope), lexical.Ref(scope)} }

// await waits until the scope has changed since it had those sequences.
func (s *Store) await(ctx context.Context, scope kv.Scope, rings <-chan struct{}, before []uint64) error {
	var look <-chan time.Time
	if _, shared := s.engine.(kv.Notifier); shared {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-rings:
			return nil
		case <-look:
			now, err := s.engine.Sequence(ctx, followed(scope)...)
			if err != nil || !slices.Equal(now, before) {
				return err
			}
		}
	}
}

// position reads a position, or begins with none: the scope has a feed then.
func (s *Store) position(ctx context.Context, scope kv.Scope, after string) (feed.Position, error) {
	if after != "" {
		p, err := feed.Parse(after)
		if err != nil {
			return p, invalid.Field(ErrInvalid, "after", "is not a position that a change came with")
		}
		return p, nil
	}
	head, err := feed.Read(ctx, s.engine, scope)
	if err != nil || head.ID != 0 {
		return feed.Position{}, err
	}
	return feed.Position{}, s.writer.Do(ctx, kv.Request{Refs: []kv.Ref{recordsRef(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		return feed.Begin(ctx, tx, scope)
	}})
}

// reading reads a page of what changed behind a position.
type reading struct {
	store *Store
	scope kv.Scope
	at    feed.Position
	found Changes

	view      kv.Snapshot
	sequences []uint64 // of the refs that followed names
}

func (r *reading) run(ctx context.Context, vectors bool) error {
	after := r.at
	return r.store.currentView(ctx, r.scope, func(view kv.Snapshot) error {
		r.at, r.found, r.view, r.sequences = after, Changes{}, view, view.Sequences()
		err := r.read(ctx)
		r.found.Position = r.at.String()
		if err != nil {
			return err
		}
		var records []*record.Record
		for _, c := range r.found.Changes {
			if c.Record != nil {
				records = append(records, c.Record)
			}
		}
		if err := readRelations(ctx, view, r.scope, time.Time{}, records...); err != nil || !vectors {
			return err
		}
		return r.store.embeddings.Complete(ctx, view, r.scope, records...)
	}, followed(r.scope)...)
}

// read reads first what is gone, so that an id which was given again comes behind.
func (r *reading) read(ctx context.Context) error {
	index, err := r.store.index.Open(ctx, r.view, r.scope)
	if err != nil {
		return err
	}
	if err := r.place(ctx, index.Incarnation()); err != nil {
		return err
	}
	gone, err := feed.Deleted(ctx, r.view, r.scope, r.at.Deletion, MaxPageSize)
	if err != nil {
		return err
	}
	for _, note := range gone {
		r.at.Deletion++
		id, related := feed.CutRelated(note)
		if related {
			if err := r.stored(ctx, id); err != nil {
				return err
			}
			continue
		}
		r.found.Changes = append(r.found.Changes, Change{ID: id, Position: r.at.String()})
	}
	if len(gone) == MaxPageSize {
		r.found.More = true
		return nil
	}
	return r.documents(ctx, index)
}

// place compares the position with the store, and gives a beginning one.
func (r *reading) place(ctx context.Context, incarnation uint64) error {
	head, err := feed.Read(ctx, r.view, r.scope)
	if err != nil {
		return err
	}
	switch {
	case r.at.Feed == 0 && head.ID != 0:
		r.at = feed.Position{Feed: head.ID, Deletion: head.Last}
	case r.at.Feed != head.ID || head.ID == 0, r.at.Deletion > head.Last, r.at.Deletion+1 < head.First,
		r.at.Ordinal > 0 && r.at.Incarnation != incarnation:
		return ErrPositionGone
	}
	r.at.Incarnation = incarnation
	return nil
}

// documents reads the records whose documents are behind the position.
func (r *reading) documents(ctx context.Context, index *lexical.Reader) error {
	const anyTier = 1<<record.LongTerm - 1
	all, err := selection.Select(ctx, index, selection.Filter{}, selection.Options{
		Now: r.store.now().UnixMicro(), Tiers: anyTier, Archived: true, Superseded: true, Quarantined: true,
	})
	if err != nil {
		return err
	}
	var chunk []placed
	for ordinal := range all.All() {
		if ordinal <= r.at.Ordinal {
			continue
		}
		if len(chunk) == pageRead {
			r.found.More = true
			break
		}
		chunk = append(chunk, placed{ordinal: ordinal})
	}
	if len(chunk) == 0 {
		return nil
	}
	size := 0
	for some := firstFollowed; len(chunk) > 0; {
		if size > followBytes/2 {
			r.found.More = true
			break
		}
		some = min(some, len(chunk))
		n, err := r.changed(ctx, index, chunk[:some])
		if err != nil {
			return err
		}
		chunk, size = chunk[some:], size+n
		some = max(1, (followBytes-size)/2/(n/some+1))
	}
	return nil
}

// changed reads records, and returns about how many bytes they have.
func (r *reading) changed(ctx context.Context, index *lexical.Reader, chunk []placed) (size int, err error) {
	records, err := readPlaced(ctx, r.view, r.scope, index, chunk)
	if err != nil {
		return 0, err
	}
	for i := range records {
		// The record that this one supersedes has got no new document.
		if id := records[i].Supersedes; id != "" {
			if err := r.stored(ctx, id); err != nil {
				return 0, err
			}
		}
		r.at.Ordinal = chunk[i].ordinal
		r.found.Changes = append(r.found.Changes, Change{Record: &records[i], ID: records[i].ID, Position: r.at.String()})
		size += len(records[i].Text) + len(records[i].Metadata)
	}
	return size, nil
}

// stored adds a record as it is stored, unless it is gone.
func (r *reading) stored(ctx context.Context, id string) error {
	found, ok, err := record.Read(ctx, r.view, r.scope, id)
	if err != nil || !ok || found.ExpiredAt(r.store.now()) {
		return err
	}
	r.found.Changes = append(r.found.Changes, Change{Record: &found, ID: id, Position: r.at.String()})
	return nil
}

// noteGone adds the records that the edit has deleted to the feed.
func (e *edit) noteGone(ctx context.Context) error {
	gone := e.gone
	e.gone = nil
	if err := feed.Gone(ctx, e.tx, e.scope, gone); err != nil {
		return fmt.Errorf("note the deletion: %w", err)
	}
	return nil
}
