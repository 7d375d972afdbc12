// Package protect keeps protected paths of workspaces as they are while programs run there:
// hooks and settings that others than the program act on later, with more rights.
//
// The nouns:
//
//   - A [Runner] is a sandbox's runner that looks at the protected paths before a program
//     and behind it, and puts back what was changed.
//   - What it finds in their place goes to [Undone] in the workspace, where nothing uses it.
//
// In the tier of namespaces a program can't change what is there; a name where nothing is
// can't be kept from it, so what it makes there is taken away. Landlock alone keeps nothing
// of a folder that a program may change: there everything is put back.
//
// What was there before is noted in a folder of the server ([Options.Dir]) while programs run,
// so that one that is killed puts it back when it starts again.
//
// Caveats: while a program runs, and for a moment behind it, others see what it did. What
// people change meanwhile is taken for the program's, unless namespaces keep it. A folder of
// more than [MaxBytes] or [MaxEntries] is watched and can't be put back. Repositories that a
// program makes itself are its own.
package protect
