package memory

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// tagWaiting marks records that wait for a vector; tagWaitingScope, in the
// system keyspace, the scopes that have such records.
const (
	tagWaiting      = 'w'
	tagWaitingScope = 'e'
)

func waitingPrefix(scope kv.Scope) []byte { return scope.Key(tagWaiting) }

func waitingKey(scope kv.Scope, ordinal uint32) []byte {
	return scope.Key(tagWaiting, binary.BigEndian.AppendUint32(nil, ordinal))
}

// waitingList is the list of scopes that have records waiting.
const waitingList kv.List = "embeddings"

// waitingScopeKey is the entry of a scope in one of the list's scopes.
func waitingScopeKey(list, scope kv.Scope) []byte {
	return list.Key(tagWaitingScope, []byte{byte(scope.Kind)}, []byte(scope.Owner))
}

// stageWaiting stages that a record waits for a vector.
func stageWaiting(tx *kv.Tx, scope kv.Scope, r record.Record) {
	tx.Put(kv.Records, waitingKey(scope, r.Document.Ordinal), []byte(r.ID))
	tx.Put(kv.System, waitingScopeKey(waitingList.Part(scope), scope), nil)
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
		return waiting{}, fmt.Errorf("%w: mark of a record that waits for a vector", ErrDamaged)
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

// checkWaiting compares the marks with the records that they name.
func checkWaiting(ctx context.Context, view kv.Reader, scope kv.Scope, ordinals map[string]uint32, report func(string, ...any)) error {
	marks, err := readWaiting(ctx, view, scope, 0)
	if err != nil {
		return err
	}
	for _, mark := range marks {
		if ordinals[mark.id] != mark.ordinal {
			report("record %q waits for a vector as document %d and is document %d", mark.id, mark.ordinal, ordinals[mark.id])
		}
	}
	return nil
}

// waitingScopes returns the scopes that may have records waiting, each once.
func waitingScopes(ctx context.Context, from kv.Reader) ([]kv.Scope, error) {
	var scopes []kv.Scope
	seen := make(map[kv.Scope]struct{}) // one may stand in a part and in the whole list
	for list, err := range waitingList.Scopes(ctx, from) {
		if err != nil {
			return scopes, err
		}
		prefix := list.Key(tagWaitingScope)
		for pair, err := range from.Scan(ctx, kv.System, kv.Prefix(prefix)) {
			if err != nil {
				return scopes, err
			}
			rest := pair.Key[len(prefix):]
			if len(rest) < 2 {
				return scopes, fmt.Errorf("%w: scope of records that wait for a vector", ErrDamaged)
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
