package auth

// holding is a pattern of agents of a tenant, by which a holder has them.
type holding struct{ tenant, pattern string }

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
