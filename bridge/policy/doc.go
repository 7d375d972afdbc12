// Package policy says what a tool call may do.
//
// The nouns:
//
//   - A [Profile] is what calls may do, resolved: a mode, places, hosts, variables and
//     limits. It names no other profile.
//   - A [Capability] is one thing beyond a profile, which a person can allow.
package policy
