package approval

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of remembered approvals when a subject is erased: those for an
// agent, those that were given under it, and those that a person gave as it go.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "bridge/approval",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "y", Lists: []string{scopeOf("").Owner}, Tags: string(rune(tagGrant)), Counted: "approvals", Texts: "what others were allowed"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				agents, err := erase.Text(e.Value, fieldAgent)
				sessions, other := erase.Text(e.Value, fieldSession)
				if err == nil {
					err = other
				}
				if r.Subject.Session != "" {
					return e.Goes(len(agents) == 1 && len(sessions) == 1 && r.Subject.Of(agents[0], sessions[0]), err)
				}
				more, other := erase.Text(e.Value, fieldBy, fieldAbove)
				if err == nil {
					err = other
				}
				return e.Goes(slices.ContainsFunc(append(agents, more...), func(id string) bool { return r.Subject.Is(erase.Agent, id) }), err)
			}, nil
		},
	}
}
