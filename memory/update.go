package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// Fields is a set of fields of a record.
type Fields uint32

// The fields that can change. A record keeps its id, key, create time, and what
// it superseded.
const (
	// TextField is Text. A vector that comes from the old text goes with it.
	TextField Fields = 1 << iota
	// KindField is Kind; empty is DefaultKind.
	KindField
	// SessionField is SessionID.
	SessionField
	// AuthorField is Author.
	AuthorField
	// EventTimeField is EventTime.
	EventTimeField
	// MetadataField is Metadata, as a whole.
	MetadataField
	// TagsField is Tags, as a whole.
	TagsField
	// ImportanceField is Importance.
	ImportanceField
	// OriginField is Origin; zero is OriginAgent.
	OriginField
	// DerivedFromField is DerivedFrom, as a whole.
	DerivedFromField
	// ExpiryField is one of ExpireTime, TTL and SlidingTTL; none of them means
	// that the record never expires.
	ExpiryField
	// EmbeddingField is Embedding and EmbeddingSpace; none means no vector.
	EmbeddingField
	// PinnedField is Pinned.
	PinnedField
	// ArchivedField is Archived.
	ArchivedField
	// TierField is Tier; zero is LongTerm.
	TierField
	// ValidUntilField is ValidUntil.
	ValidUntilField

	allFields = ValidUntilField<<1 - 1
)

// Update says what is to change of one record.
type Update struct {
	// ID names the record, or Key does. Give one of the two.
	ID, Key string
	// ExpectedVersion is the version that the record must have. Zero: any.
	ExpectedVersion int64
	// Fields are the fields to change. At least one, or one of Members.
	Fields Fields
	// Members are names of members of the metadata that change, without MetadataField:
	// each becomes what it is in the metadata of Values, and goes where it is not there.
	// All others stay.
	Members []string
	// Review is the end of a review of the record, or zero. With one, no other field
	// changes.
	Review record.Review
	// Values holds their new values; its other fields do not matter. An empty
	// value empties the field.
	Values record.Record
}

// Update changes a record and returns it as stored, with the next version. The
// record as it was is kept as an earlier version, see Versions. Of many who
// expect the same version one succeeds.
//
// A request id makes the call safe to repeat, as with Save; a repeated call is
// a *NotFoundError when the record has been deleted since.
//
// Errors: *invalid.Error; *NotFoundError for the record or one that it is to derive from;
// *VersionError; *OwnedError for another agent's record; *PinnedError if it is to leave the
// archive, or to be pinned, and the memory is full of pinned records. After an error nothing has changed.
func (s *Store) Update(ctx context.Context, scope kv.Scope, u Update, requestID string) (record.Record, error) {
	update, err := s.StageUpdate(ctx, scope, u, requestID)
	if err != nil {
		return record.Record{}, err
	}
	update.actor = actorOf(ctx)
	if err := update.commit(ctx, "memory: update"); err != nil {
		return record.Record{}, err
	}
	return update.records[0], nil
}

// StageUpdate prepares a commit of the caller's to do what Update does.
func (s *Store) StageUpdate(ctx context.Context, scope kv.Scope, u Update, requestID string) (*Staging, error) {
	if err := s.beginRequest(scope, requestID); err != nil {
		return nil, err
	}
	if err := checkUpdate(u); err != nil {
		return nil, err
	}
	by := writer.Of(ctx)
	if u.Review != 0 && by != writer.Program {
		return nil, invalid.Field(ErrInvalid, "review", "is for a person or a program: a model approves nothing")
	}
	values, err := record.Redact(u.Values, s.redact)
	if err != nil {
		return nil, err
	}
	u.Values = record.Normalize(values)
	up := &updating{scope: scope, update: u, requestID: requestID, now: record.StoredTime(s.now()), writer: by}
	if requestID != "" {
		up.digest = up.content()
	}
	if u.Fields&ArchivedField != 0 && !u.Values.Archived || u.Fields&PinnedField != 0 && u.Values.Pinned {
		up.pins = s.newPins(scope, 1)
	}
	up.guess = s.guess(ctx, up)
	return &Staging{store: s, scope: scope, expires: u.Fields&ExpiryField != 0, run: up.stage, pins: up.pins}, nil
}

// updating is an update under way. All of it is ready before the commit
// is staged, and does not change.
type updating struct {
	scope     kv.Scope
	update    Update
	requestID string
	digest    [sha256.Size]byte
	now       time.Time
	writer    writer.Writer
	// pins is the room for a record that leaves the archive, or gets pinned.
	pins *pinRoom
	// guess is what will be stored if the record is still what it was then, so
	// that its text was analyzed without making anybody wait; nil: no guess.
	guess *redrafted
}

