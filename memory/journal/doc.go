// Package journal keeps what trading agents of loom.v1 note down: the plans they
// made, what became of them, and one line for each event they report.
//
// The nouns:
//
//   - A [Plan] is what an agent means to do, an [Execution] what came of a plan,
//     a line that an event happened.
//   - A session owns all three. It is a name that the caller chooses, of any
//     bytes, also none. It exists from its first entry on; one that is unknown is
//     empty, never an error. Nothing is read across two tenants.
//   - A ring holds the last entries of one sort in a session: [MaxPlans],
//     [MaxExecutions], [MaxLines]. The commit that appends an entry deletes the
//     one it pushes out.
//   - A [Journal] appends and reads.
//
// Order is that of arrival. Timestamps are the caller's and order nothing.
// An append is on disk when it returns.
//
// Caveats: an append is not idempotent; made twice, it stands there twice. A plan
// and its execution are bound by the hash alone, which nobody checks. What is on
// disk is described in memory/FORMAT.md.
package journal
