package memory

import (
	"bytes"
	"cmp"
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
	// IndexSequence is the commit that the counts reflect.
	IndexSequence uint64
}

// Stats returns counts of a scope.
func (s *Store) Stats(ctx context.Context, scope kv.Scope) (Stats, error) {
	if err := s.begin(scope); err != nil {
		return Stats{}, err
	}
	var stats Stats
	err := s.currentView(ctx, scope, func(view kv.Snapshot) (err error) {
		stats, err = s.readStats(ctx, view, scope)
		return err
	}, lexical.Ref(scope))
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
	spaces, pending, err := s.embeddings.Stats(ctx, view, scope)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Records:       int64(counts.Documents),
		Versions:      kept.versions,
		Archived:      kept.archived,
		Tail:          counts.Tail(),
		Segments:      segments,
		Spaces:        spaces,
		EmbedderSpace: s.embeddings.Space(),
		Pending:       int64(pending),
		IndexSequence: view.Sequences()[0],
	}, nil
}

const (
	// DefaultOwnersPage is how many owners a page has unless it is asked for otherwise.
	DefaultOwnersPage = 100
	// MaxOwnersPage bounds a page of owners.
	MaxOwnersPage = 1000
)

// Owners asks for the owners of a tenant that have anything stored in memory.
type Owners struct {
	Tenant string
	// Also are further keyspaces: who has anything there is an owner, too.
	Also []kv.Keyspace
	// Kind is what owns the memories: an agent, a space or a person; zero for all three.
	Kind kv.OwnerKind
	// Prefix is what the owners' ids begin with.
	Prefix string
	// After, unless zero, is the scope behind which the page begins.
	After kv.Scope
	// Size is how many there may be. Zero: DefaultOwnersPage.
	Size int
	// May says who is listed; nil: all.
	May func(ctx context.Context, scope kv.Scope) (bool, error)
}

// Owned is an owner and what its memory holds.
type Owned struct {
	Scope kv.Scope
	// Records and Archived are as in Stats. They are zero for an index that an older version
	// wrote and that has not been used since.
	Records, Archived int64
	// Bytes is about what records and index take; zero where the engine has no sizes.
	Bytes int64
}

// Owners returns a page of the owners, by kind and id, and the scope behind which the next
// one begins, zero at the end. It costs a seek and a few keys for each owner, and reads no
// record. It passes over owners that May leaves out as long as ctx lasts.
func (s *Store) Owners(ctx context.Context, ask Owners) (page []Owned, next kv.Scope, err error) {
	if s.closed.Load() {
		return nil, next, ErrClosed
	}
	kinds := []kv.OwnerKind{kv.OwnerAgent, kv.OwnerSpace, kv.OwnerUser} // as keys sort
	if ask.Kind != 0 {
		kinds = []kv.OwnerKind{ask.Kind}
	}
	size := min(cmp.Or(ask.Size, DefaultOwnersPage), MaxOwnersPage)
	for _, kind := range kinds {
		if ask.After.Kind > kind {
			continue
		}
		for scope, err := range kv.ScopesOf(ctx, s.engine, append([]kv.Keyspace{kv.Records}, ask.Also...), ask.within(kind)) {
			if err != nil {
				return nil, next, wrap("memory: list owners", err)
			}
			if len(page) == size {
				return page, next, nil
			}
			may := ask.May == nil
			if !may {
				if may, err = ask.May(ctx, scope); err != nil {
					return nil, next, err
				}
			}
			if !may {
				continue // next must not name whom the caller may not see
			}
			next = scope
			owned, err := s.owned(ctx, scope)
			if err != nil {
				return nil, next, wrap("memory: list owners", err)
			}
			page = append(page, owned)
		}
	}
	return page, kv.Scope{}, nil
}

// within is the range of the keys of owners of a kind.
func (ask Owners) within(kind kv.OwnerKind) kv.Range {
	first := kv.Scope{Tenant: ask.Tenant, Kind: kind, Owner: ask.Prefix}.AppendPrefix(nil)
	r := kv.Prefix(first[:len(first)-1]) // the owner goes on
	if ask.After.Kind == kind {
		if behind := kv.After(ask.After.AppendPrefix(nil)); bytes.Compare(behind, r.Start) > 0 {
			r.Start = behind
		}
	}
	return r
}

func (s *Store) owned(ctx context.Context, scope kv.Scope) (Owned, error) {
	owned := Owned{Scope: scope}
	counts, _, err := s.index.Statistics(ctx, s.engine, scope)
	if err != nil && !errors.Is(err, lexical.ErrOutdated) {
		return owned, err
	}
	kept, err := readCounts(ctx, s.engine, scope)
	if err != nil {
		return owned, err
	}
	owned.Records, owned.Archived = int64(counts.Documents), kept.archived
	sizer, ok := s.engine.(kv.Sizer)
	for _, ks := range []kv.Keyspace{kv.Records, kv.Index} {
		if !ok {
			break
		}
		n, err := sizer.Size(ctx, ks, kv.Prefix(scope.AppendPrefix(nil)))
		if err != nil {
			return owned, err
		}
		owned.Bytes += n
	}
	return owned, nil
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
	pending, err := s.embeddings.Pending(ctx, MaxPendingCounted)
	if err != nil {
		return Totals{}, wrap("memory: totals", err)
	}
	totals.Pending = int64(pending)
	return totals, nil
}
