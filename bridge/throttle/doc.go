// Package throttle bounds how often, and how many at once, tools are called.
//
// The nouns:
//
//   - A [Rule] is a bound for the tools of a pattern: a rate, or a number at once, of each
//     agent, of each tenant, or of the server.
//   - [Limits] are the rules of a server with their current use. A call that begins counts
//     for every rule that its tool matches, or is refused by one and counts for none.
//
// A rate of 30 a minute is a bucket of 30 calls that fills evenly. Where agents share a
// bucket, half of it is for the first comer; the other half is for agents within their
// part, which is the rate divided among the tenants that call, then among the agents of
// each. So an agent that calls without end gets what the others leave, and they get their
// part. Numbers at once are shared as everything is that package share divides: the last
// place is kept for an agent that has none.
//
// Caveats: the use is kept in memory; a server starts with full buckets.
package throttle
