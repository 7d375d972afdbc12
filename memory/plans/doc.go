// Package plans keeps what trading agents of loom.v1 note down: the plans they made,
// the outcome of them, and a line for each event they report.
//
//   - A [Plan] is what an agent means to do, an [Execution] what came of a plan, a
//     line that an event happened. A session owns all three; its name is any bytes,
//     also none, and it exists from its first entry on.
//   - A ring holds the last entries of one sort in a session: [MaxPlans],
//     [MaxExecutions], [MaxLines]. The commit that appends one deletes what it pushes out.
//   - A [Store] appends and reads. Order is that of arrival; the callers' timestamps
//     order nothing. An append is on disk when it returns.
//
// Caveats: an append made twice stands there twice. A plan and its execution are bound
// by the hash alone, which is not checked. memory/FORMAT.md is the layout on disk.
package plans
