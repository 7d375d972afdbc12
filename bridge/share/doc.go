// Package share divides what a server has a limited number of among tenants,
// and within each tenant among its agents: calls, streams, tool slots, bytes.
//
// The nouns:
//
//   - A [Pool] is so many units of one thing.
//   - An [Owner] is who takes them: a tenant and one of its agents.
//   - A [Holding] is what an owner holds of a pool, until it leaves.
//
// One owner alone may take nearly all. One sixteenth of the places free beyond an owner's
// is kept for owners that hold less, so that a newcomer gets its first place at once. If
// several want more than there is, their shares become equal as places are released:
// max-min fair, between tenants first, then between the agents of a tenant. Waiters are
// served round-robin, tenant by tenant and agent by agent, not in the order of arrival.
//
// A call that waits for another agent must not hold a place which that agent
// needs to answer: see [Pause].
//
// Caveats: a held place is never taken away, so long-held places are shared only as they
// are released. A server without configured tenants has one; its pools are
// [Options.OneTenant] and keep nothing for others.
package share
