package erasure

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Scope is the subject's own, or that of whose part it is. A tenant has none.
func (s Subject) Scope() (kv.Scope, error) {
	if s.Kind == Tenant {
		return kv.Scope{}, fmt.Errorf("%w: a tenant has many scopes", ErrInvalid)
	}
	return s.scope()
}

// ShowedMemory says that prompts may have shown a person's memory although the store has
// nothing of it any more. It does nothing for others.
func (e *Eraser) ShowedMemory() { e.prompts = e.subject.Kind == User }

// Ranges are where entries of the subject can be: all others stay as they are.
func (e *Eraser) Ranges() []kv.KeyRange {
	own, tenant := kv.Prefix(e.scope.AppendPrefix(nil)), kv.TenantRange(e.subject.Tenant)
	if e.subject.Kind == Tenant {
		own = tenant
	}
	log := own
	if e.prompts || e.subject.Filter != "" {
		log = tenant
	}
	return []kv.KeyRange{
		{Keyspace: kv.Records, Range: own},
		{Keyspace: kv.Index, Range: own},
		{Keyspace: kv.Log, Range: log},
		{Keyspace: kv.Blobs, Range: own},
		{Keyspace: kv.Events, Range: tenant},
		{Keyspace: kv.System, Range: tenant},
	}
}

// Found is what a store has of a subject.
type Found struct {
	// Counts are what goes by kind, such as records, versions, steps, blobs and events.
	Counts map[string]int64
	// Entries are all entries that go or change, Bytes what those hold.
	Entries, Bytes int64
}

// Empty tells whether there is nothing.
func (f Found) Empty() bool { return f.Entries == 0 }

// Count counts what from has of the subject. Each is told the number of entries that
// were looked at now and then.
func (e *Eraser) Count(ctx context.Context, from store.Scanner, each func(looked int64)) (Found, error) {
	f := Found{Counts: make(map[string]int64)}
	looked := int64(0)
	for _, r := range e.Ranges() {
		for p, err := range from.Scan(ctx, r.Keyspace, r.Range) {
			if err != nil {
				return f, fmt.Errorf("erasure: count: %w", err)
			}
			if looked++; looked%lookedEvery == 0 {
				each(looked)
			}
			changed, err := e.changes(ctx, r.Keyspace, p)
			if err != nil {
				return f, err
			}
			if !changed {
				continue
			}
			f.Entries++
			f.Bytes += int64(len(p.Key) + len(p.Value))
			if kind := e.kind(r.Keyspace, p.Key); kind != "" {
				f.Counts[kind]++
			}
		}
	}
	return f, nil
}

// lookedEvery is after how many entries Count tells how far it is.
const lookedEvery = 1 << 12

// changes tells whether an entry goes or changes. What stays of a memory that loses records
// does neither; what says that the subject is being erased goes when that is over.
func (e *Eraser) changes(ctx context.Context, ks kv.Keyspace, p kv.Pair) (bool, error) {
	if scope, _, err := kv.SplitKey(p.Key); err == nil && ks == kv.System && Erasures.Has(scope) {
		return false, nil
	}
	value, keep, err := e.change(ctx, ks, p)
	if errors.Is(err, errAnew) {
		return e.pickedEntry(ks, p.Key)
	}
	if err != nil {
		return false, fmt.Errorf("erasure: %s: key %q: %w", ks, p.Key, err)
	}
	return !keep || !bytes.Equal(value, p.Value), nil
}

// pickedEntry tells whether an entry of a memory that loses records is one of those, or an
// earlier version of one.
func (e *Eraser) pickedEntry(ks kv.Keyspace, key []byte) (bool, error) {
	scope, rest, err := kv.SplitKey(key)
	if err != nil || ks != kv.Records || len(rest) == 0 {
		return false, err
	}
	switch rest[0] {
	case 'r':
		return e.part.records[scope][string(rest[1:])], nil
	case 'h':
		id, _, err := kv.CutEscaped(rest[1:])
		return e.part.records[scope][id], err
	}
	return false, nil
}

// Kinds of what is counted.
const (
	KindRecords      = "records"
	KindVersions     = "versions"
	KindVectors      = "vectors"
	KindRelations    = "relations"
	KindPlans        = "plans"
	KindSteps        = "steps"
	KindEntries      = "log_entries"
	KindSessions     = "sessions"
	KindTasks        = "tasks"
	KindFolds        = "folds"
	KindPrompts      = "prompts"
	KindBlobs        = "blobs"
	KindEvents       = "events"
	KindMessages     = "messages"
	KindChildren     = "children"
	KindAuditRecords = "audit_records"
	KindApprovals    = "approvals"
)

