package syncs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// entry is a record as one side has it.
type entry struct {
	view
	id string
	// mark is what a change of it must expect.
	mark mark
	// record is what it holds; only its id where nothing about it has changed.
	record record.Record
}

// side is a server's memory, or a folder. Its methods are safe for concurrent use, but for
// changes and await.
type side interface {
	// name is how the side is called in what is told.
	name() string
	// changes are what changed since a position, about so many records; since the beginning where
	// that is empty. unchanged says that a content is the known one, so that the entry needs no record.
	changes(ctx context.Context, after string, most int, unchanged func(id, hash string) bool) (changes, error)
	// get is the record of an id; an absent entry without one.
	get(ctx context.Context, id string) (entry, error)
	// create saves a record that is not there. Errors: errMoved where it is; *keyTakenError; *refusedError.
	create(ctx context.Context, r record.Record) (entry, error)
	// update gives a record the content of another one. Errors: errMoved where it is no longer
	// what was; *refusedError.
	update(ctx context.Context, was entry, r record.Record) (entry, error)
	// remove deletes a record. Errors: those of update.
	remove(ctx context.Context, was entry) error
	// await waits until something has changed since the position.
	await(ctx context.Context, after string) error
}

// changes are what changed on a side.
type changes struct {
	entries []entry
	// at is the position behind them.
	at string
	// whole: the entries are all records there are, but for those held, which can't be read now.
	whole bool
	held  map[string]bool
	// more: there are others.
	more bool
}

// errMoved: a record is not what it was a moment ago, so it is looked at again.
var errMoved = errors.New("the record has changed meanwhile")

// refusedError says why a side does not take a change.
type refusedError struct{ why string }

func (r *refusedError) Error() string { return r.why }

// keyTakenError says that another record has the key.
type keyTakenError struct{ holder entry }

func (k *keyTakenError) Error() string { return fmt.Sprintf("record %q has the key", k.holder.id) }

// entryOf is a record as an entry, of which a note may say less.
func entryOf(r record.Record, stamp string, notes bool) entry {
	hash := contentOf(r, notes)
	return entry{id: r.ID, record: r, mark: mark{Stamp: stamp, Hash: hash}, view: view{present, hash, changedAt(r)}}
}

// changedAt is when a record came to be as it is.
func changedAt(r record.Record) time.Time {
	if r.UpdateTime.IsZero() {
		return r.CreateTime
	}
	return r.UpdateTime
}

