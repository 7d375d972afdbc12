package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// MaxRelated bounds the relations that one call makes or ends, and the relations that a
// record is saved with.
const MaxRelated = record.MaxRelations

// Relating makes or ends relations between records of a scope.
type Relating struct {
	// Relations are 1 to MaxRelated. Their times do not matter.
	Relations []relations.Relation
	// End ends them.
	End bool
	// RequestID makes the call safe to repeat, as with Save.
	RequestID string
}

// Relate makes relations, or ends them, in one commit, and returns how many changed: making
// an existing relation or ending a missing one does nothing. The text, version and times of
// the records stay. Both records must exist, and the caller must own the record that the
// relation starts from.
//
// Errors: *invalid.Error; *NotFoundError; *OwnedError; relations.ErrFull. After any of them
// nothing has changed.
func (s *Store) Relate(ctx context.Context, scope kv.Scope, how Relating) (changed int, err error) {
	if err := s.beginRequest(scope, how.RequestID); err != nil {
		return 0, err
	}
	if n := len(how.Relations); n == 0 || n > MaxRelated {
		return 0, invalid.Field(ErrInvalid, "relations", "are %d, not 1 to %d", n, MaxRelated)
	}
	for _, r := range how.Relations {
		if err := r.Check(); err != nil {
			return 0, err
		}
	}
	r := &relating{how: how, now: record.StoredTime(s.now())}
	staging := &Staging{store: s, scope: scope, run: r.stage, actor: actorOf(ctx)}
	if err := staging.commit(ctx, "memory: relate"); err != nil {
		return 0, err
	}
	return r.changed, nil
}

// relating is a Relate under way.
type relating struct {
	how     Relating
	now     time.Time
	changed int
}

// answerChanged is how many relations changed, in a kept answer.
const answerChanged = 1

func (r *relating) stage(ctx context.Context, e *edit) error {
	r.changed = 0
	ref, digest := recordsRef(e.scope), r.content()
	answer, replayed, err := kv.LookupOnceOf(ctx, e.tx, ref, e.actor.Agent, r.how.RequestID, digest)
	if err != nil {
		return err
	}
	if replayed {
		for f, err := range wire.Fields(answer) {
			if err != nil {
				return err
			}
			if f.Number == answerChanged {
				r.changed = int(f.Value)
			}
		}
		return nil
	}
	change := e.relate
	if r.how.End {
		change = e.unrelate
	}
	if err := e.readAhead(ctx, r.how.Relations); err != nil {
		return err
	}
	for _, one := range r.how.Relations {
		one.Time = r.now
		done, err := change(ctx, one)
		if err != nil {
			return err
		}
		if done {
			r.changed++
		}
	}
	kv.StageOnceOf(e.tx, ref, e.actor.Agent, r.how.RequestID, digest, wire.AppendUint(nil, answerChanged, uint64(r.changed)), r.now)
	return nil
}

// content stands for what a repeated request is compared by.
func (r *relating) content() [sha256.Size]byte {
	b := []byte("relate")
	if r.how.End {
		b = []byte("unrelate")
	}
	for _, one := range r.how.Relations {
		b = wire.AppendItem(b, 1, one.From)
		b = wire.AppendItem(b, 2, one.Name)
		b = wire.AppendItem(b, 3, one.To)
	}
	return sha256.Sum256(b)
}

// readAhead reads the records of relations, and the relations that stand, at once.
func (e *edit) readAhead(ctx context.Context, all []relations.Relation) error {
	known := make(map[string]bool)
	var keys [][]byte
	for _, r := range all {
		for _, key := range [][]byte{record.Key(e.scope, r.From), record.Key(e.scope, r.To), relations.Key(e.scope, r)} {
			if !known[string(key)] {
				known[string(key)] = true
				keys = append(keys, key)
			}
		}
	}
	return e.tx.ReadAhead(ctx, kv.Records, keys...)
}

// relate stages a relation, and reports whether it is new.
func (e *edit) relate(ctx context.Context, r relations.Relation) (bool, error) {
	first, err := e.markRelated(ctx, r)
	if err != nil {
		return false, err
	}
	if !first {
		if _, has, err := relations.Find(ctx, e.tx, e.scope, r); has || err != nil {
			return false, err
		}
	}
	if err := relations.Put(ctx, e.tx, e.scope, r, e.relations); err != nil {
		return false, err
	}
	e.noteRelated(r.From)
	return true, nil
}

// markRelated checks that both records of a relation are there and that the caller owns the
// first, and stages that both have relations, or had. It reports whether one had none before.
func (e *edit) markRelated(ctx context.Context, r record.Relation) (first bool, err error) {
	for i, id := range []string{r.From, r.To} {
		end, stored, err := e.read(ctx, id)
		switch {
		case err != nil:
			return false, err
		case end == nil || end.ExpiredAt(r.Time):
			return false, &NotFoundError{[]string{"from_id", "to_id"}[i], id}
		}
		if i == 0 {
			if err := e.may(end); err != nil {
				return false, err
			}
		} else if e.actor.writer == writer.Model && e.store.instructs(end) {
			return false, &InstructsError{ID: end.ID, Kind: end.Kind}
		}
		if !end.Related {
			first = true
			e.relations.None(id)
			e.tx.Put(kv.Records, record.Key(e.scope, id), record.AppendRelated(slices.Clip(stored)))
		}
	}
	return first, nil
}

