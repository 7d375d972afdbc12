// Package pairing brings the calls and results of a session's log together, as
// providers take them.
//
// The nouns:
//
//   - A [Pairer] takes the entries of a log in order and puts them into groups.
//   - A [Group] is what stays, moves and goes together: its [Member] entries,
//     each with its [Use], and the turns that a prompt shows of them.
//   - A [Turn] is one message, or an assistant message with its [Call]s and
//     their results.
//   - An [Item] is one message of a history, with its [Origin].
//
// It also says what a policy sees of a group ([EntriesOf], [Show]), and what
// stands for a step's result.
//
// Everything here is pure: the same entries make the same groups. Which group an
// entry belongs to depends on its neighbours only, so that a fold changes
// nothing about the rest.
//
// Caveats: groups share the messages and steps of the log, so who edits one
// edits a copy (see [Group.Copied]). A group of a log's last entries may still
// change with the next entry: see Open and Awaited of [Group].
package pairing
