package erasure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// ShowedMemory says that prompts may have shown a person's memory although the store has
// nothing of it any more. It does nothing for others.
func (e *Eraser) ShowedMemory() {
	e.run.Shown = e.run.Subject.Kind == User && !e.run.Subject.Narrowed()
}

// Ranges are where entries of the subject can be: all others stay as they are.
func (e *Eraser) Ranges() []kv.KeyRange {
	tenant := kv.TenantRange(e.run.Subject.Tenant)
	ranges := make([]kv.KeyRange, 0, len(kv.Keyspaces()))
	for _, ks := range kv.Keyspaces() {
		ranges = append(ranges, kv.KeyRange{Keyspace: ks, Range: tenant})
	}
	return ranges
}

// Touched are where entries went: what an engine has to write anew so that their bytes go.
func (e *Eraser) Touched() []kv.KeyRange {
	tenant := kv.TenantRange(e.run.Subject.Tenant)
	ranges := []kv.KeyRange{{Keyspace: kv.Log, Range: tenant}, {Keyspace: kv.Events, Range: tenant}, {Keyspace: kv.System, Range: tenant}}
	scopes := map[kv.Scope]bool{e.run.Scope: true}
	for scope := range e.run.Picked {
		scopes[scope] = true
	}
	for scope := range scopes {
		own := kv.Prefix(scope.AppendPrefix(nil))
		if e.run.Subject.Kind == Tenant {
			own = tenant
		}
		for _, ks := range []kv.Keyspace{kv.Records, kv.Index, kv.Blobs} {
			ranges = append(ranges, kv.KeyRange{Keyspace: ks, Range: own})
		}
	}
	return ranges
}

// Holdings is what a store has of a subject.
type Holdings struct {
	// Counts are what goes by kind, such as records, versions, steps, blobs and events.
	Counts map[string]int64
	// Entries are all entries that go or change, Bytes what those hold.
	Entries, Bytes int64
}

// Empty reports whether there is nothing.
func (f Holdings) Empty() bool { return f.Entries == 0 }

// Count counts the subject's entries in from. It calls each now and then with the number of
// entries read.
func (e *Eraser) Count(ctx context.Context, from erase.Reader, each func(looked int64)) (Holdings, error) {
	f := Holdings{Counts: make(map[string]int64)}
	looked := int64(0)
	e.run.Counts = true
	defer func() { e.run.Counts = false }()
	for _, r := range e.Ranges() {
		for p, err := range from.Scan(ctx, r.Keyspace, r.Range) {
			if err != nil {
				return f, fmt.Errorf("erasure: count: %w", err)
			}
			if looked++; looked%lookedEvery == 0 {
				each(looked)
			}
			entry, _, err := e.split(r.Keyspace, p)
			if err != nil {
				return f, err
			}
			if r.Keyspace == kv.System && Erasures.Has(entry.Scope) {
				continue // what says that the subject is being erased goes when that is over
			}
			value, keep, err := e.change(ctx, r.Keyspace, p)
			switch {
			case err != nil:
				return f, fmt.Errorf("erasure: %s: key %q: %w", r.Keyspace, p.Key, err)
			case keep && bytes.Equal(value, p.Value):
				before := e.named
				if err := e.look(r.Keyspace, p); err != nil {
					return f, err
				}
				f.Entries += e.named - before
				continue
			}
			f.Entries++
			f.Bytes += int64(len(p.Key) + len(p.Value))
			e.kinds(entry, f.Counts)
			if e.run.Looks {
				e.leave(entry)
			}
		}
	}
	return f, nil
}

// lookedEvery is the number of entries between two progress calls of Count.
const lookedEvery = 1 << 12

// Counted kinds that do not belong to one sort of entries.
const (
	KindRecords = "records"
	// KindShared are records and versions of them that an agent saved into the memory of others.
	KindShared = "shared_records"
)

