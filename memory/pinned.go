package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// ErrPinned: a memory has as many records as it may, all pinned, so that none can make room;
// *PinnedError says how many.
var ErrPinned = errors.New("memory: all records are pinned")

// PinnedError says how many records a memory may have. It is an ErrPinned.
type PinnedError struct {
	// Limit is Options.MaxRecords.
	Limit int
}

func (e *PinnedError) Error() string {
	return fmt.Sprintf("memory: it has its %d records, all of them pinned, so none makes room: unpin, archive or delete some first, or raise --memory-limit", e.Limit)
}

// Is makes errors.Is(err, ErrPinned) true.
func (e *PinnedError) Is(target error) bool { return target == ErrPinned }

// errPinsMoved: others took so many places since the look for room that it must be looked for
// again.
var errPinsMoved = errors.New("memory: the room for pinned records was taken")

// pinRoom is how many pinned records a memory may still get. Nil: as many as there are.
type pinRoom struct {
	store *Store
	scope kv.Scope
	more  int // how many come

	looked bool
	left   int
	last   uint32 // the newest document when it was looked
}

// newPins is the room for so many records that come; nil in a memory without a limit.
func (s *Store) newPins(scope kv.Scope, more int) *pinRoom {
	if s.limits.records == 0 {
		return nil
	}
	return &pinRoom{store: s, scope: scope, more: more}
}

// look finds how much room there is. Pinned records are counted only where others would not be
// few enough.
func (p *pinRoom) look(ctx context.Context) error {
	if p == nil {
		return nil
	}
	s := p.store
	m := &roomMaking{store: s, scope: p.scope, limit: s.limits.records, now: record.StoredTime(s.now())}
	err := s.currentView(ctx, p.scope, func(view kv.Snapshot) (err error) {
		if p.last, err = s.index.Last(ctx, view, p.scope); err != nil {
			return err
		}
		taken, err := m.most(ctx, view)
		if err == nil && taken+int64(p.more) > int64(m.limit) {
			taken, err = m.pinned(ctx, view)
		}
		p.left = m.limit - int(taken)
		return err
	})
	p.looked = err == nil
	return wrap("memory: look for room", err)
}

// now is the room in a commit: each document that came since may have taken a place.
// errPinsMoved where that leaves too little. A commit of somebody else's, who did not look,
// has all the room.
func (p *pinRoom) now(ctx context.Context, tx *kv.Tx) (*pinRoom, error) {
	if p == nil || !p.looked {
		return nil, nil
	}
	last, err := p.store.index.Last(ctx, tx, p.scope)
	if err != nil {
		return nil, err
	}
	room := *p
	room.left -= int(last) - int(p.last)
	if last < p.last || last > p.last && room.left < p.more {
		return nil, errPinsMoved
	}
	return &room, nil
}

// pinned counts the pinned records outside the archive.
func (m *roomMaking) pinned(ctx context.Context, view kv.Reader) (n int64, err error) {
	reader, err := m.store.index.Open(ctx, view, m.scope)
	if err != nil {
		return 0, err
	}
	selected, err := selection.Select(ctx, reader, selection.Filter{}, selection.Options{Now: m.now.UnixMicro(), Superseded: true, Quarantined: true})
	if err != nil {
		return 0, err
	}
	f := reader.Frame()
	for ordinal := range selected.All() {
		if flags := f.Flags[f.Slot(ordinal)]; flags&segment.FlagPinned != 0 && flags&segment.FlagArchived == 0 {
			n++
		}
	}
	return n, nil
}

// take takes the place of a record that comes or gets pinned; a *PinnedError where there is
// none.
func (p *pinRoom) take(r *record.Record) error {
	if p == nil || r.Archived {
		return nil
	}
	if p.left <= 0 {
		return &PinnedError{p.store.limits.records}
	}
	if r.Pinned {
		p.left--
	}
	return nil
}
