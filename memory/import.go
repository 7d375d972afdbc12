package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/left"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

const (
	// MaxImportBytes bounds the lines of one Import, but for a single record, which is
	// taken with its versions whatever they take.
	MaxImportBytes = 4 << 20
	// maxImported bounds the lines of one record with its versions.
	maxImported = maxVersionsBytes + 2*record.MaxLineBytes
)

// Imported says the outcome of the records of an Import.
type Imported struct {
	// Saved are new, Unchanged were there already as they came, Skipped were there as
	// something else, Expired would have been gone at once.
	Saved, Unchanged, Skipped, Expired int
	// Archived are records of the memory that went into the archive for them, and Deleted
	// left that for good, because there were more than Options.MaxRecords and MaxArchived.
	Archived, Deleted int
}

// Add adds other counts.
func (i *Imported) Add(other Imported) {
	i.Saved += other.Saved
	i.Unchanged += other.Unchanged
	i.Skipped += other.Skipped
	i.Expired += other.Expired
	i.Archived += other.Archived
	i.Deleted += other.Deleted
}

// ImportError says which line of an import is at fault.
type ImportError struct {
	// Line counts the lines from 1.
	Line int
	Err  error
}

func (e *ImportError) Error() string { return fmt.Sprintf("memory: line %d: %v", e.Line, e.Err) }

// Unwrap returns the error itself.
func (e *ImportError) Unwrap() error { return e.Err }

// Importer takes the lines of an Export into a scope, with ids, versions, times, vectors
// and whatever else they say, behind the records that are there. It commits as it goes,
// each record with its versions as a whole, so an import that was interrupted, or is made
// again, finds what it has saved Unchanged, or saves again what left the archive meanwhile.
// The limits of the memory hold behind each commit. It is not safe for concurrent use.
type Importer struct {
	store *Store
	scope kv.Scope
	actor Actor
	ImportOptions
	// own has each record as it was, where the lines are of this store, so that what they say of
	// reviews holds, too; nil otherwise.
	own map[string]came

	line    int // of the last one taken
	earlier []record.Record
	waiting []importing
	bytes   int // of earlier and waiting
	counts  Imported
}

// came is where a record came from, which no line says.
type came struct {
	writer  writer.Writer
	id      string
	version int64
}

// importing is a record that waits to be committed.
type importing struct {
	record    record.Record
	versions  []record.Record
	keyGone   bool
	relations []record.Relation
	forgotten time.Time
	undated   bool
	line      int
}

// ImportOptions say how lines are imported.
type ImportOptions struct {
	// ID is the id of the import, which each record that it saves keeps.
	ID string
	// Skip leaves a record as it is whose id comes with another content. Default: that is an
	// *ExistsError.
	Skip bool
	// DryRun checks and counts, and stores nothing. Each record is compared with what is there,
	// and with the other lines of its commit.
	DryRun bool
}

// errDryRun ends a commit that was only to be counted.
var errDryRun = errors.New("memory: import: a dry run stores nothing")

// Import begins an import.
func (s *Store) Import(ctx context.Context, scope kv.Scope, o ImportOptions) (*Importer, error) {
	if err := s.begin(scope); err != nil {
		return nil, err
	}
	actor := actorOf(ctx)
	actor.writer = writer.Import
	return &Importer{store: s, scope: scope, actor: actor, ImportOptions: o}, nil
}

// Refill begins an import of an export of the same memory, from. Approvals and authors in
// its lines are kept; an ordinary import keeps neither, since a file approves nothing.
func (s *Store) Refill(ctx context.Context, scope kv.Scope, from *Store) (*Importer, error) {
	m, err := s.Import(ctx, scope, ImportOptions{})
	if err != nil {
		return nil, err
	}
	m.actor.writer, m.own = writer.Program, make(map[string]came)
	for r, err := range record.All(ctx, from.engine, scope) {
		if err != nil {
			return nil, err
		}
		m.own[r.ID] = came{r.Writer, r.ImportID, r.ImportVersion}
	}
	return m, nil
}

