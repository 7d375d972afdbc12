// Package session keeps one agent's log: what was said and what was done.
//
// The nouns:
//
//   - A [Log] holds the logs of all agents. An agent's log is one scope of the
//     log keyspace.
//   - A session is a named stretch of an agent's log. Its entries have positions
//     1, 2, 3 … without a gap.
//   - An [Entry] is a [Message] of the conversation or a step.
//   - Steps also have a number, which counts over all sessions of the agent.
//   - An [Intent] is written before a tool with side effects runs, and taken
//     away by the commit of its step. One that is found when the server starts
//     belongs to a call whose outcome nobody knows.
//
// Entries are only ever added. Functions named Stage… add to a transaction of
// the caller, who commits it together with other things; all others commit for
// themselves.
//
// Caveat: entries of a kind that a later version wrote are passed over on
// reading, so positions read from such a log may have gaps.
package session