// redrafted is a record about to be written anew, and its document.
type redrafted struct {
	stored  []byte // what it was made from
	record  record.Record
	encoded []byte
}

// redraft returns the record that change makes of old, which is stored as it
// says. Without a change it is described anew.
func (s *Store) redraft(stored []byte, old record.Record, change func(*record.Record) error) (*redrafted, error) {
	next := old
	if change != nil {
		if err := change(&next); err != nil {
			return nil, err
		}
	}
	next.Document.Place = cmp.Or(next.Document.Place, old.Document.Ordinal)
	next.Document.Marked = next.SupersededBy != ""
	values, err := record.MetadataTerms(next.Metadata)
	if err != nil {
		return nil, err
	}
	return &redrafted{stored: stored, record: next, encoded: s.encodeDocument(&next, values)}, nil
}

// guess redrafts the record as it stands before the update has its turn. An error here is
// ignored: the turn meets it again if it still holds.
func (s *Store) guess(ctx context.Context, up *updating) *redrafted {
	id := up.update.ID
	if id == "" {
		values, err := s.engine.Get(ctx, kv.Records, record.NameKey(up.scope, up.update.Key))
		if err != nil || values[0] == nil {
			return nil
		}
		id = string(values[0])
	}
	values, err := s.engine.Get(ctx, kv.Records, record.Key(up.scope, id))
	if err != nil || values[0] == nil {
		return nil
	}
	old, err := record.Decode(values[0])
	if err != nil {
		return nil
	}
	guess, err := s.redraft(values[0], old, up.apply)
	if err != nil {
		return nil
	}
	return guess
}

// stage is the update's part of a commit.
func (up *updating) stage(ctx context.Context, e *edit) error {
	ref := recordsRef(up.scope)
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, up.requestID, up.digest)
	if err != nil {
		return err
	}
	if replayed {
		return up.replay(ctx, e, answer)
	}
	old, stored, err := e.named(ctx, up.update.ID, up.update.Key, up.update.ExpectedVersion, up.now)
	if err != nil {
		return err
	}
	lowest, err := up.lowestSource(ctx, e, old)
	if err != nil {
		return err
	}
	next := up.guess
	if next == nil || !bytes.Equal(next.stored, stored) || next.record.Origin < lowest || e.store.holds(next.record.Origin) {
		if next, err = e.store.redraft(stored, *old, func(r *record.Record) error {
			err := up.apply(r)
			r.Origin = max(r.Origin, lowest)
			return cmp.Or(err, up.hold(e.store, old, r))
		}); err != nil {
			return err
		}
	}
	if old.Archived || next.record.Pinned && !old.Pinned {
		pins, err := up.pins.now(ctx, e.tx)
		if err == nil {
			err = pins.take(&next.record)
		}
		if err != nil {
			return err
		}
	}
	draft := *next // the guess may be needed again
	e.keepVersion(old, stored, &draft.record)
	if old.Text != draft.record.Text || draft.record.Review.Hides() {
		e.taken = append(e.taken, old.ID)
	}
	e.result = []record.Record{draft.record}
	e.result[0].Redacted = up.update.Values.Redacted
	if err := e.replace(ctx, old, &draft, up.update.Fields&(TextField|EmbeddingField) == 0); err != nil {
		return err
	}
	kv.StageOnceOf(e.tx, ref, e.actor.Agent, up.requestID, up.digest, record.EncodeChangeAnswer(next.record), up.now)
	return nil
}

// shownFields are the fields that prompts show.
const shownFields = TextField | AuthorField | MetadataField | KindField | TagsField

// hold lets a record wait for review whose new content is of an origin that waits. What
// was found so far does not go out of sight for it: that would be a way to hide a record.
func (up *updating) hold(s *Store, old, r *record.Record) error {
	changes := up.update.Fields&shownFields != 0 || len(up.update.Members) > 0 || r.Origin != old.Origin
	switch {
	case up.update.Review != 0 || !changes || !s.holds(r.Origin):
		return nil
	case !s.holds(old.Origin):
		return invalid.Field(ErrInvalid, "origin", "is %s, which waits for review, and would hide a record that is found; save it as a separate record", r.Origin)
	}
	r.Review = record.ReviewHeld
	return nil
}

// holds reports whether records of that origin wait for review.
func (s *Store) holds(o record.Origin) bool { return slices.Contains(s.hold, o) }

