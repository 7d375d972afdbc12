// Package tiers moves an agent's tasks up the tiers of its memory.
//
// The tiers of a session's tasks:
//
//   - L1, the last ones as they are: the end of the session's tasks in the log.
//   - L2, the important ones: records of tier 2.
//   - L3, summaries of those that were important once: records of tier 3.
//   - L4, long-term memory, where one session finds what another one did: records
//     of tier 4.
//
// After every task that is added, [Tiers.Promote] looks what is due. An important
// task gets a record of tier 2 and stays in L1. When L2 is nearly full, its least
// important part becomes L3; when L3 is, its oldest part becomes L4. A task that
// leaves L1 without having moved up stays in the log for good.
//
// A record keeps its id and its key, [Key], wherever it goes, so that it is found by
// the id of its task; its metadata are a [Summary] of the task. Each move is one
// commit of log and memory together: the bridge may join the staging functions of
// session and memory, which do not know each other. What is in a tier is decided by
// the tier of the records alone, so a record that somebody deletes is gone from its
// tier, and one that is pinned stays where it is. Where a move fails, the task stays
// where it was and the next task's promotion tries again.
//
// Caveats: the text of a record that somebody changed is kept as it is, whatever
// tier it moves to.
package tiers
