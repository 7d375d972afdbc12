package memory

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// MaxRequestIDBytes bounds a request id.
const MaxRequestIDBytes = 128

// Save stores a record and returns it as stored, with its id and times; or, where
// Options.Duplicates says so, the record that it repeats. When
// it returns, the record, its index entries and the sync are done, and every
// later query finds it.
//
// A request id makes the call safe to repeat: the same id and content gives
// the first answer again, another content is kv.ErrRequestReused.
//
// Errors: *invalid.Error; *ExistsError for an id or key that is taken, where
// both of an expired record are free and the key of a superseded one may go
// over to the record that replaces it; *NotFoundError for a record that it
// supersedes or derives from; *OwnedError for one that another agent saved and this
// one supersedes; *PinnedError for a memory that is full of pinned records. After any of them nothing has changed.
func (s *Store) Save(ctx context.Context, scope kv.Scope, r record.Record, requestID string) (record.Record, error) {
	saved, err := s.SaveAs(ctx, scope, r, Saving{RequestID: requestID})
	return saved.Record, err
}

// StageSave prepares a commit of the caller's to do what Save does; it keeps duplicates.
func (s *Store) StageSave(scope kv.Scope, r record.Record, requestID string) (*Staging, error) {
	save, err := s.newSaving(scope, &r, requestID)
	if err != nil {
		return nil, err
	}
	return s.stageSaving(save)
}

// newSaving checks a record that is to be saved.
func (s *Store) newSaving(scope kv.Scope, r *record.Record, requestID string) (*saving, error) {
	if err := s.beginRequest(scope, requestID); err != nil {
		return nil, err
	}
	save := &saving{scope: scope, requestID: requestID, now: record.StoredTime(s.now()), drafts: make([]draft, 1)}
	if err := save.drafts[0].check(r, s.redact, save.now); err != nil {
		return nil, err
	}
	if requestID != "" {
		save.digest = sha256.Sum256(save.drafts[0].content(nil))
	}
	return save, nil
}

func (s *Store) stageSaving(save *saving) (*Staging, error) {
	if err := s.complete(save); err != nil {
		return nil, err
	}
	return &Staging{store: s, scope: save.scope, expires: save.expires(), run: save.stage, requestID: save.requestID}, nil
}

// saving is a save of one or more records. All of it is ready before the
// commit is staged, and does not change.
type saving struct {
	scope     kv.Scope
	agent     string // that saves, in a memory that is shared
	drafts    []draft
	batch     bool
	requestID string
	digest    [sha256.Size]byte
	now       time.Time
	// reinforce: a record that repeats another is not saved.
	reinforce bool
	// pins is the room of a memory with a limit.
	pins *pinRoom
	// repeated are the records that repeated others, by their place, and how similar they
	// were; made anew each time the save is staged.
	repeated map[int]float64
}

// draft is a record to be saved.
type draft struct {
	// record is the caller's, changed to what is to be saved.
	record   *record.Record
	ttl      time.Duration
	givenID  bool
	metadata []string // its terms
	encoded  []byte   // the document
	same     []byte   // what the keys of those begin with that it may repeat; empty: it repeats none
	bare     []byte   // the same of the text without emphasis; empty: it has none
}

// check takes a record that is to be saved, checks it, redacts it and sets its defaults, all
// that needs neither an id nor a commit.
func (d *draft) check(r *record.Record, by *redact.Redactor, now time.Time) (err error) {
	d.record = r
	if *r, err = record.Redact(*r, by); err != nil {
		return err
	}
	if err := record.Check(*r); err != nil {
		return err
	}
	if d.metadata, err = record.MetadataTerms(r.Metadata); err != nil {
		return err
	}
	*r = record.Normalize(*r)
	d.ttl, r.TTL = r.TTL, 0
	d.givenID, r.CreateTime = r.ID != "", now
	if span := record.StoredSpan(max(d.ttl, r.SlidingTTL)); span > 0 {
		r.ExpireTime = record.StoredTime(now.Add(span))
	}
	return nil
}

// content appends what a repeated request is compared by.
func (d *draft) content(dst []byte) []byte {
	const ( // of no stored record
		fieldTTL = 1000 + iota
		fieldRelation
		fieldRelated
	)
	r := *d.record
	r.CreateTime = time.Time{}
	if d.ttl > 0 || r.SlidingTTL > 0 {
		r.ExpireTime = time.Time{}
	}
	if !d.givenID {
		r.ID = ""
	}
	dst = append(dst, record.EncodeWhole(r)...)
	for _, one := range r.Relations {
		dst = wire.AppendItem(wire.AppendItem(dst, fieldRelation, one.Name), fieldRelated, one.To)
	}
	return wire.AppendInt(dst, fieldTTL, int64(d.ttl))
}

