package segment

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Sorts are the entries of indexes, which are made anew without what went.
func Sorts() []erase.Sort {
	tags := []byte{tagHead, TagList, TagEntry, TagIDs, TagSegment, TagColumns, TagDeleted, TagSession}
	return []erase.Sort{{Keyspace: kv.Index, Kinds: "aus", Tags: string(tags), Texts: "words of what others remember"}}
}
