package grants

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of grants when a subject is erased: it is no longer a maker, granter or
// grantee. A space that it made stays for agents that have access; where no agent
// administers it any more, the server's operator does.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "memory/grants",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "us", Tags: string(rune(tagGrants)), Texts: "patterns of several agents"},
			{Keyspace: kv.System, Kinds: "y", Lists: []string{string(directory)}, Tags: string([]byte{tagSpace, tagLeaving}), Texts: "names of spaces"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				switch {
				case r.Subject.Kind != erase.Agent || r.Subject.Narrowed():
				case e.Tag == tagSpace && e.Scope.Kind == kv.OwnerSystem:
					if string(e.Value) == r.Subject.ID {
						return []byte{}, true, nil
					}
				case e.Tag == tagGrants:
					return without(e, r.Subject.ID)
				}
				return e.Stays()
			}, nil
		},
	}
}

// without returns the grants of a memory, leaving out grants that name an agent.
func without(e erase.Entry, agent string) ([]byte, bool, error) {
	m, err := decode(e.Value)
	if err != nil {
		return nil, false, err
	}
	named := m.maker == agent
	if named {
		m.maker = ""
	}
	m.grants = slices.DeleteFunc(m.grants, func(g Grant) bool {
		gone := g.Pattern == agent
		named = named || gone
		return gone
	})
	for i := range m.grants {
		if m.grants[i].By == agent {
			m.grants[i].By, named = "", true
		}
	}
	if !named {
		return e.Stays()
	}
	value := m.encode()
	return value, len(value) > 0, nil
}

// orphaned reports whether a space has lost its maker and everybody who administered it.
func (m *memory) orphaned() bool { return !m.made.IsZero() && m.maker == "" && !m.admins() }
