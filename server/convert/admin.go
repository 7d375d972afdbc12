package convert

import (
	"cmp"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
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

// Scopes converts owners and the contents of their memories.
func Scopes(all []memory.Owned) []*loombridgev1.MemoryScope {
	out := make([]*loombridgev1.MemoryScope, len(all))
	for i, o := range all {
		out[i] = &loombridgev1.MemoryScope{
			Owner: ownerOf(o.Scope), Records: o.Records, Archived: o.Archived, Bytes: o.Bytes,
		}
	}
	return out
}

// EraseSubject is whose data goes; the tenant is the caller's unless another is named.
func EraseSubject(r *loombridgev1.EraseScopeRequest, tenant string) erasure.Subject {
	s := r.GetSubject()
	out := erasure.Subject{Tenant: cmp.Or(s.GetTenant(), tenant), Session: s.GetSessionId(), Filter: s.GetFilter()}
	out.Step, _ = step.ParseID(s.GetStepId()) // which was checked
	if r.GetShared() == loombridgev1.EraseShared_ERASE_SHARED_RECORDS {
		out.Shared = erase.Records
	}
	switch owner := s.GetOwner().(type) {
	case *loombridgev1.EraseSubject_AgentId:
		out.Kind, out.ID = erasure.Agent, owner.AgentId
	case *loombridgev1.EraseSubject_UserId:
		out.Kind, out.ID = erasure.User, owner.UserId
	}
	return out
}

// EraseProgress converts the progress of an erasure.
func EraseProgress(p live.EraseProgress) *loombridgev1.EraseScopeResponse {
	return &loombridgev1.EraseScopeResponse{Step: enumOf[loombridgev1.EraseStep](string(p.Step)), Entries: p.Entries}
}

// EraseResult converts the result of an erasure or a dry run.
func EraseResult(r *live.Result, dry bool) *loombridgev1.EraseScopeResponse {
	out := &loombridgev1.EraseResult{Counts: r.Counts, Entries: r.Entries, Bytes: r.Bytes, Resumed: r.Resumed}
	if !dry {
		out.BytesState = loombridgev1.EraseBytesState_ERASE_BYTES_STATE_KEPT
		if r.Reclaimed {
			out.BytesState = loombridgev1.EraseBytesState_ERASE_BYTES_STATE_RECLAIMED
		}
		out.Certificate = r.Certificate.Text()
	}
	return &loombridgev1.EraseScopeResponse{Result: out}
}