// kinds counts an entry that goes or changes.
func (e *Eraser) kinds(entry erase.Entry, counts map[string]int64) {
	sort, owned := e.registry.find(entry.Keyspace, entry.Scope, entry.Tag)
	if !owned || sort.Counted == "" {
		return
	}
	kind := sort.Counted
	if entry.Keyspace == kv.Records && e.run.Subject.Kind == Agent && entry.Scope != e.run.Scope {
		kind = KindShared
	}
	counts[kind]++
	if sort.Marked != nil {
		if kind := sort.Marked(e.run.Subject, entry.Value); kind != "" {
			counts[kind]++
		}
	}
}

// Add adds what was found elsewhere.
func (f *Holdings) Add(other Holdings) {
	if f.Counts == nil {
		f.Counts = make(map[string]int64)
	}
	for kind, n := range maps.All(other.Counts) {
		f.Counts[kind] += n
	}
	f.Entries += other.Entries
	f.Bytes += other.Bytes
}

// Change is what becomes of an entry on a running server.
type Change struct {
	Key []byte
	// Before is what the entry holds, After what it is to hold; nil: it goes.
	Before, After []byte
}

// Phases is how many phases an erasure of entries has, one after the other: what leads to
// other entries goes behind those, so that an erasure that was broken off finds them again.
const Phases = 3

// LastPhase is the last of them. What it changes of a step is to be one commit.
const LastPhase = Phases - 1

// Changes yields what is to be changed in a phase, entry by entry. What others take out they
// leave: the bus, the boxes of messages, the audit log, the memories that lose records, and
// what drops scopes whole.
func (e *Eraser) Changes(ctx context.Context, from erase.Reader, phase int, found func(kv.Keyspace, Change) error) error {
	for _, r := range e.Ranges() {
		if r.Keyspace == kv.Events || r.Keyspace == kv.Index {
			continue
		}
		for p, err := range from.Scan(ctx, r.Keyspace, r.Range) {
			if err != nil {
				return fmt.Errorf("erasure: %w", err)
			}
			entry, _, err := e.split(r.Keyspace, p)
			if err != nil || entry.Tag == 0 || e.whole(entry.Scope) {
				continue
			}
			sort, owned := e.registry.find(r.Keyspace, entry.Scope, entry.Tag)
			if !owned {
				continue
			}
			// A child that has to be looked at in a later phase is noted in all of them.
			value, keep, err := e.change(ctx, r.Keyspace, p)
			if err != nil && !errors.Is(err, erase.ErrAnew) {
				return fmt.Errorf("erasure: %s: key %q: %w", r.Keyspace, p.Key, err)
			}
			if err != nil || keep && bytes.Equal(value, p.Value) || e.phaseOf(sort) != phase {
				continue
			}
			change := Change{Key: p.Key, Before: p.Value}
			if keep {
				change.After = append([]byte{}, value...)
			}
			if err := e.along(sort.owner, entry, keep, r.Keyspace, found); err != nil {
				return err
			}
			if err := found(r.Keyspace, change); err != nil {
				return err
			}
		}
	}
	return nil
}

// phaseOf is the phase of a sort of entries. All that the log loses with a step goes last: the
// step leads to everything else.
func (e *Eraser) phaseOf(sort *sorted) int {
	if e.run.Subject.Step != 0 && sort.Phase != erase.Elsewhere && sort.Keyspace == kv.Log && sort.owner == 0 {
		return LastPhase
	}
	return sort.Phase
}

// along has the subject's own scope lose what goes with an entry.
func (e *Eraser) along(owner int, entry erase.Entry, keep bool, ks kv.Keyspace, found func(kv.Keyspace, Change) error) error {
	with := e.registry.owners[owner].Along
	if with == nil || keep {
		return nil
	}
	pairs, err := with(e.run, entry)
	for _, p := range pairs {
		if err == nil {
			err = found(ks, Change{Key: p.Key, Before: p.Value})
		}
	}
	return err
}
