// Package hand is the one place where a tool call becomes a recorded step.
//
// [Hand.Call] takes a [Request] through these stations and gives an [Answer]:
//
//  1. The arguments are parsed, the tool is looked up, the schema checked. What
//     is refused here leaves no trace.
//  2. A request id, or a call of a call id, that was answered before gives that answer
//     again.
//  3. A call beyond a limit of its tool (package throttle) is refused.
//  4. A call that needs the approval of a person waits for it (package approval). One that
//     is denied is a step like every other call.
//  5. A tool that changes something gets an intent in the log.
//  6. The tool runs, under a deadline. A long result is stored as it comes.
//  7. The result is reduced to a step. Step, blob, request id and the end of
//     the intent are one commit. The bytes of the result stay as the tool, or the
//     caller of [Hand.Record], gave them.
//
// A tool that fails is an answer with Success false, and a step as well. When
// the log can't be written, the answer still carries the result, with Recorded
// false and the reason.
//
// [Hand.Recover] belongs in front of the first call: it turns the intents that a
// dead process left behind into steps whose outcome is unknown.
//
// [Folders] are the workspaces: one folder for all agents, or one for each
// tenant.
//
// Caveats: an intent of another process looks like one that was left behind, so
// Recover must not run while another process works on the same store. A tool
// that does not end with its deadline is left alone; its place among the running
// calls stays taken until it ends.
package hand
