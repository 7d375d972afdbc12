// Package share divides what a server has a limited number of among tenants,
// and within each tenant among its agents: calls, streams, tool slots, bytes.
//
// The nouns:
//
//   - A [Pool] is so many units of one thing.
//   - An [Owner] is who takes them: a tenant and one of its agents.
//   - A [Place] is what an owner holds of a pool, until it leaves.
//
// One owner alone may take nearly all. One part in sixteen of what is free
// beside an owner is kept for those who hold less, so that a newcomer gets its
// first place at once. Where several want more than there is, their shares
// become equal as places are left: max-min fair, between tenants first, then
// between the agents of a tenant. Who waits is served in turn, tenant by tenant
// and agent by agent, not in the order of arrival.
//
// A call that waits for another agent must not hold a place which that agent
// needs to answer: see [Pause].
//
// Caveats: nothing is taken away from who holds it, so places that are held for
// long are shared only as they are left. Without tenants of its own a server has
// one; its pools are [Options.OneTenant] and keep nothing for others.
package share
