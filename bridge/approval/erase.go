package approval

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Erasure removes remembered approvals when a subject is erased: approvals for an agent,
// approvals given under it, and approvals that a person gave in its name.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "bridge/approval",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "y", Lists: []string{scopeOf("").Owner}, Tags: string(rune(tagGrant)), Counted: "approvals", Texts: "what others were allowed"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				var g storev1.ApprovalGrant
				err := wire.Unmarshal(e.Value, &g)
				if r.Subject.Session != "" {
					return e.Goes(g.Agent != "" && g.Session != "" && r.Subject.Of(g.Agent, g.Session), err)
				}
				return e.Goes(slices.ContainsFunc(append(g.Above, g.Agent, g.By), func(id string) bool { return r.Subject.Is(erase.Agent, id) }), err)
			}, nil
		},
	}
}
