// Package attack is the test suite of the sandbox: what a hostile tool would try.
//
// The nouns:
//
//   - An attack has a name and a target that lies outside of what a tool was given. It
//     reaches the target, or something stops it.
//   - A [World] is what attacks are made on: files, processes, sockets and ports outside,
//     and the workspace. A [Scene] is one that was made for a test; it knows afterwards
//     whether everything outside is as it was.
//   - The attacker is the program of the test itself, copied into the workspace. [Main]
//     converts a program into the attacker; tests call it first in their TestMain.
//
// An attack that is stopped says nothing unless it reaches its target without the
// sandbox: tests make each one without it first, in the same run.
//
// Caveats: Linux on amd64 alone. Targets are processes, files and ports of the test's
// own, on this machine.
package attack
