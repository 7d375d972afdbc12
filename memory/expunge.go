package memory

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/left"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// expunged bounds the entries that one commit of Expunge changes, and expungedBytes what they
// hold, unless it is one.
const (
	expunged      = 256
	expungedBytes = 1 << 20
)

// Expunge takes records out of a memory on a running server, and the subject's name off the
// others, with all that could reveal them: earlier versions, the feed of deletions, answers of
// requests, and the index, which is made anew from what stays. Others go on using the memory
// meanwhile. Called again it goes on where it was interrupted.
func (s *Store) Expunge(ctx context.Context, scope kv.Scope, subject erase.Subject, ids map[string]bool) error {
	if err := s.begin(scope); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if _, err := s.Delete(ctx, scope, Deletion{ID: id}, ""); err != nil && !errors.Is(err, ErrNotFound) {
			return wrap("memory: expunge", err)
		}
	}
	tags := []byte{record.TagVersion, record.Tag}
	for _, tag := range append(tags, vector.Sorts()[1].Tags[0]) {
		if err := s.unsign(ctx, scope, tag, subject); err != nil {
			return wrap("memory: expunge", err)
		}
	}
	if err := s.forgetVersions(ctx, scope, subject); err != nil {
		return wrap("memory: expunge", err)
	}
	tags = tags[:0]
	if scope.Kind == kv.OwnerAgent || len(ids) > 0 {
		tags = []byte{feed.Sorts()[0].Tags[0], left.Tag, 'q'}
	}
	for _, tag := range tags {
		if err := s.batches(ctx, scope, tag, func(tx *kv.Tx, p kv.Pair) error { tx.Delete(kv.Records, p.Key); return nil }); err != nil {
			return wrap("memory: expunge", err)
		}
	}
	if err := s.index.Outdate(ctx, s.writer, scope); err != nil {
		return err
	}
	if err := s.rebuild(ctx, scope); err != nil {
		return err
	}
	return wrap("memory: expunge", s.index.Sweep(ctx, s.engine, s.writer, scope))
}

// unsign takes the subject's name off the entries of a tag.
func (s *Store) unsign(ctx context.Context, scope kv.Scope, tag byte, subject erase.Subject) error {
	return s.batches(ctx, scope, tag, func(tx *kv.Tx, p kv.Pair) error {
		e := erase.Entry{Keyspace: kv.Records, Scope: scope, Tag: tag, Tail: bytes.TrimPrefix(p.Key, scope.Key(tag)), Pair: p}
		if vector.IsDirectory(e) {
			if !subject.Is(erase.Agent, subject.ID) {
				return nil
			}
			value, _, err := vector.Unmade(e, subject.ID)
			if err == nil && !bytes.Equal(value, p.Value) {
				tx.Put(kv.Records, p.Key, value)
			}
			return err
		}
		r, err := record.Decode(p.Value)
		if err != nil || !SavedIn(subject, scope, &r) {
			return err
		}
		if scope.Kind == kv.OwnerAgent {
			return nil // see forgetVersions
		}
		now := Unsigned(subject, r)
		if tag == record.Tag {
			if before, after := sameKey(scope, r), sameKey(scope, now); !bytes.Equal(before, after) {
				if before != nil {
					tx.Delete(kv.Records, before)
				}
				if after != nil {
					tx.Put(kv.Records, after, nil)
				}
			}
		}
		tx.Put(kv.Records, p.Key, record.Encode(now))
		return nil
	})
}

// forgetVersions takes the versions of a session out of what stays in the agent's memory, and
// those before them: none may be missing in between.
func (s *Store) forgetVersions(ctx context.Context, scope kv.Scope, subject erase.Subject) error {
	if scope.Kind != kv.OwnerAgent {
		return nil
	}
	last := make(map[string]int64)
	for r, err := range record.EarlierVersions(ctx, s.engine, scope) {
		if err != nil {
			return err
		}
		if SavedIn(subject, scope, &r) {
			last[r.ID] = max(last[r.ID], r.Version)
		}
	}
	for id, through := range last {
		staging := &Staging{store: s, scope: scope, run: func(ctx context.Context, e *edit) error {
			r, stored, err := e.read(ctx, id)
			if err != nil || stored == nil {
				return err
			}
			first, _ := r.KeptVersions()
			for version := first; version <= through; version++ {
				e.tx.Delete(kv.Records, record.VersionKey(scope, id, version))
				e.versions--
			}
			r.FirstVersion = max(r.FirstVersion, through+1)
			e.tx.Put(kv.Records, record.Key(scope, id), record.Encode(*r))
			return e.flush(ctx)
		}}
		if err := staging.commit(ctx, "memory: expunge"); err != nil {
			return err
		}
	}
	return nil
}

// batches has stage look at all entries of a tag, some in each commit.
func (s *Store) batches(ctx context.Context, scope kv.Scope, tag byte, stage func(tx *kv.Tx, p kv.Pair) error) error {
	rest := kv.Prefix(scope.Key(tag))
	rest.Limit = expunged
	for {
		var last []byte
		err := s.writer.Do(ctx, kv.Request{
			Refs: []kv.Ref{recordsRef(scope), lexical.Ref(scope)},
			Stage: func(ctx context.Context, tx *kv.Tx) error {
				last = nil
				size := 0
				for p, err := range tx.Scan(ctx, kv.Records, rest) {
					if err == nil {
						err = stage(tx, p)
					}
					if err != nil {
						return err
					}
					last = p.Key
					if size += len(p.Value); size > expungedBytes {
						break
					}
				}
				return nil
			},
		})
		if err != nil || last == nil {
			return err
		}
		rest.Start = append(bytes.Clone(last), 0)
	}
}
