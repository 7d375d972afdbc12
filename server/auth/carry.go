package auth

import (
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/grants"
)

// carried is an Identity on its way to another server of the same store.
type carried struct {
	Tenant   string                    `json:"tenant"`
	Patterns []string                  `json:"patterns,omitempty"`
	Edits    []string                  `json:"edits,omitempty"`
	Approves []string                  `json:"approves,omitempty"`
	Operates bool                      `json:"operates,omitempty"`
	Open     bool                      `json:"open,omitempty"`
	Users    map[grants.Level][]string `json:"users,omitempty"`
	Provides []string                  `json:"provides"` // null: all
}

// Encode writes the identity for another server of the same store, which trusts this one.
func (i Identity) Encode() []byte {
	text, err := json.Marshal(carried{i.tenant, i.patterns, i.edits, i.approves, i.operates, i.open, i.users, i.provides})
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}

// DecodeIdentity reads what Encode wrote.
func DecodeIdentity(text []byte) (Identity, error) {
	var c carried
	if err := json.Unmarshal(text, &c); err != nil {
		return Identity{}, fmt.Errorf("auth: identity of another server: %w", err)
	}
	return Identity{c.Tenant, c.Patterns, c.Edits, c.Approves, c.Operates, c.Open, c.Users, c.Provides}, nil
}
