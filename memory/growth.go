package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/similar"
)

// Duplicates says what becomes of a record that repeats one which is there.
type Duplicates uint8

const (
	// DefaultDuplicates is the store's Options.Duplicates for one record, and
	// KeepDuplicates for a batch, which is an import.
	DefaultDuplicates Duplicates = iota
	// KeepDuplicates saves it as a further record.
	KeepDuplicates
	// ReinforceDuplicates adds nothing: the record that is there counts one more repeat.
	//
	// A record repeats another if their texts say the same, word for word but for what
	// memory/similar drops, and everything else that the caller gave is the same, too:
	// kind, author, event time, metadata, tags, origin, how it expires, and the agent that
	// saved it. With an author the session is, too, because it is a message of that author there. A
	// record that derives from the other may leave fields out, and may be a part of its
	// text: it is an echo of a recalled record.
	//
	// Nothing is a repeat that has an id, a key or another record to supersede, that is a
	// message or an event by its kind, that is shorter than a statement, or that
	// names a time that moves on, such as today, and comes more than ten minutes later.
	// Records that were superseded, that have a key, that wait for review, or that a call
	// saved which kept duplicates and have not changed since are repeated by none, but an
	// archived one comes back from the archive.
	ReinforceDuplicates
)

const (
	// maxSame bounds the records of equal form that a save is compared with.
	maxSame = 32
	// repeatGain is what the importance of a record gains with each of its first
	// gainingRepeats repeats.
	repeatGain, gainingRepeats = 0.02, 10
	// fleetingSpan is how long "today" and such mean the same.
	fleetingSpan = 10 * time.Minute
)

// happenings are kinds of records each of which happened once. It is never changed.
var happenings = []string{"message", "turn", "utterance", "conversation", "dialogue", "chat", "event", "episode", "observation", "step", "log"}

// Saving says how records are saved.
type Saving struct {
	// RequestID makes the call safe to repeat, see Store.Save.
	RequestID  string
	Duplicates Duplicates
	// Replace has a record take the place of the one that has its key, see
	// Store.SaveOrReplace.
	Replace bool
}

// Saved is the outcome of a record to be saved.
type Saved struct {
	// Record is it as stored, or the one that it repeats.
	record.Record
	// Repeated says that it repeats Record, and Similarity how similar the texts are,
	// from 0 to 1.
	Repeated   bool
	Similarity float64
	// Room is what left the memory for it.
	Room Room
}

// Batch is the outcome of records that were to be saved together.
type Batch struct {
	// Records are the records as stored, or the records that they repeat, in order.
	Records []record.Record
	// Room is what left the memory for them.
	Room Room

	repeated map[int]float64 // how similar those are that repeated others
}

// Repeated is what Saved says of one of the records.
func (b *Batch) Repeated(i int) (similarity float64, repeated bool) {
	similarity, repeated = b.repeated[i]
	return similarity, repeated
}

// SaveAs is Save with a choice of what becomes of duplicates.
func (s *Store) SaveAs(ctx context.Context, scope kv.Scope, r record.Record, how Saving) (saved Saved, err error) {
	err = s.saveAs(ctx, scope, &r, how, &saved)
	return saved, err
}

// saveAs is SaveAs without copies of records: their frames would have the stack of each
// call grow once more, which takes a tenth of a save.
func (s *Store) saveAs(ctx context.Context, scope kv.Scope, r *record.Record, how Saving, saved *Saved) (err error) {
	if how.Replace {
		if saved.Record, err = s.SaveOrReplace(ctx, scope, *r, how.RequestID); err == nil {
			saved.Room = s.makeRoom(ctx, scope, []string{saved.ID}, 1)
		}
		return err
	}
	save, err := s.newSaving(scope, r, how.RequestID)
	if err != nil {
		return err
	}
	save.reinforce = how.Duplicates == ReinforceDuplicates || how.Duplicates == DefaultDuplicates && s.reinforce
	all, err := s.commitSaving(ctx, save, "memory: save")
	if err != nil {
		return err
	}
	saved.Record, saved.Room = all.Records[0], all.Room
	saved.Similarity, saved.Repeated = all.Repeated(0)
	return nil
}

