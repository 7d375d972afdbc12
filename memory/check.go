package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// Check recounts the index of a scope from its records: every word with its
// frequencies, lengths, filter values, all columns, statistics and ordinals;
// and the keys, earlier versions, moments of expiry and vectors. It returns a
// *MismatchError when they do not agree. It reads the whole scope, which takes longer
// than a snapshot lives where there is much of it: then the scope must not change
// meanwhile, or it is read again, and after that ErrChanging. It needs memory in
// proportion to the scope's records and different words. An index that is to be made
// anew first is ErrOutdated where the engine is read-only.
func (s *Store) Check(ctx context.Context, scope kv.Scope) error {
	if err := s.begin(scope); err != nil {
		return err
	}
	var found lexical.Differences
	err := s.current(ctx, scope, func() (err error) {
		found, err = s.compare(ctx, scope)
		return err
	})
	if errors.Is(err, kv.ErrReadOnly) {
		return fmt.Errorf("%w: %s", ErrOutdated, scope)
	}
	if err != nil {
		return wrap("memory: check "+scope.String(), err)
	}
	if found.Total > 0 {
		return &MismatchError{Differences: found.First, Total: found.Total}
	}
	return nil
}

// compareAttempts bounds how often a scope is read that changes while it is read.
const compareAttempts = 3

// compare compares what was read at one moment, or at several between which no commit
// changed the scope.
func (s *Store) compare(ctx context.Context, scope kv.Scope) (lexical.Differences, error) {
	refs := vector.Refs(scope)
	for range compareAttempts {
		before, err := s.engine.Sequence(ctx, refs...)
		if err != nil {
			return lexical.Differences{}, err
		}
		view := kv.ReadLong(s.engine)
		found, err := s.checkView(ctx, view, scope)
		moments := view.Moments()
		_ = view.Close() // it was read from alone
		if moments <= 1 || err == nil && found.Total == 0 || ctx.Err() != nil {
			return found, err
		}
		after, failed := s.engine.Sequence(ctx, refs...)
		if failed != nil {
			return found, failed
		}
		if slices.Equal(before, after) {
			return found, err
		}
	}
	return lexical.Differences{}, ErrChanging
}

func (s *Store) checkView(ctx context.Context, view kv.Reader, scope kv.Scope) (lexical.Differences, error) {
	found, err := s.index.Check(ctx, view, scope, s.documents(ctx, view, scope))
	if err != nil {
		return found, err
	}
	if err := checkKeys(ctx, view, scope, &found); err != nil {
		return found, err
	}
	if err := checkLife(ctx, view, scope, &found); err != nil {
		return found, err
	}
	ordinals, err := readOrdinals(ctx, view, scope)
	if err != nil {
		return found, err
	}
	if err := feed.Check(ctx, view, scope, found.Add); err != nil {
		return found, err
	}
	return found, s.embeddings.Check(ctx, view, scope, ordinals, found.Add)
}

// readOrdinals returns the ordinal of each record by id.
func readOrdinals(ctx context.Context, view kv.Reader, scope kv.Scope) (map[string]uint32, error) {
	ordinals := make(map[string]uint32)
	for r, err := range record.All(ctx, view, scope) {
		if err != nil {
			return nil, err
		}
		ordinals[r.ID] = r.Document.Ordinal
	}
	return ordinals, nil
}

