package auth

import (
	"slices"
	"strings"
)

// holding is a pattern of agents of a tenant, by which a holder has them.
type holding struct{ tenant, pattern string }

// hold notes whose agents those of an identity are. Credentials with the same agents, such
// as an old and a new token of somebody, are one holder; of others that have a pattern in
// common, the first by name.
func (c *callers) hold(id Identity) {
	name := strings.Join(slices.Compact(slices.Sorted(slices.Values(id.patterns))), "\x00")
	for _, pattern := range id.patterns {
		at := holding{id.tenant, pattern}
		if before, taken := c.holders[at]; !taken || name < before {
			c.holders[at] = name
		}
	}
}

// HolderOf says who holds an agent: the credential that names it most closely, so that all
// agents of somebody count as one, whatever names a pattern lets it give them. An
// agent of none is its own.
func (c *Credentials) HolderOf(tenant, agent string) string {
	holders := c.known.Load().holders
	if name, ok := holders[holding{tenant, agent}]; ok {
		return name
	}
	for n := len(agent); n >= 0; n-- {
		if name, ok := holders[holding{tenant, agent[:n] + "*"}]; ok {
			return name
		}
	}
	return agent
}