func (s *saving) expires() bool {
	return slices.ContainsFunc(s.drafts, func(d draft) bool { return !d.record.ExpireTime.IsZero() })
}

// complete gives the drafts their ids, in order, and their documents.
func (s *Store) complete(save *saving) (err error) {
	for i := range save.drafts {
		if d := &save.drafts[i]; !d.givenID {
			if d.record.ID, err = s.newID(save.now); err != nil {
				return err
			}
		}
	}
	inParallel(len(save.drafts), func(i int) {
		d := &save.drafts[i]
		d.record.SavedBy = save.agent
		d.encoded, d.metadata = s.encodeDocument(d.record, d.metadata), nil
		d.same = []byte{}
		if !save.reinforce {
			return // the form and its key would double the work of a save
		}
		if prefix := samePrefix(save.scope, d.record); prefix != nil {
			d.same, d.bare = prefix, sameBare(save.scope, d.record)
		}
	})
	return nil
}

// stage is the save's part of a commit.
func (s *saving) stage(ctx context.Context, e *edit) error {
	ref := recordsRef(s.scope)
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, s.requestID, s.digest)
	if err != nil {
		return err
	}
	s.repeated = make(map[int]float64)
	if replayed {
		e.result, err = s.replay(answer)
		return err
	}
	free, err := s.freeNames(ctx, e)
	if err != nil {
		return err
	}
	e.result = make([]record.Record, len(s.drafts))
	e.expect(len(s.drafts))
	pins, err := s.pins.now(ctx, e.tx)
	if err != nil {
		return err
	}
	for i := range s.drafts {
		repeated, err := false, error(nil)
		if s.reinforce {
			repeated, err = s.repeat(ctx, e, i)
		}
		if err == nil && !repeated {
			err = s.add(ctx, e, free, pins, i)
		}
		if err != nil {
			return s.blame(i, err)
		}
	}
	if err := e.flush(ctx); err != nil {
		return err
	}
	if err := s.relateSaved(ctx, e); err != nil {
		return err
	}
	if s.requestID != "" {
		kv.StageOnceOf(e.tx, ref, e.actor.Agent, s.requestID, s.digest, s.answer(e.result), s.now)
	}
	return nil
}

// blame says which record of a batch is at fault.
func (s *saving) blame(i int, err error) error {
	var known *BatchError
	if !s.batch || errors.As(err, &known) {
		return err
	}
	return &BatchError{Index: i, Err: err}
}

// add adds one of the records. Names that are in free need no look.
func (s *saving) add(ctx context.Context, e *edit, free map[string]bool, pins *pinRoom, i int) error {
	d := &s.drafts[i]
	r := &e.result[i]
	*r = *d.record
	encoded := d.encoded
	if r.SavedBy != e.actor.Agent {
		r.SavedBy, encoded = e.actor.Agent, nil
	}
	r.Writer = e.actor.writer
	if !r.ExpireTime.IsZero() && !r.ExpireTime.After(s.now) {
		return invalid.Field(ErrInvalid, "expire_time", "does not lie ahead")
	}
	if d.givenID {
		if err := s.takeID(ctx, e, free, r); err != nil {
			return err
		}
	}
	if err := s.takeKey(ctx, e, free, r); err != nil {
		return err
	}
	for _, id := range r.DerivedFrom {
		source, _, err := s.source(ctx, e, "derived_from", id)
		if err != nil {
			return err
		}
		if source.Origin > r.Origin { // what derives from the web is no more than that
			r.Origin, encoded = source.Origin, nil
		}
	}
	replaced, origin, err := s.supersede(ctx, e, r)
	if err == nil {
		err = pins.take(r)
	}
	if err != nil {
		return err
	}
	if origin.Foreign() && origin > r.Origin { // nor is what takes its place
		r.Origin, encoded = origin, nil
	}
	if e.store.holds(r.Origin) {
		if r.Supersedes != "" {
			return invalid.Field(ErrInvalid, "supersedes", "can't be given: records of origin %s wait for review, and the one replaced would be hidden meanwhile", r.Origin)
		}
		r.Review, encoded = record.ReviewHeld, nil
	}
	if encoded == nil {
		terms, err := record.MetadataTerms(r.Metadata)
		if err != nil {
			return err
		}
		encoded = e.store.encodeDocument(r, terms)
	}
	e.add(write{record: r, same: d.same, blame: func(err error) error { return s.blame(i, err) }}, encoded, replaced)
	return nil
}

