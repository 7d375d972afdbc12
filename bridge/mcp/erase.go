package mcp

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of the servers that were added: they are the tenant's.
func Erasure() erase.Owner {
	return erase.Owner{Name: "bridge/mcp", Sorts: []erase.Sort{
		{Keyspace: kv.System, Kinds: "y", Lists: []string{string(keptList)}, Tags: string([]rune{tagServer, tagPins}), Texts: "command lines, addresses and tools of MCP servers"},
	}}
}
