package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/record"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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
		versions, err = s.readVersions(ctx, view, scope, current, before, limit)
		return err
	})
	if err != nil {
		return nil, wrap("memory: versions", err)
	}
	return versions, nil
}

// asOf returns what a record was at a moment.
func (s *Store) asOf(ctx context.Context, view kv.Reader, scope kv.Scope, now record.Record, at time.Time) (record.Record, error) {
	then := now
	if changed(now).After(at) {
		var kept bool
		var err error
		if then, _, kept, err = s.versionAt(ctx, view, scope, now, at); err != nil {
			return then, err
		}
		switch {
		case kept:
		case now.CreateTime.After(at):
			return then, &NotFoundError{"id", now.ID}
		default:
			return then, &NotFoundError{"version", fmt.Sprintf("of %s as of %s, which is kept no longer", now.ID, at.UTC().Format(time.RFC3339Nano))}
		}
	}
	then.SupersededBy, then.SupersededTime = now.SupersededBy, now.SupersededTime
	past.Moment{AsOf: at}.Show(&then)
	return then, nil
}

// versionAt reads the earlier version that counted at a moment, and how many bytes it has
// looked through for it.
func (s *Store) versionAt(ctx context.Context, view kv.Reader, scope kv.Scope, now record.Record, at time.Time) (then record.Record, size int, kept bool, err error) {
	for pair, err := range view.Scan(ctx, kv.Records, s.keptVersions(scope, now)) {
		if err != nil {
			return then, size, false, err
		}
		size += len(pair.Value)
		if then, err = record.Decode(pair.Value); err != nil || !changed(then).After(at) {
			then.Embedding, then.EmbeddingSpace = nil, ""
			return then, size, err == nil, err
		}
	}
	return then, size, false, nil
}

// then returns what counted at a moment in a scope, and an index of the versions that did;
// nil where there are none. Close it.
func (s *Store) then(ctx context.Context, view kv.Reader, scope kv.Scope, reader *lexical.Reader, m past.Moment, replaced bool) (*past.Index, past.Found, error) {
	found, err := m.Find(ctx, past.Present{
		View: view, Scope: scope, Reader: reader, Replaced: replaced,
		Version: func(ctx context.Context, now record.Record, at time.Time) (record.Record, int, bool, error) {
			return s.versionAt(ctx, view, scope, now, at)
		},
	})
	if err != nil || len(found.Versions) == 0 {
		return nil, found, err
	}
	then, err := past.NewIndex(ctx, scope, s.analyzer.Name(), found.Versions, func(r record.Record) ([]byte, error) {
		terms, err := record.MetadataTerms(r.Metadata)
		if err != nil {
			return nil, err
		}
		return s.encodeDocument(&r, terms), nil
	})
	return then, found, err
}

// changed is when a version came to be.
func changed(r record.Record) time.Time {
	if r.UpdateTime.IsZero() {
		return r.CreateTime
	}
	return r.UpdateTime
}

// keptVersions is the range of a record's earlier versions, newest first. After the limit
// on versions is lowered, versions beyond it stay on disk until the record changes.
func (s *Store) keptVersions(scope kv.Scope, current record.Record) kv.Range {
	r := kv.Prefix(record.VersionsOf(scope, current.ID))
	r.Reverse = true
	r.Start = record.VersionKey(scope, current.ID, max(1, current.Version-int64(s.maxVersions)))
	return r
}

func (s *Store) readVersions(ctx context.Context, view kv.Reader, scope kv.Scope, current record.Record, before int64, limit int) ([]record.Record, error) {
	var versions []record.Record
	newestFirst := s.keptVersions(scope, current)
	newestFirst.Limit = limit
	if before > 0 {
		newestFirst.End = record.VersionKey(scope, current.ID, before)
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

// keepVersion keeps a record as it is stored, before it is written anew as next. The
// oldest versions go where there are too many.
func (e *edit) keepVersion(old *record.Record, stored []byte, next *record.Record) {
	kept := int64(e.store.maxVersions)
	if kept > 0 {
		e.tx.Put(kv.Records, record.VersionKey(e.scope, old.ID, old.Version), stored)
		e.versions++
	}
	first, _ := old.KeptVersions()
	for ; first < next.Version-kept && first < old.Version; first++ {
		e.tx.Delete(kv.Records, record.VersionKey(e.scope, old.ID, first))
		e.versions--
	}
	next.ImportID, next.ImportVersion = old.ImportID, old.ImportVersion
	next.FirstVersion = max(old.FirstVersion, next.Version-kept)
	if next.FirstVersion <= max(1, next.Version-record.MaxVersions) {
		next.FirstVersion = 0
	}
}

// counts are how many earlier versions the records of a scope have, and how many of them lie in
// the archive.
type counts struct{ versions, archived int64 }

// tagCounts begins the key of a scope's counts.
const tagCounts = 'c'

func countsKey(scope kv.Scope) []byte { return scope.Key(tagCounts) }

// readCounts reads the counters of a scope's records.
func readCounts(ctx context.Context, from kv.Getter, scope kv.Scope) (n counts, err error) {
	values, err := from.Get(ctx, kv.Records, countsKey(scope))
	if err != nil {
		return n, err
	}
	var m storev1.RecordCounts
	if err := wire.Unmarshal(values[0], &m); err != nil {
		return n, fmt.Errorf("%w: counts: %w", ErrDamaged, err)
	}
	return counts{int64(m.Versions), int64(m.Archived)}, nil
}