// documents yields what the index should know of each record.
func (s *Store) documents(ctx context.Context, view kv.Reader, scope kv.Scope) iter.Seq2[lexical.Numbered, error] {
	return func(yield func(lexical.Numbered, error) bool) {
		for r, err := range record.All(ctx, view, scope) {
			if err != nil {
				yield(lexical.Numbered{}, err)
				return
			}
			d, err := s.document(ctx, view, scope, r)
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// checkKeys compares the keys with the records that they name.
func checkKeys(ctx context.Context, view kv.Reader, scope kv.Scope, found *lexical.Differences) error {
	prefix := scope.Key(record.TagKey)
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		key, id := string(pair.Key[len(prefix):]), string(pair.Value)
		r, ok, err := record.Read(ctx, view, scope, id)
		if err != nil {
			return err
		}
		if !ok || r.Key != key {
			found.Add("key %q names record %q, which has the key %q", key, id, r.Key)
		}
	}
	return nil
}

// CheckRecords reads an owner's records back without their index: records, earlier
// versions, keys, moments of expiry, relations. found is called for each fault; the error is only
// why the check could not go on. Memory grows with the records that have earlier
// versions or relations, or expire.
func CheckRecords(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	bad := false
	report := func(err error) { bad = true; found(err) }
	for _, tag := range []byte{record.Tag, record.TagVersion} {
		prefix := scope.Key(tag)
		err := kv.Walk(ctx, from, kv.Records, kv.Prefix(prefix), report, func(p kv.Pair) error {
			if _, err := record.Decode(p.Value); err != nil {
				return fmt.Errorf("%c %q: %w", tag, p.Key[len(prefix):], err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if bad { // the comparison below ends at the first unreadable one
		return nil
	}
	var differences lexical.Differences
	err := checkKeys(ctx, from, scope, &differences)
	if err == nil {
		err = checkLife(ctx, from, scope, &differences)
	}
	for _, text := range differences.First {
		found(errors.New(text))
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, kv.ErrClosed):
		return err
	case err != nil:
		found(err)
	}
	return nil
}

// CheckDue reads one scope of the list of what expires back, as CheckRecords does
// records. Other scopes have none.
func CheckDue(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	if !expiryList.Has(scope) {
		return nil
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagDue)), found, func(p kv.Pair) error {
		_, err := decodeDue(p.Key)
		return err
	})
}

// lives is what the life of a scope's records should have left on the disk.
type lives struct {
	scope    kv.Scope
	versions map[string]int64  // how many earlier versions the record has
	expiring map[string][]byte // the key that says when it expires
	archived int64             // how many lie in the archive
	related  map[string]bool   // records that may have relations
}

// checkLife compares earlier versions, moments of expiry and relations with the records.
func checkLife(ctx context.Context, view kv.Reader, scope kv.Scope, found *lexical.Differences) error {
	l := lives{scope: scope, versions: make(map[string]int64), expiring: make(map[string][]byte), related: make(map[string]bool)}
	for r, err := range record.All(ctx, view, scope) {
		if err != nil {
			return err
		}
		if first, end := r.KeptVersions(); end > first {
			l.versions[r.ID] = end - first
		}
		if r.Archived {
			l.archived++
		}
		if r.Related {
			l.related[r.ID] = true
		}
		if !r.ExpireTime.IsZero() {
			l.expiring[r.ID] = expiryKey(scope, r.ExpireTime, r.ID)
		}
	}
	if err := l.checkVersions(ctx, view, found); err != nil {
		return err
	}
	if err := checkSame(ctx, view, scope, found); err != nil {
		return err
	}
	if err := relations.Check(ctx, view, scope, func(id string) bool { return l.related[id] }, found.Add); err != nil {
		return err
	}
	return l.checkExpiry(ctx, view, found)
}

// checkSame compares the keys by which repeats are found with the records that they name.
// A record of an older version may have none.
func checkSame(ctx context.Context, view kv.Reader, scope kv.Scope, found *lexical.Differences) error {
	prefix := scope.Key(record.TagSame)
	const sum = 8
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		id := string(pair.Key[min(len(prefix)+sum, len(pair.Key)):])
		r, ok, err := record.Read(ctx, view, scope, id)
		if err != nil {
			return err
		}
		if !ok || !bytes.Equal(sameKey(scope, r), pair.Key) {
			found.Add("a key assigns repeats of another text to record %q", id)
		}
	}
	return nil
}

func (l lives) checkVersions(ctx context.Context, view kv.Reader, found *lexical.Differences) error {
	kept, total := make(map[string]int64), int64(0)
	prefix := l.scope.Key(record.TagVersion)
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		id, number, err := kv.CutEscaped(pair.Key[len(prefix):])
		if err != nil {
			return err
		}
		r, err := record.Decode(pair.Value)
		if err != nil {
			return err
		}
		if len(number) != 8 || r.ID != id || r.Version != int64(binary.BigEndian.Uint64(number)) {
			found.Add("version %d of record %q is kept as version %x of %q", r.Version, r.ID, number, id)
		}
		kept[id]++
		total++
	}
	for id, want := range l.versions {
		if kept[id] != want {
			found.Add("%d earlier versions of record %q are kept, %d there should be", kept[id], id, want)
		}
		delete(kept, id)
	}
	for id, n := range kept {
		found.Add("%d earlier versions are kept of record %q, which has none", n, id)
	}
	counted, err := readCounts(ctx, view, l.scope)
	if err == nil && counted.versions != total {
		found.Add("%d earlier versions are counted, %d are kept", counted.versions, total)
	}
	if err == nil && counted.archived != l.archived {
		found.Add("%d archived records are counted, %d are there", counted.archived, l.archived)
	}
	return err
}

func (l lives) checkExpiry(ctx context.Context, view kv.Reader, found *lexical.Differences) error {
	prefix := l.scope.Key(tagExpiry)
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		const moment = 8
		id := string(pair.Key[min(len(prefix)+moment, len(pair.Key)):])
		if string(l.expiring[id]) != string(pair.Key) {
			found.Add("a key says that record %q expires at another time than it does", id)
		}
		delete(l.expiring, id)
	}
	for id := range l.expiring {
		found.Add("no key says when record %q expires", id)
	}
	return nil
}
