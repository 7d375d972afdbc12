package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// Save stores a record and returns it as stored, with its id and times. When
// it returns, the record, its index entries and the sync are done, and every
// later query finds it.
//
// A request id makes the call safe to repeat: the same id and content gives
// the first answer again, another content is kv.ErrRequestReused.
//
// Errors: *InvalidError; *ExistsError for an id or key that is taken, where the
// key of a superseded record may go over to the one that replaces it and that
// of an expired one to anybody; *NotFoundError for a record that it supersedes
// or derives from. After any of them nothing has changed.
func (s *Store) Save(ctx context.Context, scope kv.Scope, r Record, requestID string) (Record, error) {
	if err := s.begin(scope); err != nil {
		return Record{}, err
	}
	save, err := s.prepare(scope, r, requestID)
	if err != nil {
		return Record{}, err
	}
	err = s.writer.Do(ctx, kv.Request{
		Refs:  []kv.Ref{recordsRef(scope), lexical.Ref(scope)},
		Stage: save.stage,
	})
	if err != nil {
		return Record{}, wrap("memory: save", err)
	}
	s.packer.saved(ctx, scope, save.statistics)
	return save.saved, nil
}

// saving is one save under way. What is above saved is ready before the save
// gets its turn and does not change.
type saving struct {
	index     *lexical.Index
	scope     kv.Scope
	draft     Record
	givenID   bool
	encoded   []byte // the document
	requestID string
	digest    [sha256.Size]byte
	now       time.Time

	saved      Record
	statistics lexical.Statistics
}

// prepare checks and completes a record and analyses its text, all that needs
// no turn.
func (s *Store) prepare(scope kv.Scope, r Record, requestID string) (*saving, error) {
	if err := checkRecord(r); err != nil {
		return nil, err
	}
	if err := checkRequestID(requestID); err != nil {
		return nil, err
	}
	values, err := metadataValues(r.Metadata)
	if err != nil {
		return nil, err
	}
	save := &saving{index: s.index, scope: scope, requestID: requestID, givenID: r.ID != "", now: cutTime(s.now())}
	r = normalize(r)
	if requestID != "" {
		save.digest = digest(r)
	}
	r.CreateTime = save.now
	if r.TTL > 0 {
		r.ExpireTime = cutTime(save.now.Add(r.TTL))
	}
	r.TTL = 0
	if r.ID == "" {
		if r.ID, err = s.newID(save.now); err != nil {
			return nil, err
		}
	}
	save.draft = r
	save.encoded = s.encodeDocument(r, values)
	return save, nil
}

// normalize sets the defaults and drops what is not the caller's to say.
func normalize(r Record) Record {
	r.EventTime, r.CreateTime, r.ExpireTime = cutTime(r.EventTime), time.Time{}, cutTime(r.ExpireTime)
	r.SupersededBy, r.Tier, r.ordinal = "", LongTerm, 0
	if r.Kind == "" {
		r.Kind = DefaultKind
	}
	if r.Origin == 0 {
		r.Origin = OriginAgent
	}
	r.Metadata = slices.Clone(r.Metadata)
	r.Tags = slices.Clone(r.Tags)
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	r.DerivedFrom = slices.Clone(r.DerivedFrom)
	r.Embedding = slices.Clone(r.Embedding)
	return r
}

// cutTime cuts a time to microseconds; an unset one stays so.
func cutTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// digest stands for the content of a request.
func digest(r Record) [sha256.Size]byte {
	const fieldTTL = 1000 // of no stored record
	return sha256.Sum256(wire.AppendInt(encodeRecord(r), fieldTTL, int64(r.TTL)))
}

// maxKeptDocument is the size in bytes of the longest document whose memory is
// kept for the next one; few records are longer.
const maxKeptDocument = 16 << 10

// encodeDocument returns what the index is to know of a record, as it stores
// it.
func (s *Store) encodeDocument(r Record, metadata []string) []byte {
	d, _ := s.spare.Get().(*lexical.Document)
	if d == nil {
		d = lexical.NewDocument(r.ID)
	}
	d.Reset(r.ID)
	s.describe(d, r, metadata)
	encoded := d.Encode()
	if len(encoded) <= maxKeptDocument {
		s.spare.Put(d)
	}
	return encoded
}