// answer keeps what the store added to the records.
func (s *saving) answer(saved []record.Record) []byte {
	var b []byte
	for i, r := range saved {
		one := record.EncodeAnswer(r)
		if similarity, ok := s.repeated[i]; ok {
			one = record.EncodeRepeated(r, similarity)
		}
		if !s.batch {
			return one
		}
		b = wire.AppendItem(b, record.AnswerItem, one)
	}
	return b
}

// replay returns the records as they were answered the first time.
func (s *saving) replay(answer []byte) ([]record.Record, error) {
	answers := [][]byte{answer}
	if s.batch {
		answers = answers[:0]
		for f, err := range wire.Fields(answer) {
			if err != nil {
				return nil, fmt.Errorf("%w: kept answer: %w", ErrDamaged, err)
			}
			if f.Number == record.AnswerItem {
				answers = append(answers, f.Bytes)
			}
		}
	}
	if len(answers) != len(s.drafts) {
		return nil, fmt.Errorf("%w: kept answer for %d of %d records", ErrDamaged, len(answers), len(s.drafts))
	}
	saved := make([]record.Record, len(s.drafts))
	for i, d := range s.drafts {
		var err error
		if saved[i], err = d.record.WithAnswer(answers[i]); err != nil {
			return nil, err
		}
		if similarity, ok := record.Repeated(answers[i]); ok {
			s.repeated[i] = similarity
		}
	}
	return saved, nil
}

// freeNames reads all ids and keys that the records are to take, in one read, and returns
// the stored keys of the free ones.
func (s *saving) freeNames(ctx context.Context, e *edit) (map[string]bool, error) {
	var names [][]byte
	for _, d := range s.drafts {
		if d.givenID {
			names = append(names, record.Key(s.scope, d.record.ID))
		}
		if d.record.Key != "" {
			names = append(names, record.NameKey(s.scope, d.record.Key))
		}
	}
	values, err := e.stored(ctx, names)
	if err != nil {
		return nil, err
	}
	free := make(map[string]bool, len(names))
	for name, value := range values {
		free[name] = value == nil
	}
	return free, nil
}

// takeID refuses an id that another record has, unless that has expired, in
// which case it goes.
func (s *saving) takeID(ctx context.Context, e *edit, free map[string]bool, r *record.Record) error {
	name := string(record.Key(s.scope, r.ID))
	if free[name] {
		free[name] = false
		return nil
	}
	switch holder, _, err := e.read(ctx, r.ID); {
	case err != nil || holder == nil:
		return err
	case !holder.ExpiredAt(s.now):
		return &ExistsError{"id", r.ID, r.ID}
	default:
		return e.remove(ctx, holder)
	}
}

// takeKey refuses a key that another record has, unless that one is being
// superseded or has expired.
func (s *saving) takeKey(ctx context.Context, e *edit, free map[string]bool, r *record.Record) error {
	if r.Key == "" {
		return nil
	}
	name := record.NameKey(s.scope, r.Key)
	if !free[string(name)] {
		id, err := e.get(ctx, name)
		if err != nil {
			return err
		}
		if err := s.checkHolder(ctx, e, r, string(id)); err != nil {
			return err
		}
	}
	free[string(name)] = false
	e.tx.Put(kv.Records, name, []byte(r.ID))
	return nil
}

func (s *saving) checkHolder(ctx context.Context, e *edit, r *record.Record, id string) error {
	if id == "" {
		return nil
	}
	switch holder, _, err := e.read(ctx, id); {
	case err != nil:
		return err
	case holder == nil:
		return fmt.Errorf("%w: key %q names record %q, which does not exist", ErrDamaged, r.Key, id)
	case holder.ID == r.Supersedes || holder.ExpiredAt(s.now):
		return nil
	default:
		return &ExistsError{"key", r.Key, holder.ID}
	}
}

// supersede lets the record that r replaces know by whom, and returns its
// ordinal and origin.
func (s *saving) supersede(ctx context.Context, e *edit, r *record.Record) (uint32, record.Origin, error) {
	if r.Supersedes == "" {
		return 0, 0, nil
	}
	old, stored, err := s.source(ctx, e, "supersedes", r.Supersedes)
	if err != nil {
		return 0, 0, err
	}
	if err := e.may(old); err != nil {
		return 0, 0, err
	}
	if old.SupersededBy != "" {
		return 0, 0, invalid.Field(ErrInvalid, "supersedes", "names record %q, which record %q has replaced already", old.ID, old.SupersededBy)
	}
	e.tx.Put(kv.Records, record.Key(s.scope, old.ID), record.AppendSuperseded(stored, r.ID, s.now))
	return old.Document.Ordinal, old.Origin, nil
}

