// Package feed keeps what the records of a scope can't show to followers of its
// changes: which records are gone, and which are related otherwise. It also gives the positions from which they go on.
//
// A scope has a feed from the moment that somebody followed it first; until then
// nothing is written. Everything here is staged in the commits that delete or relate
// records. A deletion, here, is a note of either.
package feed

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// MaxKept bounds the deletions that a scope's feed keeps; the oldest go first. Who was
// away for longer begins anew.
const MaxKept = 100_000

// tag begins the keys of a feed in the keyspace of records.
const tag = 'd'

// Head is the state of a feed.
type Head struct {
	// ID distinguishes this feed from others of the same scope, before it was erased.
	// Zero: the scope has had no follower yet.
	ID uint64
	// Last is the number of the last deletion; zero for none yet.
	Last uint64
	// First is the number of the first one kept.
	First uint64
}

// Read returns the head of a scope's feed.
func Read(ctx context.Context, from kv.Getter, scope kv.Scope) (Head, error) {
	values, err := from.Get(ctx, kv.Records, scope.Key(tag))
	if err != nil || values[0] == nil {
		return Head{}, err
	}
	var m storev1.FeedHead
	if err := wire.Unmarshal(values[0], &m); err != nil {
		return Head{}, fmt.Errorf("%w: feed: %w", record.ErrDamaged, err)
	}
	h := Head{ID: m.GetId(), Last: m.Last, First: m.First}
	if h.ID == 0 || h.First == 0 || h.First > h.Last+1 {
		return Head{}, fmt.Errorf("%w: head of the feed of %s", record.ErrDamaged, scope)
	}
	return h, nil
}

func (h Head) put(tx *kv.Tx, scope kv.Scope) {
	tx.Put(kv.Records, scope.Key(tag), wire.Marshal(&storev1.FeedHead{Id: &h.ID, Last: h.Last, First: h.First}))
}

// Begin gives a scope its feed, if it has none.
func Begin(ctx context.Context, tx *kv.Tx, scope kv.Scope) error {
	h, err := Read(ctx, tx, scope)
	if err != nil || h.ID != 0 {
		return err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	Head{ID: max(1, binary.BigEndian.Uint64(id[:])), First: 1}.put(tx, scope)
	return nil
}

// relatedMark begins the note of a record whose relations changed. No id has it.
const relatedMark = "\x00"

// Related is what Gone notes of a record that is there and has other relations.
func Related(id string) string { return relatedMark + id }

// CutRelated returns the id of a record whose relations changed; false for a deleted one.
func CutRelated(note string) (id string, related bool) { return strings.CutPrefix(note, relatedMark) }

// Gone notes that records were deleted, by id, or related, if the scope has a feed.
func Gone(ctx context.Context, tx *kv.Tx, scope kv.Scope, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	h, err := Read(ctx, tx, scope)
	if err != nil || h.ID == 0 {
		return err
	}
	for _, id := range ids {
		h.Last++
		tx.Put(kv.Records, key(scope, h.Last), []byte(id))
		if h.Last-h.First >= MaxKept {
			tx.Delete(kv.Records, key(scope, h.First))
			h.First++
		}
	}
	h.put(tx, scope)
	return nil
}

func key(scope kv.Scope, number uint64) []byte {
	return binary.BigEndian.AppendUint64(scope.Key(tag), number)
}

// Deleted returns the notes behind a number, the oldest
// first, at most limit of them. The n-th has the number after+n.
func Deleted(ctx context.Context, from kv.Reader, scope kv.Scope, after uint64, limit int) ([]string, error) {
	var ids []string
	r := kv.Prefix(scope.Key(tag))
	r.Start, r.Limit = key(scope, after+1), limit
	for pair, err := range from.Scan(ctx, kv.Records, r) {
		if err != nil {
			return nil, err
		}
		if string(pair.Key) != string(key(scope, after+1+uint64(len(ids)))) {
			return nil, fmt.Errorf("%w: deletion %d of %s is missing", record.ErrDamaged, after+1+uint64(len(ids)), scope)
		}
		ids = append(ids, string(pair.Value))
	}
	return ids, nil
}

// Check reads a scope's feed back; report is called for each fault.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, report func(format string, args ...any)) error {
	h, err := Read(ctx, from, scope)
	if err != nil {
		return err
	}
	kept := h.First
	for pair, err := range from.Scan(ctx, kv.Records, kv.Prefix(scope.Key(tag, []byte{0}))) {
		switch {
		case err != nil:
			return err
		case h.ID == 0 || string(pair.Key) != string(key(scope, kept)):
			report("a deletion is kept as %x, number %d was due", pair.Key, kept)
			return nil
		}
		kept++
	}
	if h.ID != 0 && kept != h.Last+1 {
		report("deletions are kept up to number %d, the last one is %d", kept-1, h.Last)
	}
	return nil
}

// Position is a place in the changes of a scope: all up to there are known.
type Position struct {
	// Feed is the ID of the feed that it belongs to.
	Feed uint64
	// Incarnation is that of the index.
	Incarnation uint64
	// Ordinal is that of the last document that is known.
	Ordinal uint32
	// Deletion is the number of the last deletion that is known.
	Deletion uint64
}

// The fields of a position's text.
const (
	positionFeed        = 1
	positionIncarnation = 2
	positionOrdinal     = 3
	positionDeletion    = 4
)

// ErrNotPosition: a text is no position.
var ErrNotPosition = errors.New("feed: not a position")

// String is the text of a position, of letters, digits, - and _.
func (p Position) String() string {
	b := wire.AppendFixed64(nil, positionFeed, p.Feed)
	b = wire.AppendFixed64(b, positionIncarnation, p.Incarnation)
	b = wire.AppendUint(b, positionOrdinal, uint64(p.Ordinal))
	return base64.RawURLEncoding.EncodeToString(wire.AppendUint(b, positionDeletion, p.Deletion))
}

// Parse reads what String wrote, or returns an ErrNotPosition.
func Parse(text string) (p Position, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return p, ErrNotPosition
	}
	for f, err := range wire.Fields(b) {
		if err != nil {
			return p, ErrNotPosition
		}
		switch f.Number {
		case positionFeed:
			p.Feed = f.Value
		case positionIncarnation:
			p.Incarnation = f.Value
		case positionOrdinal:
			p.Ordinal = uint32(f.Value)
		case positionDeletion:
			p.Deletion = f.Value
		}
	}
	if p.Feed == 0 {
		return p, ErrNotPosition
	}
	return p, nil
}
