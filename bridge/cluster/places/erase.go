package places

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of workspaces when a subject is erased: an agent has none any more.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "bridge/cluster/places",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "y", Lists: []string{scopeOf("").Owner}, Tags: string(rune(tagWorkspace)), Texts: "names and folders of servers"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				return e.Goes(len(e.Tail) > 0 && r.Subject.Is(erase.Agent, string(e.Tail)), nil)
			}, nil
		},
	}
}
