package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of gaps, known tools and states when a subject is erased.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "bridge/agents",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "y", Lists: []string{gapOwner}, Tags: string([]byte{tagGap, tagKnown}), Texts: "names of topics and ids of events that others follow"},
			{Keyspace: kv.System, Kinds: "ay", Lists: []string{unnamed}, Tags: string(rune(tagState)), Texts: "what agents keep themselves"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			id := sha256.Sum256([]byte(r.Subject.ID))
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				switch {
				case r.Subject.Kind != erase.Agent || r.Subject.Narrowed():
				case e.Tag == tagGap:
					return e.Goes(string(e.Tail) == string(id[:]), nil)
				case e.Tag == tagKnown:
					t, err := decodeKnown(e.Value)
					return e.Goes(t.agent == r.Subject.ID, err)
				case e.Tag == tagState:
					return e.Goes(e.Scope.Owner == unnamed+hex.EncodeToString(id[:]), nil)
				}
				return e.Stays()
			}, nil
		},
	}
}
