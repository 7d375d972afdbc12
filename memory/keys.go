package memory

import (
	"encoding/binary"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The tags of the records keyspace. Tag q holds answered requests; those of
// vectors stand beside them, and the journal has j, l, p and x.
const (
	tagRecord  = 'r'
	tagKey     = 'k'
	tagVersion = 'h'
	tagExpiry  = 't'
	tagCounts  = 'c'
)

func recordKey(scope kv.Scope, id string) []byte { return scope.Key(tagRecord, []byte(id)) }

// keyKey is where the id of the record with that key stands.
func keyKey(scope kv.Scope, key string) []byte { return scope.Key(tagKey, []byte(key)) }

// versionsOf is what the keys of a record's earlier versions begin with.
func versionsOf(scope kv.Scope, id string) []byte {
	return kv.AppendEscaped(scope.Key(tagVersion), id)
}

func versionKey(scope kv.Scope, id string, version int64) []byte {
	return binary.BigEndian.AppendUint64(versionsOf(scope, id), uint64(version))
}

// expiryKey stands for a record that expires; the keys sort by the moment.
func expiryKey(scope kv.Scope, at time.Time, id string) []byte {
	return append(expiryBound(scope, at), id...)
}

// expiryBound is what the keys of all records begin with that expire at a
// moment.
func expiryBound(scope kv.Scope, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(scope.Key(tagExpiry), uint64(max(0, at.UnixMicro())))
}

func countsKey(scope kv.Scope) []byte { return scope.Key(tagCounts) }

func recordsRef(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Records, Scope: scope} }