// SaveBatchAs stores many records in one commit, all of them or nothing, and returns
// them as stored, in order. It is the fast way in. A record may supersede or
// derive from one before it in the batch. Duplicates within the batch count, too. It takes
// rs over: the caller must not use them again.
//
// A request id stands for the whole batch, as with Save.
//
// Errors are as of Save; an error of a single record is wrapped in a
// *BatchError. A batch has 1 to MaxBatchRecords records, at most
// MaxBatchTextBytes of text and metadata, and at most MaxBatchVectorBytes of
// vectors; texts with uncommonly many different words may make it too large for
// a commit all the same, which is a *kv.LimitError.
func (s *Store) SaveBatchAs(ctx context.Context, scope kv.Scope, rs []record.Record, how Saving) (Batch, error) {
	save, err := s.newBatch(scope, rs, how.RequestID)
	if err != nil {
		return Batch{}, err
	}
	save.reinforce = how.Duplicates == ReinforceDuplicates
	return s.commitSaving(ctx, save, "memory: save batch")
}

func (s *Store) commitSaving(ctx context.Context, save *saving, operation string) (Batch, error) {
	actor := actorOf(ctx)
	save.agent = actor.Agent
	staging, err := s.stageSaving(save)
	if err != nil {
		return Batch{}, err
	}
	staging.actor = actor
	save.pins = s.newPins(save.scope, len(save.drafts))
	staging.pins = save.pins
	if err := staging.commit(ctx, operation); err != nil {
		return Batch{}, err
	}
	all := Batch{Records: staging.records, repeated: save.repeated}
	if s.limits != (memoryLimits{}) {
		ids := make([]string, len(all.Records))
		for i := range ids {
			ids[i] = all.Records[i].ID
		}
		all.Room = s.makeRoom(ctx, save.scope, ids, len(ids))
	}
	return all, nil
}

// sameKey stands for a record that others may repeat; nil: none may. Records of equal form
// and circumstances have keys with the same beginning.
func sameKey(scope kv.Scope, r record.Record) []byte {
	prefix := samePrefix(scope, &r)
	if prefix == nil {
		return nil
	}
	return append(prefix, r.ID...)
}

func samePrefix(scope kv.Scope, r *record.Record) []byte {
	if !repeatable(r) {
		return nil
	}
	form := similar.Of(r.Text)
	if !form.Tells() {
		return nil
	}
	session := ""
	if r.Author != "" {
		session = r.SessionID
	}
	event := ""
	if !r.EventTime.IsZero() {
		event = r.EventTime.Format(time.RFC3339Nano)
	}
	also := append([]string{r.Kind, r.Author, session, event, string(r.Metadata)}, r.Tags...)
	return binary.BigEndian.AppendUint64(scope.Key(record.TagSame), form.Sum(also...))
}

// sameBare is what samePrefix is of a text without emphasis, which makes no new fact; nil if it
// is surely the same.
func sameBare(scope kv.Scope, r *record.Record) []byte {
	bare := *r
	bare.Text = similar.Bare(r.Text)
	if end, ok := strings.CutPrefix(r.Text, bare.Text); ok && !strings.ContainsFunc(end, func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil
	}
	return samePrefix(scope, &bare)
}

// repeatable reports whether a record may repeat another by its text, or be repeated.
func repeatable(r *record.Record) bool {
	return r.Key == "" && r.Tier == record.LongTerm && len(r.Text) <= similar.MaxBytes && !slices.Contains(happenings, strings.ToLower(r.Kind))
}

