package audit

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags in the scope of a tenant's audit (memory/FORMAT.md).
const (
	tagEpoch  = 'e' // the last epoch that was begun
	tagLink   = 'l' // epoch, number: a link
	tagRecord = 'r' // epoch, number: a record
)

// name is what the scope of a tenant's audit is called.
const name = "audit"

// scopeOf is where a tenant's audit stands, in the keyspace System.
func scopeOf(tenant string) kv.Scope {
	return kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: name}
}

func refOf(tenant string) kv.Ref { return kv.Ref{Keyspace: kv.System, Scope: scopeOf(tenant)} }

// recordPlace is where a record or a link stands: its epoch, and its number there, from 1.
type recordPlace struct{ epoch, number uint64 }

func (p recordPlace) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.epoch), p.number)
}

func keyOf(tenant string, tag byte, p recordPlace) []byte { return scopeOf(tenant).Key(tag, p.bytes()) }

func epochKey(tenant string) []byte { return scopeOf(tenant).Key(tagEpoch) }

// placeOf is the place that ends a key, and the tag before it; tag 0 for a key that has
// none.
func placeOf(key []byte) (tag byte, p recordPlace) {
	_, rest, err := kv.SplitKey(key)
	if err != nil || len(rest) != 1+16 {
		return 0, recordPlace{}
	}
	return rest[0], recordPlace{binary.BigEndian.Uint64(rest[1:]), binary.BigEndian.Uint64(rest[9:])}
}

// from is the range of the keys of a tag from a place on.
func from(tenant string, tag byte, p recordPlace) kv.Range {
	return kv.Range{Start: keyOf(tenant, tag, p), End: kv.After(scopeOf(tenant).Key(tag))}
}

// all is the range of all keys of a tag.
func all(tenant string, tag byte) kv.Range { return kv.Prefix(scopeOf(tenant).Key(tag)) }

// digest is a SHA-256.
type digest = [sha256.Size]byte

// digestOf is the digest of a pair. The key is in it, so that a value can't be moved.
func digestOf(key, value []byte) digest {
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(key)))
	h.Write(size[:])
	h.Write(key)
	h.Write(value)
	return digest(h.Sum(nil))
}
