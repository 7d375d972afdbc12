package memory

import "github.com/loom-bridge/loom-bridge/memory/kv"

// The tags of the records keyspace. Tag q holds answered requests.
const (
	tagRecord = 'r'
	tagKey    = 'k'
)

func recordKey(scope kv.Scope, id string) []byte { return scope.Key(tagRecord, []byte(id)) }

// keyKey is where the id of the record with that key stands.
func keyKey(scope kv.Scope, key string) []byte { return scope.Key(tagKey, []byte(key)) }

func recordsRef(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Records, Scope: scope} }