// moveSame keeps the key by which a record is found that a text repeats in step with it.
func (e *edit) moveSame(w write) {
	r, before := w.record, w.before
	if before != nil {
		if sameFields(*r, *before) {
			return
		}
		if key := sameKey(e.scope, *before); key != nil {
			e.tx.Delete(kv.Records, key)
		}
	}
	prefix := w.same
	if prefix == nil || before != nil {
		prefix = samePrefix(e.scope, r)
	}
	if len(prefix) > 0 {
		e.tx.Put(kv.Records, append(bytes.Clone(prefix), r.ID...), nil)
	}
}

// sameFields reports whether two records differ in nothing that their keys are made from.
func sameFields(a, b record.Record) bool {
	return a.Text == b.Text && a.Kind == b.Kind && a.Key == b.Key && a.Tier == b.Tier && sameGiven(a, b) && a.SessionID == b.SessionID
}

// sameGiven compares what says of whom, when and in which connection a text is.
func sameGiven(a, b record.Record) bool {
	return a.Author == b.Author && a.EventTime.Equal(b.EventTime) && bytes.Equal(a.Metadata, b.Metadata) && slices.Equal(a.Tags, b.Tags) &&
		(a.Author == "" || a.SessionID == b.SessionID)
}

// repeat reinforces the record that a draft repeats, and returns false if there is none.
func (s *saving) repeat(ctx context.Context, e *edit, i int) (bool, error) {
	d := &s.drafts[i]
	if d.givenID || d.record.Key != "" || d.record.Supersedes != "" || len(d.same) == 0 && len(d.record.DerivedFrom) == 0 {
		return false, nil
	}
	r := *d.record
	r.SavedBy, r.Writer = e.actor.Agent, e.actor.writer
	var sources []string
	for _, id := range r.DerivedFrom {
		source, _, err := s.source(ctx, e, "derived_from", id)
		if err != nil {
			return false, err
		}
		r.Origin = max(r.Origin, source.Origin)
		sources = append(sources, id)
	}
	if e.store.holds(r.Origin) {
		return false, nil
	}
	for _, id := range sources {
		if done, err := s.reinforceIf(ctx, e, i, id, r, true); err != nil || done {
			return done, err
		}
	}
	if len(d.same) == 0 {
		return false, nil
	}
	for _, prefix := range [][]byte{d.same, d.bare} {
		if len(prefix) == 0 {
			continue
		}
		ids, err := readSame(ctx, e.tx, prefix)
		if err != nil {
			return false, err
		}
		for _, id := range ids {
			if done, err := s.reinforceIf(ctx, e, i, id, r, false); err != nil || done {
				return done, err
			}
		}
	}
	return false, nil
}

// readSame returns the ids of the records whose keys begin so, at most maxSame.
func readSame(ctx context.Context, tx *kv.Tx, prefix []byte) (ids []string, err error) {
	alike := kv.Prefix(prefix)
	alike.Limit = maxSame
	for pair, err := range tx.Scan(ctx, kv.Records, alike) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, string(pair.Key[len(prefix):]))
	}
	return ids, nil
}

// reinforceIf reinforces a record if r repeats it.
func (s *saving) reinforceIf(ctx context.Context, e *edit, i int, id string, r record.Record, echo bool) (bool, error) {
	at := slices.IndexFunc(e.writes, func(w write) bool { return w.record.ID == id })
	if at >= 0 && !r.ExpireTime.IsZero() { // its keys of expiry are staged already
		if err := e.flush(ctx); err != nil {
			return false, err
		}
		at = -1
	}
	old, stored, err := e.peek(ctx, id, at)
	if err != nil || old == nil || !s.repeats(r, old, echo) {
		return false, err
	}
	if r.Writer != old.Writer && slices.Contains(e.store.instructing, old.Kind) {
		return false, nil // whose words they are decides where they stand
	}
	similarity := similar.Similarity(r.Text, old.Text)
	reinforced := *old
	s.reinforceRecord(&reinforced, r)
	if at >= 0 {
		*e.writes[at].record = reinforced
		terms, err := record.MetadataTerms(reinforced.Metadata)
		if err != nil {
			return false, err
		}
		e.change.Add[at].Encoded = e.store.encodeDocument(&reinforced, terms)
	} else {
		next, err := e.store.redraft(stored, *old, func(r *record.Record) error {
			*r = reinforced
			return nil
		})
		if err != nil {
			return false, err
		}
		if err := e.replace(ctx, old, next, true); err != nil {
			return false, err
		}
	}
	e.result[i] = reinforced
	e.result[i].Redacted = r.Redacted
	s.repeated[i] = similarity
	return true, nil
}

