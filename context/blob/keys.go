package blob

import (
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags of the blobs keyspace (memory/FORMAT.md).
const (
	tagAlias     = 'a' // path: the path of an entry
	tagChunk     = 'c' // hash: a frame
	tagCollected = 'd' // path, or hash of the blob: when it was collected
	tagKind      = 'k' // kind: how many blobs of it were named by their number
	tagLease     = 'l' // hash of the blob: until when it stays
	tagManifest  = 'm' // hash of the blob: its manifest
	tagPath      = 'p' // path: an entry
	tagRef       = 'r' // hash of the blob, path: nothing
	tagStep      = 's' // step number, path: nothing
	tagUsage     = 'u' // nothing: what the owner's blobs take
)

// What a collected name was.
const (
	collectedPath = 'p'
	collectedRef  = 'r'
)

func chunkKey(scope kv.Scope, hash [32]byte) []byte { return scope.Key(tagChunk, hash[:]) }

func manifestKey(scope kv.Scope, hash []byte) []byte { return scope.Key(tagManifest, hash) }

func pathKey(scope kv.Scope, path string) []byte { return scope.Key(tagPath, []byte(path)) }

func stepPrefix(scope kv.Scope, number uint64) []byte {
	return binary.BigEndian.AppendUint64(scope.Key(tagStep), number)
}

func stepKey(scope kv.Scope, number uint64, path string) []byte {
	return append(stepPrefix(scope, number), path...)
}

// refPrefix begins the keys of all entries that lead to a blob.
func refPrefix(scope kv.Scope, hash []byte) []byte { return scope.Key(tagRef, hash) }

func leaseKey(scope kv.Scope, hash []byte) []byte { return scope.Key(tagLease, hash) }

func kindKey(scope kv.Scope, kind string) []byte { return scope.Key(tagKind, []byte(kind)) }

func aliasKey(scope kv.Scope, path string) []byte { return scope.Key(tagAlias, []byte(path)) }

func usageKey(scope kv.Scope) []byte { return scope.Key(tagUsage) }

func collectedKey[T ~string | ~[]byte](scope kv.Scope, what byte, name T) []byte {
	return scope.Key(tagCollected, []byte{what}, []byte(name))
}
