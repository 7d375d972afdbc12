// Package approval says who may run what, and asks a person where the rules say so.
//
// The nouns:
//
//   - [Rules] are the operator's bindings: the first [Rule] whose tenant, agent and tool
//     match a call says what the call needs.
//   - A [Capability] is what is asked for and remembered, such as the use of a tool: never
//     the arguments of one call.
//   - A [Broker] holds the calls that wait, and the [Grant]s that people gave. A grant
//     covers a session, an agent or all agents of a tenant, and is kept until it is revoked.
//
// Promises: a call that waits holds no slot and has not begun. No answer in time is a denial,
// and so is a tenant whose approvals nobody watches. A grant is on disk before the call goes
// on.
//
// Caveats: calls that wait end with the server. Whoever may act for an agent may approve its
// calls; a grant for all agents needs a caller that may act for all.
package approval
