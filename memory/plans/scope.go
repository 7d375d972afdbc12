package plans

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// unnamed begins the owner of a session whose name no owner can have.
const unnamed = "journal/"

// scopeOf is where the entries of a session stand.
func scopeOf(tenant, session string) (kv.Scope, error) {
	scope := kv.AgentScope(tenant, session)
	if scope.Validate() == nil {
		return scope, nil
	}
	sum := sha256.Sum256([]byte(session))
	scope = kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: unnamed + hex.EncodeToString(sum[:])}
	return scope, scope.Validate()
}

// found is a session that is there, with its counters.
type found struct {
	scope    kv.Scope
	counters counters
}

// sessions yields the sessions of a tenant: those in the scope of an agent by name, then the
// others by hash. It reads two keys of every scope that has records.
func sessions(ctx context.Context, from kv.Reader, tenant string) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		// An invalid tenant could reach into another tenant.
		if _, err := scopeOf(tenant, ""); err != nil {
			yield(found{}, err)
			return
		}
		for _, owners := range []kv.Scope{
			{Tenant: tenant, Kind: kv.OwnerAgent},
			{Tenant: tenant, Kind: kv.OwnerSystem, Owner: unnamed},
		} {
			prefix := owners.AppendPrefix(nil)
			begins := kv.Prefix(prefix[:len(prefix)-1]) // without the owner's end
			for scope, err := range kv.ScopesIn(ctx, from, kv.Records, begins) {
				f := found{scope: scope}
				if err == nil {
					f.counters, err = readCounters(ctx, from, scope)
				}
				if err == nil && f.counters == (counters{}) {
					continue
				}
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}
