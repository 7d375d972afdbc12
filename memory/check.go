package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// Check recounts the index of a scope from its records: every word with its
// frequencies, lengths, filter values, expiry, supersession, statistics and
// ordinals, and the keys. It returns a *MismatchError when they do not agree. It
// reads the whole scope from one snapshot and needs memory in proportion to
// its records and different words.
func (s *Store) Check(ctx context.Context, scope kv.Scope) error {
	if err := s.begin(scope); err != nil {
		return err
	}
	var found lexical.Differences
	err := s.view(ctx, func(view kv.Snapshot) error {
		ordinals, err := readOrdinals(ctx, view, scope)
		if err != nil {
			return err
		}
		if found, err = s.index.Check(ctx, view, scope, s.documents(ctx, view, scope, ordinals)); err != nil {
			return err
		}
		return checkKeys(ctx, view, scope, &found)
	})
	if err != nil {
		return wrap("memory: check "+scope.String(), err)
	}
	if found.Total > 0 {
		return &MismatchError{Differences: found.First, Total: found.Total}
	}
	return nil
}

// records yields all records of a scope, those expired included.
func records(ctx context.Context, view kv.Reader, scope kv.Scope) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(scope.Key(tagRecord))) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			r, err := decodeRecord(pair.Value)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// readOrdinals returns the ordinal of each record by id.
func readOrdinals(ctx context.Context, view kv.Reader, scope kv.Scope) (map[string]uint32, error) {
	ordinals := make(map[string]uint32)
	for r, err := range records(ctx, view, scope) {
		if err != nil {
			return nil, err
		}
		ordinals[r.ID] = r.ordinal
	}
	return ordinals, nil
}

// documents yields what the index should know of each record.
func (s *Store) documents(ctx context.Context, view kv.Reader, scope kv.Scope, ordinals map[string]uint32) iter.Seq2[lexical.Numbered, error] {
	return func(yield func(lexical.Numbered, error) bool) {
		for r, err := range records(ctx, view, scope) {
			if err != nil {
				yield(lexical.Numbered{}, err)
				return
			}
			values, err := metadataValues(r.Metadata)
			if err != nil {
				yield(lexical.Numbered{}, fmt.Errorf("%w: record %q: %w", ErrDamaged, r.ID, err))
				return
			}
			d := lexical.NewDocument(r.ID)
			s.describe(d, r, values)
			d.Supersede(ordinals[r.Supersedes])
			if !yield(lexical.Numbered{Ordinal: r.ordinal, Document: d}, nil) {
				return
			}
		}
	}
}

// checkKeys compares the keys with the records that they name.
func checkKeys(ctx context.Context, view kv.Reader, scope kv.Scope, found *lexical.Differences) error {
	prefix := scope.Key(tagKey)
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		key, id := string(pair.Key[len(prefix):]), string(pair.Value)
		r, ok, err := readRecord(ctx, view, scope, id)
		if err != nil {
			return err
		}
		if !ok || r.Key != key {
			found.Add("key %q names record %q, which has the key %q", key, id, r.Key)
		}
	}
	return nil
}
