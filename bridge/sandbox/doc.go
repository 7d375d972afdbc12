// Package sandbox starts the processes of tools, confined. Nothing else in the server
// starts one.
//
// The nouns:
//
//   - A [Runner] runs a [Job] somewhere, with [Streams], under a [Policy], and returns the
//     [RunOutcome]. [Local] is the one that runs it on this machine.
//   - A tier is a set of layers that stand together. Tier N, "namespaces", gives the tool
//     a file tree, processes and its own network, and Landlock, seccomp and limits
//     over them. Tier L, "landlock", works where namespaces can't be made, such as in
//     default containers: Landlock, a filter without sockets, and a supervisor for what
//     Landlock does not see.
//   - A [Confinement] names tier, layers and gaps: what the tier can't stop.
//
// Which tier there is, is found out by trying: a child is confined and must be refused
// whatever each layer is there to refuse. With neither tier nothing runs (ErrUnavailable),
// unless the operator switched the sandbox off. THREATS.md says what is kept from what.
//
// Caveats: Linux on amd64 alone. The helper is part of the server's own binary, or
// embedded (tag embedhelper), which starts faster.
package sandbox
