// Package excerpt finds in a text what is worth keeping of it, for all that cut
// texts: package step when a call is recorded, package history when it is folded,
// package compress on request.
//
//   - The middle cut: Halves shares out the room, Head and Tail keep both ends on
//     borders of lines, NamedHead and NamedTail of names, too. What stands between
//     them is the caller's, who knows where the whole can be read.
//   - ErrorLines are the lines that say what went wrong.
//   - Identifiers are the names: paths, failures, numbers, links and symbols, the
//     best first. A Ranking adds up the names of many texts.
//   - Quoted distinguishes letters of escapes from letters of names.
//
// The package is pure.
package excerpt
