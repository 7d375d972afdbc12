package vector

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Sorts are the entries of vectors, which go with their records.
func Sorts() []erase.Sort {
	return []erase.Sort{
		{Keyspace: kv.Records, Kinds: "aus", Tags: string(rune(tagVector)), Counted: "vectors"},
		{Keyspace: kv.Records, Kinds: "aus", Tags: string(rune(tagSpaces)), Texts: "names of spaces of vectors"},
		{Keyspace: kv.Index, Kinds: "aus", Tags: string(rune(tagCodes))},
	}
}

// IsDirectory reports whether an entry lists the spaces of a scope.
func IsDirectory(e erase.Entry) bool {
	return e.Keyspace == kv.Records && e.Tag == tagSpaces && len(e.Tail) == 0
}

// Unmade is the list of spaces without the name of an agent that made some of them.
func Unmade(e erase.Entry, agent string) ([]byte, bool, error) {
	d, err := decodeDirectory(e.Value)
	if err != nil {
		return nil, false, err
	}
	named := false
	for i := range d.spaces {
		if s := &d.spaces[i]; s.by == agent {
			s.by, named = "", true
		}
	}
	if !named {
		return e.Stays()
	}
	return d.encode(), true, nil
}
