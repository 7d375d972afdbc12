// Package tiers moves an agent's tasks up the tiers of its memory.
//
// The tiers of a session's tasks:
//
//   - L1, the last ones as they are: the end of the session's tasks in the log.
//   - L2, the important ones: records of tier 2.
//   - L3, summaries of formerly important ones: records of tier 3.
//   - L4, long-term memory, where one session finds what another one did: records
//     of tier 4.
//
// After each added task, [Tiers.Promote] moves what is due. An important task gets a
// record of tier 2 and stays in L1. When L2 is nearly full, its least important part
// moves to L3; when L3 is nearly full, its oldest part moves to L4. A task that leaves L1
// without having moved up stays in the log.
//
// A record keeps its id and its key, [Key], in every tier, so that it is found by the id
// of its task; its metadata is a [Summary] of the task. Each move is one commit of log
// and memory together. The records' tier alone decides what is in a tier: a record that
// somebody deletes is no longer in its tier, and a pinned record is not moved. If a move
// fails, the task stays where it was, and the next promotion tries again.
//
// Caveats: the text of a record that somebody changed is kept, whatever tier it moves
// to.
package tiers
