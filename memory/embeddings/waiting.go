package embeddings

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Tag marks records that wait for a vector; TagScope, in the
// system keyspace, the scopes that have such records.
const (
	Tag      = 'w'
	TagScope = 'e'
)

func waitingPrefix(scope kv.Scope) []byte { return scope.Key(Tag) }

func waitingKey(scope kv.Scope, ordinal uint32) []byte {
	return scope.Key(Tag, binary.BigEndian.AppendUint32(nil, ordinal))
}

// List is the list of scopes that have records waiting.
const List kv.List = "embeddings"

// waitingScopeKey is the entry of a scope in one of the list's scopes.
func waitingScopeKey(list, scope kv.Scope) []byte {
	return list.Key(TagScope, []byte{byte(scope.Kind)}, []byte(scope.Owner))
}

// stageWaiting stages that a record waits for a vector.
func stageWaiting(tx *kv.Tx, scope kv.Scope, r record.Record) {
	tx.Put(kv.Records, waitingKey(scope, r.Document.Ordinal), []byte(r.ID))
	tx.Put(kv.System, waitingScopeKey(List.Part(scope), scope), nil)
}

func isWaiting(ctx context.Context, from kv.Getter, scope kv.Scope, ordinal uint32) (bool, error) {
	values, err := from.Get(ctx, kv.Records, waitingKey(scope, ordinal))
	return err == nil && values[0] != nil, err
}

func dropWaiting(ctx context.Context, tx *kv.Tx, scope kv.Scope, ordinal uint32) error {
	waits, err := isWaiting(ctx, tx, scope, ordinal)
	if waits {
		tx.Delete(kv.Records, waitingKey(scope, ordinal))
	}
	return err
}

// waiting is a record that waits for a vector.
type waiting struct {
	ordinal uint32
	id      string
}

func decodeWaiting(prefix []byte, pair kv.Pair) (waiting, error) {
	rest := pair.Key[len(prefix):]
	if len(rest) != 4 {
		return waiting{}, fmt.Errorf("%w: mark of a record that waits for a vector", record.ErrDamaged)
	}
	return waiting{binary.BigEndian.Uint32(rest), string(pair.Value)}, nil
}

// readWaiting returns the first of a scope's records that wait.
func readWaiting(ctx context.Context, from kv.Getter, scope kv.Scope, limit int) ([]waiting, error) {
	prefix := waitingPrefix(scope)
	all := kv.Prefix(prefix)
	all.Limit = limit
	var marks []waiting
	for pair, err := range from.Scan(ctx, kv.Records, all) {
		if err != nil {
			return nil, err
		}
		mark, err := decodeWaiting(prefix, pair)
		if err != nil {
			return nil, err
		}
		marks = append(marks, mark)
	}
	return marks, nil
}

// Pending counts the records of all scopes that wait for a vector, up to most.
func (e *Embeddings) Pending(ctx context.Context, most int) (n int, err error) {
	scopes, err := waitingScopes(ctx, e.engine)
	if err != nil {
		return 0, err
	}
	for _, scope := range scopes {
		marks, err := readWaiting(ctx, e.engine, scope, most-n)
		if err != nil {
			return 0, err
		}
		if n += len(marks); n >= most {
			break
		}
	}
	return n, nil
}

// waitingScopes returns the scopes that may have records waiting, each once.
func waitingScopes(ctx context.Context, from kv.Reader) ([]kv.Scope, error) {
	var scopes []kv.Scope
	seen := make(map[kv.Scope]struct{}) // one may stand in a part and in the whole list
	for list, err := range List.Scopes(ctx, from) {
		if err != nil {
			return scopes, err
		}
		prefix := list.Key(TagScope)
		for pair, err := range from.Scan(ctx, kv.System, kv.Prefix(prefix)) {
			if err != nil {
				return scopes, err
			}
			rest := pair.Key[len(prefix):]
			if len(rest) < 2 {
				return scopes, fmt.Errorf("%w: scope of records that wait for a vector", record.ErrDamaged)
			}
			scope := kv.Scope{Tenant: list.Tenant, Kind: kv.OwnerKind(rest[0]), Owner: string(rest[1:])}
			if _, known := seen[scope]; !known {
				seen[scope] = struct{}{}
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes, nil
}