// contentOf stands for all that sync keeps equal of a record. What each server has of its own is not
// of it: versions, vectors, relations, reviews, the archive, repeats, who replaced it. A note does not
// say either how reading prolongs a record, and what it derives from.
func contentOf(r record.Record, notes bool) string {
	if notes {
		r.SlidingTTL, r.ExpireTime, r.DerivedFrom = 0, time.Time{}, nil
	}
	sum := sha256.New()
	for _, part := range []any{
		r.Text, r.Kind, r.SessionID, r.Author, moment(r.EventTime), moment(r.ValidUntil), expiryOf(r), plainJSON(r.Metadata),
		nonNil(r.Tags), r.Importance, r.Pinned, r.Origin.String(), nonNil(r.DerivedFrom),
	} {
		text, _ := json.Marshal(part) //nolint:errchkjson // texts and numbers
		_, _ = fmt.Fprintf(sum, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func nonNil(all []string) []string { return append([]string{}, all...) }

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// expiryOf is how a record expires; one that reading prolongs has no moment.
func expiryOf(r record.Record) string {
	if r.SlidingTTL > 0 {
		return r.SlidingTTL.String()
	}
	return moment(r.ExpireTime)
}

// plainJSON is a JSON object in a form that does not depend on the order of its members.
func plainJSON(text json.RawMessage) string {
	if len(text) == 0 {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value map[string]any
	if err := d.Decode(&value); err != nil {
		return string(text)
	}
	if len(value) == 0 {
		return ""
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return string(text)
	}
	return string(plain)
}

// lineOf is a record as a line of an import. The key of one that was replaced has gone over.
func lineOf(r record.Record) ([]byte, error) {
	r.Embedding, r.EmbeddingSpace, r.Review = nil, "", 0
	r.Version = max(r.Version, 1)
	return record.Line{Record: r, KeyGone: r.Key != "" && r.SupersededBy != ""}.Encode()
}

// recordOf is a record of a server's answer.
func recordOf(r *loombridgev1.Record) record.Record {
	out := record.Record{
		ID: r.GetId(), Text: r.GetText(), Key: r.GetKey(), Kind: r.GetKind(), SessionID: r.GetSessionId(), Author: r.GetAuthor(), SavedBy: r.GetAgentId(),
		Metadata: json.RawMessage(r.GetMetadataJson()), Tags: r.GetTags(), Importance: r.GetImportance(), Supersedes: r.GetSupersedes(),
		SupersededBy: r.GetSupersededBy(), DerivedFrom: r.GetDerivedFrom(), Origin: record.Origin(r.GetOrigin()), Review: record.Review(r.GetReview()),
		Tier: int(r.GetTier()), Version: r.GetVersion(), Pinned: r.GetPinned(), SlidingTTL: r.GetSlidingTtl().AsDuration(), Archived: r.GetArchived(),
	}
	if len(out.Metadata) == 0 {
		out.Metadata = nil
	}
	for _, t := range []struct {
		to   *time.Time
		from interface{ AsTime() time.Time }
		ok   bool
	}{
		{&out.EventTime, r.GetEventTime(), r.EventTime != nil},
		{&out.CreateTime, r.GetCreateTime(), r.CreateTime != nil},
		{&out.ExpireTime, r.GetExpireTime(), r.ExpireTime != nil},
		{&out.UpdateTime, r.GetUpdateTime(), r.UpdateTime != nil},
		{&out.ArchiveTime, r.GetArchiveTime(), r.ArchiveTime != nil},
		{&out.ValidUntil, r.GetValidUntil(), r.ValidUntil != nil},
	} {
		if t.ok {
			*t.to = t.from.AsTime()
		}
	}
	switch r.GetWriter() {
	case writer.Model.String():
		out.Writer = writer.Model
	case writer.Import.String():
		out.Writer = writer.Import
	}
	return out
}

// conflictTag is on the copy that a conflict leaves.
const conflictTag = "sync-conflict"

// conflictCopy is the content of a conflict that did not stay, as an archived record beside the one that
// did. The same content has the same copy however often it is made.
func conflictCopy(e entry) record.Record {
	r := e.record
	sum := sha256.Sum256([]byte(e.id + "\x00" + e.hash))
	r.ID, r.Key, r.Supersedes, r.SupersededBy, r.Version = "conflict-"+hex.EncodeToString(sum[:16]), "", "", "", 1
	r.Archived, r.ArchiveTime, r.Pinned, r.Review = true, time.Time{}, false, 0
	if len(r.Tags) < record.MaxTags && !slices.Contains(r.Tags, conflictTag) {
		r.Tags = append(slices.Clone(r.Tags), conflictTag)
		slices.Sort(r.Tags)
	}
	of, _ := json.Marshal(map[string]string{"sync_conflict_of": e.id}) //nolint:errchkjson // texts
	if with, err := record.MergeMetadata(r.Metadata, of, []string{"sync_conflict_of"}); err == nil && len(with) <= record.MaxMetadataBytes {
		r.Metadata = with
	}
	return r
}

// pairOf is what is kept of a record that both sides have.
func pairOf(here, there entry) *pair {
	p := &pair{Here: here.mark, There: there.mark}
	if at := cmp.Or(here.record.ExpireTime, there.record.ExpireTime); !at.IsZero() {
		p.Expires = at.Unix()
	}
	return p
}