// named returns the record that the caller names, decoded and as stored.
func (e *edit) named(ctx context.Context, id, key string, expected int64, now time.Time) (*record.Record, []byte, error) {
	field, name := "id", id
	if id == "" {
		field, name = "key", key
		holder, err := e.get(ctx, record.NameKey(e.scope, key))
		if err != nil {
			return nil, nil, err
		}
		id = string(holder)
	}
	if id == "" {
		return nil, nil, &NotFoundError{field, name}
	}
	r, stored, err := e.read(ctx, id)
	switch {
	case err != nil:
		return nil, nil, err
	case r == nil || r.ExpiredAt(now):
		return nil, nil, &NotFoundError{field, name}
	case expected != 0 && r.Version != expected:
		return nil, nil, &VersionError{ID: r.ID, Expected: expected, Version: r.Version}
	}
	return r, stored, e.may(r)
}

// lowestSource is the least trusted origin of what the record derives from, as far as the
// update could make it more than that; zero for none. New sources must be there.
func (up *updating) lowestSource(ctx context.Context, e *edit, old *record.Record) (lowest record.Origin, err error) {
	sources, fresh := old.DerivedFrom, up.update.Fields&DerivedFromField != 0
	switch {
	case fresh:
		sources = up.update.Values.DerivedFrom
	case up.update.Fields&OriginField == 0:
		return 0, nil
	}
	for _, id := range sources {
		switch source, _, err := e.read(ctx, id); {
		case err != nil:
			return 0, err
		case source != nil && !source.ExpiredAt(up.now):
			lowest = max(lowest, source.Origin)
		case fresh:
			return 0, &NotFoundError{"derived_from", id}
		}
	}
	return lowest, nil
}

// vouch says by whose words the record is after the change.
func (up *updating) vouch(r *record.Record) {
	switch {
	case up.writer != writer.Program:
		r.Writer = up.writer
		if r.Review == record.ReviewApproved {
			r.Review = 0 // that was of other words
		}
	case up.update.Fields&(TextField|KindField|MetadataField) != 0 || len(up.update.Members) > 0:
		r.Writer = writer.Program
	}
}

// apply makes the change.
func (up *updating) apply(r *record.Record) error {
	fields, from := up.update.Fields, up.update.Values
	up.vouch(r)
	switch {
	case up.update.Review != 0:
		r.Review = up.update.Review
	case fields&(TextField|OriginField) == TextField|OriginField:
		r.Review = 0 // that was of another text
	}
	for _, f := range []struct {
		field Fields
		set   func()
	}{
		{TextField, func() { r.Text, r.Embedding, r.EmbeddingSpace = from.Text, nil, "" }},
		{KindField, func() { r.Kind = from.Kind }},
		{SessionField, func() { r.SessionID = from.SessionID }},
		{AuthorField, func() { r.Author = from.Author }},
		{EventTimeField, func() { r.EventTime = from.EventTime }},
		{MetadataField, func() { r.Metadata = from.Metadata }},
		{TagsField, func() { r.Tags = from.Tags }},
		{ImportanceField, func() { r.Importance = from.Importance }},
		{OriginField, func() { r.Origin = from.Origin }},
		{DerivedFromField, func() { r.DerivedFrom = from.DerivedFrom }},
		{EmbeddingField, func() { r.Embedding, r.EmbeddingSpace = from.Embedding, from.EmbeddingSpace }},
		{PinnedField, func() { r.Pinned = from.Pinned }},
		{ArchivedField, func() { up.archive(r, from.Archived) }},
		{TierField, func() { r.Tier = from.Tier }},
		{ValidUntilField, func() { r.ValidUntil = from.ValidUntil }},
	} {
		if fields&f.field != 0 {
			f.set()
		}
	}
	if len(up.update.Members) > 0 {
		metadata, err := record.MergeMetadata(r.Metadata, from.Metadata, up.update.Members)
		if err != nil {
			return err
		}
		r.Metadata = metadata
	}
	r.Version++
	// Whoever asked first may come second, and clocks go back: versions never do.
	if before := changed(*r); up.now.After(before) {
		r.UpdateTime = up.now
	} else {
		r.UpdateTime = before
	}
	if fields&ExpiryField == 0 {
		return nil
	}
	return up.applyExpiry(r)
}

// archive puts a record into the archive, or takes it out.
func (up *updating) archive(r *record.Record, archived bool) {
	switch {
	case !archived:
		r.ArchiveTime = time.Time{}
	case !r.Archived:
		r.ArchiveTime = up.now
	}
	r.Archived = archived
}

