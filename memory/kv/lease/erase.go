package lease

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure handles leases, which name servers and work alone.
func Erasure() erase.Owner {
	return erase.Owner{Name: "memory/kv/lease", Sorts: []erase.Sort{
		{Keyspace: kv.System, Kinds: "y", Lists: []string{"lease/"}, Tags: string(rune(tagLease)), Texts: "names of servers"},
	}}
}