// source returns a record that the field names, decoded and as stored.
func (s *saving) source(ctx context.Context, e *edit, field, id string) (*record.Record, []byte, error) {
	r, stored, err := e.read(ctx, id)
	if err == nil && (r == nil || r.ExpiredAt(s.now)) {
		err = &NotFoundError{field, id}
	}
	return r, stored, err
}

// SaveOrReplace is Save for a record with a key that may be taken: the record that has it
// then becomes this one, with its id, its create time and the next version. Every field is
// taken from r, including empty ones, and the old state is kept as an earlier version. The
// commit decides between save and replace, so concurrent callers do not fail.
//
// r has a key and no id, and supersedes nothing. A request id makes the call safe to
// repeat, as with Save; a repeated call is a *NotFoundError when the record has been deleted
// since.
//
// Errors: *invalid.Error; *NotFoundError for a record that it derives from; *OwnedError for
// one that another agent saved. After any of them nothing has changed.
func (s *Store) SaveOrReplace(ctx context.Context, scope kv.Scope, r record.Record, requestID string) (record.Record, error) {
	staging, err := s.stageReplace(ctx, scope, r, requestID)
	if err != nil {
		return record.Record{}, err
	}
	staging.actor = actorOf(ctx)
	if err := staging.commit(ctx, "memory: save or replace"); err != nil {
		return record.Record{}, err
	}
	return staging.records[0], nil
}

func (s *Store) stageReplace(ctx context.Context, scope kv.Scope, r record.Record, requestID string) (*Staging, error) {
	if err := s.beginRequest(scope, requestID); err != nil {
		return nil, err
	}
	switch {
	case r.Key == "":
		return nil, invalid.Field(ErrInvalid, "key", "is required with replace")
	case r.ID != "":
		return nil, invalid.Field(ErrInvalid, "id", "can't be given with replace: the key names the record")
	case r.Supersedes != "":
		return nil, invalid.Field(ErrInvalid, "supersedes", "can't be given with replace")
	case len(r.Relations) > 0:
		return nil, invalid.Field(ErrInvalid, "relations", "can't be given with replace: the existing record keeps its relations")
	}
	r, err := record.Redact(r, s.redact)
	if err != nil {
		return nil, err
	}
	save := &saving{scope: scope, agent: actorOf(ctx).Agent, now: record.StoredTime(s.now()), drafts: make([]draft, 1)}
	added := r
	if err := save.drafts[0].check(&added, nil, save.now); err != nil {
		return nil, err
	}
	replace := &replacing{save: save, requestID: requestID}
	replace.update = &updating{scope: scope, update: Update{Key: r.Key, Fields: allFields, Values: record.Normalize(r)}, now: save.now, writer: writer.Of(ctx)}
	if requestID != "" {
		replace.digest = sha256.Sum256(save.drafts[0].content([]byte("replace")))
	}
	if err := s.complete(save); err != nil {
		return nil, err
	}
	save.pins = s.newPins(scope, 1)
	replace.update.pins = save.pins
	replace.update.guess = s.guess(ctx, replace.update)
	return &Staging{store: s, scope: scope, expires: true, run: replace.stage, pins: save.pins}, nil
}

// replacing is a save that becomes an update where the key is taken.
type replacing struct {
	save      *saving
	update    *updating
	requestID string
	digest    [sha256.Size]byte
}

// stage is its part of a commit.
func (r *replacing) stage(ctx context.Context, e *edit) error {
	ref := recordsRef(r.save.scope)
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, r.requestID, r.digest)
	if err != nil {
		return err
	}
	if replayed {
		return r.update.replay(ctx, e, answer)
	}
	taken, err := r.taken(ctx, e)
	if err != nil {
		return err
	}
	change := r.save.stage
	if taken {
		change = r.update.stage
	}
	if err := change(ctx, e); err != nil {
		return err
	}
	kv.StageOnceOf(e.tx, ref, e.actor.Agent, r.requestID, r.digest, record.EncodeChangeAnswer(e.result[0]), r.save.now)
	return nil
}

// taken reports whether a record has the key. That of one that has expired is free.
func (r *replacing) taken(ctx context.Context, e *edit) (bool, error) {
	id, err := e.get(ctx, record.NameKey(e.scope, r.update.update.Key))
	if err != nil || id == nil {
		return false, err
	}
	holder, _, err := e.read(ctx, string(id))
	return holder != nil && !holder.ExpiredAt(r.save.now), err
}
