package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/vector"
	"github.com/loom-bridge/loom-bridge/memory/writer"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Staging is a change of one scope's memory that is ready to be committed,
// together with changes of others if need be: put Refs and Blind into the
// kv.Request, run Stage in its staging function, make the commit within Do, and
// call Done when it has succeeded. It is good for one commit and not safe for
// concurrent use.
type Staging struct {
	store   *Store
	scope   kv.Scope
	expires bool     // it may write moments of expiry
	also    []kv.Ref // others that are blind
	actor   Actor
	run     func(ctx context.Context, e *edit) error
	// requestID is that of the call, if its answer is looked for in the stage.
	requestID string
	// pins is the room found before a commit of this staging alone; nil: any.
	pins *pinRoom

	records    []record.Record
	statistics segment.Statistics
	removed    []string
}

// Refs are what the stage reads and writes.
func (s *Staging) Refs() []kv.Ref { return []kv.Ref{recordsRef(s.scope), lexical.Ref(s.scope)} }

// Blind are refs that it writes without reading; often none.
func (s *Staging) Blind() []kv.Ref {
	blind := append(s.store.embeddings.Blind(s.scope), s.also...)
	if s.expires {
		blind = append(blind, expiryList.Ref(s.scope))
	}
	if mention.Shared(s.scope) {
		blind = append(blind, mention.ListRef(s.scope.Tenant))
	}
	if s.actor.Permission != nil {
		blind = append(blind, s.actor.Permission.Refs()...)
	}
	return blind
}

// Foresee adds what the stage reads in any case.
func (s *Staging) Foresee(along *kv.Reads) {
	s.store.index.ForeseeHead(along, s.scope)
	kv.ForeseeOnceOf(along, recordsRef(s.scope), s.actor.Agent, s.requestID)
}

// Stage is the change's part of the commit. It returns the errors of the method that the
// change is named after; an error leaves nothing behind.
func (s *Staging) Stage(ctx context.Context, tx *kv.Tx) error {
	e := &edit{store: s.store, tx: tx, scope: s.scope, actor: s.actor, begun: time.Now(), relations: relations.Counts{}}
	if s.actor.Agent != "" {
		ctx = vector.By(ctx, s.actor.Agent)
	}
	if s.actor.Permission != nil {
		if err := s.actor.Permission.Check(ctx, tx); err != nil {
			return err
		}
	}
	if err := s.run(ctx, e); err != nil {
		return err
	}
	for _, id := range e.related {
		e.gone = append(e.gone, feed.Related(id))
	}
	if err := e.flush(ctx); err != nil {
		return err
	}
	s.records, s.statistics, s.removed = e.result, e.statistics, e.taken
	return nil
}

// Do runs commit, which makes the commit, and returns its error. If an older
// version wrote the index of the scope, it is rebuilt first, and commit is run again.
func (s *Staging) Do(ctx context.Context, commit func() error) error {
	return s.store.current(ctx, s.scope, commit)
}

// Done reports that the commit has succeeded, so that its background
// work goes on. It makes the caller wait only when that has fallen far behind.
func (s *Staging) Done(ctx context.Context) {
	s.store.embeddings.Saved(s.scope)
	s.store.bell.Ring(s.scope)
	if removed := s.store.onRemoved.Load(); removed != nil && len(s.removed) > 0 {
		(*removed)(s.removed)
	}
	s.store.packer.Saved(ctx, s.scope, s.statistics)
}

// commit makes the change for a caller who waits.
func (s *Staging) commit(ctx context.Context, operation string) error {
	if err := s.alone(ctx, false); err != nil {
		return wrap(operation, err)
	}
	return nil
}

// alone makes the change in its own commit. A lazy one may wait for others: no
// caller is answered by it.
func (s *Staging) alone(ctx context.Context, lazy bool) error {
	for {
		if err := s.pins.look(ctx); err != nil {
			return err
		}
		err := s.Do(ctx, func() error {
			return s.store.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: s.Refs(), Blind: s.Blind(), Stage: s.Stage, Foresee: s.Foresee, Lazy: lazy}))
		})
		if err == nil {
			s.Done(ctx)
		}
		if !errors.Is(err, errPinsMoved) {
			return err
		}
	}
}

