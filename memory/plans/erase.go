package plans

import (
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of plans: they go with the agent whose name their session has.
func Erasure() erase.Owner {
	sort := func(tags, counted string) erase.Sort {
		return erase.Sort{Keyspace: kv.Records, Kinds: "ay", Lists: []string{unnamed}, Tags: tags, Counted: counted, Texts: "plans of others"}
	}
	return erase.Owner{Name: "memory/plans", Sorts: []erase.Sort{
		sort(string(rune(plans)), "plans"), sort(string([]byte{tagCounters, byte(lines), byte(executions)}), ""),
	}}
}

// Is reports whether an entry is of plans, which share a keyspace and scopes with records.
func Is(e erase.Entry) bool {
	return e.Keyspace == kv.Records && (e.Tag == tagCounters || e.Tag == byte(lines) || e.Tag == byte(plans) || e.Tag == byte(executions))
}
