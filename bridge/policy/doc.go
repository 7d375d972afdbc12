// Package policy says what a tool call may do: the operator's profiles, who has which,
// and how a workspace or a parent narrows them.
//
// The nouns:
//
//   - A [Profile] is what calls may do, resolved: a mode, places, hosts, variables and
//     limits. It names no other profile.
//   - A [Set] is what the operator wrote: profiles that extend each other, and bindings
//     that give them to tenants, agents and tools.
//   - A [Resolver] finds the profile of one call: that of its binding, at most what the
//     parents of its agent have, narrowed by the workspace's own file, [File].
//   - A [Capability] is one thing beyond a profile, which a person can allow.
//
// Promises: a workspace's file and a parent only take away. A file that can't be read or
// understood takes everything away, until somebody mends it.
package policy