// Take takes one more line. Errors come as an *ImportError: record.ErrLine, *invalid.Error,
// *ExistsError for an id or a key, *OwnedError for a record of an agent that the caller may
// not act for. What was counted before is saved.
func (m *Importer) Take(ctx context.Context, line []byte) error {
	m.line++
	l, err := record.ParseLine(line)
	if err == nil {
		l.Record, err = record.Redact(l.Record, m.store.redact)
	}
	if err == nil {
		if m.own == nil && l.Record.Review == record.ReviewApproved {
			l.Record.Review = 0
		}
		err = m.add(l, len(line))
	}
	if err != nil {
		return &ImportError{m.line, err}
	}
	if m.bytes > MaxImportBytes || len(m.waiting) >= MaxBatchRecords {
		return m.commit(ctx)
	}
	return nil
}

func (m *Importer) add(l record.Line, size int) error {
	r := l.Record
	if r.Supersedes == r.ID || r.SupersededBy == r.ID || r.Supersedes != "" && r.Supersedes == r.SupersededBy {
		return fmt.Errorf("%w: record %q supersedes itself", record.ErrLine, r.ID)
	}
	if n := len(m.earlier); n > 0 {
		switch last := m.earlier[n-1]; {
		case last.ID != r.ID:
			return fmt.Errorf("%w: it is of record %q, the lines before of %q", record.ErrLine, r.ID, last.ID)
		case last.Version+1 != r.Version:
			return fmt.Errorf("%w: it is version %d of record %q, after version %d", record.ErrLine, r.Version, r.ID, last.Version)
		case n == record.MaxVersions && l.Earlier:
			return fmt.Errorf("%w: record %q has more than %d earlier versions", record.ErrLine, r.ID, record.MaxVersions)
		}
	}
	if m.bytes += size; len(m.earlier) > 0 && m.bytes > MaxImportBytes+maxImported {
		return fmt.Errorf("%w: record %q has too much of earlier versions", record.ErrLine, r.ID)
	}
	if l.Earlier {
		m.earlier = append(m.earlier, r)
		return nil
	}
	if r.FirstVersion = r.Version - int64(len(m.earlier)); r.FirstVersion <= max(1, r.Version-record.MaxVersions) {
		r.FirstVersion = 0
	}
	m.waiting = append(m.waiting, importing{r, m.earlier, l.KeyGone, l.Relations, l.Forgotten, l.Undated, m.line})
	m.earlier = nil
	return nil
}

// End commits what waits and returns the outcome of all.
func (m *Importer) End(ctx context.Context) (Imported, error) {
	if len(m.earlier) > 0 {
		return m.counts, &ImportError{m.line, fmt.Errorf("%w: record %q is missing behind its earlier versions", record.ErrLine, m.earlier[0].ID)}
	}
	err := m.commit(ctx)
	return m.counts, err
}

// commit saves the records that wait, at once or, where they take too much together, in
// parts.
func (m *Importer) commit(ctx context.Context) error {
	all := m.waiting
	m.waiting, m.bytes = nil, 0
	for len(all) > 0 {
		part := &transferring{scope: m.scope, all: all[:portion(all)], ImportOptions: m.ImportOptions, own: m.own, actor: m.actor, now: record.StoredTime(m.store.now())}
		all = all[len(part.all):]
		part.encode(m.store)
		part.pins = m.store.newPins(m.scope, len(part.all))
		staging := &Staging{store: m.store, scope: m.scope, expires: true, run: part.stage, actor: m.actor, pins: part.pins}
		if err := staging.commit(ctx, "memory: import"); err != nil && !errors.Is(err, errDryRun) {
			return err
		}
		m.counts.Add(part.counts)
		if part.counts.Saved == 0 || m.DryRun {
			continue
		}
		room := m.store.makeRoom(ctx, m.scope, nil, part.counts.Saved)
		m.counts.Add(Imported{Archived: len(room.Archived), Deleted: room.Deleted})
	}
	return nil
}