// keepEnded stages relations of a record that have ended, which an import brings, those with
// records that are there, and until when others of it are kept no longer.
func (e *edit) keepEnded(ctx context.Context, id string, ended []relations.Relation, forgotten time.Time) error {
	if err := e.readAhead(ctx, ended); err != nil {
		return err
	}
	for _, r := range ended {
		_, err := e.markRelated(ctx, r)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err == nil {
			err = relations.Keep(ctx, e.tx, e.scope, r)
		}
		if err != nil {
			return err
		}
	}
	if forgotten.IsZero() {
		return nil
	}
	return relations.Forget(ctx, e.tx, e.scope, id, forgotten)
}

// unrelate stages the end of a relation, and reports whether it was there.
func (e *edit) unrelate(ctx context.Context, r relations.Relation) (bool, error) {
	from, _, err := e.read(ctx, r.From)
	if err != nil || from == nil {
		return false, err
	}
	if err := e.may(from); err != nil {
		return false, err
	}
	stood, has, err := relations.Find(ctx, e.tx, e.scope, r)
	if err != nil || !has {
		return false, err
	}
	relations.Drop(e.tx, e.scope, stood)
	clear(e.relations)
	stood.End = r.Time
	if err := relations.Keep(ctx, e.tx, e.scope, stood); err != nil {
		return false, err
	}
	e.noteRelated(r.From)
	return true, nil
}

// noteRelated says that the relations that go out from a record have changed.
func (e *edit) noteRelated(id string) {
	if !slices.Contains(e.related, id) {
		e.related = append(e.related, id)
	}
}

// dropRelations takes the relations of a record that goes off the disk.
func (e *edit) dropRelations(ctx context.Context, r *record.Record) error {
	if !r.Related {
		return nil
	}
	all, _, err := relations.Of(ctx, e.tx, e.scope, r.ID, relations.Selection{})
	if err != nil {
		return err
	}
	for _, one := range all {
		e.removed += relations.Drop(e.tx, e.scope, one)
		clear(e.relations)
		if one.From != r.ID {
			e.noteRelated(one.From)
		}
	}
	ended, err := relations.DropAll(ctx, e.tx, e.scope, r.ID)
	e.removed += ended
	return err
}

// relateSaved stages the relations that saved records begin with.
func (s *saving) relateSaved(ctx context.Context, e *edit) error {
	var all []relations.Relation
	for i := range s.drafts {
		for _, r := range s.drafts[i].record.Relations {
			r.From = e.result[i].ID
			all = append(all, r)
		}
	}
	if err := e.readAhead(ctx, all); err != nil {
		return err
	}
	for i := range s.drafts {
		for _, r := range s.drafts[i].record.Relations {
			r.From, r.Time = e.result[i].ID, s.now
			if _, err := e.relate(ctx, r); err != nil {
				if missing, ok := errors.AsType[*NotFoundError](err); ok {
					missing.Field = "relations"
				}
				return s.blame(i, err)
			}
		}
	}
	return nil
}

// Related asks for the relations of a record.
type Related struct {
	// ID names the record, or Key does. Give one of the two.
	ID, Key string
	// Way is the direction. Default both.
	Way relations.Way
	// Names are the relation names to return, at most relations.MaxNames; none: all.
	Names []string
}

// Relations returns the relations of a record, first those from it, each group by name and
// the id of the other record. A missing or expired record gives *NotFoundError.
func (s *Store) Relations(ctx context.Context, scope kv.Scope, ask Related) (all []relations.Relation, id string, err error) {
	if err := s.begin(scope); err != nil {
		return nil, "", err
	}
	if err := checkNamed(ask.ID, ask.Key, 0); err != nil {
		return nil, "", err
	}
	if err := relations.CheckNames("names", ask.Names); err != nil {
		return nil, "", err
	}
	err = s.view(ctx, func(view kv.Snapshot) error {
		r, err := s.named(ctx, view, scope, ask.ID, ask.Key)
		if err != nil {
			return err
		}
		if id = r.ID; !r.Related {
			return nil
		}
		if all, _, err = relations.Of(ctx, view, scope, r.ID, relations.Selection{Way: ask.Way, Names: ask.Names}); err != nil {
			return err
		}
		return relations.Complete(ctx, view, scope, all)
	})
	return all, id, wrap("memory: relations", err)
}