// edit changes the records of one scope within a commit. What the index learns
// is collected, because it costs the same for one document as for many: the
// records get their ordinals, and are written, when it is flushed.
type edit struct {
	store *Store
	tx    *kv.Tx
	scope kv.Scope
	actor Actor

	change     lexical.Change
	writes     []write
	versions   int64 // how many more earlier versions there are
	archived   int64 // how many more records lie in the archive
	removed    int   // about how many bytes removing records has written
	begun      time.Time
	gone       []string // ids of removed records that are not in the feed yet
	taken      []string // ids of all records that are removed, or say something else
	related    []string // ids of those whose relations changed; they enter the feed at the end
	relations  relations.Counts
	statistics segment.Statistics
	result     []record.Record // what the caller is answered
}

// write is a record that waits for its ordinal.
type write struct {
	record *record.Record
	// before is the record as it was; nil for a new one.
	before *record.Record
	// keepVector: the embedded text is unchanged.
	keepVector bool
	// same is what the key begins with by which a record is found that repeats it, empty
	// for none; nil: it is to be made.
	same []byte
	// blame, if set, says which record of a batch an error is about.
	blame func(error) error
}

// expect makes room for so many records that are to be added.
func (e *edit) expect(records int) {
	const changes = 2 // of a record: itself, and its document
	e.change.Add, e.writes = slices.Grow(e.change.Add, records), slices.Grow(e.writes, records)
	e.tx.Grow(changes * records)
}

// get reads the stored value with the commit's staged changes on top.
func (e *edit) get(ctx context.Context, key []byte) ([]byte, error) {
	if err := e.flush(ctx); err != nil {
		return nil, err
	}
	values, err := e.tx.Get(ctx, kv.Records, key)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// stored reads values as they are at the beginning, all in one read; nil is missing.
func (e *edit) stored(ctx context.Context, keys [][]byte) (map[string][]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := e.tx.Get(ctx, kv.Records, keys...)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]byte, len(keys))
	for i, key := range keys {
		all[string(key)] = values[i]
	}
	return all, nil
}

// read returns the record with that id, decoded and as stored; nil when there
// is none.
func (e *edit) read(ctx context.Context, id string) (*record.Record, []byte, error) {
	stored, err := e.get(ctx, record.Key(e.scope, id))
	if err != nil || stored == nil {
		return nil, nil, err
	}
	r, err := record.Decode(stored)
	return &r, stored, err
}

// add gives the record a new document. The record that it supersedes, if its
// document is to say so, is named by its ordinal.
func (e *edit) add(w write, encoded []byte, supersedes uint32) {
	e.change.Add = append(e.change.Add, lexical.Added{Encoded: encoded, Supersedes: supersedes})
	e.writes = append(e.writes, w)
	if w.before != nil {
		e.change.Delete = append(e.change.Delete, w.before.Document.Ordinal)
	}
	e.moveExpiry(w)
	e.moveSame(w)
	if w.record.Archived {
		e.archived++
	}
	if w.before != nil && w.before.Archived {
		e.archived--
	}
}

