package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
)

// maxVersionsBytes bounds the earlier versions that are exported of one record, the
// newest, so that record and versions can be imported in one commit.
const maxVersionsBytes = 6 << 20

// Export calls do with every record of a scope as a line (record.Line), in the order of
// creation. It includes all tiers and superseded, archived and unreviewed records, but not
// expired ones. Earlier versions of a record come before it, oldest first. The export of an
// unchanged memory is the same each time, byte for byte, also after an Import elsewhere. In
// a changing memory each record is as of some moment during the call, and records saved
// meanwhile may be missing. It extends no expiry.
//
// The lines belong to do, whose errors end the export.
func (s *Store) Export(ctx context.Context, scope kv.Scope, do func(lines [][]byte) error) error {
	l := Listing{PageSize: MaxPageSize, Tiers: []int{1, 2, 3, 4}, WithVectors: true}
	for {
		asked, err := s.checkListing(scope, l)
		if err != nil {
			return err
		}
		var lines [][]byte
		err = s.currentView(ctx, scope, func(view kv.Snapshot) (err error) {
			lines, l.PageToken, err = s.exportPage(ctx, view, asked)
			return err
		})
		if err != nil {
			return wrap("memory: export", err)
		}
		if len(lines) > 0 {
			if err := do(lines); err != nil {
				return err
			}
		}
		if l.PageToken == "" {
			return nil
		}
	}
}

// exportPage returns the lines of a page, of fewer records where they have long versions or
// are read slowly.
func (s *Store) exportPage(ctx context.Context, view kv.Snapshot, l listing) (lines [][]byte, next string, err error) {
	reader, err := s.index.Open(ctx, view, l.scope)
	if err != nil {
		return nil, "", err
	}
	page, err := s.list(ctx, view, l)
	if err != nil {
		return nil, "", err
	}
	size, begun := 0, time.Now()
	for i, r := range page.Records {
		if i > 0 && (size > maxPageBytes || time.Since(begun) > kv.ReadTime) {
			return lines, l.token(reader.Place(page.Records[i-1].Document.Ordinal)), nil
		}
		added, err := s.exported(ctx, view, l.scope, r)
		if err != nil {
			return nil, "", err
		}
		for _, line := range added {
			size += len(line)
		}
		lines = append(lines, added...)
	}
	return lines, page.NextPageToken, nil
}

// exported returns the lines of a record.
func (s *Store) exported(ctx context.Context, view kv.Reader, scope kv.Scope, r record.Record) (lines [][]byte, err error) {
	if first, end := r.KeptVersions(); end > first {
		size := 0
		for pair, err := range view.Scan(ctx, kv.Records, s.keptVersions(scope, r)) {
			if err != nil {
				return nil, err
			}
			if size += len(pair.Value); size > maxVersionsBytes {
				break
			}
			earlier, err := record.Decode(pair.Value)
			if err != nil {
				return nil, err
			}
			earlier.Embedding, earlier.EmbeddingSpace = nil, ""
			line, err := record.Line{Record: earlier, Earlier: true}.Encode()
			if err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
		slices.Reverse(lines)
	}
	of := record.Line{Record: r}
	if r.Key != "" && r.SupersededBy != "" {
		holder, err := view.Get(ctx, kv.Records, record.NameKey(scope, r.Key))
		if err != nil {
			return nil, err
		}
		of.KeyGone = string(holder[0]) != r.ID
	}
	if r.Related {
		if of.Relations, err = s.relatedBefore(ctx, view, scope, r); err != nil {
			return nil, err
		}
		if of.Forgotten, err = relations.Forgotten(ctx, view, scope, r.ID); err != nil {
			return nil, err
		}
	}
	line, err := of.Encode()
	return append(lines, line), err
}

// relatedBefore returns the relations of a record with earlier records, including ended
// ones. A relation is on the line of the later record, so that an import finds both.
// Relations with expired records are left out like those records.
func (s *Store) relatedBefore(ctx context.Context, view kv.Reader, scope kv.Scope, r record.Record) (before []record.Relation, err error) {
	all, _, err := relations.Of(ctx, view, scope, r.ID, relations.Selection{})
	if err != nil {
		return nil, err
	}
	ended, err := relations.Ended(ctx, view, scope, r.ID, relations.Selection{})
	if err != nil {
		return nil, err
	}
	all = append(all, ended...)
	now, own := s.now(), placeOf(r)
	for chunk := range slices.Chunk(all, readAtOnce) {
		keys := make([][]byte, len(chunk))
		for i, one := range chunk {
			other := one.To
			if other == r.ID {
				other = one.From
			}
			keys[i] = record.Key(scope, other)
		}
		err := record.Each(ctx, view, keys, func(i int, other *record.Record, _ int) error {
			if other != nil && !other.ExpiredAt(now) && placeOf(*other) < own {
				before = append(before, chunk[i])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(before, record.CompareRelations)
	return before, relations.Complete(ctx, view, scope, before)
}

// placeOf is where a record stands in the order of arrival.
func placeOf(r record.Record) uint32 { return cmp.Or(r.Document.Place, r.Document.Ordinal) }
