package memory

import (
	"context"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// owners yields the scope of the first key of a keyspace, and then again and
// again that of the first key behind where next says. It reads one key each
// time.
func owners(ctx context.Context, from kv.Getter, ks kv.Keyspace, next func(kv.Scope) []byte) iter.Seq2[kv.Scope, error] {
	return func(yield func(kv.Scope, error) bool) {
		for start := []byte(nil); ; {
			scope, found, err := firstOwner(ctx, from, ks, start)
			if err != nil {
				yield(kv.Scope{}, err)
				return
			}
			if !found || !yield(scope, nil) {
				return
			}
			if start = next(scope); start == nil {
				return
			}
		}
	}
}

func firstOwner(ctx context.Context, from kv.Getter, ks kv.Keyspace, start []byte) (scope kv.Scope, found bool, err error) {
	for pair, err := range from.Scan(ctx, ks, kv.Range{Start: start, Limit: 1}) {
		if err != nil {
			return kv.Scope{}, false, err
		}
		scope, _, err = kv.SplitKey(pair.Key)
		return scope, err == nil, err
	}
	return kv.Scope{}, false, nil
}

// behindTenant is where the keys of the next tenant begin.
func behindTenant(s kv.Scope) []byte { return kv.After(append([]byte(s.Tenant), 0)) }

// behindScope is where the keys of the next scope begin.
func behindScope(s kv.Scope) []byte { return kv.After(s.AppendPrefix(nil)) }

// renew makes the indexes anew that an older version wrote, and with them what
// the sweep finds records by, so that records of scopes which nobody uses any
// more expire as well.
func (s *Store) renew(ctx context.Context) {
	for scope, err := range owners(ctx, s.engine, kv.Records, behindScope) {
		if err == nil {
			err = s.current(ctx, scope, func() error {
				_, _, err := s.index.Statistics(ctx, s.engine, scope)
				return err
			})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.logger.ErrorContext(ctx, "memory: index not renewed", "scope", scope.String(), "error", err)
		}
	}
}