// portion is how many of the records fit into one commit, one at least: the stored form of
// a text in the index may take several times its bytes.
func portion(all []importing) (n int) {
	size := 0
	const perRelation = 2 << 10 // its keys, under both ends
	for _, one := range all {
		size += one.record.Bytes() + perRelation*len(one.relations)
		for _, v := range one.versions {
			size += v.Bytes()
		}
		if size > MaxImportBytes && n > 0 {
			break
		}
		n++
	}
	return n
}

// transferring is one commit of an import.
type transferring struct {
	scope   kv.Scope
	all     []importing
	encoded [][]byte // their documents
	ImportOptions
	own     map[string]came
	actor   Actor
	now     time.Time
	pins    *pinRoom
	counts  Imported
	skipped map[int]bool      // which are there as something else, have expired or left
	before  map[string][]byte // what stood under the ids and keys of the records, except names that are taken
	changed bool              // a record is saved or removed, which may change others that were there
	full    bool              // the memory and its archive are
}

func (t *transferring) encode(s *Store) {
	t.encoded = make([][]byte, len(t.all))
	inParallel(len(t.all), func(i int) {
		r := &t.all[i].record
		r.Document = record.Document{Marked: r.SupersededBy != ""}
		switch {
		case t.scope.Kind == kv.OwnerAgent:
			r.SavedBy = ""
		case r.SavedBy == "":
			r.SavedBy = t.actor.Agent
		}
		r.Writer, r.ImportID, r.ImportVersion = writer.Import, t.ID, r.Version
		if t.own != nil {
			own := t.own[r.ID]
			r.Writer, r.ImportID, r.ImportVersion = own.writer, own.id, own.version
		}
		if t.own == nil && r.Review == record.ReviewApproved && slices.Contains(s.instructing, r.Kind) {
			r.Review = 0 // who approves what is to instruct here does so here
		}
		if r.Review == 0 && s.holds(r.Origin) {
			r.Review = record.ReviewHeld
		}
		terms, err := record.MetadataTerms(r.Metadata)
		if err == nil { // which it is, since the line was checked
			t.encoded[i] = s.encodeDocument(r, terms)
		}
	})
}

func (t *transferring) stage(ctx context.Context, e *edit) error {
	t.counts, t.skipped, t.changed = Imported{}, make(map[int]bool), false
	if most := int64(e.store.limits.archived); most > 0 && e.store.limits.records > 0 {
		kept, err := readCounts(ctx, e.tx, t.scope)
		if err != nil {
			return err
		}
		t.full = kept.archived >= most-most/roomShare
	}
	e.result = make([]record.Record, len(t.all))
	pins, err := t.pins.now(ctx, e.tx)
	if err == nil {
		err = t.look(ctx, e)
	}
	if err != nil {
		return err
	}
	for i, one := range t.all {
		if err := t.take(ctx, e, pins, i); err != nil {
			return &ImportError{one.line, err}
		}
	}
	if err := e.flush(ctx); err != nil {
		return err
	}
	for i, one := range t.all {
		if err := t.relate(ctx, e, i); err != nil {
			return &ImportError{one.line, err}
		}
	}
	if t.DryRun {
		return errDryRun
	}
	return e.flush(ctx)
}

// look reads what stands under the ids and keys of the records, all in one read: a store that
// is far away would be asked twice for each otherwise.
func (t *transferring) look(ctx context.Context, e *edit) (err error) {
	names := make([][]byte, 0, 2*len(t.all))
	for _, one := range t.all {
		names = append(names, record.Key(t.scope, one.record.ID))
		if one.record.Key != "" && !one.keyGone {
			names = append(names, record.NameKey(t.scope, one.record.Key))
		}
	}
	t.before, err = e.stored(ctx, names)
	return err
}