// kindOf has the kinds by keyspace and tag (memory/FORMAT.md), of all owners but the system.
var kindOf = map[kv.Keyspace]map[byte]string{
	kv.Records: {'r': KindRecords, 'h': KindVersions, 'v': KindVectors, 'o': KindRelations, 'O': KindRelations, 'p': KindPlans},
	kv.Log: {
		'e': KindEntries, 'n': KindSteps, 's': KindSessions, 't': KindTasks, 'f': KindFolds, 'p': KindPrompts,
	},
	kv.Blobs:  {'p': KindBlobs},
	kv.Events: {'e': KindEvents},
	kv.System: {'m': KindMessages, spawnedTag: KindChildren},
}

// kind is what an entry counts as; empty for what belongs to another one.
func (e *Eraser) kind(ks kv.Keyspace, key []byte) string {
	scope, rest, err := kv.SplitKey(key)
	switch {
	case err != nil || len(rest) == 0:
		return ""
	case ks != kv.System || scope.Kind != kv.OwnerSystem:
		return kindOf[ks][rest[0]]
	case scope.Owner == "audit" && rest[0] == 'r':
		return KindAuditRecords
	case scope.Owner == "approvals" && rest[0] == 'g':
		return KindApprovals
	}
	return ""
}

// Add adds what was found elsewhere.
func (f *Found) Add(other Found) {
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

// phase is that in which an entry changes; -1 for what others take out: the bus, the boxes
// of messages, the audit log, and what drops scopes whole.
func (e *Eraser) phase(ks kv.Keyspace, scope kv.Scope, tag byte) int {
	own := scope == e.scope
	switch {
	case own && e.part == nil, ks == kv.Events:
		return -1
	case ks == kv.System && scope.Kind == kv.OwnerAgent:
		switch {
		case tag == childTag:
			return 1
		case tag == spawnedTag:
			return 2
		case bytes.IndexByte([]byte("mntqx"), tag) >= 0:
			return -1
		}
	case ks == kv.System && (scope.Owner == "audit" || Erasures.Has(scope)):
		return -1
	case ks == kv.Blobs && own && tag == blobEntry:
		return 1
	case ks == kv.Log && own && tag == 'n':
		return 2
	}
	return 0
}

// Changes yields what is to be changed in a phase, entry by entry.
func (e *Eraser) Changes(ctx context.Context, from store.Scanner, phase int, found func(kv.Keyspace, Change) error) error {
	for _, r := range e.Ranges() {
		if r.Keyspace == kv.Events || e.part != nil && (r.Keyspace == kv.Records || r.Keyspace == kv.Index) {
			continue
		}
		for p, err := range from.Scan(ctx, r.Keyspace, r.Range) {
			if err != nil {
				return fmt.Errorf("erasure: %w", err)
			}
			scope, rest, err := kv.SplitKey(p.Key)
			if err != nil || len(rest) == 0 {
				continue
			}
			// A child that has to be looked at in a later phase is noted in all of them.
			value, keep, err := e.change(ctx, r.Keyspace, p)
			if err != nil && !errors.Is(err, errAnew) {
				return fmt.Errorf("erasure: %s: key %q: %w", r.Keyspace, p.Key, err)
			}
			if err != nil || keep && bytes.Equal(value, p.Value) || e.phase(r.Keyspace, scope, rest[0]) != phase {
				continue
			}
			change := Change{Key: p.Key, Before: p.Value}
			if keep {
				change.After = append([]byte{}, value...)
			}
			if e.part == nil && r.Keyspace == kv.System && phase == 1 {
				if err := e.spawned(scope, p.Value, found); err != nil {
					return err
				}
			}
			if err := found(r.Keyspace, change); err != nil {
				return err
			}
		}
	}
	return nil
}

// spawned has the subject lose a child together with what says whose child that was.
func (e *Eraser) spawned(child kv.Scope, value []byte, found func(kv.Keyspace, Change) error) error {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return err
		}
		if f.Number == 2 {
			key := e.scope.Key(spawnedTag, binary.BigEndian.AppendUint64(nil, f.Value))
			return found(kv.System, Change{Key: key, Before: []byte(child.Owner)})
		}
	}
	return nil
}
