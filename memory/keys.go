package memory

import (
	"encoding/binary"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tags of the records keyspace beside those of package record.
const (
	tagExpiry = 't'
	tagCounts = 'c'
)

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
