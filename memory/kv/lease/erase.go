package lease

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of leases: they name servers and work, and nobody else.
func Erasure() erase.Owner {
	return erase.Owner{Name: "memory/kv/lease", Sorts: []erase.Sort{
		{Keyspace: kv.System, Kinds: "y", Lists: []string{"lease/"}, Tags: string(rune(tagLease)), Texts: "names of servers"},
	}}
}