// flush makes the collected changes of the index and writes their records.
func (e *edit) flush(ctx context.Context) error {
	if len(e.change.Add) > 0 || len(e.change.Delete) > 0 {
		change, writes := e.change, e.writes
		e.change, e.writes = lexical.Change{}, nil
		first, statistics, err := e.store.index.Apply(ctx, e.tx, e.scope, change)
		if err != nil {
			return err
		}
		e.statistics = statistics
		for i, w := range writes {
			w.record.Document.Ordinal = first + uint32(i)
			err := e.write(ctx, w)
			if err != nil && w.blame != nil {
				err = w.blame(err)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := e.noteGone(ctx); err != nil {
		return err
	}
	if e.versions == 0 && e.archived == 0 {
		return nil
	}
	n, err := readCounts(ctx, e.tx, e.scope)
	if err != nil {
		return err
	}
	now := &storev1.RecordCounts{Versions: uint64(n.versions + e.versions), Archived: uint64(max(0, n.archived+e.archived))}
	e.tx.Put(kv.Records, countsKey(e.scope), wire.Marshal(now))
	e.versions, e.archived = 0, 0
	return nil
}

func (e *edit) write(ctx context.Context, w write) error {
	if err := e.writeVector(ctx, w); err != nil {
		return err
	}
	value := record.Encode(*w.record)
	e.tx.Put(kv.Records, record.Key(e.scope, w.record.ID), value)
	// Keeps the names of blobs in a record, which is stored as value, in step
	// with it.
	names := mention.In(value)
	if w.before != nil {
		before := mention.In(record.Encode(*w.before))
		mention.Drop(e.tx, recordsRef(e.scope), w.record.ID, without(before, names))
		names = without(names, before)
	}
	mention.Stage(e.tx, recordsRef(e.scope), w.record.ID, names)
	return nil
}

func (e *edit) writeVector(ctx context.Context, w write) error {
	switch {
	case w.before == nil:
		return e.store.embeddings.Stage(ctx, e.tx, e.scope, *w.record)
	case w.keepVector && len(w.before.Embedding) == 0: // else an older version put it into the record
		return e.store.embeddings.Move(ctx, e.tx, e.scope, *w.before, *w.record)
	}
	if err := e.store.embeddings.Drop(ctx, e.tx, e.scope, *w.before); err != nil {
		return err
	}
	return e.store.embeddings.Stage(ctx, e.tx, e.scope, *w.record)
}

// remove takes a record off the disk with all that belongs to it.
func (e *edit) remove(ctx context.Context, r *record.Record) error {
	revived, err := e.heal(ctx, r)
	if err != nil {
		return err
	}
	if r.Key != "" {
		// Keys don't wait for a flush as records do.
		name := record.NameKey(e.scope, r.Key)
		holder, err := e.tx.Get(ctx, kv.Records, name)
		if err != nil {
			return err
		}
		switch {
		case string(holder[0]) != r.ID:
		case revived != nil && revived.Key == r.Key: // which r had from it
			e.tx.Put(kv.Records, name, []byte(revived.ID))
		default:
			e.tx.Delete(kv.Records, name)
		}
	}
	e.change.Delete = append(e.change.Delete, r.Document.Ordinal)
	e.gone, e.taken = append(e.gone, r.ID), append(e.taken, r.ID)
	if r.Archived {
		e.archived--
	}
	e.tx.Delete(kv.Records, record.Key(e.scope, r.ID))
	e.tx.Delete(kv.Records, access.Key(e.scope, r.ID))
	mention.Drop(e.tx, recordsRef(e.scope), r.ID, mention.In(record.Encode(*r)))
	if key := sameKey(e.scope, *r); key != nil {
		e.tx.Delete(kv.Records, key)
	}
	first, end := r.KeptVersions()
	for version := first; version < end; version++ {
		key := record.VersionKey(e.scope, r.ID, version)
		e.tx.Delete(kv.Records, key)
		e.removed += len(key)
		e.versions--
	}
	if !r.ExpireTime.IsZero() {
		e.tx.Delete(kv.Records, expiryKey(e.scope, r.ExpireTime, r.ID))
	}
	if err := e.dropRelations(ctx, r); err != nil {
		return err
	}
	return e.store.embeddings.Drop(ctx, e.tx, e.scope, *r)
}

// heal takes r, which goes, out of the chain of records that replaced each other: what r
// had replaced is replaced by what has replaced r. If nothing has, it is current again
// and returned.
func (e *edit) heal(ctx context.Context, r *record.Record) (revived *record.Record, err error) {
	if r.Supersedes == "" {
		return nil, nil
	}
	old, stored, err := e.read(ctx, r.Supersedes)
	if err != nil || old == nil || old.SupersededBy != r.ID {
		return nil, err
	}
	var by *record.Record
	var byStored []byte
	if r.SupersededBy != "" {
		if by, byStored, err = e.read(ctx, r.SupersededBy); err != nil {
			return nil, err
		}
	}
	if by == nil || by.Supersedes != r.ID {
		return old, e.rewrite(ctx, old, stored, func(o *record.Record) error {
			o.SupersededBy, o.SupersededTime = "", time.Time{}
			return nil
		})
	}
	e.removed += len(stored)
	e.tx.Put(kv.Records, record.Key(e.scope, old.ID), record.AppendSuperseded(stored, by.ID, old.SupersededTime))
	return nil, e.rewrite(ctx, by, byStored, func(b *record.Record) error {
		b.Supersedes = old.ID
		return nil
	})
}

// rewrite gives a record a document that says what change makes of it, without making a
// version.
func (e *edit) rewrite(ctx context.Context, old *record.Record, stored []byte, change func(*record.Record) error) error {
	const perStored = 4 // the document takes about as much as the record, or more
	e.removed += perStored * len(stored)
	next, err := e.store.redraft(stored, *old, change)
	if err != nil {
		return err
	}
	return e.replace(ctx, old, next, true)
}

// replace writes a record anew in the place of what it was.
func (e *edit) replace(ctx context.Context, old *record.Record, next *redrafted, keepVector bool) error {
	supersedes, err := e.supersededBy(ctx, &next.record)
	if err != nil {
		return err
	}
	e.add(write{record: &next.record, before: old, keepVector: keepVector}, next.encoded, supersedes)
	return nil
}

// supersededBy returns the ordinal that the document of r has to name: that of
// the record which r replaced, unless that says so itself or is gone.
func (e *edit) supersededBy(ctx context.Context, r *record.Record) (uint32, error) {
	if r.Supersedes == "" {
		return 0, nil
	}
	old, _, err := e.read(ctx, r.Supersedes)
	if err != nil || old == nil {
		return 0, err
	}
	return names(r, *old), nil
}

// names returns the ordinal of the record that r replaced if the document of r
// is what says so, and zero otherwise.
func names(r *record.Record, old record.Record) uint32 {
	if old.ID != r.Supersedes || old.SupersededBy != r.ID || old.Document.Marked {
		return 0
	}
	return old.Document.Ordinal
}

// ErrNotOwned: the record was saved by an agent that the caller may not act for. It
// comes as an *OwnedError.
var ErrNotOwned = errors.New("memory: record of another agent")

// OwnedError names a record and the agent that saved it. It is an ErrNotOwned.
type OwnedError struct{ ID, Agent string }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("memory: record %q was saved by agent %q, which the caller may not act for", e.ID, e.Agent)
}

// Is makes errors.Is(err, ErrNotOwned) true.
func (e *OwnedError) Is(target error) bool { return target == ErrNotOwned }

// Actor is an agent that works in a memory which several agents share. What it saves
// is its own, and so are its request ids.
type Actor struct {
	// Agent is its id.
	Agent string
	// Acts reports whether it may change, supersede and delete records of another agent.
	// Nil: of every agent.
	Acts func(agent string) bool
	// Permission, unless nil, is asked in the commit of each change.
	Permission Permission

	writer writer.Writer // by whose words the change is
}

// Permission says whether a change may be made.
type Permission interface {
	// Refs are what Check watches.
	Refs() []kv.Ref
	// Check returns an error, which is that of the change, if it may not. It reads by
	// Tx.Watch alone.
	Check(ctx context.Context, tx *kv.Tx) error
}

type actorKey struct{}

// As returns a context in which a Store works for an actor. Without one the memory
// has one owner, to whom everything in it belongs.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

func actorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	a.writer = writer.Of(ctx)
	return a
}

// may returns an *OwnedError if the actor may not change a record, and an *InstructsError if
// it is one that a model may not touch.
func (e *edit) may(r *record.Record) error {
	a := &e.actor
	switch {
	case r.SavedBy != "" && r.SavedBy != a.Agent && a.Acts != nil && !a.Acts(r.SavedBy):
		return &OwnedError{ID: r.ID, Agent: r.SavedBy}
	case a.writer != writer.Program && e.store.instructs(r):
		return &InstructsError{ID: r.ID, Kind: r.Kind}
	}
	return nil
}

// instructs reports whether a record is of a kind that instructs models, and by the
// words of somebody who may.
func (s *Store) instructs(r *record.Record) bool {
	return slices.Contains(s.instructing, r.Kind) && r.Vouched()
}

// ErrInstructs: the record instructs models, so a model may not change it. It comes as an
// *InstructsError.
var ErrInstructs = errors.New("memory: record that instructs")

// InstructsError names a record. It is an ErrInstructs.
type InstructsError struct{ ID, Kind string }

func (e *InstructsError) Error() string {
	return fmt.Sprintf("memory: record %q is a %s of the agent's program, which no tool of a model changes, replaces or removes: its program does (UpdateRecord, DeleteRecords)", e.ID, e.Kind)
}

// Is makes errors.Is(err, ErrInstructs) true.
func (e *InstructsError) Is(target error) bool { return target == ErrInstructs }

func recordsRef(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Records, Scope: scope} }
