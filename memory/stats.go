package memory

import (
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// Stats are counts of one scope.
type Stats struct {
	// Records is how many records the scope holds, those superseded and those
	// expired but not yet swept included.
	Records int64
	// Words is the length of all of them, in words as the index counts them.
	Words int64
	// Sessions is how many sessions the records name.
	Sessions int64
	// Versions is how many earlier versions of the records are kept.
	Versions int64
	// Tail is how many documents are not packed yet.
	Tail int
	// Segments is how many packed pieces the index has.
	Segments int
	// Spaces are the embedding spaces of the records' vectors.
	Spaces []vector.Space
	// EmbedderSpace is the space of the store's own embedder; empty without one.
	EmbedderSpace string
	// Pending is how many records wait for a vector of the embedder.
	Pending int64
	// Archived is how many records lie in the archive.
	Archived int64
	// MaxRecords and MaxArchived are those of Options.
	MaxRecords, MaxArchived int
	// IndexSequence is the commit that the counts reflect.
	IndexSequence uint64
}

// Stats returns counts of a scope.
func (s *Store) Stats(ctx context.Context, scope kv.Scope) (Stats, error) {
	if err := s.begin(scope); err != nil {
		return Stats{}, err
	}
	var stats Stats
	err := s.current(ctx, scope, func() error {
		return s.view(ctx, func(view kv.Snapshot) (err error) {
			stats, err = s.readStats(ctx, view, scope)
			return err
		}, lexical.Ref(scope))
	})
	if err != nil {
		return Stats{}, wrap("memory: stats", err)
	}
	return stats, nil
}

// readStats reads the counts from a view that was opened with the index's ref.
func (s *Store) readStats(ctx context.Context, view kv.Snapshot, scope kv.Scope) (Stats, error) {
	counts, segments, err := s.index.Statistics(ctx, view, scope)
	if err != nil {
		return Stats{}, err
	}
	kept, err := readCounts(ctx, view, scope)
	if err != nil {
		return Stats{}, err
	}
	spaces, pending, err := s.vectorStats(ctx, view, scope)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Records:       int64(counts.Documents),
		Words:         int64(counts.BodyWords + counts.HeaderWords),
		Sessions:      int64(counts.Sessions),
		Versions:      kept.versions,
		Archived:      kept.archived,
		MaxRecords:    s.limits.records,
		MaxArchived:   s.limits.archived,
		Tail:          counts.Tail(),
		Segments:      segments,
		Spaces:        spaces,
		EmbedderSpace: s.EmbedderSpace(),
		Pending:       int64(pending),
		IndexSequence: view.Sequences()[0],
	}, nil
}

// Totals are counts of all scopes.
type Totals struct {
	// Records is how many records there are, as Stats counts them.
	Records int64
	// Pending is how many of them wait for a vector of the embedder, counted up to
	// MaxPendingCounted.
	Pending int64
}

// MaxPendingCounted is where Totals stops to count records that wait for a vector.
const MaxPendingCounted = 100_000

// Totals counts the records of all scopes. It reads a few keys of each scope, and
// leaves out those whose index an older version wrote and that were not used since.
func (s *Store) Totals(ctx context.Context) (Totals, error) {
	var totals Totals
	for scope, err := range kv.Scopes(ctx, s.engine, kv.Records) {
		if err != nil {
			return Totals{}, wrap("memory: totals", err)
		}
		counts, _, err := s.index.Statistics(ctx, s.engine, scope)
		if errors.Is(err, lexical.ErrOutdated) {
			continue
		}
		if err != nil {
			return Totals{}, wrap("memory: totals", err)
		}
		totals.Records += int64(counts.Documents)
	}
	waiting, err := waitingScopes(ctx, s.engine)
	if err != nil {
		return Totals{}, wrap("memory: totals", err)
	}
	for _, scope := range waiting {
		marks, err := readWaiting(ctx, s.engine, scope, int(MaxPendingCounted-totals.Pending))
		if err != nil {
			return Totals{}, wrap("memory: totals", err)
		}
		if totals.Pending += int64(len(marks)); totals.Pending >= MaxPendingCounted {
			break
		}
	}
	return totals, nil
}
