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

// pinRoom is how many pinned records a memory may still get; nil where nothing is near.
type pinRoom struct{ limit, left int }

// pinRoom looks how many pinned records a memory has, if it comes to its limit with so many
// records more. Two saves at once may find the same place free.
func (s *Store) pinRoom(ctx context.Context, scope kv.Scope, more int) (room *pinRoom, err error) {
	if s.limits.records == 0 {
		return nil, nil
	}
	m := &roomMaking{store: s, scope: scope, limit: s.limits.records, now: record.StoredTime(s.now())}
	err = s.current(ctx, scope, func() error {
		return s.view(ctx, func(view kv.Snapshot) error {
			room = nil
			most, err := m.most(ctx, view)
			if err != nil || most+int64(more) <= int64(m.limit) {
				return err
			}
			pinned, err := m.pinned(ctx, view)
			room = &pinRoom{m.limit, m.limit - pinned}
			return err
		})
	})
	return room, wrap("memory: look for room", err)
}

// pinned counts the pinned records outside the archive.
func (m *roomMaking) pinned(ctx context.Context, view kv.Reader) (n int, err error) {
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

// again is the room as it was found: a commit may be staged several times.
func (p *pinRoom) again() *pinRoom {
	if p == nil {
		return nil
	}
	found := *p
	return &found
}

// take takes the place of a record that comes; a *PinnedError where there is none.
func (p *pinRoom) take(r *record.Record) error {
	if p == nil || r.Archived {
		return nil
	}
	if p.left <= 0 {
		return &PinnedError{p.limit}
	}
	if r.Pinned {
		p.left--
	}
	return nil
}