// describe adds to a document what the index is to know of a record.
func (s *Store) describe(d *lexical.Document, r Record, metadata []string) {
	d.AddBody(s.analyzer.Terms(r.Text))
	if header := r.header(); header != "" {
		d.AddHeader(s.analyzer.Terms(header))
	}
	for _, tag := range r.Tags {
		d.AddValue(lexical.Tag, tag)
	}
	d.AddValue(lexical.Kind, r.Kind)
	d.AddValue(lexical.Session, r.SessionID)
	d.AddValue(lexical.Author, r.Author)
	d.AddValue(lexical.Origin, r.Origin.String())
	for _, value := range metadata {
		d.AddValue(lexical.Metadata, value)
	}
	if !r.ExpireTime.IsZero() {
		d.Expire(r.ExpireTime.UnixMicro())
	}
}

// header is what is searched beside the text: the author and the date of the
// event.
func (r Record) header() string {
	if r.EventTime.IsZero() {
		return r.Author
	}
	return r.Author + " " + r.EventTime.Format("2 January 2006")
}

// stage is the save's part of a commit.
func (s *saving) stage(ctx context.Context, tx *kv.Tx) error {
	ref := recordsRef(s.scope)
	answer, replayed, err := kv.LookupOnce(ctx, tx, ref, s.requestID, s.digest)
	if err != nil {
		return err
	}
	if replayed {
		s.saved, err = s.draft.withAnswer(answer)
		return err
	}
	r := s.draft
	if !r.ExpireTime.IsZero() && !r.ExpireTime.After(s.now) {
		return &InvalidError{"expire_time", "does not lie ahead"}
	}
	old, err := s.checkNames(ctx, tx)
	if err != nil {
		return err
	}
	if r.ordinal, s.statistics, err = s.index.Add(ctx, tx, s.scope, s.encoded, old.ordinal); err != nil {
		return err
	}
	tx.Put(kv.Records, recordKey(s.scope, r.ID), encodeRecord(r))
	if r.Key != "" {
		tx.Put(kv.Records, keyKey(s.scope, r.Key), []byte(r.ID))
	}
	if r.Supersedes != "" {
		tx.Put(kv.Records, recordKey(s.scope, r.Supersedes), appendSuperseded(old.stored, r.ID))
	}
	kv.StageOnce(tx, ref, s.requestID, s.digest, encodeAnswer(r), s.now)
	s.saved = r
	return nil
}

// superseded is the record that a save replaces.
type superseded struct {
	stored  []byte
	ordinal uint32
}

// checkNames checks the names that a record takes against those that are
// there, and returns the record that it replaces, if any.
func (s *saving) checkNames(ctx context.Context, tx *kv.Tx) (superseded, error) {
	r := s.draft
	if s.givenID {
		switch values, err := tx.Get(ctx, kv.Records, recordKey(s.scope, r.ID)); {
		case err != nil:
			return superseded{}, err
		case values[0] != nil:
			return superseded{}, &ExistsError{"id", r.ID, r.ID}
		}
	}
	if err := s.checkKey(ctx, tx); err != nil {
		return superseded{}, err
	}
	for _, id := range r.DerivedFrom {
		if _, _, err := s.source(ctx, tx, "derived_from", id); err != nil {
			return superseded{}, err
		}
	}
	if r.Supersedes == "" {
		return superseded{}, nil
	}
	old, stored, err := s.source(ctx, tx, "supersedes", r.Supersedes)
	if err != nil {
		return superseded{}, err
	}
	if old.SupersededBy != "" {
		return superseded{}, &InvalidError{"supersedes", fmt.Sprintf("names record %q, which record %q has replaced already", old.ID, old.SupersededBy)}
	}
	return superseded{stored, old.ordinal}, nil
}

// checkKey refuses a key that another record has, unless that one is being
// superseded or has expired.
func (s *saving) checkKey(ctx context.Context, tx *kv.Tx) error {
	if s.draft.Key == "" {
		return nil
	}
	holder, ok, err := readByKey(ctx, tx, s.scope, s.draft.Key)
	if err != nil || !ok || holder.ID == s.draft.Supersedes || holder.expiredAt(s.now) {
		return err
	}
	return &ExistsError{"key", s.draft.Key, holder.ID}
}

// source returns a record that the field names, decoded and as stored.
func (s *saving) source(ctx context.Context, tx *kv.Tx, field, id string) (Record, []byte, error) {
	values, err := tx.Get(ctx, kv.Records, recordKey(s.scope, id))
	if err != nil {
		return Record{}, nil, err
	}
	if values[0] == nil {
		return Record{}, nil, &NotFoundError{field, id}
	}
	r, err := decodeRecord(values[0])
	if err == nil && r.expiredAt(s.now) {
		err = &NotFoundError{field, id}
	}
	return r, values[0], err
}