// get is edit.get of the id or the key of one of the records.
func (t *transferring) get(ctx context.Context, e *edit, name []byte) ([]byte, error) {
	if value, ok := t.before[string(name)]; ok && (value == nil || !t.changed) {
		return value, nil
	}
	return e.get(ctx, name)
}

// relate stages the relations of one record with the other records that exist, unless the
// record was skipped.
func (t *transferring) relate(ctx context.Context, e *edit, i int) error {
	if t.skipped[i] {
		return nil
	}
	one := t.all[i]
	var ended []record.Relation
	for _, r := range one.relations {
		if !r.End.IsZero() {
			ended = append(ended, r)
			continue
		}
		_, err := e.relate(ctx, r)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return e.keepEnded(ctx, one.record.ID, ended, one.forgotten)
}

// take stages one record, unless it is there.
func (t *transferring) take(ctx context.Context, e *edit, pins *pinRoom, i int) error {
	one, r := t.all[i], &e.result[i]
	*r = one.record
	if err := e.may(r); err != nil {
		return err
	}
	if r.ExpiredAt(t.now) {
		t.counts.Expired++
		t.skipped[i] = true
		return nil
	}
	switch there, err := t.there(ctx, e, i); {
	case err != nil || there:
		return err
	}
	if t.full {
		if gone, err := left.Has(ctx, e.tx, t.scope, *r); gone || err != nil {
			t.counts.Unchanged++
			t.skipped[i] = true
			return err
		}
	}
	if err := t.straight(ctx, e, r); err != nil {
		return err
	}
	if err := pins.take(r); err != nil {
		return err
	}
	replaced, err := t.supersede(ctx, e, r)
	if err != nil {
		return err
	}
	if r.Key != "" && !one.keyGone {
		if err := t.name(ctx, e, r); err != nil {
			return err
		}
	}
	for _, v := range one.versions {
		v.SavedBy, v.Writer = r.SavedBy, r.Writer
		e.tx.Put(kv.Records, record.VersionKey(t.scope, r.ID, v.Version), record.Encode(v))
		e.versions++
	}
	e.add(write{record: r}, t.encoded[i], replaced)
	t.changed = true
	delete(t.before, string(record.Key(t.scope, r.ID)))
	t.counts.Saved++
	return nil
}

// maxChain bounds the records that one supersedes, directly or not, which are looked at.
const maxChain = 1000

// straight refuses a record that would supersede itself by way of others that are there.
func (t *transferring) straight(ctx context.Context, e *edit, r *record.Record) error {
	seen := map[string]bool{r.ID: true}
	for _, way := range []func(*record.Record) string{
		func(r *record.Record) string { return r.Supersedes }, func(r *record.Record) string { return r.SupersededBy },
	} {
		at := r
		for range maxChain {
			id := way(at)
			if id == "" {
				break
			}
			if seen[id] {
				return fmt.Errorf("%w: record %q supersedes itself, by way of %q", record.ErrLine, r.ID, id)
			}
			seen[id] = true
			next, err := t.staged(ctx, e, id)
			if err != nil {
				return err
			}
			if next == nil {
				break
			}
			at = next
		}
	}
	return nil
}

// staged is a record that is there, or that stands before in the same commit; nil for none.
func (t *transferring) staged(ctx context.Context, e *edit, id string) (*record.Record, error) {
	for i := range e.result {
		if e.result[i].ID == id && !t.skipped[i] {
			return &e.result[i], nil
		}
	}
	r, _, err := e.read(ctx, id)
	return r, err
}

// supersede lets a record of the memory that r replaces know by whom, and returns its ordinal; zero
// where there is none, or where another has replaced it, the caller may not change it, or r waits
// for review: it stays as it is then.
func (t *transferring) supersede(ctx context.Context, e *edit, r *record.Record) (uint32, error) {
	if r.Supersedes == "" || r.SupersededBy != "" || r.Review.Hides() {
		return 0, nil
	}
	old, stored, err := e.read(ctx, r.Supersedes)
	if err != nil || old == nil || old.SupersededBy != "" || old.ExpiredAt(t.now) || e.may(old) != nil {
		return 0, err
	}
	e.tx.Put(kv.Records, record.Key(t.scope, old.ID), record.AppendSuperseded(stored, r.ID, t.now))
	return old.Document.Ordinal, nil
}

// name gives the record its key, unless another one has it.
func (t *transferring) name(ctx context.Context, e *edit, r *record.Record) error {
	name := record.NameKey(t.scope, r.Key)
	id, err := t.get(ctx, e, name)
	if err != nil {
		return err
	}
	if id != nil {
		holder, _, err := e.read(ctx, string(id))
		switch {
		case err != nil:
			return err
		case holder == nil:
			return fmt.Errorf("%w: key %q names record %q, which does not exist", ErrDamaged, r.Key, id)
		case !holder.ExpiredAt(t.now) && holder.SupersededBy != r.ID:
			return &ExistsError{"key", r.Key, holder.ID}
		}
	}
	e.tx.Put(kv.Records, name, []byte(r.ID))
	delete(t.before, string(name))
	return nil
}

// there reports whether the record is there already.
func (t *transferring) there(ctx context.Context, e *edit, i int) (bool, error) {
	one := t.all[i]
	stored, err := t.get(ctx, e, record.Key(t.scope, one.record.ID))
	if err != nil || stored == nil {
		return false, err
	}
	old, err := record.Decode(stored)
	if err != nil {
		return false, err
	}
	if old.ExpiredAt(t.now) {
		t.changed = true
		return false, e.remove(ctx, &old)
	}
	if one.undated { // a line of somebody's own hand came at another time then
		one.record.CreateTime = old.CreateTime
	}
	same, err := sameLine(old, one.record)
	if err == nil && !same && old.Writer == writer.Import {
		same, err = t.sameButHealed(ctx, e, old, one.record)
	}
	switch {
	case err != nil:
		return false, err
	case same:
		t.counts.Unchanged++
	case t.Skip:
		t.counts.Skipped++
		t.skipped[i] = true
	default:
		return false, &ExistsError{"id", old.ID, old.ID}
	}
	return true, nil
}

// sameButHealed is sameLine for a record that lost those next to it in its chain: what it
// superseded, or was superseded by, is there no longer.
func (t *transferring) sameButHealed(ctx context.Context, e *edit, old, r record.Record) (bool, error) {
	for _, link := range []struct{ was, is *string }{{&r.Supersedes, &old.Supersedes}, {&r.SupersededBy, &old.SupersededBy}} {
		if *link.was == *link.is || *link.was == "" {
			continue
		}
		other, _, err := e.read(ctx, *link.was)
		if err != nil || other != nil {
			return false, err
		}
		*link.was = *link.is
	}
	if old.SupersededBy == r.SupersededBy {
		r.SupersededTime = old.SupersededTime
	}
	return sameLine(old, r)
}

// sameLine reports whether two records are the same but for their vectors, of which the one
// that is there may have more than it came with, and for what the store did to it: held it
// for review, archived it, asked somebody here whether it may instruct.
func sameLine(a, b record.Record) (bool, error) {
	b.SavedBy = a.SavedBy
	// It may have been held, or reviewed since: here, or by somebody whose word does not count.
	approval := func(r record.Review) bool { return r == 0 || r == record.ReviewApproved }
	if a.Review != 0 && b.Review == 0 || a.Writer == writer.Import && approval(a.Review) && approval(b.Review) {
		b.Review = a.Review
	}
	if a.Archived && !b.Archived { // the limit of the memory may have done so
		b.Archived, b.ArchiveTime = a.Archived, a.ArchiveTime
	}
	var texts [2][]byte
	for i, r := range []record.Record{a, b} {
		r.Embedding, r.EmbeddingSpace = nil, ""
		text, err := record.Line{Record: r}.Encode()
		if err != nil {
			return false, err
		}
		texts[i] = text
	}
	return bytes.Equal(texts[0], texts[1]), nil
}
