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

// sessions yields the sessions of a tenant: those in the
// scope of an agent by name, then the others by hash. It reads a key or two of
// every scope that has records, however many these are.
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
			for f, err := range sessionsIn(ctx, from, owners) {
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

// sessionsIn yields the sessions whose owner begins as that of owners does.
func sessionsIn(ctx context.Context, from kv.Reader, owners kv.Scope) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		prefix := owners.AppendPrefix(nil)
		rest := kv.Prefix(prefix[:len(prefix)-1]) // without the owner's end
		for {
			first, err := firstPair(ctx, from, rest)
			if err == nil && first.Key == nil {
				return
			}
			var f found
			var ok bool
			if err == nil {
				f, ok, err = session(ctx, from, first)
			}
			if err != nil {
				yield(found{}, err)
				return
			}
			if ok && !yield(f, nil) {
				return
			}
			rest.Start = kv.After(f.scope.AppendPrefix(nil))
		}
	}
}

// firstPair returns the first pair of a range; one without a key if there is
// none.
func firstPair(ctx context.Context, from kv.Reader, r kv.Range) (kv.Pair, error) {
	r.Limit = 1
	for pair, err := range from.Scan(ctx, kv.Records, r) {
		return pair, err
	}
	return kv.Pair{}, nil
}

// session returns the scope whose first pair this is, and the counters of its
// plans; false when it has none.
func session(ctx context.Context, from kv.Reader, first kv.Pair) (found, bool, error) {
	scope, rest, err := kv.SplitKey(first.Key)
	switch {
	case err != nil:
		return found{}, false, damaged("key", err)
	case len(rest) == 0 || rest[0] > tagCounters:
		return found{scope: scope}, false, nil
	case rest[0] == tagCounters:
		h, err := decodeCounters(first.Value)
		return found{scope, h}, true, err
	}
	h, err := readCounters(ctx, from, scope)
	return found{scope, h}, h != counters{}, err
}
