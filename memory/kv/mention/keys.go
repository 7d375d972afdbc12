package mention

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags (memory/FORMAT.md): mentions and their stamp, in the keyspaces log, records and
// system; and the list of a tenant and its back-fill.
const (
	tagMention  = 'b'
	tagListed   = 'n'
	tagBackfill = 'm'
)

// Shared reports whether texts of an owner count for all agents of its tenant, so that
// their names are listed.
func Shared(scope kv.Scope) bool {
	return scope.Kind == kv.OwnerUser || scope.Kind == kv.OwnerSpace
}

// ListRef is the list of a tenant's names. A request that stages mentions of a Shared
// scope must name it as blind.
func ListRef(tenant string) kv.Ref {
	return kv.Ref{Keyspace: kv.System, Scope: kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "mentions"}}
}

func mentionKey(scope kv.Scope, name Name, by string) []byte {
	return scope.Key(tagMention, []byte(name), []byte(by))
}

func stampKey(scope kv.Scope) []byte { return scope.Key(tagMention) }

func listedKey(scope kv.Scope, name Name) []byte {
	return ListRef(scope.Tenant).Scope.Key(tagListed, []byte(name), []byte{byte(scope.Kind)}, []byte(scope.Owner))
}

// Stage adds to tx that by, a session in the log or a record, has some names. The
// request names ref.
func Stage(tx *kv.Tx, ref kv.Ref, by string, names []Name) {
	if len(names) == 0 {
		return
	}
	stamp := make([]byte, 8)
	_, _ = rand.Read(stamp) // it never fails
	tx.Put(ref.Keyspace, stampKey(ref.Scope), stamp)
	for _, name := range names {
		tx.Put(ref.Keyspace, mentionKey(ref.Scope, name, by), nil)
	}
	if !Shared(ref.Scope) {
		return
	}
	tx.Put(kv.System, stampKey(ListRef(ref.Scope.Tenant).Scope), stamp)
	for _, name := range names {
		tx.Put(kv.System, listedKey(ref.Scope, name), nil)
	}
}

// Drop adds to tx that by has some names no more.
func Drop(tx *kv.Tx, ref kv.Ref, by string, names []Name) {
	for _, name := range names {
		tx.Delete(ref.Keyspace, mentionKey(ref.Scope, name, by))
	}
}

// Reader answers who names the blobs of an owner, as far as it counts for them.
type Reader struct {
	from  kv.Getter
	scope kv.Scope
	// stamps are the stamps of ReadRefs; nil where nothing has been named.
	stamps [3][]byte
}

// ReadRefs are what a Reader reads.
func ReadRefs(scope kv.Scope) []kv.Ref {
	return []kv.Ref{{Keyspace: kv.Log, Scope: scope}, {Keyspace: kv.Records, Scope: scope}, ListRef(scope.Tenant)}
}

// NewReader returns a reader. What it reads by from.Get at once changes with every
// name that is added.
func NewReader(ctx context.Context, from kv.Getter, scope kv.Scope) (*Reader, error) {
	r := &Reader{from: from, scope: scope}
	for i, ref := range ReadRefs(scope) {
		values, err := from.Get(ctx, ref.Keyspace, stampKey(ref.Scope))
		if err != nil {
			return nil, fmt.Errorf("mention: read stamp: %w", err)
		}
		r.stamps[i] = values[0]
	}
	return r, nil
}

// Same reports whether no name was added between two readers.
func (r *Reader) Same(other *Reader) bool {
	for i := range r.stamps {
		if !bytes.Equal(r.stamps[i], other.stamps[i]) {
			return false
		}
	}
	return true
}

// Recorded reports whether a record names what a pattern finds: one of the owner, or of
// a person or space of the tenant.
func (r *Reader) Recorded(ctx context.Context, p Pattern) (bool, error) {
	if r.stamps[1] != nil {
		for _, err := range r.find(ctx, kv.Records, r.scope, p) {
			return err == nil, err
		}
	}
	if r.stamps[2] == nil {
		return false, nil
	}
	prefix := ListRef(r.scope.Tenant).Scope.Key(tagListed)
	for pair, err := range r.from.Scan(ctx, kv.System, kv.Prefix(append(prefix, p...))) {
		if err != nil {
			return false, fmt.Errorf("mention: %w", err)
		}
		name, owner, ok := cutName(string(pair.Key[len(prefix):]))
		if !ok || owner == "" {
			continue
		}
		// The record may be gone.
		listed := kv.Scope{Tenant: r.scope.Tenant, Kind: kv.OwnerKind(owner[0]), Owner: owner[1:]}
		for _, err := range r.find(ctx, kv.Records, listed, Pattern(name)) {
			return err == nil, err
		}
	}
	return false, nil
}

// Sessions yields the sessions that name what a pattern finds, some more than once.
func (r *Reader) Sessions(ctx context.Context, p Pattern) iter.Seq2[string, error] {
	if r.stamps[0] == nil {
		return func(func(string, error) bool) {}
	}
	return r.find(ctx, kv.Log, r.scope, p)
}

// find yields who in a scope has a name.
func (r *Reader) find(ctx context.Context, ks kv.Keyspace, scope kv.Scope, p Pattern) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix := stampKey(scope)
		for pair, err := range r.from.Scan(ctx, ks, kv.Prefix(append(prefix, p...))) {
			if err != nil {
				yield("", fmt.Errorf("mention: %w", err))
				return
			}
			if _, by, ok := cutName(string(pair.Key[len(prefix):])); ok && !yield(by, nil) {
				return
			}
		}
	}
}
