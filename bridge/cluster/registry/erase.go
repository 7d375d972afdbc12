package registry

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of the registry: it is of servers, and no tenant's.
func Erasure() erase.Owner {
	tags := []byte{tagBridge, tagEpoch, tagLease, tagMesh, tagSecret}
	return erase.Owner{Name: "bridge/cluster/registry", Sorts: []erase.Sort{
		{Keyspace: kv.System, Kinds: "y", Lists: []string{scope.Owner}, Tags: string(tags), Texts: "names and addresses of servers"},
	}}
}
