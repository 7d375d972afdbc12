package convert

import (
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// OwnerKind is what a request calls the kind of owners; zero for any.
func OwnerKind(k loombridgev1.ScopeKind) kv.OwnerKind {
	return map[loombridgev1.ScopeKind]kv.OwnerKind{
		loombridgev1.ScopeKind_SCOPE_KIND_AGENT: kv.OwnerAgent,
		loombridgev1.ScopeKind_SCOPE_KIND_USER:  kv.OwnerUser,
		loombridgev1.ScopeKind_SCOPE_KIND_SPACE: kv.OwnerSpace,
	}[k]
}

// Scopes tells of owners and what their memories hold.
func Scopes(all []memory.Owned) []*loombridgev1.MemoryScope {
	out := make([]*loombridgev1.MemoryScope, len(all))
	for i, o := range all {
		out[i] = &loombridgev1.MemoryScope{
			Owner: ownerOf(o.Scope), Records: o.Records, Archived: o.Archived, Versions: o.Versions, Words: o.Words, Sessions: o.Sessions, Bytes: o.Bytes,
		}
	}
	return out
}
