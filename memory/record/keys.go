package record

import (
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags of the records keyspace. FORMAT.md lists the tags of other keyspaces.
const (
	// Tag begins the keys of records.
	Tag = 'r'
	// TagKey begins the keys of the names that callers gave.
	TagKey = 'k'
	// TagVersion begins the keys of earlier versions.
	TagVersion = 'h'
	// TagSame begins the keys by which a record is found that a text repeats.
	TagSame = 's'
)

// Key is where a record stands.
func Key(scope kv.Scope, id string) []byte { return scope.Key(Tag, []byte(id)) }

// Keys are where the records of those ids stand.
func Keys(scope kv.Scope, ids []string) [][]byte {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = Key(scope, id)
	}
	return keys
}

// NameKey is where the id of the record with that key stands.
func NameKey(scope kv.Scope, key string) []byte { return scope.Key(TagKey, []byte(key)) }

// VersionsOf is what the keys of a record's earlier versions begin with.
func VersionsOf(scope kv.Scope, id string) []byte {
	return kv.AppendEscaped(scope.Key(TagVersion), id)
}

// VersionKey is where an earlier version of a record stands.
func VersionKey(scope kv.Scope, id string, version int64) []byte {
	return binary.BigEndian.AppendUint64(VersionsOf(scope, id), uint64(version))
}
