package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/left"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// Erasure is what becomes of records, their index and the lists about them when a subject is
// erased. A memory that loses some of its records, or names in them, is written anew, or
// changed by Expunge; its index is made anew from what stays.
func Erasure() erase.Owner {
	const others = "what others remember"
	sort := func(tags, counted string) erase.Sort {
		return erase.Sort{Keyspace: kv.Records, Kinds: "aus", Tags: tags, Counted: counted, Texts: others}
	}
	list := func(l kv.List, tag byte) erase.Sort {
		return erase.Sort{Keyspace: kv.System, Kinds: "y", Lists: []string{string(l)}, Tags: string(rune(tag))}
	}
	return erase.Owner{
		Name: "memory",
		Sorts: slices.Concat([]erase.Sort{
			sort(string(rune(record.Tag)), "records"),
			sort(string(rune(record.TagVersion)), "versions"),
			sort(string([]byte{record.TagKey, record.TagSame, tagExpiry, tagCounts, left.Tag, access.Tag, embeddings.Tag, 'q'}), ""),
			list(expiryList, tagDue),
			list(embeddings.List, embeddings.TagScope),
			list(embeddings.MarkedOwner, embeddings.TagMarked),
		}, feed.Sorts(), relations.Sorts(), vector.Sorts(), segment.Sorts()),
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			x := erasing{r}
			return x.change, nil
		},
	}
}

// erasing is one run.
type erasing struct{ *erase.Run }

func (x erasing) change(_ context.Context, e erase.Entry) ([]byte, bool, error) {
	switch {
	case e.Keyspace == kv.System && expiryList.Has(e.Scope):
		const span = 4
		return e.Goes(len(e.Tail) > span && x.Subject.Names(e.Tail[min(span, len(e.Tail)):]), nil)
	case e.Keyspace == kv.System:
		return e.Goes(x.Subject.Names(e.Tail), nil)
	case x.Looks:
		return x.left(e)
	}
	if ids, picked := x.Picked[e.Scope]; picked && !plans.Is(e) {
		if x.Counts {
			id, err := recordOf(e)
			if err != nil || id == "" || ids[id] {
				return e.Goes(id != "" && err == nil, err)
			}
			r, err := record.Decode(e.Value)
			if err != nil || !SavedIn(x.Subject, e.Scope, &r) {
				return e.Goes(false, err)
			}
			return record.Encode(Unsigned(x.Subject, r)), true, nil
		}
		return nil, false, erase.ErrAnew
	}
	if x.Subject.Kind == erase.Agent && !x.Subject.Narrowed() && vector.IsDirectory(e) {
		return vector.Unmade(e, x.Subject.ID)
	}
	return e.Stays()
}

// recordOf is the id of the record that an entry is, now or in an earlier version; empty for
// other entries.
func recordOf(e erase.Entry) (string, error) {
	switch {
	case e.Keyspace != kv.Records:
	case e.Tag == record.Tag:
		return string(e.Tail), nil
	case e.Tag == record.TagVersion:
		id, _, err := kv.CutEscaped(e.Tail)
		return id, err
	}
	return "", nil
}

// left finds what should have gone: records by their digests, and what the subject saved.
func (x erasing) left(e erase.Entry) ([]byte, bool, error) {
	ids, err := relations.Ends(e)
	for _, id := range ids {
		if x.Digests[Digest(e.Scope, id)] {
			return e.Goes(true, nil)
		}
	}
	if err != nil {
		return nil, false, err
	}
	id, err := recordOf(e)
	if err != nil || id == "" {
		return e.Goes(false, err)
	}
	if x.Digests[Digest(e.Scope, id)] {
		return e.Goes(true, nil)
	}
	r, err := record.Decode(e.Value)
	return e.Goes(err == nil && SavedIn(x.Subject, e.Scope, &r), err)
}

// SavedIn reports whether a record of a memory was saved by an agent, or in a session of one, that
// is erased: one that others share has the agent's name in it.
func SavedIn(s erase.Subject, scope kv.Scope, r *record.Record) bool {
	if s.Kind != erase.Agent || s.Filter != "" || s.Step != 0 {
		return false
	}
	if scope.Kind == kv.OwnerAgent {
		return s.Session != "" && scope.Owner == s.ID && r.SessionID == s.Session
	}
	return s.Of(r.SavedBy, r.SessionID)
}

// Unsigned is a record without the name of who saved it, or of the session that it was saved
// in.
func Unsigned(s erase.Subject, r record.Record) record.Record {
	switch {
	case s.Session != "":
		r.SessionID = ""
	default:
		r.SavedBy = ""
	}
	if r.Author == s.ID {
		r.Author = ""
	}
	return r
}

// Digest stands for the id of a record in a certificate.
func Digest(scope kv.Scope, id string) string {
	sum := sha256.Sum256(append(scope.AppendPrefix(nil), id...))
	return hex.EncodeToString(sum[:16])
}

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
