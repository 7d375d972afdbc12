// Package export writes what an agent did and said as files: its steps, messages,
// folds and tasks as lines, each step with its line and its result, and offloaded
// results byte for byte under every path that they have.
//
//   - A [Tree] is the directory that is written to, and [Lines] a file of lines in it.
//   - [Write] writes one agent's, or one session's, context into a tree. A blob that is
//     damaged is left out and reported.
//
// Nothing is written to the store. It is read entry by entry, so that an export may
// take hours and still needs no snapshot of that age: data written meanwhile may be
// missing.
package export
