package feed

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Sorts are the entries of feeds, which go with the memory that they are of.
func Sorts() []erase.Sort {
	return []erase.Sort{{Keyspace: kv.Records, Kinds: "aus", Tags: string(rune(tag)), Texts: "ids of records that others deleted"}}
}