func (up *updating) applyExpiry(r *record.Record) error {
	from := up.update.Values
	r.ExpireTime, r.SlidingTTL = from.ExpireTime, from.SlidingTTL
	if span := record.StoredSpan(max(from.TTL, from.SlidingTTL)); span > 0 {
		r.ExpireTime = record.StoredTime(up.now.Add(span))
	}
	if !r.ExpireTime.IsZero() && !r.ExpireTime.After(up.now) {
		return invalid.Field(ErrInvalid, "expire_time", "does not lie ahead")
	}
	return nil
}

// content stands for what a repeated request is compared by: the new values of
// the fields that change.
func (up *updating) content() [sha256.Size]byte {
	const (
		fieldTTL = 1000 + iota // of no stored record
		fieldFields
		fieldName
		fieldByKey
		fieldExpected
		fieldMember
		fieldVerdict
	)
	u := up.update
	changed := updating{update: u}
	var r record.Record
	_ = changed.apply(&r) // whether the time lies ahead is not asked here
	r.Version, r.UpdateTime, r.ExpireTime = 0, time.Time{}, u.Values.ExpireTime
	if u.Fields&ExpiryField == 0 {
		r.ExpireTime, u.Values.TTL = time.Time{}, 0
	}
	b := wire.AppendInt(record.EncodeWhole(r), fieldTTL, int64(u.Values.TTL))
	b = wire.AppendUint(b, fieldFields, uint64(u.Fields))
	b = wire.AppendText(b, fieldName, u.ID)
	b = wire.AppendText(b, fieldByKey, u.Key)
	b = wire.AppendUint(b, fieldVerdict, uint64(u.Review))
	for _, name := range u.Members {
		b = wire.AppendItem(b, fieldMember, name)
	}
	return sha256.Sum256(wire.AppendInt(b, fieldExpected, u.ExpectedVersion))
}

// replay answers a repeated update: with the version that the first one made.
func (up *updating) replay(ctx context.Context, e *edit, answer []byte) error {
	given, err := record.Record{}.WithAnswer(answer)
	if err != nil {
		return err
	}
	stored, err := e.get(ctx, record.Key(e.scope, given.ID))
	if err != nil {
		return err
	}
	if stored == nil {
		return &NotFoundError{"id", given.ID}
	}
	r, err := record.Decode(stored)
	if err == nil && r.Version != given.Version {
		r, err = e.version(ctx, given.ID, given.Version)
	}
	r.ExpireTime, r.SupersededBy, r.SupersededTime = given.ExpireTime, given.SupersededBy, given.SupersededTime
	e.result = []record.Record{r}
	return err
}

// checkUpdate refuses what a caller may not change, and whatever can be checked without the
// stored record or the time.
func checkUpdate(u Update) error {
	if err := checkNamed(u.ID, u.Key, u.ExpectedVersion); err != nil {
		return err
	}
	switch {
	case u.Review == record.ReviewApproved || u.Review == record.ReviewRejected:
		if u.Fields != 0 || len(u.Members) > 0 {
			return invalid.Field(ErrInvalid, "update_mask", "names other fields with a review")
		}
		return nil
	case u.Review != 0:
		return invalid.Field(ErrInvalid, "decision", "is neither approved nor rejected")
	case u.Fields == 0 && len(u.Members) == 0 || u.Fields&^allFields != 0:
		return invalid.Field(ErrInvalid, "update_mask", "names no field, or one that can't change")
	case len(u.Members) > 0 && u.Fields&MetadataField != 0:
		return invalid.Field(ErrInvalid, "update_mask", "names the metadata, and members of it")
	}
	v := u.Values
	if u.Fields&TextField == 0 {
		v.Text = "as it was"
	}
	v.ID, v.Key, v.Supersedes = "", "", ""
	v = onlyChanged(v, u.Fields, u.Members)
	if err := record.Check(v); err != nil {
		return err
	}
	_, err := record.MetadataTerms(v.Metadata)
	return err
}

// onlyChanged empties the fields that an update is not about, which may hold
// anything.
func onlyChanged(v record.Record, fields Fields, members []string) record.Record {
	kept := record.Record{Text: v.Text}
	if len(members) > 0 {
		fields |= MetadataField
	}
	mask := updating{update: Update{Fields: fields &^ ExpiryField, Values: v}}
	_ = mask.apply(&kept) // without the expiry there is nothing to fail
	if fields&ExpiryField != 0 {
		kept.ExpireTime, kept.TTL, kept.SlidingTTL = v.ExpireTime, v.TTL, v.SlidingTTL
	}
	return kept
}
