// Package approval asks people for what calls may not do by themselves.
//
// The nouns:
//
//   - A [Request] asks for a capability, such as the use of a tool, a host or a place: never
//     for the arguments of one call. [Asks] says which calls ask before they begin; others
//     ask while they run, when they need something beyond their profile.
//   - A [Broker] holds the calls that wait, and the [Grant]s that people gave. A grant
//     covers a session, an agent or all agents of a tenant, and is kept until it is revoked.
//
// Promises: a call that waits for the use of its tool holds no slot and has not begun. No answer in time is a denial,
// and so is a tenant whose approvals have no watcher. A grant is on disk before the call goes
// on.
//
// Caveats: calls that wait end with the server. A [Decider] never decides about the calls of
// the agent that it speaks as. A grant for an agent holds as long as the same agents stand above
// it. A grant for a place counts for all that lies in it, and one to
// write it also to read it.
package approval
