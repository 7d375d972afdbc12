package memory

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Versions returns what a record was before it changed, the newest first, at
// most MaxVersions. They have no vectors. A record that is not there or has
// expired is a *NotFoundError.
func (s *Store) Versions(ctx context.Context, scope kv.Scope, id string) ([]Record, error) {
	if err := s.begin(scope); err != nil {
		return nil, err
	}
	if err := checkID("id", id); err != nil {
		return nil, err
	}
	var versions []Record
	err := s.view(ctx, func(view kv.Snapshot) error {
		current, ok, err := readRecord(ctx, view, scope, id)
		if err != nil {
			return err
		}
		if !ok || current.expiredAt(s.now()) {
			return &NotFoundError{"id", id}
		}
		versions, err = readVersions(ctx, view, scope, id)
		return err
	})
	if err != nil {
		return nil, wrap("memory: versions", err)
	}
	return versions, nil
}

func readVersions(ctx context.Context, view kv.Reader, scope kv.Scope, id string) ([]Record, error) {
	var versions []Record
	newestFirst := kv.Prefix(versionsOf(scope, id))
	newestFirst.Reverse = true
	for pair, err := range view.Scan(ctx, kv.Records, newestFirst) {
		if err != nil {
			return nil, err
		}
		r, err := decodeRecord(pair.Value)
		if err != nil {
			return nil, err
		}
		versions = append(versions, r)
	}
	return versions, nil
}

// version reads an earlier version of a record. One that is kept no longer is
// not found.
func (e *edit) version(ctx context.Context, id string, version int64) (Record, error) {
	stored, err := e.get(ctx, versionKey(e.scope, id, version))
	if err != nil {
		return Record{}, err
	}
	if stored == nil {
		return Record{}, &NotFoundError{"version", fmt.Sprintf("%d of %s", version, id)}
	}
	return decodeRecord(stored)
}

// keepVersion keeps a record as it is stored, before it is written anew. The
// oldest version goes when there are too many.
func (e *edit) keepVersion(old *Record, stored []byte) {
	e.tx.Put(kv.Records, versionKey(e.scope, old.ID, old.Version), stored)
	e.versions++
	if oldest := old.Version - MaxVersions; oldest > 0 {
		e.tx.Delete(kv.Records, versionKey(e.scope, old.ID, oldest))
		e.versions--
	}
}

// keptVersions returns the numbers of the first earlier version that is kept of
// a record, and of the one behind the last.
func (r *Record) keptVersions() (first, end int64) {
	return max(1, r.Version-MaxVersions), r.Version
}

func (e *edit) dropVersions(r *Record) {
	first, end := r.keptVersions()
	for version := first; version < end; version++ {
		key := versionKey(e.scope, r.ID, version)
		e.tx.Delete(kv.Records, key)
		e.removed += len(key)
		e.versions--
	}
}

// countsVersions is the field of a scope's counts that says how many earlier
// versions its records have.
const countsVersions = 1

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
func readVersionCount(ctx context.Context, from getter, scope kv.Scope) (int64, error) {
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