// peek reads a record without making the index up to date; one that waits for its ordinal
// is the write of that number.
func (e *edit) peek(ctx context.Context, id string, at int) (*record.Record, []byte, error) {
	if at >= 0 {
		return e.writes[at].record, nil, nil
	}
	values, err := e.tx.Get(ctx, kv.Records, record.Key(e.scope, id))
	if err != nil || values[0] == nil {
		return nil, nil, err
	}
	r, err := record.Decode(values[0])
	return &r, values[0], err
}

// repeats reports whether r repeats old, which it derives from if it is an echo.
func (s *saving) repeats(r record.Record, old *record.Record, echo bool) bool {
	switch {
	case old.ExpiredAt(s.now), old.SupersededBy != "", old.Review.Hides(), old.Tier != r.Tier, old.Kind != r.Kind, old.SavedBy != r.SavedBy,
		r.Pinned && !old.Pinned, r.EmbeddingSpace != "" && r.EmbeddingSpace != old.EmbeddingSpace,
		!r.ValidUntil.Equal(old.ValidUntil), r.SlidingTTL != old.SlidingTTL, r.ExpireTime.IsZero() != old.ExpireTime.IsZero():
		return false
	}
	for _, id := range r.DerivedFrom {
		if id != old.ID && !slices.Contains(old.DerivedFrom, id) {
			return false
		}
	}
	form, was := similar.Of(r.Text), similar.Of(old.Text)
	if form.Fleeting() && r.EventTime.IsZero() && s.now.Sub(old.CreateTime) > fleetingSpan {
		return false
	}
	if echo {
		return echoes(r, old) && (form.Same(was) || similar.Within(r.Text, old.Text))
	}
	return old.Key == "" && r.Origin == old.Origin && sameGiven(r, *old) && (form.Same(was) || similar.Of(similar.Bare(r.Text)).Same(was))
}

// echoes reports whether all that was given with r is so of old, too.
func echoes(r record.Record, old *record.Record) bool {
	tags := !slices.ContainsFunc(r.Tags, func(tag string) bool { return !slices.Contains(old.Tags, tag) })
	return tags && len(r.Text) <= similar.MaxBytes && len(old.Text) <= similar.MaxBytes &&
		(r.Author == "" || r.Author == old.Author) && (r.EventTime.IsZero() || r.EventTime.Equal(old.EventTime)) &&
		(len(r.Metadata) == 0 || bytes.Equal(r.Metadata, old.Metadata)) && (r.Origin == old.Origin || !r.Origin.Foreign())
}

// reinforceRecord counts one more repeat.
func (s *saving) reinforceRecord(r *record.Record, by record.Record) {
	r.Repeats = min(r.Repeats+1, record.MaxCount)
	if s.now.After(r.LastRepeatTime) {
		r.LastRepeatTime = s.now
	}
	weight := r.Importance
	if by.Importance > record.DefaultImportance { // which says nothing
		weight = max(weight, by.Importance)
	}
	if r.Repeats <= gainingRepeats {
		weight += repeatGain
	}
	r.Importance = max(r.Importance, min(1, weight))
	if by.ExpireTime.After(r.ExpireTime) {
		r.ExpireTime = by.ExpireTime
	}
	r.Archived, r.ArchiveTime = false, time.Time{}
}
