package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Versions returns what a record was before it changed, the newest first: at most limit
// versions, all that are kept if that is zero, and only those before a version unless that
// is zero. They have no vectors. A record that is not there or has expired is a
// *NotFoundError.
func (s *Store) Versions(ctx context.Context, scope kv.Scope, id string, before int64, limit int) ([]record.Record, error) {
	if err := s.begin(scope); err != nil {
		return nil, err
	}
	if err := record.CheckID("id", id); err != nil {
		return nil, err
	}
	var versions []record.Record
	err := s.view(ctx, func(view kv.Snapshot) error {
		current, ok, err := record.Read(ctx, view, scope, id)
		if err != nil {
			return err
		}
		if !ok || current.ExpiredAt(s.now()) {
			return &NotFoundError{"id", id}
		}
		versions, err = readVersions(ctx, view, scope, id, before, limit)
		return err
	})
	if err != nil {
		return nil, wrap("memory: versions", err)
	}
	return versions, nil
}

// AsOf returns what a record was at a moment, by the server's clock: the version that had
// been acknowledged last by then. Earlier versions have no vectors. A record that was saved
// later, or whose version of then is kept no longer, is a *NotFoundError; so is one that has
// been deleted, or has expired, since.
func (s *Store) AsOf(ctx context.Context, scope kv.Scope, id string, at time.Time) (record.Record, error) {
	now, err := s.Get(ctx, scope, id)
	if err != nil {
		return record.Record{}, err
	}
	at = record.StoredTime(at)
	if !changed(now).After(at) {
		return now, nil
	}
	versions, err := s.Versions(ctx, scope, id, 0, 0)
	if err != nil {
		return record.Record{}, err
	}
	for _, v := range versions {
		if !changed(v).After(at) {
			return v, nil
		}
	}
	if now.CreateTime.After(at) {
		return record.Record{}, &NotFoundError{"id", id}
	}
	return record.Record{}, &NotFoundError{"version", fmt.Sprintf("of %s as of %s, which is kept no longer", id, at.UTC().Format(time.RFC3339Nano))}
}

// changed is when a version came to be.
func changed(r record.Record) time.Time {
	if r.UpdateTime.IsZero() {
		return r.CreateTime
	}
	return r.UpdateTime
}

func readVersions(ctx context.Context, view kv.Reader, scope kv.Scope, id string, before int64, limit int) ([]record.Record, error) {
	var versions []record.Record
	newestFirst := kv.Prefix(record.VersionsOf(scope, id))
	newestFirst.Reverse, newestFirst.Limit = true, limit
	if before > 0 {
		newestFirst.End = record.VersionKey(scope, id, before)
	}
	for pair, err := range view.Scan(ctx, kv.Records, newestFirst) {
		if err != nil {
			return nil, err
		}
		r, err := record.Decode(pair.Value)
		if err != nil {
			return nil, err
		}
		versions = append(versions, r)
	}
	return versions, nil
}

// version reads an earlier version of a record. One that is kept no longer is
// not found.
func (e *edit) version(ctx context.Context, id string, version int64) (record.Record, error) {
	stored, err := e.get(ctx, record.VersionKey(e.scope, id, version))
	if err != nil {
		return record.Record{}, err
	}
	if stored == nil {
		return record.Record{}, &NotFoundError{"version", fmt.Sprintf("%d of %s", version, id)}
	}
	return record.Decode(stored)
}

// keepVersion keeps a record as it is stored, before it is written anew. The
// oldest version goes when there are too many.
func (e *edit) keepVersion(old *record.Record, stored []byte) {
	e.tx.Put(kv.Records, record.VersionKey(e.scope, old.ID, old.Version), stored)
	e.versions++
	if oldest := old.Version - record.MaxVersions; oldest >= max(1, old.FirstVersion) {
		e.tx.Delete(kv.Records, record.VersionKey(e.scope, old.ID, oldest))
		e.versions--
	}
}

func (e *edit) dropVersions(r *record.Record) {
	first, end := r.KeptVersions()
	for version := first; version < end; version++ {
		key := record.VersionKey(e.scope, r.ID, version)
		e.tx.Delete(kv.Records, key)
		e.removed += len(key)
		e.versions--
	}
}

// countsVersions is the field of a scope's counts that says how many earlier
// versions its records have.
const countsVersions = 1

// tagCounts begins the key of a scope's counts.
const tagCounts = 'c'

func countsKey(scope kv.Scope) []byte { return scope.Key(tagCounts) }

// countVersions brings the scope's counts up to date.
func (e *edit) countVersions(ctx context.Context) error {
	if e.versions == 0 {
		return nil
	}
	more := e.versions
	e.versions = 0
	n, err := readVersionCount(ctx, e.tx, e.scope)
	if err != nil {
		return err
	}
	e.tx.Put(kv.Records, countsKey(e.scope), wire.AppendUint(nil, countsVersions, uint64(n+more)))
	return nil
}

// readVersionCount returns how many earlier versions a scope's records have.
func readVersionCount(ctx context.Context, from kv.Getter, scope kv.Scope) (int64, error) {
	values, err := from.Get(ctx, kv.Records, countsKey(scope))
	if err != nil {
		return 0, err
	}
	for f, err := range wire.Fields(values[0]) {
		if err != nil {
			return 0, fmt.Errorf("%w: counts: %w", ErrDamaged, err)
		}
		if f.Number == countsVersions {
			return int64(f.Value), nil
		}
	}
	return 0, nil
}