// readRelations completes records with the relations that go out from them, as they stood at
// a moment unless that is zero.
func readRelations(ctx context.Context, view kv.Reader, scope kv.Scope, at time.Time, records ...*record.Record) (err error) {
	for _, r := range records {
		if !r.Related && at.IsZero() {
			continue
		}
		if r.Relations, _, err = relations.Of(ctx, view, scope, r.ID, relations.Selection{Way: relations.Out, At: at}); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxRelationsRead bounds the relations that one query looks at.
	maxRelationsRead = 2000
	// maxReplaced bounds how many records that replaced each other are followed.
	maxReplaced = 16
)

// addRelated adds records that are related to hits behind these, in the order of the hits,
// and of each those first that its relations go out to. They are what the query could have
// found: of the same scopes, passed by the filter, current, not archived and not held. One
// that was replaced is taken for what has replaced it. With an AsOf all of that is as it
// stood then, with a ValidAt as it held then.
func (a *asking) addRelated(ctx context.Context, in *searched, result *Answer) error {
	x := relatives{asking: a, in: in, receipt: &result.Receipt, left: maxRelationsRead, seen: make(map[place]bool), bytes: a.query.MaxBytes}
	x.limit = cmp.Or(a.query.Related.Limit, question.DefaultRelated)
	for _, hit := range result.Hits {
		x.seen[place{hit.Scope, hit.Record.ID}] = true
		x.bytes -= hit.Record.Bytes()
	}
	for _, hit := range result.Hits {
		// What a record was before it had relations does not say that it has.
		if !hit.Record.Related && a.query.Moment.AsOf.IsZero() {
			continue
		}
		if err := x.of(ctx, hit); err != nil {
			return err
		}
	}
	result.Receipt.Related = len(x.hits)
	result.Receipt.forgotRelations(x.forgot)
	result.Hits = append(result.Hits, x.hits...)
	if a.query.WithVectors {
		return a.completeVectors(ctx, in.from[0].view, result.Hits[len(result.Hits)-len(x.hits):])
	}
	return nil
}

// place names a record of one of several scopes.
type place struct {
	scope kv.Scope
	id    string
}

// relatives collects records related to hits.
type relatives struct {
	*asking
	in      *searched
	receipt *Receipt
	limit   int
	left    int // relations that may be looked at
	bytes   int // that records may have yet, where MaxBytes bounds them
	seen    map[place]bool
	hits    []Hit
	forgot  bool // relations of then may be missing
}

// of adds records related to one hit.
func (x *relatives) of(ctx context.Context, hit Hit) error {
	if x.left == 0 {
		x.receipt.RelatedOver++
		return nil
	}
	ask, view := x.query.Related, x.in.view(hit.Scope)
	selection := relations.Selection{Way: ask.Way, Names: ask.Names, Limit: x.left, At: x.query.Moment.AsOf, ValidAt: x.query.Moment.ValidAt}
	found, looked, err := relations.Of(ctx, view, hit.Scope, hit.Record.ID, selection)
	if err != nil {
		return err
	}
	if x.left -= looked; x.left == 0 {
		x.receipt.RelatedOver++
	}
	if !x.query.Moment.IsNow() {
		until, err := relations.Forgotten(ctx, view, hit.Scope, hit.Record.ID)
		if err != nil {
			return err
		}
		x.forgot = x.forgot || until.After(selection.EndedBy())
	}
	for _, r := range found {
		other := r.To
		if other == hit.Record.ID {
			other = r.From
		}
		if err := x.add(ctx, hit, r, other); err != nil {
			return err
		}
	}
	return nil
}

// add adds the record at the other end of a relation, unless it is there or may not be.
func (x *relatives) add(ctx context.Context, hit Hit, through relations.Relation, id string) error {
	at := place{hit.Scope, id}
	switch {
	case x.seen[at]:
		return nil
	case len(x.hits) == x.limit:
		x.seen[at] = true
		x.receipt.RelatedOver++
		return nil
	}
	x.seen[at] = true
	r, may, err := x.current(ctx, at)
	if err != nil || r == nil {
		return err
	}
	if at.id = r.ID; r.ID != id && x.seen[at] {
		return nil
	}
	x.seen[at] = true
	switch size := r.Bytes(); {
	case !may:
		x.receipt.RelatedExcluded++
	case x.query.MaxBytes > 0 && size > x.bytes:
		x.receipt.RelatedOver++
	default:
		x.bytes -= size
		x.hits = append(x.hits, Hit{Scope: hit.Scope, Record: *r, Through: &Through{Relation: through, Hit: hit.Record.ID, Score: hit.Score}})
	}
	return nil
}

// current reads a record, or what has replaced it, and reports whether the query could have
// found it; nil if there is none.
func (x *relatives) current(ctx context.Context, at place) (r *record.Record, may bool, err error) {
	for range maxReplaced {
		var now *record.Record
		for n, from := range x.in.from {
			if from.scope != at.scope {
				continue
			}
			one, ok, err := record.Read(ctx, from.view, at.scope, at.id)
			if err != nil {
				return nil, false, err
			}
			if !ok {
				continue
			}
			if now = &one; x.in.parts[n].Selection.Why(one.Document.Ordinal) == selection.Allowed {
				x.query.Moment.Show(now)
				return now, true, nil
			}
		}
		if now == nil {
			return r, false, nil
		}
		x.query.Moment.Show(now)
		if r = now; r.SupersededBy == "" {
			break
		}
		at.id = r.SupersededBy
	}
	return r, false, nil
}
