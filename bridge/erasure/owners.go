package erasure

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/embed/chosen"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

// Owners are all packages that own entries of a store, in the order in which they learn about
// a subject: a session's steps lead to its results, and both to its children.
func Owners() []erase.Owner {
	return []erase.Owner{
		session.Erasure(), past.Erasure(), blob.Erasure(), children.Erasure(), memory.Erasure(), plans.Erasure(), grants.Erasure(),
		mention.Erasure(), messages.Erasure(), store.Erasure(topics.IsOf), agents.Erasure(), approval.Erasure(), audit.Erasure(),
		places.Erasure(), mcp.Erasure(), lease.Erasure(), registry.Erasure(), chosen.Erasure(), own(),
	}
}

// Erasures are what a running server is erasing (memory/FORMAT.md): an entry with ErasureTag
// in the part of the subject. KeyTag is that of the key that a running server signs with.
const (
	Erasures   = kv.List("erasures")
	ErasureTag = 'e'
	KeyTag     = 'k'
)

// own is this package: what says that a subject is being erased goes with it.
func own() erase.Owner {
	return erase.Owner{
		Name: "bridge/erasure",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "y", Lists: []string{string(Erasures)}, Tags: string([]byte{ErasureTag, KeyTag}), Phase: erase.Elsewhere},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				kinds, err := erase.Text(e.Value, 1)
				ids, other := erase.Text(e.Value, 2)
				if err == nil {
					err = other
				}
				s := r.Subject
				return e.Goes(err == nil && e.Tag == ErasureTag && !s.Narrowed() && slices.Contains(ids, s.ID) && slices.Contains(kinds, string(s.Kind)), err)
			}, nil
		},
	}
}

// sorts finds the sort of an entry, and the change of its owner.
type sorts struct {
	owners []erase.Owner
	sorts  map[[3]byte][]sorted // by keyspace, kind of owner and tag
}

// sorted is a sort of entries with its owner.
type sorted struct {
	erase.Sort
	owner int
}

func newSorts() *sorts {
	r := &sorts{owners: Owners(), sorts: make(map[[3]byte][]sorted)}
	for i, o := range r.owners {
		for _, s := range o.Sorts {
			for _, kind := range []byte(s.Kinds) {
				for _, tag := range []byte(s.Tags) {
					key := [3]byte{byte(s.Keyspace), kind, tag}
					r.sorts[key] = append(r.sorts[key], sorted{s, i})
				}
			}
		}
	}
	return r
}

// find is the sort of an entry; false for one without an owner.
func (r *sorts) find(ks kv.Keyspace, scope kv.Scope, tag byte) (*sorted, bool) {
	all := r.sorts[[3]byte{byte(ks), byte(scope.Kind), tag}]
	for i := range all {
		if all[i].Has(ks, scope, tag) {
			return &all[i], true
		}
	}
	return nil, false
}

// whole reports whether a scope is the subject's.
func (r *sorts) whole(s Subject, scope kv.Scope) bool {
	return slices.ContainsFunc(r.owners, func(o erase.Owner) bool { return o.Whole != nil && o.Whole(s, scope) })
}
