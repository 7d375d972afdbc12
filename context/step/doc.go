// Package step holds what an agent's log keeps of one tool call, and the rules
// that make it small.
//
// The nouns:
//
//   - A [Step] is the record of one call: which tool, the arguments worth
//     keeping, one line about what came out, and the way back to all of it.
//   - A [Call] is a tool's name, its arguments and its [Result]: what a step is
//     made from.
//   - A [Reducer] converts a call into a [Reduced]: the parts of a step that follow
//     from the call alone, and what has to be offloaded.
//   - [Rules] say what of each tool's calls stays, how its line reads and what is
//     offloaded. They are data: a table of TOML that a user can change.
//   - A [CompactStep] is a step in one line.
//   - An [Original] is a result as it was given, byte for byte; [Given] says where
//     a step has it. Everything else is taken out of it.
//
// What programs print is recognized by its form: test runners, searches, git,
// compilers, what a program died of, JSON, tables. Its figures become metadata.
// Of a result too long to be shown, a step keeps the evidence: the lines that sum
// up or say what went wrong, and names.
//
// The package is pure: nothing in it reads a clock, a store or a file. The
// step's number, its time and its blob are filled in when it is recorded.
package step
